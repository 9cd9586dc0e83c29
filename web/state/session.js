// One session as the page shows it: a snapshot, and a pure function that takes it one frame
// further. No browser and no clock in sight, so that every order of frames can be tested.
//
// Two invariants hold whatever the connection does:
// - a numbered event is applied once: what is at or below `last_seq` is skipped, a gap is a hole;
// - a delta is applied by its offset: what is already there is skipped, a gap is a hole.
// A hole changes nothing; the caller attaches again with `last_seq`.

/** @import { Envelope, MessageState, QueuedMessage, ToolOutcome } from './wire.js' */
/** @import { Problem, SessionState, UserEntry } from './types.js' */

import { withoutAsked, withRequest, withResolution } from './approvals.js';
import { applyToChild, ended, isChild } from './children.js';
import { closeRun, closeThinking, mapAssistant, withUser, withoutQueued } from './edits.js';
import { fromSnapshot } from './model.js';
import { applyToThread, withNotice } from './thread.js';
import { withDecision, withUnknown } from './unknown.js';

/**
 * What the caller has to do beside showing the new state. `reload`: the conversation is another
 * one now and has to be read again.
 * @typedef {{ state: SessionState, hole: boolean, reload: boolean, confirmed: string | null,
 *   refused: { client_id: string | null } & Problem | null }} Step
 */

/** What is the session's whichever run tells it: its steps, and what a person is asked. */
const SHARED = new Set(['todo_updated', 'approval_requested', 'approval_resolved', 'call_resolved']);

/**
 * One frame further.
 * @param {SessionState} state
 * @param {Envelope} frame
 * @returns {Step}
 */
export function applyFrame(state, frame) {
  /** @type {Step} */
  const step = { state, hole: false, reload: false, confirmed: null, refused: null };
  if (frame.type === 'resync') {
    step.state = fromSnapshot(frame.session);
    return step;
  }
  if (frame.seq !== undefined) {
    if (frame.seq <= state.last_seq) return step;
    if (frame.seq > state.last_seq + 1) return { ...step, hole: true };
  }
  const foreign = isChild(frame) && !SHARED.has(frame.type);
  const next = foreign ? ofChild(state, frame) : applyEvent(state, frame, step);
  if (next === null) return { ...step, hole: true };
  const read = readOutside(next, frame);
  step.state = frame.seq === undefined ? read : { ...read, last_seq: frame.seq };
  return step;
}

/**
 * While the past of a run's subagents is read, what they do waits for it.
 * @param {SessionState} state
 * @param {Envelope} frame
 */
const ofChild = (state, frame) => (state.held === null
  ? applyToChild(state, frame)
  : { ...state, held: { ...state.held, frames: [...state.held.frames, frame] } });

/**
 * A file that was sent in need not be its sender's own words; a result says so itself.
 * @param {SessionState} state
 * @param {Envelope} frame
 */
function readOutside(state, frame) {
  const read = (frame.type === 'tool_call' && frame.outside === true)
    || (frame.type === 'message_accepted' && frame.files !== undefined && frame.files.length > 0);
  return read && !state.outside ? { ...state, outside: true } : state;
}

/**
 * A frame that cannot be read is left out, and that is said once: the rest goes on.
 * @param {SessionState} state
 * @param {Envelope | null} frame
 * @returns {SessionState}
 */
export function withoutFrame(state, frame) {
  const last_seq = frame?.seq === state.last_seq + 1 ? frame.seq : state.last_seq;
  return { ...withNotice(state, { type: 'error', at: 'unreadable', code: 'unreadable_frame', message: '' }), last_seq };
}

/** The event types that `applyEvent` knows, for the test that compares them with the protocol. */
export const EVENT_TYPES = /** @type {const} */ ([
  'message_accepted', 'queue_changed', 'message_steered', 'branch_changed', 'stream_start', 'run_waiting',
  'thinking_delta', 'thinking_end', 'turn_thinking', 'plan_ready', 'subagent_started', 'subagent_finished',
  'profile_switched', 'context_compressed', 'stream_delta', 'tool_started', 'tool_output', 'tool_call',
  'approval_requested', 'approval_resolved', 'call_resolved', 'mode_changed', 'model_changed', 'todo_updated', 'stream_end', 'stream_stopped', 'run_interrupted', 'notice', 'error', 'resync', 'pong',
]);

/**
 * @param {SessionState} state
 * @param {Envelope} frame
 * @param {Step} step
 * @returns {SessionState | null} null for a hole
 */
function applyEvent(state, frame, step) {
  switch (frame.type) {
    case 'message_accepted': {
      step.confirmed = frame.client_id ?? null;
      // Without a number it only repeats to one tab what the log tells in its place.
      if (frame.seq === undefined) return state;
      if (frame.queued) {
        /** @type {QueuedMessage} */
        const queued = {
          message_id: frame.message_id, run_id: frame.run_id ?? '', content: frame.content, images: frame.images ?? [],
          client_id: frame.client_id, author: frame.author, mode: frame.mode, created_at: frame.at, ...(frame.files === undefined ? {} : { files: frame.files }),
        };
        return { ...state, queue: [...withoutQueued(state.queue, frame.message_id), queued] };
      }
      const accepted = withUser(state, {
        kind: 'user', id: frame.message_id, content: frame.content, images: frame.images ?? [], files: frame.files ?? [],
        client_id: frame.client_id ?? null, author: frame.author ?? null, steered: false, created_at: frame.at,
      });
      return withRun(accepted, frame, frame.message_id);
    }
    case 'queue_changed': {
      const { message_id, content, author } = frame;
      const queue = content === null
        ? withoutQueued(state.queue, message_id)
        : state.queue.map((item) => (item.message_id === message_id ? { ...item, content, author } : item));
      return { ...state, queue };
    }
    case 'stream_start': {
      // A message that waited joins the conversation when its run begins.
      return {
        ...withQueued(state, frame, false),
        run: { run_id: frame.run_id ?? '', message_id: frame.message_id, model: frame.model, started_at: frame.at },
        model: frame.model,
        profile_id: frame.profile_id,
        waiting: null,
        ending: null,
        can_continue: false,
        loose_thinking: null,
      };
    }
    case 'message_steered':
      return withQueued(state, frame, true);
    case 'branch_changed':
      step.reload = true;
      return state;
    case 'run_waiting':
      return applyToThread(withRun(state, frame, ''), frame);
    case 'plan_ready': {
      const plan = { run_id: frame.run_id ?? '', message_id: frame.message_id, text: frame.plan, steps: frame.steps };
      const next = applyToThread(state, frame);
      return next === null ? null : { ...next, plan };
    }
    case 'profile_switched': {
      const next = applyToThread(state, frame);
      return next === null ? null : { ...next, profile_id: frame.profile_id };
    }
    case 'context_compressed': {
      const after = state.entries[state.entries.length - 1]?.id ?? null;
      return { ...state, compression: { before: frame.first_kept, after, summary: null }, context_tokens: 0 };
    }
    case 'todo_updated':
      return { ...state, todo: frame.items };
    case 'approval_requested':
      return withRequest(state, frame);
    case 'approval_resolved':
      return withResolution(state, frame);
    case 'tool_call': {
      const next = applyToThread(state, frame);
      return next === null ? null : withUnknown(next, frame);
    }
    case 'call_resolved':
      return withDecision(state, frame);
    case 'mode_changed':
      return { ...state, mode: frame.mode };
    case 'model_changed':
      return { ...state, chosen_model: frame.model };
    case 'stream_end': {
      const ended = mapAssistant(state, frame.message_id, frame, (entry) => ({
        ...closeThinking(entry, frame.at), content: frame.content, open: false, state: 'complete',
      }));
      return {
        ...endRun(ended, frame, 'complete', 'outcome_unknown'),
        context_tokens: frame.context_tokens,
        max_context_tokens: frame.max_context_tokens,
        ending: frame.completed ? null : { kind: 'limited' },
        can_continue: !frame.completed,
      };
    }
    case 'stream_stopped':
      return { ...endRun(state, frame, 'stopped', 'stopped'), ending: { kind: 'stopped' } };
    case 'run_interrupted':
      return {
        ...endRun(state, frame, 'interrupted', 'outcome_unknown'),
        ending: { kind: 'interrupted', reason: frame.reason, phrase: frame.phrase },
        can_continue: frame.can_continue,
      };
    case 'error':
      return withError(state, frame, step);
    default:
      // Of an event that a newer service tells only the number counts.
      return applyToThread(state, frame);
  }
}

/**
 * @param {SessionState} state
 * @param {Extract<Envelope, { type: 'error' }>} frame
 * @param {Step} step
 * @returns {SessionState}
 */
function withError(state, frame, step) {
  if (frame.seq === undefined) {
    // The answer to a frame of this tab; the run, if there is one, does not know of it.
    step.refused = { client_id: frame.client_id ?? null, code: frame.code, message: frame.message, phrase: frame.phrase };
    return state;
  }
  if (frame.recoverable) return withNotice(state, frame);
  return {
    ...endRun(state, frame, 'failed', 'failed'),
    ending: { kind: 'failed', code: frame.code, message: frame.message, phrase: frame.phrase },
    can_continue: true,
  };
}

/**
 * The run that a frame speaks of begins, where none is known: its model is told later, and it
 * can be stopped before.
 * @param {SessionState} state
 * @param {Envelope} frame
 * @param {string} message_id
 * @returns {SessionState}
 */
function withRun(state, frame, message_id) {
  if (state.run !== null || frame.run_id === undefined) return state;
  const run = { run_id: frame.run_id, message_id, model: '', started_at: frame.at };
  return { ...state, run, ending: null, can_continue: false };
}

/**
 * A message that waited joins the conversation: its run begins, or the run that goes takes it in.
 * @param {SessionState} state
 * @param {Extract<Envelope, { type: 'stream_start' | 'message_steered' }>} frame
 * @param {boolean} steered
 * @returns {SessionState}
 */
function withQueued(state, frame, steered) {
  const queued = state.queue.find((item) => item.message_id === frame.message_id);
  if (queued === undefined) return state;
  /** @type {UserEntry} */
  const entry = {
    kind: 'user', id: queued.message_id, content: queued.content, images: queued.images ?? [], files: queued.files ?? [],
    client_id: queued.client_id ?? null, author: queued.author ?? null, steered, created_at: frame.at,
  };
  return withUser(state, entry);
}

/**
 * Ends the run, and with it every subagent of it.
 * @param {SessionState} state
 * @param {Envelope} frame
 * @param {MessageState} message_state of the message that was being written
 * @param {ToolOutcome} call_state of calls that have no result
 * @returns {SessionState}
 */
function endRun(state, frame, message_state, call_state) {
  const run_id = frame.run_id ?? state.run?.run_id ?? null;
  const going = Object.values(state.children).some((child) => child.state === 'running');
  const children = going
    ? Object.fromEntries(Object.values(state.children).map((child) => [child.run_id, ended(child)]))
    : state.children;
  const closed = closeRun(state, run_id, frame.at, message_state, call_state);
  // An interrupted run's questions outlive it; every other end has answered them.
  const approvals = frame.type === 'run_interrupted' ? state.approvals : withoutAsked(state.approvals);
  return { ...closed, children, approvals, run: null };
}
