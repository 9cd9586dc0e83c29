// What a person is asked before a call, whichever run asks: the questions are the session's, so
// that every tab shows the same ones, and a subagent's stand where one looks.

/** @import { DecidedBy, Decision, Envelope, PendingApproval, PersonRef, SessionSummary } from './wire.js' */
/** @import { Child, SessionState } from './types.js' */

/** A question, and its answer once there is one.
 * @typedef {PendingApproval & { decision: Decision | null, by: DecidedBy | null, note: string |
 *  null, author: PersonRef | null }} Approval
 */

/** So many answered questions are kept: each is shown with its call. */
const KEPT = 200;

/** @param {PendingApproval} pending @returns {Approval} */
export const newApproval = (pending) => ({ ...pending, decision: null, by: null, note: null, author: null });

/**
 * @param {SessionState} state
 * @param {Extract<Envelope, { type: 'approval_requested' }>} frame
 * @returns {SessionState}
 */
export function withRequest(state, frame) {
  const { approval_id, call_id, tool, request, expires_at } = frame;
  if (state.approvals.some((known) => known.approval_id === approval_id)) return state;
  const approval = newApproval({
    approval_id, run_id: frame.run_id ?? '', call_id, tool, request, requested_at: frame.at, expires_at,
    is_subagent: frame.is_subagent === true,
  });
  return { ...state, approvals: [...state.approvals.slice(-KEPT), approval] };
}

/**
 * The first answer counts, and the service sends no other one.
 * @param {SessionState} state
 * @param {Extract<Envelope, { type: 'approval_resolved' }>} frame
 * @returns {SessionState}
 */
export function withResolution(state, frame) {
  const { approval_id, decision, by, note = null, author = null } = frame;
  const approvals = state.approvals.map((known) => (known.approval_id === approval_id
    ? { ...known, decision, by, note, author }
    : known));
  return withoutConsentWait({ ...state, approvals }, frame.run_id);
}

/**
 * A run that waited for an answer has it.
 * @param {SessionState} state
 * @param {string | undefined} run_id
 * @returns {SessionState}
 */
function withoutConsentWait(state, run_id) {
  const child = run_id === undefined ? undefined : state.children[run_id];
  if (child !== undefined) {
    return child.waiting?.reason === 'approval'
      ? { ...state, children: { ...state.children, [child.run_id]: { ...child, waiting: null } } }
      : state;
  }
  return state.waiting?.reason === 'approval' ? { ...state, waiting: null } : state;
}

/**
 * Without the questions that nobody can answer any more.
 * @param {Approval[]} approvals
 */
export function withoutAsked(approvals) {
  return approvals.some(isOpen) ? approvals.filter((approval) => !isOpen(approval)) : approvals;
}

/** @param {Approval} approval */
export const isOpen = (approval) => approval.decision === null;

/** @param {{ decision: Decision | null }} answered */
export const isDenied = ({ decision }) => decision === 'deny' || decision === 'never';

/**
 * The newest question about a call.
 * @param {Approval[]} approvals
 * @param {string} call_id
 * @returns {Approval | null}
 */
export function approvalOf(approvals, call_id) {
  return approvals.findLast((approval) => approval.call_id === call_id) ?? null;
}

/**
 * The subagent that asks, where one does and this page knows of it.
 * @param {Pick<SessionState, 'children'>} state
 * @param {Approval} approval
 * @returns {Child | null}
 */
export const askedBy = (state, approval) => state.children[approval.run_id] ?? null;

/**
 * How long an answer still counts. The service's clock may be another one than ours: no more is
 * ever left than there was at first.
 * @param {Approval} approval
 * @param {number} now_ms
 */
export function remainingMs({ requested_at, expires_at }, now_ms) {
  const ends = Date.parse(expires_at);
  return Math.max(0, Math.min(ends - now_ms, ends - Date.parse(requested_at)));
}

/**
 * How many questions wait in all conversations: of the open one its own state knows best.
 * @param {string | null} open_id
 * @param {SessionSummary[]} sessions
 * @param {number} here
 */
export function asked(open_id, sessions, here) {
  return sessions.reduce((sum, { id, asks }) => (id === open_id ? sum : sum + (asks ?? 0)), here);
}
