// Calls whose outcome nobody knows: the question, its answer, and what goes on then.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fromSnapshot } from '../state/model.js';
import { applyFrame } from '../state/session.js';
import { continuesRun, placeOf, withoutCard } from '../state/unknown_calls.js';
import { FakeService } from './fake_service.js';

/** @import { Call, SessionState } from '../state/types.js' */
/** @import { Envelope } from '../state/wire.js' */

/** @param {SessionState} state @param {Envelope[]} frames */
function play(state, frames) {
  for (const frame of frames) {
    const step = applyFrame(state, frame);
    assert.equal(step.hole, false, `a hole at ${JSON.stringify(frame)}`);
    state = step.state;
  }
  return state;
}

/** A run that went down with two calls under way; only the second may have changed something twice. */
function crashed() {
  const service = new FakeService();
  const calls = [{ id: 'k1', name: 'terminal', arguments: { command: 'make' } }, { id: 'k2', name: 'ssh', arguments: { host: 'web' } }];
  service.commit({ id: 'm1', role: 'user', content: 'Do both' });
  service.tell({ type: 'message_accepted', message_id: 'm1', queued: false, content: 'Do both' });
  service.tell({ type: 'stream_start', message_id: 'm1', model: 'demo', profile_id: 'secretary' });
  service.commit({ id: 'a1', role: 'assistant', content: '', tool_calls: calls });
  for (const { id, name, arguments: args } of calls) service.tell({ type: 'tool_started', tool: name, args, is_subagent: false, call_id: id, message_id: 'a1' });
  for (const { id, name, arguments: args } of calls) {
    service.commit({ id: `t-${id}`, role: 'tool', content: 'unknown', tool_call_id: id, name, outcome: 'outcome_unknown', duration_ms: 0 });
    service.tell({ type: 'tool_call', tool: name, args, result: 'unknown', success: false, outcome: 'outcome_unknown', is_subagent: false, call_id: id, duration_ms: 0 });
  }
  service.tell({ type: 'run_interrupted', reason: 'the service went down', can_continue: true });
  const unknown_calls = calls.map(({ id, name, arguments: args }) => ({ call_id: id, tool: name, args, message_id: 'a1' }));
  service.snapshot = { ...service.snapshot, state: 'interrupted', can_continue: true, unknown_calls };
  return service;
}

const START = fromSnapshot(new FakeService().snapshot);

/** @param {SessionState} state @param {string} id @returns {Call} */
function callOf(state, id) {
  const calls = state.entries.flatMap((entry) => (entry.kind === 'assistant' ? entry.calls : []));
  const found = calls.find((call) => call.id === id);
  assert.ok(found !== undefined);
  return found;
}

test('a tab that watched and one that comes later are asked the same', () => {
  const service = crashed();
  const live = play(START, service.frames);
  const late = fromSnapshot(service.snapshot);
  assert.deepEqual(live.unknown, late.unknown);
  assert.deepEqual(live.unknown.map(({ call_id, tool, message_id }) => [call_id, tool, message_id]), [['k1', 'terminal', 'a1'], ['k2', 'ssh', 'a1']]);
  assert.deepEqual([late.ending?.kind, late.can_continue], ['interrupted', true]);
  assert.deepEqual(withoutCard(late), []);
});

test('an older service asks nothing', () => {
  const { unknown_calls: _, ...older } = crashed().snapshot;
  assert.deepEqual(fromSnapshot(/** @type {any} */ (older)).unknown, []);
});

test('what a subagent left open is not asked here', () => {
  const service = new FakeService();
  service.tell({ type: 'subagent_started', call_id: 'k0', profile_id: 'secretary', task: 'x', parent_run_id: 'r1' }, 'rc');
  service.tell({ type: 'tool_call', tool: 'terminal', args: {}, result: '', success: false, outcome: 'outcome_unknown', is_subagent: true, parent_run_id: 'r1', call_id: 'kc', duration_ms: 0 }, 'rc');
  assert.deepEqual(play(START, service.frames).unknown, []);
});

test('a decision takes the call off the list, in every tab, and stands at its card', () => {
  const service = crashed();
  const late = fromSnapshot(service.snapshot);
  const before = service.frames.length;
  service.tell({ type: 'call_resolved', call_id: 'k1', decision: 'skip' });
  const said = service.frames.slice(before);
  for (const state of [play(START, service.frames), play(late, said)]) {
    assert.deepEqual(state.unknown.map(({ call_id }) => call_id), ['k2']);
    assert.deepEqual([callOf(state, 'k1').decision, callOf(state, 'k1').state], ['skip', 'outcome_unknown']);
    assert.equal(callOf(state, 'k2').decision, null);
    assert.equal(state.last_seq, service.seq);
  }
  // Told twice, as after a reconnect, it changes nothing.
  assert.deepEqual(play(play(late, said), said), play(late, said));
});

test('what was decided is there after a reload', () => {
  const service = crashed();
  const { messages } = service.snapshot;
  const reloaded = fromSnapshot({ ...service.snapshot, unknown_calls: [], messages: messages.map((message) => (message.id === 't-k1' ? { ...message, decision: 'done' } : message)) });
  assert.deepEqual([callOf(reloaded, 'k1').decision, callOf(reloaded, 'k2').decision], ['done', null]);
});

test('“do it again” goes on once nothing is left to be said, and only for who said it', () => {
  const service = crashed();
  let state = play(START, service.frames);
  /** @param {string} call_id @param {string} decision */
  const told = (call_id, decision) => {
    service.tell({ type: 'call_resolved', call_id, decision });
    state = play(state, service.frames.slice(-1));
    return callOf(state, call_id);
  };
  const first = told('k1', 'retry');
  assert.equal(continuesRun(state, first, 'retry'), false, 'the other one is not settled');
  const second = told('k2', 'retry');
  assert.equal(continuesRun(state, second, 'retry'), true);
  assert.equal(continuesRun(state, second, undefined), false, 'another tab said it');
  assert.equal(continuesRun({ ...state, can_continue: false }, second, 'retry'), false);
  service.tell({ type: 'stream_start', message_id: 'm1', model: 'demo', profile_id: 'secretary' }, 'r2');
  state = play(state, service.frames.slice(-1));
  assert.equal(continuesRun(state, second, 'retry'), false, 'it goes already');
});

test('where another tab was first, its word counts', () => {
  const service = crashed();
  const before = fromSnapshot({ ...service.snapshot, unknown_calls: service.snapshot.unknown_calls.slice(1) });
  service.tell({ type: 'call_resolved', call_id: 'k2', decision: 'skip' });
  const state = play(before, service.frames.slice(-1));
  assert.deepEqual(state.unknown, []);
  assert.equal(continuesRun(state, callOf(state, 'k2'), 'retry'), false);
});

test('a call without a card is asked about at the end', () => {
  const service = crashed();
  const lost = { call_id: 'k9', tool: 'terminal', args: {}, message_id: 'gone' };
  const state = fromSnapshot({ ...service.snapshot, unknown_calls: [...service.snapshot.unknown_calls, lost] });
  assert.deepEqual(withoutCard(state), [lost]);
});

test('a call is led to where its question stands: at its own message, or at the end where no card shows it', () => {
  const late = fromSnapshot(crashed().snapshot);
  const [call] = late.unknown;
  assert.equal(placeOf(late, call), 'a1');
  const elsewhere = { ...call, call_id: 'of a subagent', message_id: 'c1' };
  const newest = late.entries.at(-1)?.id;
  assert.equal(placeOf({ ...late, unknown: [elsewhere] }, elsewhere), newest);
});
