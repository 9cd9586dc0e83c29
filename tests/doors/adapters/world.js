// What the clients meet: one service before one model, whose user looks over REST with a token.

import assert from 'node:assert/strict';
import { connect, createServer } from 'node:net';

import { startModel } from '../../browser/harness/model.js';
import { backendSettings, startNavi } from '../../browser/harness/navi.js';
import { LIMIT_MS, required, startProgram } from '../../browser/harness/program.js';

const token = 'a-token-of-the-tests';

export async function startWorld(settings) {
  const model = await startModel();
  const navi = await startNavi({ ...backendSettings('ollama', model.address), NAVI_API_TOKEN: token, NAVI_CONSENT_MODE: 'ask', LLM_PARALLEL: '8', ...settings });
  const { origin } = new URL(navi.link);

  /** Asks the API; by POST where there is something to send. */
  async function rest(path, body, method = body ? 'POST' : 'GET') {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(new URL(path, origin), { method, headers, body: body && JSON.stringify(body) });
    const text = await response.text();
    assert.ok(response.ok, `${path}: ${response.status} ${text}`);
    return text === '' ? null : JSON.parse(text);
  }

  /** Waits until the condition holds on what stands at the path, and gives it; `fails` says why it never will. */
  async function until(path, holds, fails = () => null) {
    for (const end = Date.now() + LIMIT_MS; ;) {
      const stands = await rest(path);
      if (holds(stands)) return stands;
      if (fails() !== null || Date.now() > end) assert.fail(`${fails() ?? 'not in time'}: ${JSON.stringify(stands)}`);
    }
  }

  /** A relay before the service that a test can cut. */
  async function line() {
    const { port, hostname } = new URL(origin);
    const ends = new Set();
    const server = createServer((near) => {
      const far = connect(Number(port), hostname);
      ends.add(near).add(far);
      for (const socket of [near, far]) socket.on('error', () => {}).on('close', () => { near.destroy(); far.destroy(); });
      near.pipe(far);
      far.pipe(near);
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    return { origin: `http://127.0.0.1:${server.address().port}`, cut: () => ends.forEach((socket) => socket.destroy()), close: () => server.close() };
  }

  async function close() {
    await navi.remove();
    await model.stop();
  }

  // A token of a program that passes on what its user allows, made as a person does it.
  const adding = startProgram(required('NAVI_BIN'), { args: ['token', 'add', 'a program', '--consent'], env: { NAVI_DATA_DIR: navi.dataDir } });
  const [consenting] = await adding.line(/^navi_\S+$/);
  return { model, navi, origin, token, consenting, rest, until, line, close };
}
