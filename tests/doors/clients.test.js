// Nine things that a program may meet, through every client: what each of them does is in adapters/. A client that
// takes a way that others take too is asked what it `usually` is, and all of them with `--long`.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { IS_LONG, LIMIT_MS } from '../browser/harness/program.js';
import acp from './adapters/acp.js';
import aiSdk from './adapters/ai_sdk.js';
import codex from './adapters/codex.js';
import curl from './adapters/curl.js';
import mcp from './adapters/mcp.js';
import ollama from './adapters/ollama.js';
import openai from './adapters/openai.js';
import { startWorld } from './adapters/world.js';

const CLIENTS = [...openai, ...aiSdk, ...codex, ...curl, ...ollama, ...acp, ...mcp];
const POLL_MS = 100;
const CALL = { name: 'weather', arguments: { city: 'Kyiv' } };
const HALVES = (gate) => [{ thinking: 'First this.' }, { text: 'One, ' }, { hold: gate }, { text: 'two.' }];

let world, model;
before(async () => {
  world = await startWorld();
  model = world.model;
});
after(() => world?.close());

/** What the model answers, one after the other, to who says these words. */
const script = (words, ...answers) => model.script(...answers.map((steps) => ({ when: words, steps })));

/** The model's calls of the run that these words began, when the condition holds on them. */
async function callsOf(words, holds = () => true) {
  const began = ({ body }) => body.stream !== false && body.messages.findLast(({ role }) => role === 'user').content.includes(words);
  for (const end = Date.now() + LIMIT_MS; ;) {
    const calls = (await model.calls()).filter(began);
    if (holds(calls)) return calls;
    assert.ok(Date.now() < end, `not in time: ${JSON.stringify(calls)}`);
    // All that it was ever asked is much to read at once again.
    await setTimeout(POLL_MS);
  }
}

/** Until the client has told something of an answer whose rest is held back. */
const begun = (answer, { first = 'text' }) => answer.until((told) => told[first] !== '');

/** What each thing is; `words` are a test's own. */
const THINGS = {
  async 'a streamed answer with thinking'({ adapter, client, words }) {
    await script(words, HALVES(words));
    const answer = client.ask(words, world);
    await begun(answer, adapter);
    await model.release(words);
    const { text, thinking, end } = await answer.ended;
    assert.deepEqual([text, thinking], ['One, two.', adapter.tellsThinking === false ? '' : 'First this.']);
    assert.match(end, adapter.ends.done);
  },

  async 'a tool of ours'({ adapter, client, words }) {
    await script(words, [{ tool_call: { name: 'todo', arguments: { action: 'add', texts: ['look'] } } }], [{ text: 'All done.' }]);
    const { text, calls, did, end } = await client.ask(words, world).ended;
    assert.deepEqual([text, calls], ['All done.', []]);
    assert.equal(did.some((told) => told.includes('todo')), adapter.tellsOfOurs !== false, `${did}`);
    assert.match(end, adapter.ends.done);
  },

  async 'a tool of theirs'({ adapter, client, words }) {
    const call = client.call ?? adapter.call ?? CALL;
    await script(words, [{ tool_call: call }], [{ text: 'It snows.' }]);
    const { text, calls, end } = await client.ask(words, { ...world, tools: true }).ended;
    assert.deepEqual([text.trim(), calls], ['It snows.', [call.name]]);
    assert.match(end, adapter.ends.done);
    const { content } = (await callsOf(words)).at(-1).body.messages.findLast(({ role }) => role === 'tool');
    assert.match(content, /snow in Kyiv/);
  },

  async 'an approval given and denied'({ adapter, client, words }) {
    for (const decide of ['once', 'deny']) {
      const { session_id: session } = await world.rest('/sessions', {});
      const write = { name: 'filesystem', arguments: { action: 'write', path: 'a.txt', content: 'x' } };
      await script(words, [{ tool_call: write }], [{ text: `After ${decide}.` }]);
      const answer = client.ask(`${words} ${decide}`, { ...world, session, decide });
      if (adapter.asks === 'page') await answered(session, answer, decide);
      // Some begin a session of their own.
      const { text, end, did, session: own = session } = await answer.ended;
      assert.equal(text.trim(), `After ${decide}.`, end);
      if (adapter.asks === 'page' && adapter.tellsOfOurs !== false) assert.match(`${did}`, /waits for you.*a\.txt/);
      const { entries } = await world.rest(`/sessions/${own}/workspace`);
      assert.equal(entries.some(({ path }) => path === 'a.txt'), decide === 'once');
    }
  },

  async 'Stop'({ adapter, client, words }) {
    await script(words, HALVES(words));
    const answer = client.ask(words, { ...world, stops: true });
    await begun(answer, adapter);
    await answer.stop();
    assert.match((await answer.ended).end, adapter.ends.stopped);
    await callsOf(words, ([call]) => call.closed_early_ms !== null);
  },

  async 'the connection cut and taken up again'({ adapter, client, words }) {
    const line = await world.line();
    await script(words, HALVES(words));
    const options = { ...world, origin: line.origin, key: words };
    const answer = client.ask(words, options);
    await begun(answer, adapter);
    await (client.cut ?? line.cut)(answer, line);
    let again;
    if (adapter.comesBack) {
      again = answer;
    } else {
      assert.doesNotMatch((await answer.ended).end, adapter.ends.done);
      again = await (client.again ?? (() => client.ask(words, options)))(answer, options);
    }
    await model.release(words);
    const { text, end } = await again.ended;
    assert.equal(text, 'One, two.', end);
    assert.match(end, adapter.ends.done);
    assert.equal((await callsOf(words)).length, 1);
    line.close();
  },

  async 'a failure in mid-stream'({ adapter, client, words }) {
    await script(words, [...HALVES(words).slice(0, 3), { error: 'the model broke' }]);
    const answer = client.ask(words, world);
    await begun(answer, adapter);
    await model.release(words);
    assert.match((await answer.ended).end, adapter.ends.failed);
  },

  async 'two at once on one session'({ client, words }) {
    const { session_id: session } = await world.rest('/sessions', {});
    const [first, second] = [`${words} first`, `${words} second`];
    await script(first, [{ hold: words }, { text: 'One.' }]);
    await script(second, [{ text: 'Two.' }]);
    const one = client.ask(first, { ...world, session });
    await callsOf(first, (calls) => calls.length > 0);
    const two = client.ask(second, { ...world, session });
    await world.until(`/sessions/${session}`, ({ queue }) => queue.length > 0, () => two.end ?? one.end);
    await model.release(words);
    const told = await Promise.all([one.ended, two.ended]);
    assert.deepEqual(told.map(({ text }) => text), ['One.', 'Two.']);
    const { messages } = await world.rest(`/sessions/${session}`);
    assert.deepEqual(messages.map(({ content }) => content), [first, 'One.', second, 'Two.']);
  },

  async 'a wrong token'({ adapter, client, words }) {
    const { text, end } = await client.ask(words, { ...world, token: 'a-token-that-nobody-made' }).ended;
    assert.equal(text, '');
    assert.match(end, adapter.ends.refused);
  },
};

/** A person answers on the page what waits in a session. */
async function answered(session, answer, decision) {
  const { approvals: [{ approval_id }] } = await world.until(`/sessions/${session}/approvals`, ({ approvals }) => approvals.length > 0, () => answer.end);
  assert.equal(answer.end, null, 'the client waits');
  await world.rest(`/sessions/${session}/approvals/${approval_id}`, { decision });
}

for (const [number, adapter] of CLIENTS.entries()) {
  describe(adapter.name, { skip: adapter.skip ?? false }, () => {
    let client;
    before(async () => { client = await adapter.open(world); });
    after(() => client?.close?.());
    for (const [thing, test] of Object.entries(THINGS)) {
      if (!IS_LONG && adapter.usually?.includes(thing) === false) continue;
      it(thing, { skip: adapter.lacks?.[thing] ?? false }, () => test({ adapter, client, words: `${thing}, ${number}`.replaceAll(/\W+/g, '-') }));
    }
  });
}
