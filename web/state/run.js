// How a session's run begins, takes messages in, and ends.

/** @import { Envelope, MessageState, QueuedMessage, ToolOutcome } from './wire.js' */
/** @import { Child, SessionState, UserEntry } from './types.js' */
/** @import { Of, Step } from './events.js' */

import { withoutAsked } from './approvals.js';
import { closeRun, withUser, withoutQueued } from './edits.js';
import { withPlanText } from './thread.js';

/**
 * A message that the service has: it waits its turn, or begins a run.
 * @param {SessionState} state
 * @param {Of<'message_accepted'>} frame
 * @param {Step} step
 * @returns {SessionState}
 */
export function withAccepted(state, frame, step) {
  const { seq, message_id, content, images = [], files, author, mode, at } = frame;
  step.confirmed = frame.client_id ?? null;
  // Without a number it only repeats to one tab what the log tells in its place.
  if (seq === undefined) return state;
  if (frame.queued) {
    /** @type {QueuedMessage} */
    const queued = {
      message_id, run_id: frame.run_id ?? '', content, images, client_id: frame.client_id, author, mode, created_at: at,
      ...(files === undefined ? {} : { files }),
    };
    return { ...state, queue: [...withoutQueued(state.queue, message_id), queued] };
  }
  const accepted = withUser(state, {
    kind: 'user', id: message_id, content, images, files: files ?? [], client_id: frame.client_id ?? null,
    author: author ?? null, steered: false, created_at: at,
  });
  return withRun(accepted, frame, message_id);
}

/**
 * The run that a frame speaks of begins, where none is known: its model is told later, and it
 * can be stopped before.
 * @param {SessionState} state
 * @param {Envelope} frame
 * @param {string} message_id
 * @returns {SessionState}
 */
export function withRun(state, frame, message_id) {
  if (state.run !== null || frame.run_id === undefined) return state;
  const run = { run_id: frame.run_id, message_id, model: '', started_at: frame.at };
  return { ...state, run, ending: null, can_continue: false };
}

/**
 * A message that waited joins the conversation: its run begins, or the run that goes takes it in.
 * @param {SessionState} state
 * @param {Of<'stream_start' | 'message_steered'>} frame
 * @param {boolean} steered
 * @returns {SessionState}
 */
export function withQueued(state, frame, steered) {
  const queued = state.queue.find((item) => item.message_id === frame.message_id);
  if (queued === undefined) return state;
  /** @type {UserEntry} */
  const entry = {
    kind: 'user', id: queued.message_id, content: queued.content, images: queued.images ?? [],
    files: queued.files ?? [],
    client_id: queued.client_id ?? null, author: queued.author ?? null, steered, created_at: frame.at,
  };
  return withUser(state, entry);
}

/**
 * @param {SessionState} state
 * @param {Of<'plan_ready'>} frame
 * @returns {SessionState | null}
 */
export function withPlan(state, frame) {
  const { run_id = '', message_id, plan, steps } = frame;
  const next = withPlanText(state, frame);
  return next === null ? null : { ...next, plan: { run_id, message_id, text: plan, steps } };
}

/**
 * Ends the run, and with it every subagent of it.
 * @param {SessionState} state
 * @param {Envelope} frame
 * @param {MessageState} message_state of the message that was being written
 * @param {ToolOutcome} call_state of calls that have no result
 * @returns {SessionState}
 */
export function endRun(state, frame, message_state, call_state) {
  const run_id = frame.run_id ?? state.run?.run_id ?? null;
  const going = Object.values(state.children).some((child) => child.state === 'running');
  const children = going
    ? Object.fromEntries(Object.values(state.children).map((child) => [child.run_id, ended(child)]))
    : state.children;
  const closed = closeRun(state, run_id, frame.at, message_state, call_state);
  // An interrupted run's questions outlive it; every other end has answered them.
  const approvals = frame.type === 'run_interrupted' ? state.approvals : withoutAsked(state.approvals);
  return { ...closed, children, approvals, run: null };
}

/**
 * Nothing of a subagent goes on after its session's run: it ends with it.
 * @param {Child} child
 * @returns {Child}
 */
export function ended(child) {
  if (child.state !== 'running') return child;
  return { ...closeRun(child, child.run_id, '', 'interrupted', 'outcome_unknown'), state: 'limited' };
}
