// Subagents: each run of one has its own thread, kept by its run id. Their events have numbers of
// the session's sequence; a thread keeps its own place in it too, so that what the log tells of a
// run that is over can be read again without being counted twice.

/** @import { Envelope } from './wire.js' */
/** @import { Call, Child, Entry, SessionState } from './types.js' */

import { ruleOf } from './events.js';
import { newNotice, profileOf, withNoticeInPlace } from './model.js';
import { ended } from './run.js';

/**
 * Whether the frame is of a subagent's run.
 * @param {Envelope} frame
 */
export function isChild(frame) {
  return frame.parent_run_id !== undefined || frame.type === 'subagent_started' || frame.type === 'subagent_finished'
    || ('is_subagent' in frame && frame.is_subagent === true);
}

/**
 * A subagent's frame one further.
 * @param {SessionState} state
 * @param {Envelope} frame
 * @returns {SessionState | null} null for a hole
 */
export function applyToChild(state, frame) {
  const run_id = frame.run_id;
  if (run_id === undefined) return state;
  const known = state.children[run_id] ?? newChild(run_id, frame);
  if (frame.seq !== undefined && frame.seq <= known.last_seq) return state;
  const { child: own, thread } = ruleOf(frame.type);
  const apply = own ?? thread;
  const next = apply === undefined ? known : apply(known, frame);
  // A part whose beginning this page never saw is none of its business: the log has it.
  if (next === null) return known.call_id === null ? state : null;
  const child = frame.seq === undefined ? next : { ...next, last_seq: frame.seq };
  return child === known ? state : { ...state, children: { ...state.children, [run_id]: child } };
}

/**
 * @param {string} run_id
 * @param {Envelope} frame the first that was seen of it
 * @returns {Child}
 */
function newChild(run_id, frame) {
  return {
    run_id, parent_run_id: frame.parent_run_id ?? null, call_id: null, profile_id: '', task: '', state: 'running',
    entries: [], waiting: null, loose_thinking: null, last_seq: 0,
  };
}

/**
 * The past of a run's subagents is being read.
 * @param {SessionState} state
 * @param {string} run_id
 * @returns {SessionState}
 */
export function reading(state, run_id) {
  const held = state.run?.run_id === run_id ? { run_id, frames: [] } : state.held;
  return { ...state, held, histories: { ...state.histories, [run_id]: { state: 'loading' } } };
}

/**
 * It could not be read: what they do from here on is shown as far as it can be.
 * @param {SessionState} state
 * @param {string} run_id
 * @param {{ code: string, message: string }} error
 * @returns {SessionState}
 */
export function unread(state, run_id, { code, message }) {
  return { ...withHeld(state, run_id),
    histories: { ...state.histories, [run_id]: { state: 'failed', code, message } } };
}

/**
 * What subagents of the run that goes did while their past was read. The log may be ahead of it:
 * what it told is known by its number and place.
 * @param {SessionState} state
 * @param {string} run_id
 * @returns {SessionState}
 */
function withHeld(state, run_id) {
  if (state.held?.run_id !== run_id) return state;
  /** @type {SessionState} */
  const whole = { ...state, held: null };
  return state.held.frames.reduce((known, frame) => applyToChild(known, frame) ?? known, whole);
}

/**
 * The subagents of a run as its log tells of them, in place of what was known of them, and what
 * they did since.
 * @param {SessionState} state
 * @param {string} run_id
 * @param {Envelope[]} frames the run's events, in order
 * @returns {SessionState}
 */
export function withHistory(state, run_id, frames) {
  /** @type {SessionState} */
  let fresh = { ...state, children: {} };
  for (const frame of frames) {
    if (isChild(frame)) fresh = applyToChild(fresh, frame) ?? fresh;
  }
  const whole = withHeld({ ...state, children: { ...state.children, ...fresh.children } }, run_id);
  const over = state.run?.run_id !== run_id;
  const own = Object.keys(fresh.children).map((id) => [id, over ? ended(whole.children[id]) : whole.children[id]]);
  const children = { ...whole.children, ...Object.fromEntries(own) };
  return { ...whole, entries: withResumed(state.entries, frames), children,
    histories: { ...state.histories, [run_id]: { state: 'ready' } } };
}

/**
 * That a run went on by itself is told where it did, whoever comes later.
 * @param {Entry[]} entries
 * @param {Envelope[]} frames
 */
function withResumed(entries, frames) {
  const told = frames.find((frame) => frame.type === 'notice' && frame.code === 'run_resumed');
  return told?.type === 'notice' ? withNoticeInPlace(entries, newNotice(told)) : entries;
}

/**
 * Whether the run that goes now has subagents, whose past no snapshot tells.
 * @param {SessionState} state
 */
export function hasChildren(state) {
  const run_id = state.run?.run_id;
  return run_id !== undefined && state.entries.some((entry) => entry.kind === 'assistant' && entry.run_id === run_id
    && entry.calls.some((call) => call.name === 'spawn_agent'));
}

/**
 * The subagent that a call of `spawn_agent` started.
 * @param {Pick<SessionState, 'children'>} state
 * @param {string} call_id
 * @returns {Child | null}
 */
export function childOf(state, call_id) {
  for (const child of Object.values(state.children)) {
    if (child.call_id === call_id) return child;
  }
  return null;
}

/** More of a task is no name. */
const NAME_CHARS = 60;

/** What a subagent is called: how its task begins. @param {string} task */
export function nameOf(task) {
  const [line] = task.trim().split('\n', 1);
  const sentence = /^.+?[.!?…](?=\s|$)/u.exec(line)?.[0] ?? line;
  if (sentence.length <= NAME_CHARS) return sentence;
  const cut = sentence.slice(0, NAME_CHARS);
  const end = cut.lastIndexOf(' ');
  return `${(end > NAME_CHARS / 2 ? cut.slice(0, end) : cut).replace(/[\s,;:–-]+$/u, '')}…`;
}

/** @param {unknown} args @param {'task' | 'context'} name */
export function textOf(args, name) {
  const value = args !== null && typeof args === 'object'
    ? Object.entries(args).find(([key]) => key === name)?.[1]
    : '';
  return typeof value === 'string' ? value : '';
}

/**
 * The numbers of those that are called the same and have the same profile.
 * @param {Pick<Call, 'id' | 'args'>[]} calls that started them
 * @returns {Map<string, number>} by their ids
 */
export function numbersOf(calls) {
  const looks = calls.map(({ args }) => `${profileOf(args)} ${nameOf(textOf(args, 'task'))}`);
  return new Map(calls.flatMap(({ id }, i) => (looks.filter((look) => look === looks[i]).length < 2 ? []
    : [/** @type {[string, number]} */ ([id, looks.slice(0, i + 1).filter((look) => look === looks[i]).length])])));
}

/**
 * Whether a subagent completed normally, as its result begins by saying; null where it does not.
 * @param {string | null} result
 */
export function saysCompleted(result) {
  const said = /^completed_normally: (true|false)/.exec(result ?? '');
  return said === null ? null : said[1] === 'true';
}

/**
 * The profile in force at one of the session's own calls; '' where that is not known any more.
 * @param {SessionState} state
 * @param {string} call_id
 */
export function profileAt(state, call_id) {
  const at = state.entries.findIndex((entry) => entry.kind === 'assistant'
    && entry.calls.some((call) => call.id === call_id));
  if (at < 0) return '';
  const before = state.entries.slice(0, at).findLast((entry) => entry.kind === 'switch');
  if (before?.kind === 'switch') return before.profile_id;
  return state.entries.some((entry) => entry.kind === 'switch') ? '' : state.profile_id;
}
