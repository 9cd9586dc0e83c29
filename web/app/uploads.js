// Sending files: with their progress, stoppable, each by itself, a few at a time.

/** @import { SessionFile } from '../state/wire.js' */
/** @import { Upload } from '../state/uploads.js' */

import { ApiError, sessionPath } from '../net/api.js';
import { key } from '../net/key.js';
import { changed, newUpload, withList } from '../state/uploads.js';
import { uploads } from './signals.js';

export const MAX_FILES = 10;
const AT_ONCE = 2;

/** The bytes of what is listed, and what stops them. @type {Map<string, { file: File, request: XMLHttpRequest | null }>} */
const under_way = new Map();
let last = 0;

/** Where the files of a page without a session wait. */
export const NEW = '';

/** @param {string} key @param {(list: Upload[]) => Upload[]} change */
function update(key, change) {
  uploads.set(withList(uploads.get(), key, change));
}

/**
 * Puts files into the message that is being written; a session that is there gets them at once.
 * @param {string | null} session_id
 * @param {File[]} files
 */
export function addFiles(session_id, files) {
  const key = session_id ?? NEW;
  for (const file of files) {
    last += 1;
    const id = `upload-${last}`;
    under_way.set(id, { file, request: null });
    update(key, (list) => [...list, newUpload(id, file.name, file.size)]);
  }
  if (session_id !== null) void sendAll(session_id);
}

/**
 * Sends what waits, a few at a time; ends when nothing waits any more.
 * @param {string} session_id
 */
async function sendAll(session_id) {
  const going = (uploads.get().get(session_id) ?? []).filter(({ state }) => state === 'sending').length;
  const work = async () => {
    for (;;) {
      const waiting = (uploads.get().get(session_id) ?? []).find(({ state }) => state === 'waiting');
      if (waiting === undefined) return;
      await send(session_id, waiting.id);
    }
  };
  await Promise.all(Array.from({ length: Math.max(0, AT_ONCE - going) }, work));
}

/** @param {string} session_id @param {string} id */
async function send(session_id, id) {
  // Before anything is awaited: nobody else takes it up.
  update(session_id, (list) => changed(list, id, { state: 'sending', sent: 0, error: null }));
  const entry = under_way.get(id);
  if (entry === undefined) {
    update(session_id, (list) => list.filter((item) => item.id !== id));
    return;
  }
  try {
    const file = await upload(session_id, entry.file, (request) => { entry.request = request; }, (sent) => update(session_id, (list) => changed(list, id, { sent })));
    under_way.delete(id);
    update(session_id, (list) => changed(list, id, { state: 'done', file }));
  } catch (error) {
    const { code, message } = error instanceof ApiError ? error : { code: 'internal', message: String(error) };
    update(session_id, (list) => changed(list, id, { state: 'failed', error: { code, message } }));
  }
}

/** @param {string} key @param {string} id */
export function retryUpload(key, id) {
  update(key, (list) => changed(list, id, { state: 'waiting', error: null }));
  if (key !== NEW) void sendAll(key);
}

/**
 * Takes a file out of the message. One that is there already stays with the session's files.
 * @param {string} key
 * @param {string} id
 */
export function removeUpload(key, id) {
  const entry = under_way.get(id);
  under_way.delete(id);
  update(key, (list) => list.filter((item) => item.id !== id));
  entry?.request?.abort();
}

/** The message that named them is on its way. @param {string} key */
export function clearUploads(key) {
  for (const { id } of uploads.get().get(key) ?? []) under_way.delete(id);
  update(key, () => []);
}

/**
 * The files of a page without a session go to the session that it began, and are there, or
 * refused, when this ends.
 * @param {string} session_id
 */
export async function sendWaiting(session_id) {
  const list = uploads.get().get(NEW) ?? [];
  if (list.length === 0) return;
  update(NEW, () => []);
  update(session_id, (known) => [...known, ...list.map((item) => ({ ...item, state: /** @type {const} */ ('waiting') }))]);
  await sendAll(session_id);
}

/**
 * `fetch` tells nothing of a body's progress.
 * @param {string} session_id
 * @param {File} file
 * @param {(request: XMLHttpRequest) => void} onrequest
 * @param {(sent: number) => void} onprogress
 * @returns {Promise<SessionFile>}
 */
function upload(session_id, file, onrequest, onprogress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    onrequest(request);
    const form = new FormData();
    form.append('file', file, file.name);
    request.open('POST', `${sessionPath(session_id)}/files`);
    request.setRequestHeader('x-navi-key', key());
    request.responseType = 'json';
    request.upload.onprogress = (event) => onprogress(event.lengthComputable ? Math.min(file.size, Math.round((event.loaded / event.total) * file.size)) : event.loaded);
    request.onload = () => {
      const body = request.response;
      const error = body?.error ?? body;
      if (request.status >= 200 && request.status < 300 && body?.files?.[0] !== undefined) resolve(body.files[0]);
      else reject(new ApiError({ code: request.status === 401 ? 'unauthorized' : String(error?.code ?? 'internal'), message: String(error?.message ?? `HTTP ${request.status}`) }, request.status));
    };
    request.onerror = () => reject(new ApiError({ code: 'unreachable', message: '' }, 0));
    request.onabort = () => reject(new ApiError({ code: 'internal', message: '' }, 0));
    request.send(form);
  });
}
