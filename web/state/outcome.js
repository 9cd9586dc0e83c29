// How a call went, as a person sees it: a command that a tool carried out may have failed all the
// same, and a call that somebody refused is no failure.

/** @import { Approval } from './approvals.js' */
/** @import { Call } from './types.js' */

import { isDenied } from './approvals.js';

/** @typedef {Call['state'] | 'asked' | 'denied' | 'exited'} Shown */

/** What the service says of a call that was not allowed, that nobody allowed in time, or that a rule forbids. */
export const REFUSALS = ['the user did not allow this: ', 'nobody answered in time whether this is allowed, ',
  'the user has forbidden this once and for all; '];

/**
 * @param {Call} call
 * @param {Approval | null} approval the question about it
 * @returns {Shown}
 */
export function shownState(call, approval) {
  // What is asked about does not run yet.
  if (call.state === 'running' && approval !== null && approval.decision === null) return 'asked';
  // A page that comes later has the result alone.
  if (call.state === 'failed' && ((approval !== null && isDenied(approval))
    || REFUSALS.some((refusal) => call.result?.startsWith(refusal)))) return 'denied';
  return howItEnded(call) === null ? call.state : 'exited';
}

/**
 * Of a command that did not end well: its exit code, or the signal that ended it.
 * @param {Call} call
 * @returns {{ code?: string, signal?: string } | null}
 */
export function howItEnded({ name, state, result }) {
  if (state !== 'success' || result === null) return null;
  // The last word is the tool's; what a command printed may look like it.
  const ended = name === 'terminal' ? result.match(/^\[?(?:exit code \d+|ended by signal \d+) after /gm)?.at(-1)
    : name === 'ssh' ? /^\S+: (?:exit code \d+|ended by signal \w+)/.exec(result)?.[0] : undefined;
  const [, kind, value] = /(code|signal) (\w+)/.exec(ended ?? '') ?? [];
  if (kind === undefined || value === '0') return null;
  return kind === 'code' ? { code: value } : { signal: value };
}
