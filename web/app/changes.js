// What the open session's tools changed in files, read again when there may be more, and undone.

/** @import { Change, Envelope } from '../state/wire.js' */
/** @import { SessionState } from '../state/types.js' */

import { api } from '../net/api.js';
import { changes, openId } from './signals.js';

/** Tools whose calls change files so that it can be undone. */
const TOOL = 'filesystem';
const AGENT = 'spawn_agent';
const READS = new Set(['list', 'read', 'search_names', 'search_content']);

let asked = false;
let again = false;

export function forgetChanges() {
  changes.set(null);
  again = false;
}

/** A session that was just read: its calls may have changed something. @param {SessionState} state */
export function changesOf(state) {
  const made = state.entries.some((entry) => entry.kind === 'assistant'
    && entry.calls.some(({ name, args }) => mayChange(name, args) || name === AGENT));
  if (made) void readChanges();
}

/** A call that has ended may have changed something, a subagent's too. @param {Envelope} frame */
export function changesBy(frame) {
  if (frame.type === 'tool_call' ? mayChange(frame.tool, frame.args) : frame.type === 'resync') void readChanges();
}

/** @param {string} name @param {unknown} args */
function mayChange(name, args) {
  if (name !== TOOL || args === null || typeof args !== 'object') return false;
  return 'action' in args && typeof args.action === 'string' && !READS.has(args.action);
}

export async function readChanges() {
  const id = openId.get();
  if (id === null) return;
  if (asked) {
    again = true;
    return;
  }
  asked = true;
  try {
    const list = await api.changes(id);
    if (openId.get() === id) changes.set(list);
  } catch {
    // Nothing is offered then; the files panel says what is wrong.
  } finally {
    asked = false;
  }
  if (!again) return;
  again = false;
  await readChanges();
}

/**
 * @param {string} change_id
 * @returns {Promise<void>} fails as the request does
 */
export async function undoChange(change_id) {
  const id = openId.get();
  if (id === null) return;
  try {
    await api.undo(id, change_id);
  } finally {
    await readChanges();
  }
}

/** The change that a call made. @param {string} call_id @returns {Change | null} */
export const changeOf = (call_id) => changes.get()?.find((change) => change.call_id === call_id) ?? null;
