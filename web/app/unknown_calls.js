// What a person says of a call whose outcome nobody knows.

/** @import { CallDecision } from '../state/wire.js' */
/** @import { Call } from '../state/types.js' */

import { continuesRun } from '../state/unknown_calls.js';
import { continueRun, send } from './session.js';
import { resolving, session } from './signals.js';

/**
 * Where another tab was first, its word counts.
 * @param {string} call_id
 * @param {CallDecision} decision
 * @returns {boolean} whether it is on its way
 */
export function resolveCall(call_id, decision) {
  if (!send({ type: 'resolve_call', call_id, decision })) return false;
  resolving.set(new Map([...resolving.get(), [call_id, decision]]));
  return true;
}

/** What came of it is told: a call that this tab asked for again takes the run on. @param {Call} call */
export function continueAfter(call) {
  const decision = resolving.get().get(call.id);
  if (decision === undefined || call.decision === null) return;
  const left = new Map(resolving.get());
  left.delete(call.id);
  resolving.set(left);
  const state = session.get();
  if (state !== null && continuesRun(state, call, decision)) continueRun();
}
