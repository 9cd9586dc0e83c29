// The API against the document that it serves: requests that are made of it, by schemathesis.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

import { startModel } from '../browser/harness/model.js';
import { backendSettings, startNavi } from '../browser/harness/navi.js';
import { required } from '../browser/harness/program.js';

const KEY = 'a-token-of-the-tests';
const IS_LONG = process.env.NAVI_FAULT_ROUNDS === 'long';
/** What is sent: to each operation, and from one to the next where there is time for it. */
const HOW_MUCH = IS_LONG ? ['--phases', 'coverage,fuzzing,stateful', '--max-examples', '20'] : ['--phases', 'coverage,fuzzing', '--max-examples', '2'];

let model, navi, url, places;
before(async () => {
  model = await startModel();
  navi = await startNavi({ ...backendSettings('ollama', model.address), NAVI_API_TOKEN: KEY, NAVI_CONSENT_MODE: 'ask', NAVI_METRICS: 'on', LLM_PARALLEL: '8' });
  url = new URL(navi.link).origin;
  places = await mkdtemp(join(tmpdir(), 'navi-fuzz-'));
});
after(async () => {
  await navi?.remove();
  await model?.stop();
  if (places !== undefined) await rm(places, { recursive: true, force: true });
});

async function api(method, path, body, headers = { 'content-type': 'application/json' }) {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${KEY}`, ...headers },
    body: body instanceof FormData ? body : body && JSON.stringify(body),
  });
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
  return response.status === 204 ? null : response.json();
}

/** Some of everything, for what is asked to find: a session with a plan, a file and a fact. */
async function furnish() {
  await model.script(
    [{ tool_call: { name: 'todo', arguments: { action: 'add', texts: ['look', 'tell'] } } }],
    [{ thinking: 'It is there.' }, { text: 'Done.' }],
  );
  const { session_id } = await api('POST', '/sessions', {});
  await api('POST', `/sessions/${session_id}/messages`, { content: 'Begin.' });
  const form = new FormData();
  form.append('file', new Blob(['some text']), 'notes.txt');
  await api('POST', `/sessions/${session_id}/files`, form, {});
  await api('PUT', '/memory/facts/people/sister', { value: 'Anna' });
}

it('answers what its document lets be asked, as the document says, and refuses the rest', async () => {
  await furnish();
  const here = fileURLToPath(new URL('.', import.meta.url));
  const child = spawn(required('NAVI_TEST_FUZZ_PYTHON'), ['-m', 'schemathesis.cli', '--config-file', join(here, 'schemathesis.toml'), 'run', `${url}/api/openapi.json`, '--no-color', ...HOW_MUCH], {
    // It leaves files where it runs.
    cwd: places,
    env: { ...process.env, NAVI_API_TOKEN: KEY, SCHEMATHESIS_HOOKS: join(here, 'hooks.py'), NAVI_TEST_MODEL: model.address, PYTHONDONTWRITEBYTECODE: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  assert.equal(code, 0, said);
  assert.match(said, /\d+ generated/, said);
  assert.ok(!/panicked at/.test(navi.output().join('\n')), 'something panicked');
});
