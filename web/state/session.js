// One session as the page shows it: a snapshot, and a pure function that takes it one frame
// further. No browser and no clock in sight, so that every order of frames can be tested.
//
// Two invariants hold whatever the connection does:
// - a numbered event is applied once: what is at or below `last_seq` is skipped, a gap is a hole;
// - a delta is applied by its offset: what is already there is skipped, a gap is a hole.
// A hole changes nothing; the caller attaches again with `last_seq`.

/** @import { Envelope } from './wire.js' */
/** @import { SessionState } from './types.js' */
/** @import { Step } from './events.js' */

import { applyToChild, isChild } from './children.js';
import { ruleOf } from './events.js';
import { withNotice } from './thread.js';

/**
 * One frame further.
 * @param {SessionState} state
 * @param {Envelope} frame
 * @returns {Step}
 */
export function applyFrame(state, frame) {
  /** @type {Step} */
  const step = { state, hole: false, reload: false, confirmed: null, refused: null };
  // Of an event that a newer service tells only the number counts.
  if (frame.seq !== undefined) {
    if (frame.seq <= state.last_seq) return step;
    if (frame.seq > state.last_seq + 1) return { ...step, hole: true };
  }
  const { shared = false, session, thread } = ruleOf(frame.type);
  const apply = session ?? thread;
  const next = isChild(frame) && !shared
    ? ofChild(state, frame)
    : apply === undefined ? state : apply(state, frame, step);
  if (next === null) return { ...step, hole: true };
  const read = readOutside(next, frame);
  step.state = frame.seq === undefined ? read : { ...read, last_seq: frame.seq };
  return step;
}

/**
 * While the past of a run's subagents is read, what they do waits for it.
 * @param {SessionState} state
 * @param {Envelope} frame
 */
const ofChild = (state, frame) => (state.held === null
  ? applyToChild(state, frame)
  : { ...state, held: { ...state.held, frames: [...state.held.frames, frame] } });

/**
 * A file that was sent in need not be its sender's own words; a result says so itself.
 * @param {SessionState} state
 * @param {Envelope} frame
 */
function readOutside(state, frame) {
  const read = (frame.type === 'tool_call' && frame.outside === true)
    || (frame.type === 'message_accepted' && frame.files !== undefined && frame.files.length > 0);
  return read && !state.outside ? { ...state, outside: true } : state;
}

/**
 * A frame that cannot be read is left out, and that is said once: the rest goes on.
 * @param {SessionState} state
 * @param {Envelope | null} frame
 * @returns {SessionState}
 */
export function withoutFrame(state, frame) {
  const last_seq = frame?.seq === state.last_seq + 1 ? frame.seq : state.last_seq;
  return { ...withNotice(state, { type: 'error', at: 'unreadable', code: 'unreadable_frame', message: '' }), last_seq };
}
