import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fromSnapshot } from '../state/model.js';
import { applyFrame } from '../state/session.js';
import { conversationText } from '../state/text.js';
import { at, FakeService, missed, story } from './fake_service.js';
import { essence, play } from './play.js';

/** @import { Envelope } from '../state/wire.js' */

const { frames, moments, snapshot } = story();
const start = fromSnapshot(moments[0].snapshot);
const live = play(start, frames);

test('live and reloaded are the same conversation', () => {
  const reloaded = fromSnapshot(snapshot);
  assert.equal(conversationText(live), conversationText(reloaded));
  assert.deepEqual(essence(live), essence(reloaded));
  assert.ok(conversationText(live).includes('Nothing mo'));
});

test('a tab that joins at any moment ends as the one that was always there', () => {
  assert.ok(moments.length > 10);
  for (const { told, snapshot: then, open } of moments) {
    const joined = play(fromSnapshot(then), [...open, ...frames.slice(told)]);
    assert.deepEqual(essence(joined), essence(live));
    assert.equal(conversationText(joined), conversationText(live));
  }
});

test('a snapshot in mid-run with its open parts is what a live tab shows', () => {
  for (const { told, snapshot: then, open } of moments) {
    const watching = play(start, frames.slice(0, told));
    const joined = play(fromSnapshot(then), open);
    assert.equal(conversationText(joined), conversationText(watching));
  }
});

test('a connection cut at any frame, any number of times, changes nothing', () => {
  for (let cut = 0; cut < frames.length; cut += 1) {
    let state = play(start, frames.slice(0, cut));
    // It comes back at once, and then again ten frames later.
    const back = Math.min(frames.length, cut + 10);
    state = play(state, missed(frames, back, state.last_seq));
    state = play(state, missed(frames, frames.length, state.last_seq));
    assert.deepEqual(essence(state), essence(live), `cut at ${cut}`);
  }
});

test('every frame told twice is told once', () => {
  const twice = play(start, frames.flatMap((frame) => [frame, frame]));
  assert.deepEqual(twice, live);
  assert.deepEqual(play(live, frames.filter((frame) => frame.seq !== undefined)), live);
  const service = new FakeService();
  service.tell({ type: 'notice', code: 'x', message: 'once' });
  assert.equal(play(start, [service.frames[0], service.frames[0]]).entries.length, 1);
});

test('a missing event or a missing piece of text is a hole that changes nothing', () => {
  for (const [i, frame] of frames.entries()) {
    if (i === frames.length - 1) continue;
    const before = play(start, frames.slice(0, i));
    const rest = frames.slice(i + 1);
    const step = applyFrame(before, rest[0]);
    if (!step.hole) continue;
    assert.equal(step.state, before);
    assert.equal(frame.seq !== undefined || 'part_id' in rest[0], true);
  }
  // One of each, by hand, so that the loop above cannot pass by finding none.
  const numbered = applyFrame(start, frames[1]);
  assert.equal(numbered.hole, true);
  const running = play(start, frames.slice(0, 2));
  /** @type {Envelope} */
  const ahead = { run_id: 'r1', at: at(0), type: 'stream_delta', part_id: 'a1.text', offset: 5, delta: 'x' };
  assert.equal(applyFrame(running, ahead).hole, true);
});

test('a delta that overlaps adds only what is new, by UTF-16 units', () => {
  const running = play(start, frames.slice(0, 2));
  /** @type {(offset: number, delta: string) => Envelope} */
  const delta = (offset, text) => ({ run_id: 'r1', at: at(0), type: 'stream_delta', part_id: 'z.text', offset, delta: text });
  const state = play(running, [delta(0, '🙂ab'), delta(2, 'abc'), delta(0, '🙂'), delta(0, '🙂abcd')]);
  assert.ok(conversationText(state).endsWith('[assistant]\n🙂abcd'));
});

test('resync forgets everything and shows the snapshot', () => {
  const step = applyFrame(live, { at: at(0), type: 'resync', reason: 'epoch_changed', session: { ...moments[3].snapshot, epoch: 9 } });
  assert.deepEqual(step.state, fromSnapshot({ ...moments[3].snapshot, epoch: 9 }));
});

test('a message confirms its client_id, a refused one names it and leaves the run alone', () => {
  const service = new FakeService();
  service.tell({ type: 'message_accepted', client_id: 'c9', message_id: 'm9', queued: false, content: 'x' });
  assert.equal(applyFrame(start, service.frames[0]).confirmed, 'c9');
  const refused = applyFrame(live, { at: at(0), type: 'error', message: 'no', recoverable: true, code: 'empty_message', client_id: 'c9' });
  assert.deepEqual(refused.refused, { client_id: 'c9', code: 'empty_message', message: 'no', phrase: undefined });
  assert.equal(refused.state, live);
});

test('a withdrawn message leaves the queue', () => {
  const told = frames.findIndex((frame) => frame.type === 'queue_changed');
  const queued = play(start, frames.slice(0, told));
  assert.equal(queued.queue.length, 1);
  const step = applyFrame(queued, { ...frames[told], type: 'queue_changed', message_id: 'm2', content: null });
  assert.deepEqual(step.state.queue, []);
});

test('an error ends the run, keeps what was said and says what went wrong', () => {
  const service = new FakeService();
  service.tell({ type: 'message_accepted', message_id: 'm', queued: false, content: 'hi' });
  service.tell({ type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' });
  service.stream('stream_delta', 'a.text', 'half an ans');
  service.tell({ type: 'error', message: 'gone', recoverable: false, code: 'backend_stream_broken' });
  const state = play(start, service.frames);
  assert.equal(state.run, null);
  assert.deepEqual(state.ending, { kind: 'failed', code: 'backend_stream_broken', message: 'gone', phrase: undefined });
  assert.equal(state.can_continue, true);
  const last = state.entries[state.entries.length - 1];
  assert.ok(last.kind === 'assistant' && last.state === 'failed' && last.content === 'half an ans' && !last.open);
});

test('a limit and an interruption offer to continue; the next run takes the offer back', () => {
  const service = new FakeService();
  service.tell({ type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' });
  service.tell({ type: 'stream_end', content: 'so far', message_id: 'a', context_tokens: 1, max_context_tokens: 2, completed: false });
  let state = play(start, service.frames);
  assert.deepEqual([state.ending?.kind, state.can_continue], ['limited', true]);
  service.tell({ type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' }, 'r2');
  service.tell({ type: 'tool_started', tool: 't', args: {}, is_subagent: false, call_id: 'k', message_id: 'b' }, 'r2');
  state = play(start, service.frames);
  assert.deepEqual([state.ending, state.can_continue], [null, false]);
  service.tell({ type: 'run_interrupted', reason: 'restart', can_continue: true }, 'r2');
  state = play(start, service.frames);
  assert.deepEqual([state.ending?.kind, state.can_continue], ['interrupted', true]);
  const last = state.entries[state.entries.length - 1];
  assert.ok(last.kind === 'assistant' && last.calls[0].state === 'outcome_unknown');
});

test('a run can be stopped, and its wait is shown, before its model is known', () => {
  const service = new FakeService();
  service.tell({ type: 'message_accepted', message_id: 'm', queued: false, content: 'hi' });
  service.tell({ type: 'run_waiting', reason: 'lane', detail: 'one before you' });
  let state = play({ ...start, ending: { kind: 'limited' }, can_continue: true }, service.frames);
  assert.equal(state.run?.run_id, 'r1');
  assert.equal(state.waiting?.reason, 'lane');
  assert.deepEqual([state.ending, state.can_continue], [null, false]);
  service.tell({ type: 'stream_stopped' });
  state = play(start, service.frames);
  assert.equal(state.run, null);
  assert.deepEqual(conversationText(state), '[user]\nhi');
});

test('an answer that was whole as Stop came leaves what waits held, until somebody goes on', () => {
  const service = new FakeService();
  service.tell({ type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' });
  service.tell({ type: 'stream_end', content: 'whole', message_id: 'a', context_tokens: 1, max_context_tokens: 2, completed: true });
  assert.equal(play(start, service.frames).ending, null);
  service.tell({ type: 'notice', code: 'queue_held', message: 'held', is_subagent: false });
  const held = play(start, service.frames);
  assert.deepEqual(held.ending, { kind: 'stopped', held: true });
  service.tell({ type: 'stream_start', message_id: 'm2', model: 'x', profile_id: 'p' }, 'r2');
  assert.equal(play(start, service.frames).ending, null);
});

test('a run that failed as Stop came is shown as failed, and what waits as held', () => {
  const service = new FakeService();
  service.tell({ type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' });
  service.tell({ type: 'error', code: 'run_failed', message: 'gone', recoverable: false });
  assert.equal(play(start, service.frames).ending?.held, undefined);
  service.tell({ type: 'notice', code: 'queue_held', message: 'held', is_subagent: false });
  const { ending } = play(start, service.frames);
  assert.deepEqual([ending?.kind, ending?.held], ['failed', true]);
});

test('an acknowledgement that is repeated to one tab confirms and changes nothing', () => {
  const step = applyFrame(live, { run_id: 'r2', at: at(0), type: 'message_accepted', client_id: 'c2', message_id: 'm2', queued: true, mode: 'queue', content: 'x' });
  assert.deepEqual([step.confirmed, step.state === live], ['c2', true]);
});

test('a result without a start is shown with the message that it belongs to', () => {
  const service = new FakeService();
  service.tell({ type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' });
  service.stream('stream_delta', 'a.text', 'Well.');
  service.tell({ type: 'tool_call', tool: 't', args: { x: 1 }, result: 'no such tool', success: false, is_subagent: false, call_id: 'k', duration_ms: 0 });
  assert.equal(conversationText(play(start, service.frames)), '[assistant]\nWell.\n[call t]\n{"x":1}\n[result]\nno such tool');
});

test('reasoning told whole goes to the message whose calls follow it', () => {
  const service = new FakeService();
  service.tell({ type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' });
  service.tell({ type: 'turn_thinking', thinking: 'first', is_subagent: false });
  service.tell({ type: 'tool_started', tool: 't', args: {}, is_subagent: false, call_id: 'k1', message_id: 'a' });
  service.tell({ type: 'tool_call', tool: 't', args: {}, result: 'r', success: true, is_subagent: false, call_id: 'k1', duration_ms: 1 });
  service.tell({ type: 'turn_thinking', thinking: 'second', is_subagent: false });
  service.tell({ type: 'tool_started', tool: 't', args: {}, is_subagent: false, call_id: 'k2', message_id: 'b' });
  const state = play(start, service.frames);
  assert.deepEqual(state.entries.map((entry) => entry.kind === 'assistant' && entry.thinking), ['first', 'second']);
});

test('an event of a newer service moves the number and nothing else', () => {
  const service = new FakeService();
  service.tell({ type: 'something_new', field: 1 });
  assert.deepEqual(play(start, service.frames), { ...start, last_seq: 1 });
});

test('what did not change stays the same object, so that it is not drawn again', () => {
  const stop = frames.findIndex((frame) => 'part_id' in frame && frame.part_id === 'a2.text');
  const before = play(start, frames.slice(0, stop + 1));
  const after = play(before, [frames[stop + 1]]);
  assert.equal(after.entries[0], before.entries[0]);
  assert.equal(after.entries[1], before.entries[1]);
  assert.notEqual(after.entries[2], before.entries[2]);
});

test('a page that is loaded again knows why the last run ended, and what one that goes waits for', () => {
  const { snapshot } = new FakeService();
  const silent = /** @type {const} */ ({ code: 'ended_early' });
  const failed = fromSnapshot({ ...snapshot, state: 'failed', reason: 'the model fell silent', reason_phrase: silent });
  assert.deepEqual(failed.ending, { kind: 'failed', code: 'run_failed', message: 'the model fell silent', phrase: silent });
  const interrupted = fromSnapshot({ ...snapshot, state: 'interrupted', reason: 'Navi went down' });
  assert.deepEqual(interrupted.ending, { kind: 'interrupted', reason: 'Navi went down', phrase: undefined });
  const run = { run_id: 'r1', message_id: 'm1', model: 'demo', started_at: snapshot.created_at, waiting: { reason: /** @type {const} */ ('lane'), detail: 'another call goes', phrase: /** @type {const} */ ({ code: 'goes_next' }) } };
  const { waiting } = fromSnapshot({ ...snapshot, state: 'running', run });
  assert.deepEqual(waiting, { ...run.waiting, since: run.started_at });
});

test('what Stop held back is shown as that, however the run before it ended, and nothing else that waits', () => {
  const queue = [{ message_id: 'm2', run_id: 'r2', content: 'And then?', mode: /** @type {const} */ ('queue'), created_at: snapshot.created_at }];
  assert.deepEqual(fromSnapshot({ ...snapshot, queue }).ending, { kind: 'stopped', held: true });
  assert.equal(fromSnapshot(snapshot).ending, null);
  assert.deepEqual(fromSnapshot({ ...snapshot, queue, can_continue: true }).ending, { kind: 'limited', held: true });
  const failed = /** @type {const} */ ({ ...snapshot, queue, state: 'failed', reason: 'no model' });
  assert.equal(fromSnapshot(failed).ending?.held, true);
  assert.equal(fromSnapshot({ ...failed, queue: [] }).ending?.held, undefined);
  const answered = frames.findIndex((frame) => frame.type === 'stream_end');
  const between = play(start, frames.slice(0, answered + 1));
  assert.deepEqual([between.run, between.queue.length, between.ending], [null, 1, null]);
});

test('a page that is loaded again shows what the last run had to say, where it was said', () => {
  const service = new FakeService();
  service.commit({ id: 'm1', role: 'user', content: 'Hello' });
  service.tell({ type: 'message_accepted', message_id: 'm1', queued: false, content: 'Hello' });
  service.tell({ type: 'notice', code: 'context_left_out', message: 'the oldest 2 turns were left out' });
  service.stream('stream_delta', 'a1.text', 'Hi.');
  const open = [...service.open.values()].map(({ frame, text }) => ({ ...frame, offset: 0, delta: text }));
  service.tell({ type: 'notice', code: 'prompt_cut', message: 'the server cut the prompt' });
  const [, first, , last] = service.frames.filter((frame) => frame.seq !== undefined || frame.type === 'stream_delta');
  const live = play(fromSnapshot(new FakeService().snapshot), service.frames);
  const notices = [first, last].flatMap((frame) => (frame.type === 'notice' ? [{ seq: frame.seq ?? 0, at: frame.at, code: frame.code, message: frame.message }] : []));
  const going = fromSnapshot({ ...service.snapshot, notices });
  assert.deepEqual(going.entries.map(({ id }) => id), ['m1', `notice-${first.seq}`, `notice-${last.seq}`]);
  assert.deepEqual(play(going, open).entries.map(({ id }) => id).toSorted(), live.entries.map(({ id }) => id).toSorted());
  service.close('a1.text');
  service.commit({ id: 'a1', role: 'assistant', content: 'Hi.' });
  const over = fromSnapshot({ ...service.snapshot, notices });
  assert.deepEqual(over.entries.map(({ id }) => id), live.entries.map(({ id }) => id));
  // Who has them already is not told again.
  assert.equal(play({ ...over, last_seq: 0 }, service.frames.filter(({ seq }) => seq !== undefined)).entries.length, 4);
});

test('a session that read text from outside says so, whoever of its runs read it', () => {
  const service = new FakeService();
  const start = fromSnapshot(service.snapshot);
  assert.equal(start.outside, false);
  assert.equal(fromSnapshot({ ...service.snapshot, tainted_at: '2026-01-01T00:00:00Z' }).outside, true);
  service.tell({ type: 'tool_call', tool: 'web_fetch', args: {}, result: 'page', success: true, is_subagent: false, call_id: 'k', duration_ms: 1 });
  assert.equal(play(start, service.frames).outside, false);
  service.tell({ type: 'tool_call', tool: 'web_fetch', args: {}, result: 'page', success: true, outside: true, is_subagent: true, call_id: 'kc', parent_run_id: 'r1', duration_ms: 1 }, 'rc');
  assert.equal(play(start, service.frames).outside, true);
});

test('who wrote a message is told with it, and who changed one that waits has it then', () => {
  const olha = { id: '0190a0b0-0000-7000-8000-00000000000a', name: 'Olha' };
  const anna = { id: '0190a0b0-0000-7000-8000-00000000000b', name: 'Anna' };
  /** @param {number} n @param {object} rest */
  const frame = (n, rest) => /** @type {Envelope} */ ({ seq: start.last_seq + n, at: at(n), run_id: '0190a0b0-0000-7000-8000-0000000000c1', ...rest });
  const message = { type: 'message_accepted', mode: 'queue', content: 'hello' };
  const state = play(start, [
    frame(1, { ...message, message_id: 'm1', queued: false, author: olha }),
    frame(2, { ...message, message_id: 'm2', queued: true, author: olha }),
    frame(3, { type: 'queue_changed', message_id: 'm2', content: 'other words', author: anna }),
  ]);
  const said = state.entries.find(({ id }) => id === 'm1');
  assert.deepEqual(said?.kind === 'user' && said.author, olha);
  assert.deepEqual(state.queue.map(({ content, author }) => [content, author]), [['other words', anna]]);
});
