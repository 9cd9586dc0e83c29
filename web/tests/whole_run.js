// One run with all that a run can have: a plan, subagents side by side and one inside another, a
// message said into it, a profile switch, and a compression after it.

/** @import { Envelope, SessionSnapshot } from '../state/wire.js' */

import { at, FakeService } from './fake_service.js';

const STEPS = [
  { number: 1, text: 'look around', executor: 'tool', tool: 'filesystem', milestone: 'First' },
  { number: 2, text: 'find out', executor: 'agent', profile_id: 'secretary', milestone: 'First' },
  { number: 3, text: 'say it', executor: 'self', milestone: 'Then' },
];
const PLAN = '1. look around\n2. find out\n3. say it';

/** @typedef {{ told: number, snapshot: SessionSnapshot, open: Envelope[] }} Moment */

class Run extends FakeService {
  constructor() {
    super();
    /** @type {Moment[]} */
    this.moments = [];
  }

  moment() {
    this.moments.push({
      told: this.frames.length,
      snapshot: this.snapshot,
      open: [...this.open.values()].map(({ frame, text }) => ({ ...frame, offset: 0, delta: text })),
    });
  }

  /** @param {Partial<SessionSnapshot>} change */
  keep(change) {
    const { snapshot } = this;
    this.snapshot = { ...snapshot, ...change };
  }

  /** A subagent's event. @param {string} run_id @param {string} parent_run_id @param {Record<string, unknown>} event */
  child(run_id, parent_run_id, event) {
    const marked = /^(subagent_|run_waiting)/.test(String(event.type)) ? {} : { is_subagent: true };
    this.tell({ parent_run_id, ...marked, ...event }, run_id);
    this.moment();
  }

  /** @param {string} run_id @param {string} parent_run_id @param {'stream_delta' | 'thinking_delta' | 'tool_output'} type @param {string} part_id @param {string} text @param {Record<string, unknown>} [more] */
  childText(run_id, parent_run_id, type, part_id, text, more = {}) {
    this.stream(type, part_id, text, { run_id, parent_run_id, is_subagent: true, ...more });
    this.moment();
  }

  /** @param {{ id: number, status: string, note?: string }[]} marks @param {{ run_id: string, parent_run_id?: string }} [by] */
  todo(marks, { run_id, ...by } = { run_id: 'r1' }) {
    const items = /** @type {SessionSnapshot['todo']} */ (STEPS.map(({ number, text }) => ({ id: number, text, ...marks.find(({ id }) => id === number) ?? { status: 'pending' } })));
    this.keep({ todo: items });
    this.tell({ type: 'todo_updated', items, ...by }, run_id);
    this.moment();
  }
}

export function wholeRun() {
  const run = new Run();
  run.moment();
  run.commit({ id: 'm1', role: 'user', content: 'Do it all' });
  run.keep({ state: 'running', run: { run_id: 'r1', message_id: 'm1', model: 'demo', started_at: at(0), waiting: null } });
  run.tell({ type: 'message_accepted', message_id: 'm1', queued: false, content: 'Do it all' });
  run.tell({ type: 'stream_start', message_id: 'm1', model: 'demo', profile_id: 'secretary' });
  run.moment();

  run.commit({ id: 'p1', role: 'assistant', content: PLAN, is_plan: true });
  run.keep({ plan: { run_id: 'r1', message_id: 'p1', text: PLAN, steps: /** @type {any} */ (STEPS) } });
  run.tell({ type: 'plan_ready', plan: PLAN, message_id: 'p1', steps: STEPS });
  run.moment();
  run.todo([{ id: 1, status: 'in_progress' }]);

  // Two subagents at once; their calls in one message.
  const asked = { ka: { task: 'count the files', profile_id: 'secretary' }, kb: { task: 'read the log', profile_id: 'server_admin' } };
  run.commit({ id: 'a1', role: 'assistant', content: '', tool_calls: Object.entries(asked).map(([id, args]) => ({ id, name: 'spawn_agent', arguments: args })) });
  for (const [call_id, args] of Object.entries(asked)) run.tell({ type: 'tool_started', tool: 'spawn_agent', args, is_subagent: false, call_id, message_id: 'a1' });
  run.moment();
  run.child('ra', 'r1', { type: 'subagent_started', call_id: 'ka', ...asked.ka });
  run.child('rb', 'r1', { type: 'subagent_started', call_id: 'kb', ...asked.kb });
  run.child('rb', 'r1', { type: 'run_waiting', reason: 'lane', detail: '' });
  run.childText('ra', 'r1', 'thinking_delta', 'ca1.thinking', 'Let me count.');
  run.childText('rb', 'r1', 'stream_delta', 'cb1.text', 'I read the log. ');
  run.close('ca1.thinking');
  run.child('rb', 'r1', { type: 'notice', code: 'prompt_cut', message: 'the prompt was cut' });
  run.child('ra', 'r1', { type: 'thinking_end' });
  run.child('ra', 'r1', { type: 'turn_thinking', thinking: 'Let me count.' });
  run.child('ra', 'r1', { type: 'tool_started', tool: 'filesystem', args: { action: 'list' }, call_id: 'kc', message_id: 'ca1' });
  run.childText('ra', 'r1', 'tool_output', 'kc.output', 'a\nb\n', { call_id: 'kc' });
  run.childText('rb', 'r1', 'stream_delta', 'cb1.text', 'All is well.');
  run.close('kc.output');
  run.child('ra', 'r1', { type: 'tool_call', tool: 'filesystem', args: { action: 'list' }, result: 'a\nb', success: true, call_id: 'kc', duration_ms: 3 });

  // One of them has a subagent of its own, which touches the shared list.
  run.child('ra', 'r1', { type: 'tool_started', tool: 'spawn_agent', args: { task: 'deeper' }, call_id: 'kd', message_id: 'ca2' });
  run.child('rc', 'ra', { type: 'subagent_started', call_id: 'kd', profile_id: 'secretary', task: 'deeper' });
  run.childText('rc', 'ra', 'stream_delta', 'cc1.text', 'Deep down.');
  run.todo([{ id: 1, status: 'done' }, { id: 2, status: 'in_progress' }], { run_id: 'rc', parent_run_id: 'ra' });
  run.close('cc1.text');
  run.child('rc', 'ra', { type: 'subagent_finished', call_id: 'kd', completed_normally: true });
  run.child('ra', 'r1', { type: 'tool_call', tool: 'spawn_agent', args: { task: 'deeper' }, result: 'Deep down.', success: true, call_id: 'kd', duration_ms: 9 });
  run.child('ra', 'r1', { type: 'subagent_finished', call_id: 'ka', completed_normally: false });
  run.close('cb1.text');
  run.child('rb', 'r1', { type: 'subagent_finished', call_id: 'kb', completed_normally: true });
  for (const [call_id, args] of Object.entries(asked)) {
    run.commit({ id: `t-${call_id}`, role: 'tool', content: `report ${call_id}`, tool_call_id: call_id, name: 'spawn_agent', outcome: 'success', duration_ms: 20 });
    run.tell({ type: 'tool_call', tool: 'spawn_agent', args, result: `report ${call_id}`, success: true, is_subagent: false, call_id, duration_ms: 20 });
  }
  run.todo([{ id: 1, status: 'done' }, { id: 2, status: 'failed', note: 'no log there' }]);

  // Said into the run.
  run.keep({ queue: [{ message_id: 'm2', run_id: 'r2', content: 'Hurry', client_id: 'c2', mode: 'steer', created_at: at(run.clock) }] });
  run.tell({ type: 'message_accepted', client_id: 'c2', message_id: 'm2', queued: true, content: 'Hurry' }, 'r2');
  run.moment();
  run.keep({ queue: [] });
  run.commit({ id: 'm2', role: 'user', content: 'Hurry', client_id: 'c2' });
  run.tell({ type: 'message_steered', message_id: 'm2' });
  run.moment();

  run.commit({ id: 'a2', role: 'assistant', content: '', tool_calls: [{ id: 'ks', name: 'switch_profile', arguments: { profile_id: 'server_admin' } }] });
  run.tell({ type: 'tool_started', tool: 'switch_profile', args: { profile_id: 'server_admin' }, is_subagent: false, call_id: 'ks', message_id: 'a2' });
  run.moment();
  run.keep({ profile_id: 'server_admin' });
  run.commit({ id: 't-ks', role: 'tool', content: 'done', tool_call_id: 'ks', name: 'switch_profile', outcome: 'success', duration_ms: 1 });
  run.tell({ type: 'profile_switched', profile_id: 'server_admin', profile_name: 'Server Administrator' });
  run.tell({ type: 'tool_call', tool: 'switch_profile', args: { profile_id: 'server_admin' }, result: 'done', success: true, is_subagent: false, call_id: 'ks', duration_ms: 1 });
  run.moment();
  run.stream('stream_delta', 'a3.text', 'That is all.');
  run.moment();
  run.close('a3.text');
  run.commit({ id: 'a3', role: 'assistant', content: 'That is all.' });
  run.keep({ state: 'idle', run: null, context_token_count: 900 });
  run.tell({ type: 'stream_end', content: 'That is all.', message_id: 'a3', context_tokens: 900, max_context_tokens: 4096, completed: true });
  run.moment();
  run.keep({ compression: { summary: 'It was all done.', first_kept: 'm2' }, context_token_count: 0 });
  run.tell({ type: 'context_compressed', messages_before: 9, messages_after: 4, first_kept: 'm2' });
  run.moment();
  return { frames: run.frames, moments: run.moments, snapshot: run.snapshot };
}

/**
 * The log of the run as `GET /sessions/{id}/runs/{run_id}/events` tells it: pieces joined.
 * @param {Envelope[]} frames
 */
export function logOf(frames) {
  /** @type {Envelope[]} */
  const log = [];
  for (const frame of frames) {
    const last = log[log.length - 1];
    if (last !== undefined && 'part_id' in frame && 'part_id' in last && last.part_id === frame.part_id) {
      log[log.length - 1] = { ...last, delta: last.delta + frame.delta };
    } else {
      log.push(frame);
    }
  }
  return log;
}
