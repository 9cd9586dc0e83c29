// A child process whose output is read line by line, and which never outlives the tests.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** How long a test waits for anything. What takes longer hangs, on the slowest machine under load too. */
export const LIMIT_MS = 60_000;
/** Whether all variations are tried, and not one of each. */
export const IS_LONG = process.env.NAVI_FAULT_ROUNDS === 'long';
const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** An environment variable that the tests cannot do without. */
export function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run the browser tests by ./check --only browser`);
  return value;
}

/** What of the environment a program gets: nobody's settings but the test's. */
function bareEnvironment() {
  const { PATH, HOME, TMPDIR } = process.env;
  return { PATH, HOME, TMPDIR };
}

export function startProgram(path, { args = [], env = {}, cwd } = {}) {
  const child = spawn(path, args, {
    cwd,
    env: { ...bareEnvironment(), ...env },
    // An open standard input: a program may end when the tests that started it are gone.
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  running.add(child);
  const exited = new Promise((resolve) => child.once('exit', resolve));
  exited.then(() => running.delete(child));

  const output = [];
  const watchers = new Set();
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      output.push(line);
      watchers.forEach((watch) => watch());
    });
  }

  /** The first line, past or to come, that fits; as its match. */
  function line(pattern) {
    return new Promise((resolve, reject) => {
      const fail = (why) => finish(() => reject(new Error(`${path} ${why} before ${pattern}:\n${output.join('\n')}`)));
      const timer = setTimeout(() => fail('said nothing'), LIMIT_MS);
      const watch = () => {
        const match = output.map((text) => text.match(pattern)).find(Boolean);
        if (match) finish(() => resolve(match));
      };
      const finish = (settle) => {
        clearTimeout(timer);
        watchers.delete(watch);
        settle();
      };
      watchers.add(watch);
      child.once('error', (error) => fail(`did not start (${error.message})`));
      exited.then(() => fail('ended'));
      watch();
    });
  }

  async function stop(signal) {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit');
      child.kill(signal);
      const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
      await ended;
      clearTimeout(timer);
    }
    return child.exitCode;
  }

  return {
    line,
    stop,
    signal: (name) => child.kill(name),
    /** Writes a line to its standard input. */
    say: (text) => child.stdin.write(`${text}\n`),
    /** Its exit code, when it has ended. */
    exited,
    output,
  };
}
