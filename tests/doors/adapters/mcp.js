// Programs whose own model gives Navi work: MCP's clients for Python and for JavaScript, over HTTP and over `navi mcp`.

import { javascript, python, stdio } from '../mcp.js';
import { PYTHON, SKIPPED } from '../python.js';
import { Answer } from './answer.js';

const MCP = {
  tellsThinking: false,
  lacks: { 'a tool of theirs': "the program's model calls Navi; hers is lent none of its tools" },
  ends: { done: /^completed$/, stopped: /^stopped$/, failed: /^failed: .*broke/, refused: /the token is not known/ },
};
const GOES = ['queued', 'running'];
/** How long a call may take where it is to be cut off: over HTTP the clients hear nothing of that. */
const CUT_MS = 12_000;

/** What a tool told. */
async function called(client, tool, args, options) {
  const { data, text, failed, error } = await client.call(tool, args, options);
  if (error || failed) throw new Error(error ?? text);
  return data;
}

function clients(world, connect, how) {
  const all = [];
  /** The one for all that is asked, or one that is cut off, or refused; `decides` is what its user says next. */
  const begin = (options) => {
    const begun = { decides: null };
    begun.client = connect(how(world, options), { answer: () => ({ action: 'accept', content: { decision: begun.decides } }) });
    all.push(begun);
    return begun;
  };
  let shared;
  const of = (options) => (options.key || options.token !== world.token ? begin(options) : (shared ??= begin(options)));

  /** Waits for the run's end; what asks for consent, the program asks its user. */
  async function wait(answer, begun, { key, decide }) {
    const { session_id, run_id } = answer.sent;
    const client = await begun.client;
    for (;;) {
      const told = await called(client, 'run_wait', { session_id, run_id, cursor: answer.cursor, timeout_seconds: 1 }, key ? { timeout: CUT_MS } : {});
      answer.cursor = told.cursor;
      answer.did.push(...told.steps);
      answer.add({ text: told.text });
      if (told.state === 'waiting_for_consent') {
        begun.decides = decide;
        for (const { approval_id } of told.approvals) await called(client, 'approval_answer', { session_id, approval_id });
      } else if (!GOES.includes(told.state)) {
        return told.reason ? `${told.state}: ${told.reason}` : told.state;
      }
    }
  }

  return {
    ask: (text, options) => new Answer(async (answer) => {
      answer.begun = of(options);
      const client = await answer.begun.client;
      answer.sent = await called(client, 'message_send', { text, session_id: options.session });
      answer.cursor = answer.sent.cursor;
      answer.stop = () => called(client, 'run_stop', { session_id: answer.sent.session_id });
      return wait(answer, answer.begun, options);
    }),
    again: ({ text, sent, cursor }, options) => new Answer((answer) => {
      Object.assign(answer, { text, sent, cursor });
      return wait(answer, of({ token: options.token }), {});
    }),
    async cut(answer, line) {
      if (how === piped) return (await answer.begun.client).kill();
      // Between two calls it would be made again without a word.
      line.close();
      return line.cut();
    },
    close: () => Promise.allSettled(all.map(async ({ client }) => (await client).close())),
  };
}

/** Its user's token may pass on what they say to requests for consent, as that of NAVI_API_TOKEN may not. */
const http = (world, { origin, token }) => ({ url: `${origin}/api/mcp`, token: token === world.token ? world.consenting : token });
const piped = (world, { token }) => stdio(world.navi, token === world.token ? { args: ['--consent'] } : { env: { NAVI_API_TOKEN: token } });

export default [['Python', python], ['JavaScript', javascript]].flatMap(([language, connect]) =>
  [['HTTP', http], ['navi mcp', piped]].map(([way, how]) => ({
    ...MCP,
    skip: connect === python && !PYTHON ? SKIPPED : false,
    // Each language and each way has all of it once.
    ...((language === 'Python') !== (how === http) && { usually: ['a streamed answer with thinking'] }),
    name: `MCP's client for ${language}, over ${way}`,
    open: (world) => clients(world, connect, how),
  })));
