import assert from 'node:assert/strict';
import { test } from 'node:test';

import { begun, commandLine, draftOf, EMPTY, formOf, isWritten, needsProof, withoutSecrets } from '../state/mcp.js';

/** @type {import('../state/wire.js').McpEntry} */
const ENTRY = {
  name: 'far', file: '/data/mcp.json', version: '7', command: null, args: [], env: {}, cwd: null,
  url: 'https://far.example/mcp?[hidden]', headers: { Authorization: null, Accept: '${ACCEPT}' },
  tools: ['echo'], timeout_seconds: 30, disabled: true,
};

/** @param {object} draft as the service gets it */
const sent = (draft) => JSON.parse(JSON.stringify(draft));

test('a server that is opened and saved stays what it is', () => {
  const form = formOf(ENTRY);
  assert.equal(form.headers, 'Authorization\nAccept: ${ACCEPT}');
  const { name: _, file: __, version, command: ___, cwd: ____, ...rest } = ENTRY;
  assert.deepEqual(sent(draftOf(form, ENTRY)), { ...rest, before: version });
});

test('a program has its arguments word for word, and its variables by name', () => {
  const form = { ...EMPTY, command: ' npx ', args: '-y\n a b\n\n', env: 'A=1=2\n\nKEPT\n B = x', url: 'https://old', headers: 'X: y' };
  assert.deepEqual(sent(draftOf(form, null)), {
    command: 'npx', args: ['-y', ' a b'], env: { A: '1=2', KEPT: null, B: 'x' }, headers: {}, disabled: false,
  });
  assert.equal(commandLine(draftOf(form, null)), "npx -y ' a b'");
  assert.equal(commandLine({ command: 'npx', args: ["it's"] }), "npx 'it'\\''s'");
});

test('what somebody wrote is told from what a form began with, and goes without its secrets', () => {
  for (const entry of [null, ENTRY]) {
    const form = begun(entry);
    assert.equal(isWritten(form, entry), false);
    const written = { ...form, url: 'https://new', env: 'KEY=hunter2', headers: 'Authorization: hunter2' };
    assert.equal(isWritten(written, entry), true);
    assert.deepEqual(withoutSecrets(written, entry), { ...form, url: 'https://new' });
  }
});

test('what was not touched is neither lost nor widened', () => {
  /** @type {import('../state/wire.js').McpEntry} */
  const odd = {
    ...ENTRY, command: ' npx', url: null, args: ['', 'one\ntwo', 'three'], env: { A: null, 'B=C': null }, headers: {}, tools: [],
  };
  const { name: _, file: __, version, url: ___, cwd: ____, ...rest } = odd;
  const form = formOf(odd);
  assert.deepEqual(sent(draftOf({ ...form, timeout: '31' }, odd)), { ...rest, timeout_seconds: 31, before: version });
  // What runs is shown as it is.
  assert.match(commandLine(draftOf(form, odd)), /'one\ntwo' three$/);
  assert.deepEqual(draftOf({ ...form, tools: 'echo' }, odd).tools, ['echo']);
});

test('a program, or a variable that is sent out, is for who is there', () => {
  assert.equal(needsProof(draftOf({ ...EMPTY, command: 'npx' }, null)), true);
  const far = { ...EMPTY, kind: /** @type {const} */ ('address'), url: 'https://far.example/mcp' };
  assert.equal(needsProof(draftOf(far, null)), false);
  assert.equal(needsProof(draftOf({ ...far, url: 'https://far.example/${KEY}' }, null)), true);
  assert.equal(needsProof(draftOf({ ...far, headers: 'X: Bearer ${KEY}' }, null)), true);
});
