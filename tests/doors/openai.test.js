// Chat Completions through the clients that people have: OpenAI's own for Python and JavaScript,
// and the AI SDK's provider for servers that are like it.

import assert from 'node:assert/strict';
import { createServer, connect } from 'node:net';
import { after, before, describe, it } from 'node:test';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';

import { startModel } from '../browser/harness/model.js';
import { backendSettings, startNavi } from '../browser/harness/navi.js';
import { PYTHON, python as runPython, SKIPPED } from './python.js';

const KEY = 'a-token-of-the-tests';
const WEATHER = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
const CALL = { tool_call: { name: 'weather', arguments: { city: 'Kyiv' } } };
/** What the model does that answers with thinking and with a tool of Navi's. */
const WORKING = [
  [{ thinking: 'First the list.' }, { tool_call: { name: 'todo', arguments: { action: 'add', texts: ['look'] } } }],
  [{ text: 'All ' }, { text: 'done.' }],
];

let model, navi, base;
before(async () => {
  model = await startModel();
  navi = await startNavi({ ...backendSettings('ollama', model.address), NAVI_API_TOKEN: KEY, NAVI_CONSENT_MODE: 'ask', LLM_PARALLEL: '8' });
  base = `${new URL(navi.link).origin}/v1`;
});
after(async () => {
  await navi?.remove();
  await model?.stop();
});

/** Runs the Python client over a conversation. Gives what came of each turn. */
const python = (conversation) => runPython('openai_client.py', { base_url: base, api_key: KEY, ...conversation });

const js = (options) => new OpenAI({ baseURL: base, apiKey: KEY, ...options });
const asked = (content, more) => ({ model: 'navi', stream: true, messages: [{ role: 'user', content }], ...more });

/** All that a stream of OpenAI's JavaScript client gives. */
async function gathered(stream) {
  const told = { text: '', thinking: '', calls: [], finish: null };
  for await (const chunk of stream) {
    const [choice] = chunk.choices;
    told.text += choice?.delta.content ?? '';
    told.thinking += choice?.delta.reasoning_content ?? '';
    told.calls.push(...(choice?.delta.tool_calls ?? []));
    told.finish = choice?.finish_reason ?? told.finish;
  }
  return told;
}

/** The model calls that answer, so far. */
const answers = () => model.runCallsWhere(() => true);

/** A relay that a test can cut. */
async function relay() {
  const target = new URL(base);
  const pairs = new Set();
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    pairs.add(near).add(far);
    for (const socket of [near, far]) socket.on('error', () => {}).on('close', () => { near.destroy(); far.destroy(); });
    near.pipe(far);
    far.pipe(near);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    base: `http://127.0.0.1:${server.address().port}/v1`,
    cut: () => pairs.forEach((socket) => socket.destroy()),
    close: () => server.close(),
  };
}

describe("OpenAI's client for Python", { skip: PYTHON ? false : SKIPPED }, () => {
  it('reads a streamed answer with thinking and a tool of ours, then calls one of its own', async () => {
    await model.script(...WORKING, [CALL], [{ text: 'It snows.' }]);
    const [first, second, third] = await python({
      tools: [WEATHER],
      turns: [{ text: 'Begin.' }, { text: 'The weather?' }, { result: 'snow, -3' }],
    });
    assert.deepEqual([first.text, first.thinking, first.finish, first.error], ['All done.', 'First the list.', 'stop', null]);
    assert.ok(first.usage > 0);
    assert.deepEqual([second.finish, second.calls[0].function.name], ['tool_calls', 'weather']);
    assert.deepEqual([third.text.trim(), third.finish], ['It snows.', 'stop']);
  });

  it('holds a conversation in a session', async () => {
    await model.script({ streamed: true, steps: [{ text: 'One.' }] }, { streamed: true, steps: [{ text: 'Two.' }] });
    const told = await python({ headers: { 'X-Navi-Session': 'python' }, turns: [{ text: 'Count.' }, { text: 'On.' }] });
    assert.deepEqual(told.map(({ text }) => text), ['One.', 'Two.']);
    const listed = await (await fetch(new URL('/sessions', base), { headers: { authorization: `Bearer ${KEY}` } })).json();
    assert.equal(listed.length, 1);
  });

  it('understands a failure in mid-stream, and a wrong token', async () => {
    await model.script([{ text: 'Half' }, { error: 'the model broke' }]);
    const [failed] = await python({ turns: [{ text: 'Fail.' }] });
    assert.match(failed.error, /^APIError: /);
    const [refused] = await python({ api_key: 'wrong', turns: [{ text: 'Hi.' }] });
    assert.match(refused.error, /^AuthenticationError: .*401/);
  });
});

describe("OpenAI's client for JavaScript", () => {
  it('reads a streamed answer with thinking and a tool of ours', async () => {
    await model.script(...WORKING);
    const told = await gathered(await js().chat.completions.create(asked('Begin.')));
    assert.deepEqual([told.text, told.thinking, told.finish], ['All done.', 'First the list.', 'stop']);
  });

  it('runs its own tools', async () => {
    await model.script([CALL], [{ text: 'It snows.' }]);
    const runner = js().chat.completions.runTools({
      ...asked('The weather?'),
      tools: [{ ...WEATHER, function: { ...WEATHER.function, parse: JSON.parse, function: ({ city }) => `snow in ${city}` } }],
    });
    assert.equal((await runner.finalContent()).trim(), 'It snows.');
    const calls = await model.runCallsWhere((runs) => JSON.stringify(runs.at(-1).body).includes('snow in Kyiv'));
    assert.ok(calls.length > 0);
  });

  it('sends a file along, which the model reads', async () => {
    await model.script([{ text: 'Read.' }]);
    const data = Buffer.from('the code word is marmalade').toString('base64');
    const content = [{ type: 'file', file: { filename: 'word.txt', file_data: `data:text/plain;base64,${data}` } }, { type: 'text', text: 'Read it.' }];
    const told = await gathered(await js().chat.completions.create(asked(content)));
    assert.equal(told.text, 'Read.');
    const [call] = (await answers()).slice(-1);
    assert.match(JSON.stringify(call.body), /the code word is marmalade/);
    const wrong = [{ type: 'file', file: { file_id: 'file-1' } }];
    await assert.rejects(js().chat.completions.create(asked(wrong)), OpenAI.BadRequestError);
  });

  it('stops by going away', async () => {
    await model.script([{ text: 'On and on' }, { hold: 'for ever' }]);
    const stream = await js().chat.completions.create(asked('Stop me.'));
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    stream.controller.abort();
    await model.runCallsWhere((runs) => runs.some((run) => run.closed_early_ms !== null));
  });

  it('joins the run again when the connection was cut', async () => {
    const line = await relay();
    const before = (await answers()).length;
    await model.script([{ hold: 'cut' }, { text: 'Whole.' }]);
    const answer = js({ baseURL: line.base, maxRetries: 3 }).chat.completions.create({ ...asked('Only once.'), stream: false });
    await model.runCallsWhere((runs) => runs.length > before);
    line.cut();
    await model.release('cut');
    assert.equal((await answer).choices[0].message.content, 'Whole.');
    assert.equal((await answers()).length, before + 1);
    line.close();
  });

  it('may ask twice at once on one session: one after the other, both answered', async () => {
    const headers = { 'X-Navi-Session': 'twice' };
    await model.script({ when: 'First', steps: [{ hold: 'twice' }, { text: 'One.' }] }, { when: 'Second', steps: [{ text: 'Two.' }] });
    const first = js().chat.completions.create({ ...asked('First'), stream: false }, { headers });
    await model.runCallsWhere((runs) => runs.some((run) => JSON.stringify(run.body).includes('First')));
    const second = js().chat.completions.create({ ...asked('Second'), stream: false }, { headers });
    await model.release('twice');
    const texts = (await Promise.all([first, second])).map(({ choices }) => choices[0].message.content);
    assert.deepEqual(texts, ['One.', 'Two.']);
  });

  it('understands a failure in mid-stream, a wrong token and a model that is not there', async () => {
    await model.script([{ text: 'Half' }, { error: 'the model broke' }]);
    await assert.rejects(gathered(await js().chat.completions.create(asked('Fail.'))), OpenAI.APIError);
    await assert.rejects(js({ apiKey: 'wrong' }).models.list(), OpenAI.AuthenticationError);
    await assert.rejects(js().chat.completions.create({ ...asked('Hi'), model: 'gpt-9' }), OpenAI.NotFoundError);
    const ids = (await js().models.list()).data.map(({ id }) => id);
    assert.ok(ids.includes('navi'), `${ids}`);
  });
});

describe('a conversation that the page shows too', () => {
  const headers = { 'X-Navi-Session': 'with-a-page' };
  const write = (path) => ({ tool_call: { name: 'filesystem', arguments: { action: 'write', path, content: 'x' } } });
  const rest = async (path, options = {}) => {
    const response = await fetch(new URL(path, base), { ...options, headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' } });
    return response.status === 204 ? null : response.json();
  };

  /** Asks for a file, and answers the request for consent as a person does on the page. */
  async function asks(path, decision) {
    await model.script([write(path)], [{ text: `${decision}: done.` }]);
    const { data: stream, response } = await js().chat.completions.create(asked(`Write ${path}.`), { headers }).withResponse();
    const session = response.headers.get('x-navi-session');
    const told = { text: '', waits: [] };
    for await (const chunk of stream) {
      told.text += chunk.choices[0]?.delta.content ?? '';
      const doing = chunk.event?.data.description ?? '';
      if (!doing.startsWith('waits for you')) continue;
      told.waits.push(doing);
      const { approvals: [{ approval_id }] } = await rest(`/sessions/${session}/approvals`);
      await rest(`/sessions/${session}/approvals/${approval_id}`, { method: 'POST', body: JSON.stringify({ decision }) });
    }
    return { ...told, session };
  }

  it('waits for consent there, and goes on with it, and without it', async () => {
    const allowed = await asks('a.txt', 'once');
    assert.match(allowed.waits[0], /a\.txt/);
    assert.equal(allowed.text, 'once: done.');
    const denied = await asks('b.txt', 'deny');
    assert.equal(denied.text, 'deny: done.');
    const files = await rest(`/sessions/${allowed.session}/workspace`);
    const names = files.entries.map(({ path }) => path);
    assert.deepEqual([names.includes('a.txt'), names.includes('b.txt')], [true, false]);
  });
});

describe('a service that is killed in mid-answer', () => {
  it('is an error that the client understands, and nothing is begun a second time', async () => {
    const before = (await answers()).length;
    await model.script([{ text: 'Half an' }, { hold: 'killed' }]);
    const stream = await js().chat.completions.create(asked('Do it once.'));
    await assert.rejects(async () => {
      for await (const chunk of stream) {
        if (chunk.choices[0]?.delta.content) await navi.kill();
      }
    });
    await navi.start();
    base = `${new URL(navi.link).origin}/v1`;
    const again = js({ maxRetries: 0, defaultHeaders: { 'x-stainless-retry-count': '1' } });
    await assert.rejects(gathered(await again.chat.completions.create(asked('Do it once.'))), /interrupted/);
    assert.equal((await answers()).length, before + 1);
  });
});

describe("the AI SDK's provider", () => {
  const provider = () => createOpenAICompatible({ name: 'navi', baseURL: base, apiKey: KEY, includeUsage: true });

  it('streams text and reasoning, and meets no call that is not its own', async () => {
    await model.script(...WORKING);
    const result = streamText({ model: provider()('navi'), prompt: 'Begin.' });
    const parts = [];
    for await (const part of result.fullStream) parts.push(part);
    assert.deepEqual(parts.filter(({ type }) => type === 'error'), []);
    assert.equal(parts.filter(({ type }) => type === 'text-delta').map(({ text }) => text).join(''), 'All done.');
    assert.equal(parts.filter(({ type }) => type === 'reasoning-delta').map(({ text }) => text).join(''), 'First the list.');
    assert.equal(await result.finishReason, 'stop');
  });

  it('runs its own tools', async () => {
    await model.script([CALL], [{ text: 'It snows.' }]);
    const result = await generateText({
      model: provider()('navi'),
      prompt: 'The weather?',
      stopWhen: stepCountIs(3),
      tools: {
        weather: tool({
          description: 'The weather of a city.',
          inputSchema: jsonSchema(WEATHER.function.parameters),
          execute: async ({ city }) => `snow in ${city}`,
        }),
      },
    });
    assert.equal(result.text.trim(), 'It snows.');
    assert.equal(result.steps.length, 2);
  });
});
