// One session as the page shows it: a snapshot, and a pure function that takes it one frame
// further. No browser and no clock in sight, so that every order of frames can be tested.
//
// Two invariants hold whatever the connection does:
// - a numbered event is applied once: what is at or below `last_seq` is skipped, a gap is a hole;
// - a delta is applied by its offset: what is already there is skipped, a gap is a hole.
// A hole changes nothing; the caller attaches again with `last_seq`.

/** @import { Frame, MessageState, QueuedMessage, ToolOutcome } from './wire.js' */
/** @import { NoticeEntry, SessionState } from './model.js' */

import { fromSnapshot, newCall } from './model.js';
import {
  closeThinking, lastAssistant, mapAssistant, mapCall, mapLastAssistant, withDelta, withOutput, withUser,
  withoutQueued, withoutWaiting,
} from './edits.js';

/** What the caller has to do beside showing the new state.
 * @typedef {{ state: SessionState, hole: boolean, confirmed: string | null, refused: { client_id: string | null, code: string, message: string } | null }} Step */

/**
 * One frame further.
 * @param {SessionState} state
 * @param {Frame} frame
 * @returns {Step}
 */
export function applyFrame(state, frame) {
  /** @type {Step} */
  const step = { state, hole: false, confirmed: null, refused: null };
  if (frame.type === 'resync') {
    step.state = fromSnapshot(frame.session);
    return step;
  }
  if (frame.seq !== undefined) {
    if (frame.seq <= state.last_seq) return step;
    if (frame.seq > state.last_seq + 1) return { ...step, hole: true };
  }
  // A subagent's events are its own run's; the parent's call shows what came of it.
  const foreign = frame.parent_run_id !== undefined || ('is_subagent' in frame && frame.is_subagent === true);
  const next = foreign ? state : applyEvent(state, frame, step);
  if (next === null) return { ...step, hole: true };
  step.state = frame.seq === undefined ? next : { ...next, last_seq: frame.seq };
  return step;
}

/** The event types that `applyEvent` knows, for the test that compares them with the protocol. */
export const EVENT_TYPES = /** @type {const} */ ([
  'message_accepted', 'queue_changed', 'stream_start', 'run_waiting', 'thinking_delta', 'thinking_end',
  'turn_thinking', 'stream_delta', 'tool_started', 'tool_output', 'tool_call', 'todo_updated', 'stream_end',
  'stream_stopped', 'run_interrupted', 'notice', 'error', 'resync',
]);

/**
 * @param {SessionState} state
 * @param {Frame} frame
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
          message_id: frame.message_id, content: frame.content, images: frame.images ?? [],
          client_id: frame.client_id, created_at: frame.at,
        };
        return { ...state, queue: [...withoutQueued(state.queue, frame.message_id), queued] };
      }
      const accepted = withUser(state, {
        kind: 'user', id: frame.message_id, content: frame.content, images: frame.images ?? [],
        client_id: frame.client_id ?? null, created_at: frame.at,
      });
      return withRun(accepted, frame, frame.message_id);
    }
    case 'queue_changed': {
      const { message_id, content } = frame;
      const queue = content === null
        ? withoutQueued(state.queue, message_id)
        : state.queue.map((item) => (item.message_id === message_id ? { ...item, content } : item));
      return { ...state, queue };
    }
    case 'stream_start': {
      // A message that waited joins the conversation when its run begins.
      const queued = state.queue.find((item) => item.message_id === frame.message_id);
      const base = queued === undefined ? state : withUser(state, {
        kind: 'user', id: queued.message_id, content: queued.content, images: queued.images ?? [],
        client_id: queued.client_id ?? null, created_at: frame.at,
      });
      return {
        ...base,
        run: { run_id: frame.run_id ?? '', message_id: frame.message_id, model: frame.model, started_at: frame.at },
        model: frame.model,
        profile_id: frame.profile_id,
        waiting: null,
        ending: null,
        can_continue: false,
        loose_thinking: null,
      };
    }
    case 'run_waiting':
      return { ...withRun(state, frame, ''), waiting: { reason: frame.reason, detail: frame.detail, since: frame.at } };
    case 'thinking_delta':
      return withDelta(state, frame, 'thinking');
    case 'thinking_end':
      return withoutWaiting(mapLastAssistant(state, frame, (entry) => closeThinking(entry, frame.at)));
    case 'turn_thinking': {
      const entry = lastAssistant(state, frame);
      // It belongs to the message whose calls come next; one that has calls is an earlier one.
      if (entry === null || entry.calls.length > 0) {
        return { ...state, loose_thinking: { run_id: frame.run_id ?? null, thinking: frame.thinking } };
      }
      return mapLastAssistant(state, frame, (last) => ({ ...closeThinking(last, frame.at), thinking: frame.thinking }));
    }
    case 'stream_delta':
      return withDelta(state, frame, 'text');
    case 'tool_started':
      return mapAssistant(withoutWaiting(state), frame.message_id, frame, (entry) => {
        const call = newCall(frame.call_id, frame.tool, frame.args, 'running', frame.at);
        const known = entry.calls.some((item) => item.id === frame.call_id);
        return {
          ...closeThinking(entry, frame.at),
          open: false,
          calls: known
            ? entry.calls.map((item) => (item.id === frame.call_id ? { ...item, started_at: frame.at } : item))
            : [...entry.calls, call],
        };
      });
    case 'tool_output':
      return withOutput(state, frame);
    case 'tool_call':
      return mapCall(withCall(withoutWaiting(state), frame), frame.call_id, (call) => ({
        ...call,
        result: frame.result,
        state: frame.outcome ?? (frame.success ? 'success' : 'failed'),
        duration_ms: frame.duration_ms,
      }));
    case 'todo_updated':
      return { ...state, todo: frame.items };
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
        ending: { kind: 'interrupted', reason: frame.reason },
        can_continue: frame.can_continue,
      };
    case 'notice':
      return withNotice(state, frame, 'notice', frame.code, frame.message);
    case 'error':
      return withError(state, frame, step);
    default:
      // An event that a newer service tells: its number counts, its content is not for us.
      return state;
  }
}

/**
 * @param {SessionState} state
 * @param {Extract<Frame, { type: 'error' }>} frame
 * @param {Step} step
 * @returns {SessionState}
 */
function withError(state, frame, step) {
  if (frame.seq === undefined) {
    // The answer to a frame of this tab; the run, if there is one, does not know of it.
    step.refused = { client_id: frame.client_id ?? null, code: frame.code, message: frame.message };
    return state;
  }
  if (frame.recoverable) return withNotice(state, frame, 'error', frame.code, frame.message);
  return {
    ...endRun(state, frame, 'failed', 'failed'),
    ending: { kind: 'failed', code: frame.code, message: frame.message },
    can_continue: true,
  };
}

/**
 * The run that a frame speaks of begins, where none is known: its model is told later, and it
 * can be stopped before.
 * @param {SessionState} state
 * @param {Frame} frame
 * @param {string} message_id
 * @returns {SessionState}
 */
function withRun(state, frame, message_id) {
  if (state.run !== null || frame.run_id === undefined) return state;
  const run = { run_id: frame.run_id, message_id, model: '', started_at: frame.at };
  return { ...state, run, ending: null, can_continue: false };
}

/**
 * The call of a result whose start was not told belongs to the run's newest message.
 * @param {SessionState} state
 * @param {Extract<Frame, { type: 'tool_call' }>} frame
 * @returns {SessionState}
 */
function withCall(state, frame) {
  const known = state.entries.some((entry) => entry.kind === 'assistant' && entry.calls.some((call) => call.id === frame.call_id));
  if (known) return state;
  return mapLastAssistant(state, frame, (entry) => ({
    ...entry, open: false, calls: [...entry.calls, newCall(frame.call_id, frame.tool, frame.args, 'running')],
  }));
}

/**
 * @param {SessionState} state
 * @param {Frame} frame
 * @param {'notice' | 'error'} tone
 * @param {string} code
 * @param {string} message
 * @returns {SessionState}
 */
function withNotice(state, frame, tone, code, message) {
  /** @type {NoticeEntry} */
  const entry = { kind: 'notice', id: `notice-${frame.seq ?? frame.at}`, code, message, tone, created_at: frame.at };
  return { ...state, entries: [...state.entries, entry] };
}

/**
 * Ends the run: closes what is open and gives every open call its state.
 * @param {SessionState} state
 * @param {Frame} frame
 * @param {MessageState} message_state of the message that was being written
 * @param {ToolOutcome} call_state of calls that have no result
 * @returns {SessionState}
 */
function endRun(state, frame, message_state, call_state) {
  const run_id = frame.run_id ?? state.run?.run_id ?? null;
  const entries = state.entries.map((entry) => {
    if (entry.kind !== 'assistant' || entry.run_id !== run_id) return entry;
    const running = entry.calls.some((call) => call.state === 'running');
    if (!entry.open && !running && !entry.thinking_open) return entry;
    return {
      ...closeThinking(entry, frame.at),
      open: false,
      state: entry.open ? message_state : entry.state,
      calls: running
        ? entry.calls.map((call) => (call.state === 'running' ? { ...call, state: call_state } : call))
        : entry.calls,
    };
  });
  return { ...state, entries, run: null, waiting: null, loose_thinking: null };
}
