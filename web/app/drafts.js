// What is being written: in the field of each conversation, and in place of a message.

import { keep } from './kept.js';
import { drafts, edits, editWanted } from './signals.js';

/**
 * @param {string} key a session, or `NEW`
 * @param {string} text
 */
export function setDraft(key, text) {
  drafts.set(withText(drafts.get(), key, text === '' ? undefined : text));
  keep('draft', key, text === '' ? undefined : text);
}

/** @param {string} key */
export const draftOf = (key) => drafts.get().get(key) ?? '';

/** Puts words back where one writes, before what stands there by now. @param {string} key @param {string} text */
export function putBack(key, text) {
  const draft = draftOf(key);
  setDraft(key, draft === '' ? text : `${text}\n\n${draft}`);
}

/** Begins to write a message anew, or ends it. @param {string} message_id @param {string | undefined} text */
export function setEdit(message_id, text) {
  edits.set(withText(edits.get(), message_id, text));
  keep('edit', message_id, text);
}

/**
 * Begins to write a message anew, or goes on with it, with the keyboard in it.
 * @param {string} message_id
 * @param {string} text
 */
export function beginEdit(message_id, text) {
  setEdit(message_id, edits.get().get(message_id) ?? text);
  editWanted.set(message_id);
}

/** Every character of it is kept; what shows it is the field itself. @param {string} message_id @param {string} text */
export function growEdit(message_id, text) {
  /** @type {Map<string, string>} */ (edits.get()).set(message_id, text);
  keep('edit', message_id, text);
}

/** @param {ReadonlyMap<string, string>} texts @param {string} key @param {string | undefined} text */
function withText(texts, key, text) {
  const next = new Map(texts);
  if (text === undefined) next.delete(key);
  else next.set(key, text);
  return next;
}
