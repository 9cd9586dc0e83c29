// The fake model server: the example program `fake_model`, which speaks Ollama's and
// OpenAI's protocols, says what a test scripts, and holds back what a test gates.

import assert from 'node:assert/strict';

import { LIMIT_MS, required, startProgram } from './program.js';

/**
 * What it does in an answer, one after the other; `tests/support/fake_model/script.rs` has all.
 * @typedef {{ text: string } | { thinking: string } | { hold: string } | { tool_call: { name: string, arguments: object } }} Step
 */

/** Starts a model server, on a port of its choice or on the given one. */
export async function startModel({ port = 0 } = {}) {
  const program = startProgram(required('FAKE_MODEL_BIN'), { args: [String(port)] });
  const [address] = await program.line(/^http:\/\/\S+/);

  async function control(method, path, body) {
    const response = await fetch(`${address}/control/${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`/control/${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  const calls = async () => (await control('GET', 'requests')).filter(({ path }) => /chat/.test(path));

  return {
    address,
    /**
     * What the next answers are, in order; with conditions where a reply is an object
     * (`control.rs` has them all).
     * @param {...(Step[] | { steps: Step[], streamed?: boolean, with_tools?: boolean, system?: string, last?: string, when?: string, always?: boolean })} replies
     */
    script: (...replies) =>
      control('POST', 'script', replies.map((reply) => (Array.isArray(reply) ? { steps: reply } : reply))),
    /** What it claims to be; `Config` in `tests/support/fake_model/mod.rs` has all. */
    configure: (config) => control('POST', 'config', config),
    /** Opens a gate, for good: what it holds back is said. */
    release: (gate) => control('POST', `release/${gate}`),
    /** The model calls so far. */
    calls,
    /** Waits until the condition on the runs' calls (all but plans, titles, summaries) holds, and gives them. */
    async runCallsWhere(holds) {
      const end = Date.now() + LIMIT_MS;
      for (;;) {
        const runs = (await calls()).filter(({ body }) => body.stream !== false);
        if (holds(runs)) return runs;
        if (Date.now() > end) assert.fail(`not in time: ${JSON.stringify(runs, null, 1)}`);
      }
    },
    /** What was wrong with them: a tool call without its result, above all. */
    violations: () => control('GET', 'violations'),
    stop: () => program.stop('SIGTERM'),
  };
}
