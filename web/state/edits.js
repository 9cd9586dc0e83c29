// Changes to a thread's entries that the events have in common. Each gives back the very
// same thread where nothing changed, so that nothing is drawn again.

/** @import { Envelope, MessageState, QueuedMessage, ToolOutcome } from './wire.js' */
/** @import { AssistantEntry, Call, Entry, SessionState, Thread, UserEntry } from './types.js' */

import { newAssistant } from './model.js';
import { grown } from './terminal.js';

/**
 * @param {SessionState} state
 * @param {UserEntry} entry
 * @returns {SessionState}
 */
export function withUser(state, entry) {
  const queue = withoutQueued(state.queue, entry.id);
  if (state.entries.some((known) => known.id === entry.id)) return { ...state, queue };
  return { ...state, queue, entries: [...state.entries, entry] };
}

/**
 * @param {QueuedMessage[]} queue
 * @param {string} message_id
 */
export function withoutQueued(queue, message_id) {
  return queue.some((item) => item.message_id === message_id)
    ? queue.filter((item) => item.message_id !== message_id)
    : queue;
}

/**
 * @template {Thread} T
 * @param {T} state
 * @returns {T}
 */
export function withoutWaiting(state) {
  return state.waiting === null ? state : { ...state, waiting: null };
}

/**
 * What of a delta is new after `have` units of its part.
 * @param {number} have
 * @param {{ offset: number, delta: string }} delta
 * @returns {string | null} null for a hole
 */
export function freshPart(have, delta) {
  if (delta.offset > have) return null;
  return delta.delta.slice(have - delta.offset);
}

/**
 * @template {Thread} T
 * @param {T} state
 * @param {Extract<Envelope, { type: 'thinking_delta' | 'stream_delta' }>} frame
 * @param {'thinking' | 'text'} part
 * @returns {T | null}
 */
export function withDelta(state, frame, part) {
  const message_id = frame.part_id.slice(0, frame.part_id.lastIndexOf('.'));
  const known = findAssistant(state, message_id);
  const have = known === null ? 0 : (part === 'text' ? known.content : known.thinking).length;
  const fresh = freshPart(have, frame);
  if (fresh === null) return null;
  if (fresh === '') return state;
  return mapAssistant(withoutWaiting(state), message_id, frame, (entry) => (part === 'text'
    ? { ...closeThinking(entry, frame.at), content: entry.content + fresh }
    : {
      ...entry,
      thinking: entry.thinking + fresh,
      thinking_open: entry.open,
      thinking_started_at: entry.thinking_started_at ?? frame.at,
    }));
}

/**
 * @template {Thread} T
 * @param {T} state
 * @param {Extract<Envelope, { type: 'tool_output' }>} frame
 * @returns {T | null}
 */
export function withOutput(state, frame) {
  let hole = false;
  const next = mapCall(withoutWaiting(state), frame.call_id, (call) => {
    const fresh = freshPart(call.output_from + call.output.length, frame);
    if (fresh === null) hole = true;
    return fresh === null || fresh === '' ? call : { ...call, ...grown(call.output, call.output_from, fresh) };
  });
  return hole ? null : next;
}

/**
 * @param {AssistantEntry} entry
 * @param {string} at
 * @returns {AssistantEntry}
 */
export function closeThinking(entry, at) {
  if (!entry.thinking_open) return entry;
  const from = entry.thinking_started_at;
  return { ...entry, thinking_open: false,
    thinking_ms: from === null ? null : Math.max(0, Date.parse(at) - Date.parse(from)) };
}

/**
 * @param {Thread} state
 * @param {string} message_id
 * @returns {AssistantEntry | null}
 */
function findAssistant(state, message_id) {
  for (let i = state.entries.length - 1; i >= 0; i -= 1) {
    const entry = state.entries[i];
    if (entry.kind === 'assistant' && entry.id === message_id) return entry;
  }
  return null;
}

/**
 * The newest message of the frame's run.
 * @param {Thread} state
 * @param {Envelope} frame
 * @returns {AssistantEntry | null}
 */
export function lastAssistant(state, frame) {
  for (let i = state.entries.length - 1; i >= 0; i -= 1) {
    const entry = state.entries[i];
    if (entry.kind === 'assistant' && entry.run_id === (frame.run_id ?? null)) return entry;
  }
  return null;
}

/**
 * Changes the model's message with this id; makes it where it is new.
 * @template {Thread} T
 * @param {T} state
 * @param {string} message_id
 * @param {Envelope} frame
 * @param {(entry: AssistantEntry) => AssistantEntry} change
 * @returns {T}
 */
export function mapAssistant(state, message_id, frame, change) {
  const known = findAssistant(state, message_id);
  if (known !== null) return { ...state, entries: replaced(state.entries, known, change(known)) };
  const entry = newAssistant(message_id, frame.run_id ?? null, frame.at);
  const loose = state.loose_thinking;
  if (loose !== null && loose.run_id === entry.run_id) entry.thinking = loose.thinking;
  // A run writes one message at a time: the one before it is whole.
  const before = state.entries.map((item) => (item.kind === 'assistant' && item.open && item.run_id === entry.run_id
    ? { ...closeThinking(item, frame.at), open: false }
    : item));
  return { ...state, loose_thinking: null, entries: [...before, change(entry)] };
}

/**
 * @template {Thread} T
 * @param {T} state
 * @param {Envelope} frame
 * @param {(entry: AssistantEntry) => AssistantEntry} change
 * @returns {T}
 */
export function mapLastAssistant(state, frame, change) {
  const entry = lastAssistant(state, frame);
  return entry === null ? state : { ...state, entries: replaced(state.entries, entry, change(entry)) };
}

/**
 * @template {Thread} T
 * @param {T} state
 * @param {string} call_id
 * @param {(call: Call) => Call} change
 * @returns {T}
 */
export function mapCall(state, call_id, change) {
  for (let i = state.entries.length - 1; i >= 0; i -= 1) {
    const entry = state.entries[i];
    if (entry.kind !== 'assistant' || !entry.calls.some((call) => call.id === call_id)) continue;
    const calls = entry.calls.map((call) => (call.id === call_id ? change(call) : call));
    return { ...state, entries: replaced(state.entries, entry, { ...entry, calls }) };
  }
  return state;
}

/**
 * Closes what a run has open and gives every call of it that has no result its state.
 * @template {Thread} T
 * @param {T} state
 * @param {string | null} run_id
 * @param {string} at
 * @param {MessageState} message_state of the message that was being written
 * @param {ToolOutcome} call_state
 * @returns {T}
 */
export function closeRun(state, run_id, at, message_state, call_state) {
  const entries = state.entries.map((entry) => {
    if (entry.kind !== 'assistant' || entry.run_id !== run_id) return entry;
    const running = entry.calls.some((call) => call.state === 'running');
    if (!entry.open && !running && !entry.thinking_open) return entry;
    return {
      ...closeThinking(entry, at),
      open: false,
      state: entry.open ? message_state : entry.state,
      calls: running
        ? entry.calls.map((call) => (call.state === 'running' ? { ...call, state: call_state } : call))
        : entry.calls,
    };
  });
  return { ...state, entries, waiting: null, loose_thinking: null };
}

/**
 * @param {Entry[]} entries
 * @param {Entry} old
 * @param {Entry} next
 */
function replaced(entries, old, next) {
  if (old === next) return entries;
  const copy = entries.slice();
  copy[copy.lastIndexOf(old)] = next;
  return copy;
}
