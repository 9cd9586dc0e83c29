import assert from 'node:assert/strict';
import { test } from 'node:test';

import { commandLine, draftOf, EMPTY, formOf } from '../state/mcp.js';

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
  assert.equal(commandLine(form), "npx -y ' a b'");
  assert.equal(commandLine({ ...form, args: "it's" }), "npx 'it'\\''s'");
});
