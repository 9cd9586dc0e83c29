// Messages that were sent and not yet acknowledged. They outlive a reload and are sent again
// with the same `client_id` after every reconnect, so that none is lost and none counts twice.

/** @import { FileRef, SendMode } from './wire.js' */

/**
 * @typedef {object} OutboxItem
 * @property {string} client_id
 * @property {string} content
 * @property {string[]} images base64
 * @property {FileRef[]} [files] uploaded before
 * @property {SendMode} [mode] what becomes of it while a run goes
 * @property {number} created_ms
 * @property {{ code: string, message: string } | null} refused why the service did not take it
 * @property {boolean} held too old to be sent without asking
 */

/** A message this old is not sent by itself any more: whoever wrote it may have moved on. */
export const HOLD_AFTER_MS = 15 * 60 * 1000;

/**
 * @param {OutboxItem[]} items
 * @param {OutboxItem} item
 */
export function withItem(items, item) {
  return [...items, item];
}

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
 * @param {{ code: string, message: string }} refused
 */
export function withRefusal(items, client_id, refused) {
  return items.map((item) => (item.client_id === client_id ? { ...item, refused } : item));
}

/**
 * What a reconnect sends again.
 * @param {OutboxItem[]} items
 */
export function toSend(items) {
  return items.filter((item) => item.refused === null && !item.held);
}

/**
 * Reads what an earlier page left. Anything malformed is dropped: storage is anyone's to edit.
 * @param {string | null} text
 * @param {number} now_ms
 * @returns {OutboxItem[]}
 */
export function parseOutbox(text, now_ms) {
  /** @type {unknown} */
  let parsed;
  try {
    parsed = JSON.parse(text ?? '[]');
  } catch {
    return [];
  }
  if (!Array.isArray(parsed)) return [];
  return parsed.flatMap((item) => {
    if (typeof item?.client_id !== 'string' || typeof item.content !== 'string') return [];
    const created_ms = Number(item.created_ms) || 0;
    return [{
      client_id: item.client_id,
      content: item.content,
      images: Array.isArray(item.images) ? item.images.filter((/** @type {unknown} */ i) => typeof i === 'string') : [],
      ...(item.mode === 'steer' ? { mode: 'steer' } : {}),
      ...filesOf(item.files),
      created_ms,
      refused: item.refused ?? null,
      held: now_ms - created_ms > HOLD_AFTER_MS,
    }];
  });
}

/** @param {unknown} files @returns {{ files?: FileRef[] }} */
function filesOf(files) {
  if (!Array.isArray(files)) return {};
  const kept = files.flatMap((file) => (typeof file?.name === 'string' && typeof file.path === 'string' ? [{ name: file.name, path: file.path }] : []));
  return kept.length === 0 ? {} : { files: kept };
}
