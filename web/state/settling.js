// What comes of a person's word on calls whose outcome nobody knew. Loaded when there is one.

/** @import { CallDecision, UnknownCall } from './wire.js' */
/** @import { Call, SessionState } from './types.js' */

/**
 * Whether the run goes on now by itself: this tab asked for the call to be done again, that is
 * what the service took, and nothing else is left to be said.
 * @param {SessionState} state
 * @param {Call} call
 * @param {CallDecision | undefined} said by this tab
 */
export function goesOn(state, call, said) {
  return said === 'retry' && call.decision === 'retry' && state.unknown.length === 0 && state.can_continue && state.run === null;
}

/**
 * The calls that no card of the conversation shows: their question stands at its end.
 * @param {SessionState} state
 * @returns {UnknownCall[]}
 */
export function unshown({ unknown, entries }) {
  const shown = new Set(entries.flatMap((entry) => (entry.kind === 'assistant' ? entry.calls.map(({ id }) => id) : [])));
  return unknown.filter(({ call_id }) => !shown.has(call_id));
}
