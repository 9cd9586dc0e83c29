// The AI SDK's providers: for servers that are like OpenAI's, and for OpenAI's Responses.

import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { jsonSchema, stepCountIs, streamText, tool } from 'ai';

import { Answer, weather, WEATHER } from './answer.js';
import { headersOf } from './openai.js';

const OWN = { [WEATHER.name]: tool({ description: WEATHER.description, inputSchema: jsonSchema(WEATHER.parameters), execute: weather }) };
const ENDS = { done: /^stop$/, stopped: /^abort$/, failed: /broke/, refused: /^AI_APICallError 401/ };

const client = (modelOf) => ({
  ask: (text, options) => new Answer(async (answer) => {
    const going = new AbortController();
    answer.stop = () => going.abort();
    const messages = [{ role: 'user', content: text }];
    for (;;) {
      const told = streamText({
        model: modelOf(options), messages, headers: headersOf(options), maxRetries: 0, abortSignal: going.signal,
        stopWhen: stepCountIs(3), ...(options.tools && { tools: OWN }), onError: () => {},
        // What is stored goes on without its reader.
        ...(options.stops && { providerOptions: { openai: { store: false } } }),
      });
      const requests = [];
      let finish;
      for await (const part of told.fullStream) {
        if (part.type === 'text-delta') answer.add({ text: part.text });
        if (part.type === 'reasoning-delta') answer.add({ thinking: part.text });
        if (part.type === 'tool-call') answer.add({ [part.providerExecuted ? 'did' : 'calls']: part.toolName });
        if (part.type === 'tool-approval-request') requests.push(part);
        if (part.type === 'error') throw named(part.error);
        if (part.type === 'abort') return 'abort';
        if (part.type === 'finish') finish = part.finishReason;
      }
      if (requests.length === 0) return finish;
      const content = requests.map(({ approvalId }) => ({ type: 'tool-approval-response', approvalId, approved: options.decide === 'once', providerExecuted: true }));
      messages.push(...(await told.response).messages, { role: 'tool', content });
    }
  }),
});

/** An error with its status, by its own name. */
const named = (error) => Object.assign(new Error(), { constructor: { name: `${error.name ?? 'error'} ${error.statusCode ?? ''}` }, message: error.message ?? JSON.stringify(error) });

const like = ({ origin, token }) => createOpenAICompatible({ name: 'navi', baseURL: `${origin}/v1`, apiKey: token })('navi');
const responses = ({ origin, token }) => createOpenAI({ baseURL: `${origin}/v1`, apiKey: token })('navi');

export default [
  { name: "the AI SDK's provider for servers like OpenAI's", asks: 'page', tellsOfOurs: false, ends: ENDS, open: () => client(like) },
  { name: "the AI SDK's provider for Responses", ends: ENDS, open: () => client(responses) },
];
