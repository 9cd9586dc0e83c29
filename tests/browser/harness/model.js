// The fake model server: the example program `fake_model`, which speaks Ollama's and
// OpenAI's protocols, says what a test scripts, and holds back what a test gates.

import { required, startProgram } from './program.js';

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

  return {
    address,
    /**
     * What the next answers are, in order.
     * @param {...Step[]} replies
     */
    script: (...replies) => control('POST', 'script', replies.map((steps) => ({ steps }))),
    /** Opens a gate, for good: what it holds back is said. */
    release: (gate) => control('POST', `release/${gate}`),
    /** The model calls so far. */
    calls: async () => (await control('GET', 'requests')).filter(({ path }) => /chat/.test(path)),
    /** What was wrong with them: a tool call without its result, above all. */
    violations: () => control('GET', 'violations'),
    stop: () => program.stop('SIGTERM'),
  };
}
