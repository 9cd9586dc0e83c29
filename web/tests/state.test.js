import assert from 'node:assert/strict';
import { test } from 'node:test';

import { coloured } from '../markdown/colours.js';
import { delayMs } from '../net/socket.js';
import { HOLD_AFTER_MS, readItem, toSend, withChange, withoutConfirmed } from '../state/outbox.js';
import { byCategory, isUnconfirmed, plainName } from '../state/memory.js';
import { matched, pieces } from '../state/search.js';
import { activeBackend, backendOf, defaultProfile, expectedModel, fetching, hostOf, misfit, modelTrouble, readyBackends, staysHere, worthFetching } from '../state/service.js';
import { groupOf, isNews, matching, withoutSession, withSession } from '../state/sessions.js';
import { densest, patternOf } from '../ui/found.js';

/** @import { OutboxItem } from '../state/outbox.js' */
/** @import { Fact, SessionSummary, SystemStatus } from '../state/wire.js' */

/** @param {string} id @param {Partial<SessionSummary>} [more] @returns {SessionSummary} */
const summary = (id, more = {}) => ({
  id, user_id: 'u', title: id, profile_id: 'secretary', pinned: false, archived: false, context_token_count: 0, state: 'idle',
  created_at: '2026-01-01T00:00:00Z', last_active: '2026-01-01T00:00:00Z', ...more,
});

test('the list keeps pinned first, then the latest, whatever order changes come in', () => {
  let list = withSession([], summary('a', { last_active: '2026-01-03T00:00:00Z' }));
  list = withSession(list, summary('b', { last_active: '2026-01-05T00:00:00Z' }));
  list = withSession(list, summary('c', { pinned: true }));
  assert.deepEqual(list.map((item) => item.id), ['c', 'b', 'a']);
  list = withSession(list, summary('a', { last_active: '2026-01-09T00:00:00Z' }));
  assert.deepEqual(list.map((item) => item.id), ['c', 'a', 'b']);
  assert.deepEqual(withoutSession(list, 'a').map((item) => item.id), ['c', 'b']);
});

test('what went wrong is marked until it was seen, and again when it goes wrong once more', () => {
  const failed = summary('a', { state: 'failed', last_active: '2026-01-03T00:00:00Z' });
  const seen = new Map([['a', failed.last_active]]);
  assert.equal(isNews(failed, new Map()), true);
  assert.equal(isNews(failed, seen), false);
  assert.equal(isNews({ ...failed, last_active: '2026-01-04T00:00:00Z' }, seen), true);
  assert.equal(isNews({ ...failed, state: 'interrupted' }, seen), false);
  assert.equal(isNews({ ...failed, state: 'running' }, seen), true);
  assert.equal(isNews(summary('b'), seen), false);
});

test('a search finds every word, in any order and case', () => {
  const list = [summary('1', { title: 'Weekend in the Mountains' }), summary('2', { title: 'Подорож у гори' })];
  assert.deepEqual(matching(list, 'mount WEEK').map((item) => item.id), ['1']);
  assert.deepEqual(matching(list, 'ГОРИ').map((item) => item.id), ['2']);
  assert.equal(matching(list, '  ').length, 2);
  assert.equal(matching(list, 'weekend sea').length, 0);
});

test('sessions are grouped by the reader\'s own days', () => {
  const now = new Date(2026, 0, 10, 12);
  const at = (/** @type {number} */ day, /** @type {number} */ hour) => ({ last_active: new Date(2026, 0, day, hour).toISOString() });
  assert.equal(groupOf(summary('x', at(10, 0)), now), 'today');
  assert.equal(groupOf(summary('x', at(9, 23)), now), 'yesterday');
  assert.equal(groupOf(summary('x', at(5, 1)), now), 'week');
  assert.equal(groupOf(summary('x', at(1, 1)), now), 'older');
  assert.equal(groupOf(summary('x', { ...at(1, 1), pinned: true }), now), 'pinned');
});

/** @param {string} client_id @param {Partial<OutboxItem>} [more] @returns {OutboxItem} */
const item = (client_id, more = {}) => ({ client_id, content: client_id, images: [], files: [], incomplete: false, mode: 'queue', created_ms: 1000, refused: null, held: false, ...more });

test('the outbox outlives a reload, sends what may be sent, and forgets what is confirmed', () => {
  const items = withChange([item('a'), item('b'), item('c', { incomplete: true })], 'a', { refused: { code: 'empty_message', message: 'no' } });
  const reloaded = items.map((kept) => /** @type {OutboxItem} */ (readItem(structuredClone(kept), 2000)));
  assert.deepEqual(reloaded.slice(0, 2), items.slice(0, 2));
  assert.deepEqual(toSend(reloaded).map((sent) => sent.client_id), ['b']);
  assert.deepEqual(withoutConfirmed(reloaded, new Set(['b'])).map((left) => left.client_id), ['a', 'c']);
  assert.equal(withoutConfirmed(reloaded, new Set(['z'])), reloaded);
});

test('an old or incomplete message waits for a word of its writer; broken storage is ignored', () => {
  for (const held of [readItem(item('a'), 1000 + HOLD_AFTER_MS + 1), readItem(item('a', { incomplete: true }), 1000)]) {
    assert.equal(held?.held, true);
    assert.deepEqual(toSend([held]), []);
  }
  for (const broken of [null, undefined, '', 3, [], {}, { client_id: 3 }, { client_id: 'a' }]) assert.equal(readItem(broken, 0), null);
});

test('reconnects wait longer each time, within bounds, and not all at once', () => {
  assert.ok(delayMs(0, 0) >= 100 && delayMs(0, 0.99) <= 250);
  assert.ok(delayMs(3, 0) > delayMs(0, 0.99));
  assert.ok(delayMs(50, 0.99) <= 8000);
  assert.notEqual(delayMs(4, 0.1), delayMs(4, 0.9));
});

/** @type {SystemStatus} */
const demo = {
  version: '1', active: 'starter', warnings: [], warning_phrases: [], profile_models: [], fence: { files_open: false, commands_open: false }, mode: 'edits',
  backends: [
    { kind: 'ollama', address: 'x', models: [], state: 'down', problem: 'p', remedy: 'r' },
    { kind: 'starter', address: 'in process', state: 'ready', models: [{ name: 'small', demo: true }], default_model: 'small' },
  ],
  fetchable: [
    { name: 'small', title: 'Small', size: 1, memory: 1, demo: true, present: true },
    { name: 'large', title: 'Large', size: 2, memory: 2, demo: false, present: false },
  ],
};

test('the status says which model answers, what is wrong, and what one could fetch', () => {
  assert.equal(activeBackend(demo)?.kind, 'starter');
  assert.deepEqual(expectedModel(demo, { model: 'absent' }), { name: 'small', demo: true });
  assert.equal(worthFetching(demo)?.name, 'large');
  assert.equal(modelTrouble(demo), null);
  const none = { ...demo, active: null };
  assert.deepEqual(modelTrouble(none)?.problems, [demo.backends[0]]);
  assert.equal(expectedModel(none, null), null);
  assert.equal(expectedModel(null, null), null);
  /** @type {SystemStatus} */
  const moving = { ...demo, fetchable: demo.fetchable.map((model) => (model.demo ? model : { ...model, received: 1 })) };
  assert.deepEqual(fetching(moving), { model: 'large', received: 1, total: 2 });
  assert.equal(fetching(demo), null);
  assert.equal(worthFetching({ ...demo, backends: demo.backends.slice(0, 1) }), null);
  const profiles = [{ profile_id: 'secretary', is_default: false }, { profile_id: 'own', is_default: true }];
  assert.equal(defaultProfile(profiles)?.profile_id, 'own');
  assert.equal(defaultProfile([]), null);
});

test('the model that was chosen answers wherever it is, and else the profile’s', () => {
  /** @type {SystemStatus} */
  const two = {
    ...demo, active: 'ollama',
    backends: [
      { kind: 'ollama', address: 'http://localhost:11434', state: 'ready', models: [{ name: 'small:latest' }, { name: 'big' }], default_model: 'small:latest' },
      { kind: 'openai', address: 'https://models.example.com/v1', state: 'ready', models: [{ name: 'small' }, { name: 'huge' }] },
      { kind: 'starter', address: 'in process', state: 'loading', detail: '', models: [{ name: 'tiny' }] },
    ],
  };
  const profile = { model: 'big' };
  for (const [chosen, model, kind] of /** @type {const} */ ([[null, 'big', 'ollama'], ['small', 'small:latest', 'ollama'], ['huge', 'huge', 'openai'], ['tiny', 'big', 'ollama'], ['gone', 'big', 'ollama']])) {
    assert.equal(expectedModel(two, profile, chosen)?.name, model, chosen ?? 'none');
    assert.equal(backendOf(two, chosen)?.kind, kind, chosen ?? 'none');
  }
  // Where it is decides where what one writes goes.
  assert.equal(hostOf(two, { name: 'huge' }, backendOf(two, 'huge')), 'models.example.com');
  assert.equal(hostOf(two, { name: 'big' }, backendOf(two, 'big')), null);
  assert.deepEqual(readyBackends(two).map(({ kind }) => kind), ['ollama', 'openai']);
  assert.deepEqual(readyBackends(null), []);
});

test('a model that does not do for a profile says why', () => {
  const profile = { has_tools: true };
  assert.equal(misfit({ name: 'm', tools: false }, profile), 'no_tools');
  assert.equal(misfit({ name: 'm', tools: false }, { has_tools: false }), null);
  assert.equal(misfit({ name: 'm' }, profile), null, 'nobody knows');
  assert.equal(misfit({ name: 'm', demo: true }, null), 'demo');
});

test('colouring code loses and adds nothing', () => {
  const code = 'def f(x):  # a "comment"\n    return "it\'s" + 0x1F  # \'\n';
  const pieces = coloured(code, 'python');
  assert.equal(pieces.map((piece) => piece.text).join(''), code);
  assert.deepEqual(pieces.filter((piece) => piece.kind === 'comment').map((piece) => piece.text), ['# a "comment"', "# '"]);
  assert.deepEqual(pieces.filter((piece) => piece.kind === 'keyword').map((piece) => piece.text), ['def', 'return']);
  assert.deepEqual(coloured('-old\n+new\n', 'diff').filter(({ kind }) => kind !== '').map(({ kind }) => kind), ['removed', 'added']);
  assert.deepEqual(coloured('let x = `a ${b} c`;', 'JavaScript').filter(({ kind }) => kind === 'string').map(({ text }) => text).join(''), '`a ${b} c`');
  for (const language of ['js', 'sql', 'rust', 'diff', 'bash', 'html', 'unknown', '']) {
    for (let i = 0; i <= code.length; i += 1) {
      assert.equal(coloured(code.slice(0, i), language).map((piece) => piece.text).join(''), code.slice(0, i));
    }
  }
});

/** @param {string} category @param {string} key @param {string} value @param {number} [confidence] @returns {Fact} */
const fact = (category, key, value, confidence = 1) => ({ category, key, value, confidence, created_at: '2026-01-01T00:00:00Z', updated_at: '2026-01-01T00:00:00Z' });

test('facts stand by category and are found by any of their words', () => {
  const facts = [fact('work', 'job_title', 'Nurse'), fact('home', 'city', 'Lviv'), fact('home', 'cat', 'Murka', 0.5)];
  assert.deepEqual(byCategory(facts, '').map(({ category, facts: own }) => [category, own.map(({ key }) => key)]), [['home', ['cat', 'city']], ['work', ['job_title']]]);
  assert.deepEqual(byCategory(facts, 'job nurse').map(({ category }) => category), ['work']);
  assert.deepEqual(byCategory(facts, 'HOME lviv').flatMap(({ facts: own }) => own.map(({ key }) => key)), ['city']);
  assert.deepEqual(byCategory(facts, 'dog'), []);
  assert.deepEqual(facts.map(isUnconfirmed), [false, false, true]);
  assert.deepEqual([plainName('job_title'), plainName('місто'), plainName('__')], ['Job title', 'Місто', '__']);
});

test('a snippet shows its matches and loses nothing, whatever ranges it comes with', () => {
  assert.deepEqual(pieces({ text: '🙂 the cat sat', marks: [{ start: 7, end: 10 }] }), [{ text: '🙂 the ', match: false }, { text: 'cat', match: true }, { text: ' sat', match: false }]);
  assert.deepEqual(pieces({ text: 'ab', marks: [{ start: 0, end: 2 }] }), [{ text: 'ab', match: true }]);
  /** @type {[number, number][][]} */
  const odd = [[], [[0, 0]], [[3, 1]], [[-1, 2]], [[0, 99]], [[2, 4], [0, 3]], [[1, 2], [1, 2]]];
  const marksOf = (/** @type {[number, number][]} */ ranges) => ranges.map(([start, end]) => ({ start, end }));
  for (const ranges of odd) assert.equal(pieces({ text: 'a snippet', marks: marksOf(ranges) }).map(({ text }) => text).join(''), 'a snippet');
});

test('what was looked for is found where most of it stands together', () => {
  assert.deepEqual(matched({ text: 'the cat and the dog', marks: [{ start: 0, end: 3 }, { start: 4, end: 7 }, { start: 12, end: 15 }] }), ['the', 'cat']);
  const the = (/** @type {number} */ at) => ({ at, word: 'the' });
  assert.equal(densest([the(0), the(50), the(900), { at: 905, word: 'cat' }, the(2_000)]), 2);
  assert.equal(densest([the(5)]), 0);
});

test('words that were looked for are found with a hyphen in them, and over a broken line', () => {
  const found = (/** @type {string[]} */ words) => [...'A Well-known (a+b) night\n  train.'.matchAll(patternOf(words) ?? /^$/g)].map(([text]) => text);
  assert.deepEqual(found(['well-known', '(a+b)', 'night train']), ['Well-known', '(a+b)', 'night\n  train']);
  assert.equal(patternOf(['', ' ']), null);
});

test('a message that was meant to steer still does after a reload', () => {
  const kept = [{ ...item('a'), mode: 'steer' }, { ...item('b'), mode: 'nonsense' }].map((one) => readItem(one, 2000));
  assert.deepEqual(kept.map((one) => one?.mode), ['steer', 'queue']);
});

test('what leaves the machine is said, and only what stays is said to stay', () => {
  /** @param {'ollama' | 'openai' | 'starter'} kind @param {string} address */
  const at = (kind, address) => ({ ...demo, active: kind, backends: [{ kind, address, models: [], state: /** @type {const} */ ('ready') }] });
  const model = { name: 'qwen3:8b' };
  for (const here of [at('starter', 'in process'), at('ollama', 'http://127.0.0.1:11434'), at('openai', 'http://localhost:8080/v1'), at('openai', 'http://[::1]:1/v1')]) {
    assert.deepEqual([hostOf(here, model), staysHere(here, model)], [null, true]);
  }
  for (const [there, host] of /** @type {const} */ ([[at('openai', 'https://api.example.com/v1'), 'api.example.com'], [at('ollama', 'http://192.168.1.4:11434'), '192.168.1.4'], [at('openai', 'http://localhost.example.com'), 'localhost.example.com']])) {
    assert.deepEqual([hostOf(there, model), staysHere(there, model)], [host, false]);
  }
  const cloud = at('ollama', 'http://127.0.0.1:11434');
  assert.deepEqual([hostOf(cloud, { name: 'gpt-oss:120b-cloud' }), staysHere(cloud, { name: 'gpt-oss:120b-cloud' })], ['ollama.com', false]);
  // Another one stands in where the first does not answer.
  const both = { ...cloud, backends: [...cloud.backends, ...at('openai', 'https://api.example.com/v1').backends] };
  assert.deepEqual([hostOf(both, model), staysHere(both, model)], [null, false]);
  assert.deepEqual([hostOf(null, null), staysHere(null, null)], [null, false]);
});
