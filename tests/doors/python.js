// Clients in Python: each reads lines of JSON, and says what came of them.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { Answer } from './adapters/answer.js';

/** A Python with `requirements.txt`. */
export const PYTHON = process.env.NAVI_TEST_DOORS_PYTHON;
export const SKIPPED = 'NAVI_TEST_DOORS_PYTHON is not set: run ./check --only doors';

/** Starts a client; `clients/lines.py` says how it is spoken with. */
export function startPython(client, ...args) {
  const child = spawn(PYTHON, [`clients/${client}`, ...args], { cwd: fileURLToPath(new URL('.', import.meta.url)), stdio: ['pipe', 'pipe', 'inherit'] });
  const say = (line) => child.stdin.write(`${JSON.stringify(line)}\n`);
  const going = new Map();
  child.stdin.on('error', () => {});
  const exited = once(child, 'exit').then(() => {
    for (const { settle } of going.values()) settle('the client ended');
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, end, ...told } = JSON.parse(line);
    const { answer, settle } = going.get(id);
    if (end === undefined) answer.told(told);
    else settle(end);
  });
  return {
    /** Has it ask; `told` takes a line of what it is told. */
    ask(asked, told = (answer, line) => answer.add(line)) {
      const id = going.size;
      return new Answer((answer) => new Promise((settle) => {
        answer.told = (line) => told(answer, line);
        answer.stop = () => say({ stop: id });
        going.set(id, { answer, settle });
        say({ id, ...asked });
      }));
    },
    async close() {
      child.stdin.end();
      await exited;
    },
    kill: () => child.kill('SIGKILL'),
  };
}
