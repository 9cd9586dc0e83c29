// What goes with a message: pictures, which are part of it, and files, which are sent before it.

/** @import { FileRef, SessionFile } from './wire.js' */

/**
 * @typedef {object} Attachment
 * @property {string} id of the page's own
 * @property {string} name
 * @property {number} bytes
 * @property {boolean} picture whether it may become part of the message
 * @property {Blob | null} data until it is read, or with the service
 * @property {'waiting' | 'sending' | 'done' | 'failed'} state
 * @property {number} sent bytes
 * @property {string | null} image base64, once the picture is read
 * @property {SessionFile | null} file once the service has it
 * @property {import('./types.js').Problem | null} error
 */

/** @typedef {ReadonlyMap<string, Attachment[]>} Attachments by the draft or the message that they belong to */

/** @param {string} id @param {string} name @param {Blob} data @param {boolean} picture @returns {Attachment} */
export const newAttachment = (id, name, data, picture) => ({
  id, name, bytes: data.size, picture, data, state: 'waiting', sent: 0, image: null, file: null, error: null,
});

/**
 * One that an earlier page left: what it had not sent is sent by this one.
 * @param {any} kept
 * @param {string} id
 * @returns {Attachment | null}
 */
export function readAttachment(kept, id) {
  if (typeof kept?.name !== 'string' || typeof kept.bytes !== 'number') return null;
  const data = kept.data instanceof Blob ? kept.data : null;
  const image = typeof kept.image === 'string' ? kept.image : null;
  const file = typeof kept.file?.path === 'string' ? kept.file : null;
  if (data === null && image === null && file === null) return null;
  return { id, name: kept.name, bytes: kept.bytes, picture: kept.picture === true, data, image, file, sent: 0,
    error: null, state: data === null ? 'done' : 'waiting' };
}

/**
 * @param {Attachments} all
 * @param {string} key
 * @param {Attachment[]} list
 * @returns {Attachments}
 */
export function withList(all, key, list) {
  const next = new Map(all);
  if (list.length === 0) next.delete(key);
  else next.set(key, list);
  return next;
}

/**
 * Where it is by now: a draft's becomes a message's when that is sent.
 * @param {Attachments} all
 * @param {string} id
 * @returns {{ key: string, item: Attachment } | null}
 */
export function find(all, id) {
  for (const [key, list] of all) {
    const item = list.find((known) => known.id === id);
    if (item !== undefined) return { key, item };
  }
  return null;
}

/** @param {Attachment[]} list */
export const isReady = (list) => list.every(({ state }) => state === 'done');

/** The files that the message names. @param {Attachment[]} list @returns {FileRef[]} */
export const refs = (list) => list.flatMap(({ file }) => (file === null ? [] : [{ name: file.name, path: file.path }]));

/** The pictures that are part of it. @param {Attachment[]} list @returns {string[]} */
export const images = (list) => list.flatMap(({ image }) => (image === null ? [] : [image]));
