// What one run's events do to its thread, be it the session's own run or a subagent's.

/** @import { Envelope } from './wire.js' */
/** @import { Thread } from './types.js' */

import {
  closeThinking, lastAssistant, mapAssistant, mapCall, mapLastAssistant, withDelta, withOutput, withoutWaiting,
} from './edits.js';
import { newCall, newNotice, newSwitch } from './model.js';

/**
 * @template {Thread} T
 * @param {T} thread
 * @param {Envelope} frame
 * @returns {T | null} null for a hole; the same thread where the event is not of its kind
 */
export function applyToThread(thread, frame) {
  switch (frame.type) {
    case 'run_waiting':
      return { ...thread, waiting: { reason: frame.reason, detail: frame.detail, phrase: frame.phrase, since: frame.at } };
    case 'thinking_delta':
      return withDelta(thread, frame, 'thinking');
    case 'thinking_end':
      return withoutWaiting(mapLastAssistant(thread, frame, (entry) => closeThinking(entry, frame.at)));
    case 'turn_thinking':
      return withTurnThinking(thread, frame);
    case 'stream_delta':
      return withDelta(thread, frame, 'text');
    case 'plan_ready':
      return mapAssistant(withoutWaiting(thread), frame.message_id, frame, (entry) => ({
        ...entry, content: frame.plan, is_plan: true, open: false,
      }));
    case 'tool_started':
      return mapAssistant(withoutWaiting(thread), frame.message_id, frame, (entry) => {
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
      return withOutput(thread, frame);
    case 'tool_call':
      return mapCall(withCall(withoutWaiting(thread), frame), frame.call_id, (call) => ({
        ...call,
        result: frame.result,
        outside: frame.outside === true,
        state: frame.outcome ?? (frame.success ? 'success' : 'failed'),
        duration_ms: frame.duration_ms,
        files: frame.files ?? [],
      }));
    case 'profile_switched': {
      // A person's own is no message's.
      const after = frame.run_id === undefined ? null : lastAssistant(thread, frame);
      const entry = newSwitch(after?.id ?? `${frame.seq}`, frame.profile_id, frame.profile_name, frame.at);
      if (thread.entries.some((known) => known.id === entry.id)) return thread;
      return { ...thread, entries: [...thread.entries, entry] };
    }
    case 'notice':
      return withNotice(thread, frame);
    default:
      return thread;
  }
}

/**
 * Reasoning told whole belongs to the message whose calls come next.
 * @template {Thread} T
 * @param {T} thread
 * @param {Extract<Envelope, { type: 'turn_thinking' }>} frame
 * @returns {T}
 */
function withTurnThinking(thread, frame) {
  const entry = lastAssistant(thread, frame);
  // One that has calls is an earlier one, or the one itself where it is told again.
  if (entry === null || entry.is_plan || entry.calls.length > 0) {
    if (entry?.thinking === frame.thinking) return thread;
    return { ...thread, loose_thinking: { run_id: frame.run_id ?? null, thinking: frame.thinking } };
  }
  return mapLastAssistant(thread, frame, (last) => ({ ...closeThinking(last, frame.at), thinking: frame.thinking }));
}

/**
 * The call of a result whose start was not told belongs to the run's newest message.
 * @template {Thread} T
 * @param {T} thread
 * @param {Extract<Envelope, { type: 'tool_call' }>} frame
 * @returns {T}
 */
function withCall(thread, frame) {
  const known = thread.entries.some((entry) => entry.kind === 'assistant' && entry.calls.some((call) => call.id === frame.call_id));
  if (known) return thread;
  return mapLastAssistant(thread, frame, (entry) => ({
    ...entry, open: false, calls: [...entry.calls, newCall(frame.call_id, frame.tool, frame.args, 'running')],
  }));
}

/**
 * @template {Thread} T
 * @param {T} thread
 * @param {Parameters<typeof newNotice>[0]} frame
 * @returns {T}
 */
export function withNotice(thread, frame) {
  // One that the run's log told before is told once.
  const notice = newNotice(frame);
  if (thread.entries.some((known) => known.id === notice.id)) return thread;
  return { ...thread, entries: [...thread.entries, notice] };
}
