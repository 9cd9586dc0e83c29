// Files on their way into a message: chosen, sent, there, or refused.

/** @import { FileRef, SessionFile } from './wire.js' */

/**
 * @typedef {object} Upload
 * @property {string} id of the page's own
 * @property {string} name
 * @property {number} bytes
 * @property {'waiting' | 'sending' | 'done' | 'failed'} state
 * @property {number} sent bytes
 * @property {SessionFile | null} file once it is there
 * @property {{ code: string, message: string } | null} error
 */

/** @param {string} id @param {string} name @param {number} bytes @returns {Upload} */
export const newUpload = (id, name, bytes) => ({ id, name, bytes, state: 'waiting', sent: 0, file: null, error: null });

/**
 * @param {ReadonlyMap<string, Upload[]>} all
 * @param {string} key
 * @param {(list: Upload[]) => Upload[]} change
 * @returns {ReadonlyMap<string, Upload[]>}
 */
export function withList(all, key, change) {
  const list = change(all.get(key) ?? []);
  const next = new Map(all);
  if (list.length === 0) next.delete(key);
  else next.set(key, list);
  return next;
}

/** @param {Upload[]} list @param {string} id @param {Partial<Upload>} change */
export const changed = (list, id, change) => list.map((item) => (item.id === id ? { ...item, ...change } : item));

/** Whether a message can go: nothing is on its way any more. @param {Upload[]} list */
export const isSettled = (list) => list.every(({ state }) => state === 'done' || state === 'failed');

/** What the message names. @param {Upload[]} list @returns {FileRef[]} */
export function refs(list) {
  return list.flatMap(({ file }) => (file === null ? [] : [{ name: file.name, path: file.path }]));
}
