// Calls that had begun when the service went down. Whether they took effect a person has to say,
// once for all tabs: it was done, do it again, or leave it.

/** @import { Envelope } from './wire.js' */
/** @import { SessionState } from './types.js' */

import { mapCall } from './edits.js';

/**
 * A result that says that nobody knows what came of its call.
 * @param {SessionState} state
 * @param {Extract<Envelope, { type: 'tool_call' }>} frame
 * @returns {SessionState}
 */
export function withUnknown(state, frame) {
  const { call_id, tool, args } = frame;
  if (frame.outcome !== 'outcome_unknown' || state.unknown.some((known) => known.call_id === call_id)) return state;
  const asked = state.entries.findLast((entry) => entry.kind === 'assistant' && entry.calls.some(({ id }) => id === call_id));
  return { ...state, unknown: [...state.unknown, { call_id, tool, args, message_id: asked?.id ?? '' }] };
}

/**
 * @param {SessionState} state
 * @param {Extract<Envelope, { type: 'call_resolved' }>} frame
 * @returns {SessionState}
 */
export function withDecision(state, { call_id, decision }) {
  const unknown = state.unknown.filter((known) => known.call_id !== call_id);
  return mapCall({ ...state, unknown }, call_id, (call) => ({ ...call, decision }));
}
