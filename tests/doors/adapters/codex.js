// Codex's `exec`.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

import { Answer } from './answer.js';
import { headersOf } from './openai.js';

const PROGRAM = join(dirname(createRequire(import.meta.url).resolve('@openai/codex/package.json')), 'bin/codex.js');
const quoted = JSON.stringify;

/** Its settings. It comes back by itself where its connection was cut. */
function settings({ origin, ...options }) {
  const headers = Object.entries(headersOf(options)).map(([name, value]) => `${quoted(name)} = ${quoted(value)}`);
  const provider = {
    name: '"Navi"', base_url: quoted(`${origin}/v1`), wire_api: '"responses"', env_key: '"NAVI_TOKEN"',
    http_headers: `{ ${headers.join(', ')} }`, request_max_retries: 0, stream_max_retries: options.key ? 3 : 0,
  };
  const named = Object.entries(provider).map(([name, value]) => `model_providers.navi.${name}=${value}`);
  return ['model="navi"', 'model_provider="navi"', ...named].flatMap((setting) => ['-c', setting]);
}

async function open() {
  const home = await mkdtemp(join(tmpdir(), 'codex-'));
  const ask = (text, options) => new Answer(async (answer) => {
    const args = [PROGRAM, 'exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', ...settings(options), text];
    const env = { PATH: process.env.PATH, HOME: home, CODEX_HOME: home, NAVI_TOKEN: options.token };
    const child = spawn(process.execPath, args, { cwd: home, env, stdio: ['ignore', 'pipe', 'ignore'] });
    const exited = once(child, 'exit');
    answer.stop = () => child.kill('SIGINT');
    let end = 'no end';
    for await (const line of createInterface({ input: child.stdout })) {
      const { type, item, error } = JSON.parse(line);
      if (type === 'turn.completed' || type === 'turn.failed') end = error ? `${type}: ${error.message}` : type;
      if (type !== 'item.completed') continue;
      if (item.type === 'reasoning') answer.add({ thinking: item.text });
      if (item.type === 'agent_message') answer.add({ text: item.text });
      if (item.type === 'command_execution') answer.add({ calls: 'exec_command' });
    }
    const [code, signal] = await exited;
    return `${end}, ${signal ?? code}`;
  });
  return { ask, close: () => rm(home, { recursive: true, force: true }) };
}

export default [{
  name: "Codex's exec",
  // It tells items when they are whole.
  first: 'thinking',
  call: { name: 'exec_command', arguments: { cmd: 'echo snow in $(echo Kyiv)' } },
  asks: 'page',
  tellsOfOurs: false,
  comesBack: true,
  ends: { done: /^turn\.completed, 0$/, stopped: /^no end, /, failed: /^turn\.failed: .*broke, 1$/, refused: /^turn\.failed: .*401 Unauthorized.*, 1$/ },
  open,
}];
