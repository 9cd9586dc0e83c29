// The list of what a run did.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { en } from '../i18n/en.js';
import { callBehind, readSoFar, tokensPerSecond } from '../state/pace.js';
import { EVENTS } from '../state/events.js';
import { runRows } from '../state/run_log.js';
import { at, FakeService } from './fake_service.js';
import { logOf, wholeRun } from './whole_run.js';

/** @import { RunRow } from '../state/run_log.js' */
/** @import { CallInfo, Envelope } from '../state/wire.js' */

const { frames } = wholeRun();
const log = logOf(frames);

/** @param {number} n @param {number} after_seq @param {number} ms @returns {CallInfo} */
const call = (n, after_seq, ms) => ({
  n, kind: 'turn', started_at: at(ms), first_chunk_ms: 5, duration_ms: 20, model: 'demo', prompt_tokens: 10, completion_tokens: 2, outcome: 'done', after_seq,
});

/** @param {Partial<Parameters<typeof runRows>[0]>} [change] */
const rows = (change = {}) => runRows({ run_id: 'r1', started_at: at(0), frames: log, calls: [], children: ['ra', 'rb'], whole: true, ...change });

/** @param {RunRow} row */
function name(row) {
  if (row.kind === 'call') return `call ${row.call.n}`;
  if (row.kind === 'tool') return `tool ${row.call_id} ${row.state}`;
  if (row.kind === 'child') return `child ${row.run_id} ${row.state}`;
  return row.kind === 'text' ? `${row.part} ${row.text}` : row.type;
}

test('a run is what it did itself, each thing once and in order', () => {
  assert.deepEqual(rows().map(name), [
    'message_accepted', 'stream_start', 'plan_ready', 'todo_updated',
    'tool ka success', 'tool kb success', 'child ra limited', 'child rb completed', 'todo_updated',
    'message_steered', 'tool ks success', 'profile_switched', 'text That is all.', 'stream_end', 'context_compressed',
  ]);
});

test('a subagent has its own list, and its own subagents in it', () => {
  assert.deepEqual(rows({ run_id: 'ra', children: ['rc'] }).map(name), [
    'thinking Let me count.', 'tool kc success', 'tool kd success', 'child rc completed',
  ]);
});

test('times are since the start, never before it, and each row has its own key', () => {
  for (const run_id of ['r1', 'ra', 'rb', 'rc']) {
    const list = rows({ run_id, calls: [call(1, 0, 1), call(2, 9, 80)] });
    assert.equal(new Set(list.map(({ key }) => key)).size, list.length);
    assert.ok(list.every(({ at_ms }) => at_ms >= 0));
  }
  assert.ok(rows({ started_at: at(1_000_000) }).every(({ at_ms }) => at_ms === 0), 'a clock that was put back');
  const tool = rows().find((row) => row.kind === 'tool');
  const started = log.find((frame) => frame.type === 'tool_started');
  assert.equal(tool?.at_ms, Date.parse(started?.at ?? '') - Date.parse(at(0)));
});

test('a call of the model stands after the event that it came after', () => {
  const plan = log.find((frame) => frame.type === 'plan_ready')?.seq ?? 0;
  const list = rows({ calls: [call(2, plan, 60), call(1, 2, 15)] }).map(name);
  assert.deepEqual(list.slice(0, 7), ['message_accepted', 'stream_start', 'call 1', 'plan_ready', 'call 2', 'todo_updated', 'tool ka success']);
});

test('a call stands before the words that it brought', () => {
  const service = new FakeService();
  service.tell({ type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' });
  service.stream('stream_delta', 'a.text', 'Well, well.');
  service.tell({ type: 'stream_end', content: 'Well, well.', message_id: 'a', context_tokens: 1, max_context_tokens: 2, completed: true });
  const frames = logOf(service.frames);
  const told = rows({ frames, calls: [call(1, 1, 10)], children: [] });
  assert.deepEqual(told.map(name), ['stream_start', 'call 1', 'text Well, well.', 'stream_end']);
  assert.equal(told[2].at_ms, 15, 'the log has no time of a text: it began with the first word of its call');
  // The newest event may have been another run's, which is not in this log.
  assert.deepEqual(rows({ frames: frames.map((frame) => (frame.seq === 2 ? { ...frame, seq: 9 } : frame)), calls: [call(1, 5, 10)], children: [] }).map(name), ['stream_start', 'call 1', 'text Well, well.', 'stream_end']);
});

test('of a log that goes on, what may come later is not told yet', () => {
  const part = log.slice(0, 5);
  const list = rows({ frames: part, calls: [call(1, 2, 15), call(2, 40, 400)], whole: false }).map(name);
  assert.ok(list.includes('call 1') && !list.includes('call 2'));
  assert.ok(!list.some((row) => row.startsWith('child')));
  const whole = rows({ frames: part, calls: [call(1, 2, 15), call(2, 40, 400)] }).map(name);
  assert.deepEqual(whole.slice(-3), ['call 2', 'child ra null', 'child rb null'], 'a subagent whose events are gone is known by its id');
});

test('pages cut anywhere are the same list', () => {
  const deltas = frames.filter((frame) => frame.run_id === 'r1');
  assert.deepEqual(rows({ frames: deltas, children: [] }), rows({ frames: logOf(deltas), children: [] }));
});

test('a call that was denied or cut has its state, one without a start too', () => {
  const service = new FakeService();
  service.tell({ type: 'tool_started', tool: 't', args: {}, is_subagent: false, call_id: 'k1', message_id: 'a' });
  service.tell({ type: 'tool_call', tool: 't', args: {}, result: 'no', success: false, is_subagent: false, call_id: 'k2', duration_ms: 0 });
  service.tell({ type: 'tool_call', tool: 't', args: {}, result: '', success: false, outcome: 'outcome_unknown', is_subagent: false, call_id: 'k1', duration_ms: 0 });
  service.tell({ type: 'call_resolved', call_id: 'k1', decision: 'retry' });
  assert.deepEqual(rows({ frames: service.frames, children: [] }).map(name), ['tool k1 outcome_unknown', 'tool k2 failed', 'call_resolved']);
});

test('every event that gets a row has its words, and one of a newer service its name', () => {
  for (const [type, { row }] of Object.entries(EVENTS)) {
    assert.equal(`runs.event.${type}` in en, row !== undefined, type);
  }
  const service = new FakeService();
  service.tell({ type: 'something_new' });
  assert.deepEqual(rows({ frames: /** @type {Envelope[]} */ (service.frames), children: [] }).map(name), ['something_new']);
});

test('how quickly a model wrote is told from its first token on, and not of a few', () => {
  assert.equal(tokensPerSecond({ ...call(1, 0, 0), first_chunk_ms: 1000, duration_ms: 3000, completion_tokens: 62 }), 31);
  assert.equal(tokensPerSecond({ ...call(1, 0, 0), first_chunk_ms: 1000, duration_ms: 3000, completion_tokens: 19 }), null, 'a few');
  assert.equal(tokensPerSecond({ ...call(1, 0, 0), first_chunk_ms: null, duration_ms: 3000, completion_tokens: 62 }), null, 'wanted whole');
  assert.equal(tokensPerSecond({ ...call(1, 0, 0), first_chunk_ms: 3000, duration_ms: 3000, completion_tokens: 62 }), null, 'all at once');
  assert.equal(tokensPerSecond({ ...call(1, 0, 0), completion_tokens: null }), null, 'not counted');
});

test('an answer came by the last call of its run that had begun by then, and by no summary', () => {
  const calls = [call(1, 0, 10), call(2, 3, 200), { ...call(3, 5, 300), kind: /** @type {const} */ ('summary') }, call(4, 9, 400)];
  assert.equal(callBehind(calls, at(350))?.n, 2);
  assert.equal(callBehind(calls, at(400))?.n, 4);
  assert.equal(callBehind(calls, at(5)), null);
});

test('how far a prompt is read is told where the service tells it in numbers', () => {
  /** @param {Record<string, string>} params @param {import('../state/wire.js').Phrase['code']} [code] */
  const read = (params, code = 'read_so_far') => readSoFar({ reason: 'prefill', detail: '', phrase: { code, params }, since: at(0) });
  assert.deepEqual(read({ read: '410', total: '1000' }), { read: 410, total: 1000 });
  assert.deepEqual(read({ read: '1200', total: '1000' }), { read: 1000, total: 1000 });
  assert.equal(read({ read: '0', total: '0' }), null);
  assert.equal(read({ read: 'some', total: '10' }), null);
  assert.equal(read({}), null);
  assert.equal(read({ read: '1', total: '2' }, 'reads_conversation'), null);
  assert.equal(readSoFar(null), null);
});
