// Responses through the clients that people have: OpenAI's own for Python and JavaScript, the AI
// SDK's provider, and Codex.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';

import { createOpenAI } from '@ai-sdk/openai';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';

import { startModel } from '../browser/harness/model.js';
import { backendSettings, startNavi } from '../browser/harness/navi.js';
import { PYTHON, python as runPython, SKIPPED } from './python.js';

const KEY = 'a-token-of-the-tests';
const PARAMETERS = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const WEATHER = { type: 'function', name: 'weather', description: 'The weather of a city.', parameters: PARAMETERS };
const CALL = { tool_call: { name: 'weather', arguments: { city: 'Kyiv' } } };
/** What the model does that answers with thinking and with a tool of Navi's. */
const WORKING = [
  [{ thinking: 'First the list.' }, { tool_call: { name: 'todo', arguments: { action: 'add', texts: ['look'] } } }],
  [{ text: 'All ' }, { text: 'done.' }],
];
const write = (path) => ({ tool_call: { name: 'filesystem', arguments: { action: 'write', path, content: 'x' } } });

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
const python = (conversation) => runPython('responses_client.py', { base_url: base, api_key: KEY, ...conversation });

const js = (options) => new OpenAI({ baseURL: base, apiKey: KEY, ...options });
const rest = async (path, options = {}) => {
  const response = await fetch(new URL(path, base), { ...options, headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' } });
  return response.status === 204 ? null : response.json();
};

/** The model calls that answer, so far. */
const answers = () => model.runCallsWhere(() => true);
const types = (output) => output.map(({ type }) => type);

/** All events of a stream. */
async function gathered(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

describe("OpenAI's client for Python", { skip: PYTHON ? false : SKIPPED }, () => {
  it('reads thinking, a tool of ours and text, and finds the response again', async () => {
    await model.script(...WORKING);
    const [told] = await python({ turns: [{ input: 'Begin.' }] });
    assert.deepEqual([told.text, told.thinking, told.status, told.error], ['All done.', 'First the list.', 'completed', null]);
    assert.deepEqual(types(told.output), ['reasoning', 'mcp_call', 'message']);
    const [, call] = told.output;
    assert.deepEqual([call.name, call.server_label, JSON.parse(call.arguments).action], ['todo', 'navi', 'add']);
    assert.ok(call.output && told.usage > 0 && told.kept);
  });

  it('calls a tool of its own, and goes on from the response before', async () => {
    await model.script([CALL], [{ text: 'It snows.' }], [{ text: 'Still.' }]);
    const [called, answered, next] = await python({
      tools: [WEATHER],
      turns: [{ input: 'The weather?' }, { input: [{ type: 'function_call_output', call_id: 0, output: 'snow, -3' }] }, { input: 'And now?' }],
    });
    assert.deepEqual(types(called.output), ['function_call']);
    assert.equal(called.output[0].arguments, '{"city":"Kyiv"}');
    assert.deepEqual([answered.text, answered.kept, next.text], ['It snows.', true, 'Still.']);
    const calls = await answers();
    assert.match(JSON.stringify(calls.at(-1).body), /The weather\?.*snow, -3.*It snows\..*And now\?/s);
  });

  it('passes on what a person allows and denies', async () => {
    await model.script([write('a.txt')], [{ text: 'Written.' }], [write('b.txt')], [{ text: 'Then not.' }]);
    const answer = (approve) => ({ input: [{ type: 'mcp_approval_response', approval_request_id: 0, approve }] });
    const told = await python({ turns: [{ input: 'Write a.' }, answer(true), { input: 'Write b.' }, answer(false)] });
    assert.deepEqual(types(told[0].output), ['mcp_approval_request']);
    assert.match(told[0].output[0].arguments, /a\.txt/);
    assert.deepEqual(types(told[1].output), ['mcp_call', 'message']);
    assert.deepEqual([told[1].text, told[1].output[0].status], ['Written.', 'completed']);
    assert.deepEqual(types(told[2].output), ['mcp_approval_request']);
    assert.equal(told[3].text, 'Then not.');
    assert.ok(told.every(({ kept }) => kept));
  });

  it('understands a failure in mid-stream, and a wrong token', async () => {
    await model.script([{ text: 'Half' }, { error: 'the model broke' }]);
    const [failed] = await python({ turns: [{ input: 'Fail.' }] });
    assert.deepEqual([failed.text, failed.status], ['Half', 'failed']);
    const [refused] = await python({ api_key: 'wrong', turns: [{ input: 'Hi.' }] });
    assert.match(refused.error, /^AuthenticationError: .*401/);
  });
});

describe("OpenAI's client for JavaScript", () => {
  it('is told what came after the event that it had last, as often as it asks', async () => {
    await model.script([{ thinking: 'Hm.' }, { text: 'One two ' }, { hold: 'rest' }, { text: 'three.' }]);
    const stream = await js().responses.create({ model: 'navi', input: 'Count.', stream: true, background: true });
    let id, last, had = '';
    for await (const event of stream) {
      id ??= event.response?.id;
      last = event.sequence_number;
      if (event.type === 'response.output_text.delta') had += event.delta;
      if (had) break;
    }
    stream.controller.abort();
    assert.equal((await js().responses.retrieve(id)).status, 'in_progress');
    const going = gathered(await js().responses.retrieve(id, { stream: true, starting_after: last }));
    await model.release('rest');
    const rest = await going;
    const text = (events) => events.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta).join('');
    assert.equal(had + text(rest), 'One two three.');
    assert.ok(rest.every(({ sequence_number }) => sequence_number > last));
    const again = await gathered(await js().responses.retrieve(id, { stream: true, starting_after: last }));
    assert.equal(text(again), text(rest));
    assert.deepEqual(again.at(-1).sequence_number, rest.at(-1).sequence_number);
    const whole = await js().responses.retrieve(id);
    assert.deepEqual([whole.status, whole.output_text], ['completed', 'One two three.']);
    const [asked] = (await js().responses.inputItems.list(id)).data;
    assert.equal(asked.content[0].text, 'Count.');
  });

  it('sends a file along, which the model reads', async () => {
    await model.script([{ text: 'Read.' }]);
    const file_data = Buffer.from('the code word is quince').toString('base64');
    const content = [{ type: 'input_file', filename: 'word.txt', file_data }, { type: 'input_text', text: 'Read it.' }];
    const told = await js().responses.create({ model: 'navi', input: [{ role: 'user', content }] });
    assert.equal(told.output_text, 'Read.');
    assert.match(JSON.stringify((await answers()).at(-1).body), /the code word is quince/);
    await assert.rejects(js().responses.create({ model: 'navi', input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }] }), OpenAI.BadRequestError);
  });

  it('cancels what goes in the background', async () => {
    await model.script([{ text: 'On and on' }, { hold: 'for ever' }]);
    const begun = await js().responses.create({ model: 'navi', input: 'Go on.', background: true });
    assert.equal(begun.status, 'in_progress');
    const going = await js().responses.retrieve(begun.id, { stream: true });
    for await (const event of going) if (event.type === 'response.output_text.delta') break;
    const cancelled = await js().responses.cancel(begun.id);
    assert.deepEqual([cancelled.status, cancelled.output[0].content[0].text], ['cancelled', 'On and on']);
    assert.equal((await js().responses.retrieve(begun.id)).status, 'cancelled');
    await model.runCallsWhere((runs) => runs.some((run) => run.closed_early_ms !== null));
  });

  it('holds a conversation that the page shows, and goes another way from an earlier answer', async () => {
    await model.script([{ text: 'One.' }], [{ text: 'Two.' }], [{ text: 'Zwei.' }]);
    const one = await js().responses.create({ model: 'navi', input: 'Count.', conversation: 'counting' });
    const two = await js().responses.create({ model: 'navi', input: 'On.', conversation: one.conversation });
    assert.equal(two.conversation.id, one.conversation.id);
    const other = await js().responses.create({ model: 'navi', input: 'In German.', previous_response_id: one.id });
    assert.deepEqual([one, two, other].map(({ output_text }) => output_text), ['One.', 'Two.', 'Zwei.']);
    assert.notEqual(other.conversation.id, one.conversation.id);
    const asked = JSON.stringify((await answers()).at(-1).body);
    assert.match(asked, /Count\..*One\..*In German\./s);
    assert.ok(!asked.includes('Two.'), asked);
    const shown = await rest(`/sessions/${one.conversation.id.replace('conv_', '')}`);
    assert.deepEqual(shown.messages.map(({ content }) => content), ['Count.', 'One.', 'On.', 'Two.']);
  });

  it('leaves no session where it stores nothing, and deletes one that it has alone', async () => {
    await model.script([{ text: 'Gone.' }], [{ text: 'Kept.' }]);
    const before = (await rest('/sessions')).length;
    const gone = await js().responses.create({ model: 'navi', input: 'Hi.', store: false });
    assert.deepEqual([gone.output_text, gone.conversation, (await rest('/sessions')).length], ['Gone.', null, before]);
    const kept = await js().responses.create({ model: 'navi', input: 'Hi.', instructions: 'Be brief.' });
    assert.equal((await rest('/sessions')).length, before + 1);
    assert.match(JSON.stringify((await answers()).at(-1).body), /Be brief\./);
    await js().responses.delete(kept.id);
    assert.equal((await rest('/sessions')).length, before);
    await assert.rejects(js().responses.retrieve(kept.id), OpenAI.NotFoundError);
  });

  it('may ask twice at once in one conversation, and is refused what is wrong', async () => {
    const asked = (input) => ({ model: 'navi', input, conversation: 'twice' });
    await model.script({ when: 'Foremost', steps: [{ hold: 'twice' }, { text: 'One.' }] }, { when: 'Second', steps: [{ text: 'Two.' }] });
    const first = js().responses.create(asked('Foremost'));
    await model.runCallsWhere((runs) => runs.some((run) => JSON.stringify(run.body).includes('Foremost')));
    const second = await js().responses.create({ ...asked('Second'), background: true });
    assert.equal((await js().responses.retrieve(second.id)).status, 'queued');
    const told = gathered(await js().responses.retrieve(second.id, { stream: true }));
    await model.release('twice');
    assert.equal((await first).output_text, 'One.');
    assert.equal((await told).at(-1).response.status, 'completed');
    const refused = (wrong) => assert.rejects(js().responses.create({ model: 'navi', input: 'Hi.', ...wrong }), OpenAI.BadRequestError);
    await refused({ input: [{ type: 'message', role: 'nobody', content: 'Hi.' }] });
    await refused({ input: [{ type: 'item_reference', id: 'msg_1' }] });
    await refused({ input: 7 });
    await refused({ background: true, store: false });
    await refused({ conversation: 'a', previous_response_id: second.id });
    await assert.rejects(js().responses.create({ model: 'navi', input: 'Hi.', previous_response_id: 'resp_1' }), OpenAI.NotFoundError);
  });
});

describe("the AI SDK's provider", () => {
  const provider = () => createOpenAI({ baseURL: base, apiKey: KEY })('navi');

  it('streams text and reasoning; what Navi does is done by its provider', async () => {
    await model.script(...WORKING);
    const parts = await gathered(streamText({ model: provider(), prompt: 'Begin.' }).fullStream);
    const of = (wanted) => parts.filter(({ type }) => type === wanted);
    assert.deepEqual(of('error'), []);
    assert.equal(of('text-delta').map((part) => part.text).join(''), 'All done.');
    assert.equal(of('reasoning-delta').map((part) => part.text).join(''), 'First the list.');
    const [call] = of('tool-call');
    assert.deepEqual([call.toolName, call.providerExecuted, call.invalid ?? false], ['mcp.todo', true, false]);
    assert.equal(of('finish')[0].finishReason, 'stop');
  });

  it('runs its own tools, and refers to what was said before', async () => {
    await model.script([CALL], [{ text: 'It snows.' }], [{ text: 'Still.' }]);
    const tools = {
      weather: tool({ description: 'The weather of a city.', inputSchema: jsonSchema(PARAMETERS), execute: async ({ city }) => `snow in ${city}` }),
    };
    const first = { role: 'user', content: 'The weather?' };
    const result = await generateText({ model: provider(), messages: [first], stopWhen: stepCountIs(3), tools });
    assert.deepEqual([result.text, result.steps.length], ['It snows.', 2]);
    const messages = [first, ...result.response.messages, { role: 'user', content: 'And now?' }];
    assert.equal((await generateText({ model: provider(), messages, tools })).text, 'Still.');
    assert.match(JSON.stringify((await answers()).at(-1).body), /The weather\?.*snow in Kyiv.*It snows\..*And now\?/s);
  });

  it('asks a person, and passes on what was said', async () => {
    await model.script([write('c.txt')], [{ text: 'Written.' }]);
    const first = { role: 'user', content: 'Write c.' };
    const asked = await generateText({ model: provider(), messages: [first] });
    const request = asked.content.find(({ type }) => type === 'tool-approval-request');
    const response = { type: 'tool-approval-response', approvalId: request.approvalId, approved: true };
    const messages = [first, ...asked.response.messages, { role: 'tool', content: [response] }];
    const told = await generateText({ model: provider(), messages });
    assert.equal(told.text, 'Written.');
  });
});

describe('Codex', () => {
  /** Runs `codex exec` over a prompt. Gives its events. */
  async function codex(prompt, { key = KEY } = {}) {
    const home = await mkdtemp(join(tmpdir(), 'codex-'));
    const program = join(dirname(createRequire(import.meta.url).resolve('@openai/codex/package.json')), 'bin/codex.js');
    const config = {
      model: '"navi"',
      model_provider: '"navi"',
      'model_providers.navi.name': '"Navi"',
      'model_providers.navi.base_url': `"${base}"`,
      'model_providers.navi.wire_api': '"responses"',
      'model_providers.navi.env_key': '"NAVI_TOKEN"',
      'model_providers.navi.request_max_retries': '0',
      'model_providers.navi.stream_max_retries': '0',
    };
    const settings = Object.entries(config).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const args = [program, 'exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', ...settings, prompt];
    const env = { PATH: process.env.PATH, HOME: home, CODEX_HOME: home, NAVI_TOKEN: key };
    const child = spawn(process.execPath, args, { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const [said, complaints] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
    await rm(home, { recursive: true, force: true });
    return { code: child.exitCode, complaints, events: said.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line)) };
  }
  const messages = ({ events }) => events.filter(({ item }) => item?.type === 'agent_message').map(({ item }) => item.text);

  it('reads an answer with thinking and a tool of ours', async () => {
    await model.script(...WORKING);
    const told = await codex('Begin.');
    assert.deepEqual([messages(told), told.code], [['All done.'], 0], told.complaints);
  });

  it('runs a command of its own for the model', async () => {
    const calls = await answers();
    await model.script([{ tool_call: { name: 'exec_command', arguments: { cmd: 'echo from-codex' } } }], [{ text: 'Ran.' }]);
    const told = await codex('Run it.');
    assert.deepEqual([messages(told), told.code], [['Ran.'], 0], told.complaints);
    const after = (await answers()).slice(calls.length);
    assert.match(JSON.stringify(after.at(-1).body), /from-codex/);
  });

  it('says what is wrong with a token', async () => {
    const told = await codex('Hi.', { key: 'wrong' });
    assert.notEqual(told.code, 0);
    assert.match(JSON.stringify(told.events), /401|token/);
  });
});

describe('a service that is killed in mid-answer', () => {
  it('keeps the response, which says that it was interrupted, and begins nothing again', async () => {
    const before = (await answers()).length;
    await model.script([{ text: 'Half an' }, { hold: 'killed' }]);
    const stream = await js().responses.create({ model: 'navi', input: 'Do it once.', stream: true });
    let id;
    await assert.rejects(async () => {
      for await (const event of stream) {
        id ??= event.response?.id;
        if (event.type === 'response.output_text.delta') await navi.kill();
      }
    });
    await navi.start();
    base = `${new URL(navi.link).origin}/v1`;
    const kept = await js().responses.retrieve(id);
    assert.equal(kept.status, 'failed');
    assert.match(kept.error.message, /interrupted/);
    assert.equal((await answers()).length, before + 1);
  });
});
