// Navi itself, with a data directory of its own.

import { randomInt } from 'node:crypto';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { required, startProgram } from './program.js';

/** The banner's first line. */
const LISTENS = /^Navi \S+ on https?:\/\/127\.0\.0\.1:(\d+)$/;

/** Settings that make a backend the one to use. */
export function backendSettings(backend, address) {
  switch (backend) {
    case 'ollama':
      return { LLM_BACKEND: 'ollama', OLLAMA_HOST: address };
    case 'openai':
      return { LLM_BACKEND: 'openai', OPENAI_BASE_URL: `${address}/v1`, OPENAI_API_KEY: 'a-test-key' };
    case 'none':
      // Nothing answers there.
      return { OLLAMA_HOST: 'http://127.0.0.1:9' };
    case 'starter':
      return { LLM_BACKEND: 'starter' };
    default:
      throw new Error(`no backend is called ${backend}`);
  }
}

/**
 * A port that was free a moment ago. Below those that a system gives to whoever asks for any: until it is used,
 * the next model server may get one of those.
 */
export async function freePort() {
  for (;;) {
    const port = randomInt(20_000, 30_000);
    const server = createServer();
    const isFree = await new Promise((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

/**
 * Starts Navi on a free port, or on the given one. `settings` are environment variables, `models` a directory of weights
 * that were fetched before.
 */
export async function startNavi(settings, { models, port: wanted = 0 } = {}) {
  const dataDir = await mkdtemp(join(tmpdir(), 'navi-browser-'));
  if (models !== undefined) await cp(models, join(dataDir, 'models'), { recursive: true });
  let port = wanted;
  let program;
  let link;

  async function start() {
    const env = { STARTER_MODEL: 'off', LLM_PARALLEL: '1', LLM_STREAM_CHUNK_TIMEOUT: '600', ...settings, NAVI_BIND: `127.0.0.1:${port}`, NAVI_DATA_DIR: dataDir };
    program = startProgram(required('NAVI_BIN'), { cwd: dataDir, env });
    port = Number((await program.line(LISTENS))[1]);
    link = (await startProgram(required('NAVI_BIN'), { args: ['link'], cwd: dataDir, env }).line(/^https?:\S+$/))[0];
  }

  await start();
  return {
    /** A link for the newest start; good for one login. */
    get link() {
      return link;
    },
    dataDir,
    output: () => program.output,
    /** As the machine's power going: nothing is written any more. */
    kill: () => program.stop('SIGKILL'),
    /** As a process that hangs: its sockets stay, and nothing comes. */
    freeze: () => program.signal('SIGSTOP'),
    thaw: () => program.signal('SIGCONT'),
    /** As a person ends it. */
    stop: () => program.stop('SIGTERM'),
    /** On the same port, with the same data. */
    start,
    async remove() {
      await program.stop('SIGKILL');
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
