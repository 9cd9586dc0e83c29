// What the events of a run do to its thread, be it the session's own run or a subagent's.

/** @import { Thread } from './types.js' */
/** @import { Of } from './events.js' */

import { closeThinking, lastAssistant, mapAssistant, mapCall, mapLastAssistant, withoutWaiting } from './edits.js';
import { newCall, newNotice, newSwitch } from './model.js';

/**
 * @template {Thread} T
 * @param {T} thread
 * @param {Of<'plan_ready'>} frame
 * @returns {T | null}
 */
export function withPlanText(thread, frame) {
  return mapAssistant(withoutWaiting(thread), frame.message_id, frame, (entry) => ({
    ...entry, content: frame.plan, is_plan: true, open: false,
  }));
}

/**
 * A call begins, or goes on where it had waited for a person.
 * @template {Thread} T
 * @param {T} thread
 * @param {Of<'tool_started'>} frame
 * @returns {T | null}
 */
export function withStarted(thread, frame) {
  const { call_id, tool, args, at } = frame;
  return mapAssistant(withoutWaiting(thread), frame.message_id, frame, (entry) => {
    const known = entry.calls.some((item) => item.id === call_id);
    const calls = known
      ? entry.calls.map((item) => (item.id === call_id ? { ...item, started_at: at } : item))
      : [...entry.calls, newCall(call_id, tool, args, 'running', at)];
    return { ...closeThinking(entry, at), open: false, calls };
  });
}

/**
 * @template {Thread} T
 * @param {T} thread
 * @param {Of<'tool_call'>} frame
 * @returns {T | null}
 */
export function withResult(thread, frame) {
  return mapCall(withCall(withoutWaiting(thread), frame), frame.call_id, (call) => ({
    ...call,
    result: frame.result,
    outside: frame.outside === true,
    state: frame.outcome ?? (frame.success ? 'success' : 'failed'),
    duration_ms: frame.duration_ms,
    files: frame.files ?? [],
  }));
}

/**
 * @template {Thread} T
 * @param {T} thread
 * @param {Of<'profile_switched'>} frame
 * @returns {T}
 */
export function withSwitch(thread, frame) {
  // A person's own is no message's.
  const after = frame.run_id === undefined ? null : lastAssistant(thread, frame);
  const entry = newSwitch(after?.id ?? `${frame.seq}`, frame.profile_id, frame.profile_name, frame.at);
  if (thread.entries.some((known) => known.id === entry.id)) return thread;
  return { ...thread, entries: [...thread.entries, entry] };
}

/**
 * Reasoning told whole belongs to the message whose calls come next.
 * @template {Thread} T
 * @param {T} thread
 * @param {Of<'turn_thinking'>} frame
 * @returns {T}
 */
export function withTurnThinking(thread, frame) {
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
 * @param {Of<'tool_call'>} frame
 * @returns {T}
 */
function withCall(thread, frame) {
  const known = thread.entries.some((entry) => entry.kind === 'assistant'
    && entry.calls.some((call) => call.id === frame.call_id));
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
