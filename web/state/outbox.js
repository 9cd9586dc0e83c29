// Messages that were sent and not yet acknowledged. They outlive a reload and, while they are
// new, are sent again with the same `client_id` after every reconnect, so that none is lost and
// none counts twice.

/** @import { FileRef, SendMode } from './wire.js' */

/**
 * @typedef {object} OutboxItem
 * @property {string} client_id
 * @property {string} content
 * @property {string[]} images base64
 * @property {FileRef[]} files that the service has
 * @property {boolean} incomplete some of what goes with it is still being read or sent
 * @property {SendMode} mode what becomes of it while a run goes
 * @property {number} created_ms
 * @property {import('./types.js').Problem | null} refused why the service did not take it
 * @property {boolean} held not sent without asking
 */

/** A message this old is not sent by itself any more: whoever wrote it may have moved on. */
export const HOLD_AFTER_MS = 15 * 60 * 1000;

/**
 * @param {OutboxItem[]} items
 * @param {Set<string>} client_ids that the service has
 */
export function withoutConfirmed(items, client_ids) {
  return items.some((item) => client_ids.has(item.client_id))
    ? items.filter((item) => !client_ids.has(item.client_id))
    : items;
}

/**
 * @param {OutboxItem[]} items
 * @param {string | null} client_id
 * @param {Partial<OutboxItem>} change
 */
export function withChange(items, client_id, change) {
  return items.map((item) => (item.client_id === client_id ? { ...item, ...change } : item));
}

/** Whether it goes by itself, now or once it is complete. @param {OutboxItem} item */
export const isUnderWay = (item) => item.refused === null && !item.held;

/**
 * What a reconnect sends again.
 * @param {OutboxItem[]} items
 */
export function toSend(items) {
  return items.filter((item) => isUnderWay(item) && !item.incomplete);
}

/**
 * What is too old to go by itself is held.
 * @param {OutboxItem[]} items
 * @param {number} now_ms
 */
export function withOldHeld(items, now_ms) {
  const old = items.filter((item) => isUnderWay(item) && isOld(item.created_ms, now_ms));
  return old.length === 0 ? items : items.map((item) => (old.includes(item) ? { ...item, held: true } : item));
}

/** @param {number} created_ms @param {number} now_ms */
const isOld = (created_ms, now_ms) => now_ms - created_ms > HOLD_AFTER_MS;

/**
 * One that an earlier page left. Anything malformed is dropped: storage is anyone's to edit.
 * Another tab may still be sending what goes with an incomplete one: its writer says what to do.
 * @param {any} kept
 * @param {number} now_ms
 * @returns {OutboxItem | null}
 */
export function readItem(kept, now_ms) {
  if (typeof kept?.client_id !== 'string' || typeof kept.content !== 'string') return null;
  const created_ms = Number(kept.created_ms) || 0;
  const incomplete = kept.incomplete === true;
  return {
    client_id: kept.client_id,
    content: kept.content,
    images: listOf(kept.images).filter((image) => typeof image === 'string'),
    files: listOf(kept.files).flatMap((file) => (typeof file?.name === 'string' && typeof file.path === 'string'
      ? [{ name: file.name, path: file.path }]
      : [])),
    incomplete,
    mode: kept.mode === 'steer' ? 'steer' : 'queue',
    created_ms,
    refused: kept.refused ?? null,
    held: incomplete || isOld(created_ms, now_ms),
  };
}

/** @param {unknown} value @returns {any[]} */
const listOf = (value) => (Array.isArray(value) ? value : []);
