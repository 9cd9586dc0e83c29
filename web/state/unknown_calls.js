// Calls that had begun when the service went down. Whether they took effect a person has to say,
// once for all tabs: it was done, do it again, or leave it.

/** @import { CallDecision, Envelope, UnknownCall } from './wire.js' */
/** @import { Call, SessionState } from './types.js' */

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
  const asked = state.entries.findLast((entry) => entry.kind === 'assistant'
    && entry.calls.some(({ id }) => id === call_id));
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

/**
 * Whether the run goes on now by itself: this tab asked for the call to be done again, that is
 * what the service took, and nothing else is left to be said.
 * @param {SessionState} state
 * @param {Call} call
 * @param {CallDecision | undefined} decision of this tab
 */
export function continuesRun(state, call, decision) {
  return decision === 'retry' && call.decision === 'retry' && state.unknown.length === 0 && state.can_continue
    && state.run === null;
}

/**
 * The entry beside which a call is asked about: its own, and the last one where none shows it.
 * @param {SessionState} state
 * @param {UnknownCall} call
 */
export const placeOf = (state, call) => (withoutCard(state).some(({ call_id }) => call_id === call.call_id)
  ? state.entries.at(-1)?.id ?? ''
  : call.message_id);

/**
 * The calls that no card of the conversation shows: their question stands at its end.
 * @param {SessionState} state
 * @returns {UnknownCall[]}
 */
export function withoutCard({ unknown, entries }) {
  const shown = new Set(entries.flatMap((entry) => (entry.kind === 'assistant'
    ? entry.calls.map(({ id }) => id)
    : [])));
  return unknown.filter(({ call_id }) => !shown.has(call_id));
}
