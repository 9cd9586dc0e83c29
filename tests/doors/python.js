// Clients in Python: each reads what it is asked as a line of JSON, and says what came of it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** A Python with `requirements.txt`. */
export const PYTHON = process.env.NAVI_TEST_DOORS_PYTHON;
export const SKIPPED = 'NAVI_TEST_DOORS_PYTHON is not set: run ./check --only doors';

/** Runs a client to its end. Gives its lines. */
export async function python(client, asked) {
  const child = spawn(PYTHON, [`clients/${client}`], { cwd: fileURLToPath(new URL('.', import.meta.url)), stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(`${JSON.stringify(asked)}\n`);
  const [said] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return said.trim().split('\n').map((line) => JSON.parse(line));
}
