// OpenAI's own clients, for Chat Completions and for Responses.

import OpenAI from 'openai';

import { PYTHON, SKIPPED, startPython } from '../python.js';
import { Answer, weather, WEATHER } from './answer.js';

const OWN_TOOL = { type: 'function', function: WEATHER };
const RESULT = weather({ city: 'Kyiv' });
const CHAT = { asks: 'page', ends: { done: /^stop$/, stopped: /^no end$/, failed: /^APIError: .*broke/, refused: /^AuthenticationError: .*401/ } };
const RESPONSES = { ends: { done: /^completed$/, stopped: /^cancelled$/, failed: /^failed: .*broke/, refused: /^AuthenticationError: .*401/ } };

/** The headers that say in which session it is, and that it is the same again. */
export const headersOf = ({ session, key }) => ({ ...(session && { 'X-Navi-Session': session }), ...(key && { 'Idempotency-Key': key }) });

const js = ({ origin, token }) => new OpenAI({ baseURL: `${origin}/v1`, apiKey: token, maxRetries: 0 });

const chat = {
  ...CHAT,
  name: "OpenAI's client for JavaScript, Chat Completions",
  open: () => ({
    ask: (text, options) => new Answer(async (answer) => {
      const headers = headersOf(options);
      const asked = { model: 'navi', stream: true, messages: [{ role: 'user', content: text }] };
      let finish = 'no end';
      const hear = (chunk) => {
        const { delta = {}, finish_reason } = chunk.choices[0] ?? {};
        answer.add({ text: delta.content, thinking: delta.reasoning_content, calls: delta.tool_calls?.[0].function.name, did: chunk.event?.data.description });
        finish = finish_reason ?? finish;
      };
      if (options.tools) {
        const own = { ...WEATHER, parse: JSON.parse, function: weather };
        const runner = js(options).chat.completions.runTools({ ...asked, tools: [{ type: 'function', function: own }] }, { headers });
        await runner.on('chunk', hear).done();
        return finish;
      }
      const stream = await js(options).chat.completions.create(asked, { headers });
      answer.stop = () => stream.controller.abort();
      for await (const chunk of stream) hear(chunk);
      return finish;
    }),
  }),
};

/** Reads a stream of Responses. Gives the response as it ended. */
async function heard(answer, client, stream) {
  let last;
  for await (const event of stream) {
    if (event.type === 'response.created') {
      answer.response = event.response.id;
      answer.stop = () => client.responses.cancel(answer.response);
    }
    if (event.type === 'response.output_text.delta') answer.add({ text: event.delta, number: event.sequence_number });
    if (event.type === 'response.reasoning_summary_text.delta') answer.add({ thinking: event.delta });
    if (event.type === 'response.output_item.done' && event.item.type === 'mcp_call') answer.add({ did: event.item.name });
    last = event.response ?? last;
  }
  return last;
}

const ended = ({ status, error }) => (error ? `${status}: ${error.message}` : status);

const responses = {
  ...RESPONSES,
  name: "OpenAI's client for JavaScript, Responses",
  open: () => ({
    ask: (text, options) => new Answer(async (answer) => {
      const client = js(options);
      const tools = options.tools ? [{ type: 'function', ...WEATHER }] : [];
      for (let input = text, previous_response_id; ;) {
        const stream = await client.responses.create({ model: 'navi', input, tools, previous_response_id, stream: true }, { headers: headersOf(options) });
        const last = await heard(answer, client, stream);
        input = last.output.flatMap((item) => {
          if (item.type === 'mcp_approval_request') return { type: 'mcp_approval_response', approval_request_id: item.id, approve: options.decide === 'once' };
          if (item.type !== 'function_call') return [];
          answer.add({ calls: item.name });
          return { type: 'function_call_output', call_id: item.call_id, output: weather(JSON.parse(item.arguments)) };
        });
        if (input.length === 0) return ended(last);
        previous_response_id = last.id;
      }
    }),
    again: (cut, options) => new Answer(async (answer) => {
      const client = js(options);
      answer.add({ text: cut.text });
      const stream = await client.responses.retrieve(cut.response, { stream: true, starting_after: cut.number });
      return ended(await heard(answer, client, stream));
    }),
  }),
};

/** A client for Python, which reads what it asks as a line. */
function python(program, tool) {
  const client = startPython(program);
  const line = ({ origin, token, tools, decide, ...options }) =>
    ({ base_url: `${origin}/v1`, api_key: token, headers: headersOf(options), tools: tools ? [tool] : [], result: RESULT, decide });
  return { client, line, ask: (text, options) => client.ask({ text, ...line(options) }), close: client.close };
}

const skip = PYTHON ? false : SKIPPED;

const pythonChat = {
  ...CHAT,
  skip,
  name: "OpenAI's client for Python, Chat Completions",
  ends: { ...CHAT.ends, stopped: /^CancelledError/ },
  open: () => python('openai_client.py', OWN_TOOL),
};

const pythonResponses = {
  ...RESPONSES,
  skip,
  name: "OpenAI's client for Python, Responses",
  open() {
    const it = python('responses_client.py', { type: 'function', ...WEATHER });
    const again = ({ text, response, number }, options) => {
      const answer = it.client.ask({ response, number, ...it.line(options) });
      answer.add({ text });
      return answer;
    };
    return { ...it, again };
  },
};

export default [pythonChat, chat, pythonResponses, responses];
