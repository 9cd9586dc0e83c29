// Responses through OpenAI's own client for JavaScript and the AI SDK's provider: what clients.test.js has not.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { createOpenAI } from '@ai-sdk/openai';
import { generateText, jsonSchema, stepCountIs, tool } from 'ai';
import OpenAI from 'openai';

import { weather, WEATHER } from './adapters/answer.js';
import { startWorld } from './adapters/world.js';

let world, model;
before(async () => {
  world = await startWorld();
  model = world.model;
});
after(() => world?.close());

const js = () => new OpenAI({ baseURL: `${world.origin}/v1`, apiKey: world.token });

/** The model calls that answer, so far. */
const answers = () => model.runCallsWhere(() => true);

/** All events of a stream. */
async function gathered(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

describe("OpenAI's client for JavaScript", () => {
  it('is told what is thought, done and said as items', async () => {
    await model.script(
      [{ thinking: 'First the list.' }, { tool_call: { name: 'todo', arguments: { action: 'add', texts: ['look'] } } }],
      [{ text: 'All done.' }],
    );
    const { output, usage } = await js().responses.create({ model: 'navi', input: 'Begin.' });
    assert.deepEqual(output.map(({ type }) => type), ['reasoning', 'mcp_call', 'message']);
    const [, call] = output;
    assert.deepEqual([call.name, call.server_label, JSON.parse(call.arguments).action, call.status], ['todo', 'navi', 'add', 'completed']);
    assert.ok(call.output && usage.total_tokens > 0);
  });

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

  it('begins anew in the background where the same is asked later', async () => {
    await model.script([{ text: 'One.' }], [{ text: 'Two.' }]);
    const ask = async () => {
      const { id } = await js().responses.create({ model: 'navi', input: 'Ask it twice.', background: true });
      return (await gathered(await js().responses.retrieve(id, { stream: true }))).at(-1).response;
    };
    const [one, two] = [await ask(), await ask()];
    assert.deepEqual([one, two].map(({ output }) => output[0].content[0].text), ['One.', 'Two.']);
    assert.notEqual(one.id, two.id);
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
    const shown = await world.rest(`/sessions/${one.conversation.id.replace('conv_', '')}`);
    assert.deepEqual(shown.messages.map(({ content }) => content), ['Count.', 'One.', 'On.', 'Two.']);
  });

  it('joins the run of a request that comes again, however far its conversation has gone', async () => {
    await model.script([{ text: 'One.' }], [{ text: 'Two.' }]);
    const one = await js().responses.create({ model: 'navi', input: 'Count.' });
    const on = () => js().responses.create({ model: 'navi', input: 'On.', previous_response_id: one.id }, { headers: { 'idempotency-key': 'on' } });
    const two = await on();
    const before = (await answers()).length;
    const again = await on();
    assert.deepEqual([again.id, again.output_text, (await answers()).length], [two.id, 'Two.', before]);
    await model.script({ when: 'Only once.', steps: [{ hold: 'both' }, { text: 'Once.' }] });
    const both = [1, 2].map(() => js().responses.create({ model: 'navi', input: 'Only once.' }, { headers: { 'idempotency-key': 'once' } }));
    await model.runCallsWhere((runs) => runs.some((run) => JSON.stringify(run.body).includes('Only once.')));
    await model.release('both');
    const [left, right] = await Promise.all(both);
    assert.deepEqual([left.id, left.output_text], [right.id, 'Once.']);
  });

  it('goes two ways where two go on from one answer at once', async () => {
    await model.script([{ text: 'One.' }], { when: 'Leftwards', steps: [{ text: 'L.' }] }, { when: 'Rightwards', steps: [{ text: 'R.' }] });
    const one = await js().responses.create({ model: 'navi', input: 'Count.' });
    const go = (input) => js().responses.create({ model: 'navi', input, previous_response_id: one.id });
    const [left, right] = await Promise.all([go('Leftwards'), go('Rightwards')]);
    assert.deepEqual([left.output_text, right.output_text], ['L.', 'R.']);
    assert.notEqual(left.conversation.id, right.conversation.id);
  });

  it('lets a run wait whose program asks what cannot be', async () => {
    const write = { tool_call: { name: 'filesystem', arguments: { action: 'write', path: 'a.txt', content: 'x' } } };
    await model.script({ when: 'Write.', steps: [write] }, { when: 'Write.', steps: [{ text: 'Written.' }] });
    const asks = await js().responses.create({ model: 'navi', input: 'Write.' });
    const { id } = asks.output.find(({ type }) => type === 'mcp_approval_request');
    const goOn = (body) => js().responses.create({ model: 'navi', previous_response_id: asks.id, ...body });
    await assert.rejects(goOn({ model: 'gpt-4o', input: 'Hi.' }), OpenAI.NotFoundError);
    const answer = (approval_request_id) => goOn({ input: [{ type: 'mcp_approval_response', approval_request_id, approve: true }] });
    // Of a run of another session there is no such request.
    const other = await js().responses.create({ model: 'navi', input: 'Aside.' });
    const [, session] = id.match(/^mcpr_([0-9a-f]{32})/);
    await assert.rejects(answer(id.replace(session, other.conversation.id.replace('conv_', '').replaceAll('-', ''))), OpenAI.NotFoundError);
    assert.equal((await answer(id)).output_text, 'Written.');
  });

  it('passes over items of other servers, whatever they hold', async () => {
    const items = [{ type: 'computer_call_output', output: { type: 'computer_screenshot' } }, { type: 'tool_search_call', arguments: {} }];
    await model.script([{ text: 'Hello.' }]);
    const told = await js().responses.create({ model: 'navi', input: [...items, { role: 'user', content: 'Hi.' }] });
    assert.equal(told.output_text, 'Hello.');
  });

  it('leaves no session where it stores nothing, and deletes one that it has alone', async () => {
    await model.script([{ text: 'Gone.' }], [{ text: 'Kept.' }]);
    const before = (await world.rest('/sessions')).length;
    const gone = await js().responses.create({ model: 'navi', input: 'Hi.', store: false });
    assert.deepEqual([gone.output_text, gone.conversation, (await world.rest('/sessions')).length], ['Gone.', null, before]);
    const kept = await js().responses.create({ model: 'navi', input: 'Hi.', instructions: 'Be brief.' });
    assert.equal((await world.rest('/sessions')).length, before + 1);
    assert.match(JSON.stringify((await answers()).at(-1).body), /Be brief\./);
    await js().responses.delete(kept.id);
    assert.equal((await world.rest('/sessions')).length, before);
    await assert.rejects(js().responses.retrieve(kept.id), OpenAI.NotFoundError);
  });

  it('may ask twice at once in one conversation, and is refused what is wrong', async () => {
    const asked = (input) => ({ model: 'navi', input, conversation: 'twice' });
    await model.script({ when: 'Foremost', steps: [{ hold: 'twice' }, { text: 'One.' }] }, { when: 'Second', steps: [{ text: '{"count": 2}' }] });
    const first = js().responses.create(asked('Foremost'));
    await model.runCallsWhere((runs) => runs.some((run) => JSON.stringify(run.body).includes('Foremost')));
    const wants = { instructions: 'Count like a sailor.', text: { format: { type: 'json_object' } } };
    const second = await js().responses.create({ ...asked('Second'), ...wants, background: true });
    assert.equal((await js().responses.retrieve(second.id)).status, 'queued');
    const told = gathered(await js().responses.retrieve(second.id, { stream: true }));
    await model.release('twice');
    assert.equal((await first).output_text, 'One.');
    assert.equal((await told).at(-1).response.status, 'completed');
    // What it wanted waited with it.
    const sent = JSON.stringify((await answers()).at(-1).body);
    for (const wanted of ['Count like a sailor.', 'one JSON object']) assert.ok(sent.includes(wanted), sent);
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
  const provider = () => createOpenAI({ baseURL: `${world.origin}/v1`, apiKey: world.token })('navi');

  it('runs its own tools, and refers to what was said before', async () => {
    await model.script([{ tool_call: { name: 'weather', arguments: { city: 'Kyiv' } } }], [{ text: 'It snows.' }], [{ text: 'Still.' }]);
    const tools = { weather: tool({ description: WEATHER.description, inputSchema: jsonSchema(WEATHER.parameters), execute: weather }) };
    const first = { role: 'user', content: 'The weather?' };
    const result = await generateText({ model: provider(), messages: [first], stopWhen: stepCountIs(3), tools });
    assert.deepEqual([result.text, result.steps.length], ['It snows.', 2]);
    const messages = [first, ...result.response.messages, { role: 'user', content: 'And now?' }];
    assert.equal((await generateText({ model: provider(), messages, tools })).text, 'Still.');
    assert.match(JSON.stringify((await answers()).at(-1).body), /The weather\?.*snow in Kyiv.*It snows\..*And now\?/s);
  });
});

