// What an earlier page left, put before what was written here while it was read.

/** @import { Attachment } from '../state/attachments.js' */
/** @import { OutboxItem } from '../state/outbox.js' */

import { readAttachment } from '../state/attachments.js';
import { readItem } from '../state/outbox.js';
import { workOn } from './attachments.js';
import { draftOf, putBack, setEdit } from './drafts.js';
import { readKept } from './kept.js';
import { sendLeft, takeBack } from './session.js';
import { attachments, edits, NEW, outbox } from './signals.js';

export async function restoreKept() {
  /** @type {Map<string, Attachment[]>} */
  const with_messages = new Map();
  /** @type {Map<string, OutboxItem[]>} */
  const messages = new Map();
  const kept = await readKept();
  for (const [[kind, id], value] of kept) {
    if (kind === 'draft' && typeof value === 'string' && draftOf(id) !== value) putBack(id, value);
    if (kind === 'edit' && typeof value === 'string' && !edits.get().has(id)) setEdit(id, value);
    if (kind === 'attachment') add(with_messages, value?.key, readAttachment(value, id));
    if (kind === 'message') add(messages, value?.session_id, readItem(value, Date.now()));
  }
  for (const items of messages.values()) items.sort((a, b) => a.created_ms - b.created_ms);
  attachments.set(joined(with_messages, attachments.get()));
  outbox.set(joined(messages, outbox.get()));
  // The session that it was to begin is not there.
  for (const item of messages.get(NEW) ?? []) takeBack(item);
  sendLeft();
  workOn();
}

/** @template T @param {Map<string, T[]>} lists @param {unknown} key @param {T | null} item */
function add(lists, key, item) {
  if (item !== null && typeof key === 'string') lists.set(key, [...(lists.get(key) ?? []), item]);
}

/** @template T @param {Map<string, T[]>} before @param {ReadonlyMap<string, T[]>} now */
function joined(before, now) {
  const all = new Map(before);
  for (const [key, list] of now) all.set(key, [...(before.get(key) ?? []), ...list]);
  return all;
}
