// What goes with a message: pictures are read, files are sent, each by itself, a few at a time.

/** @import { SessionFile } from '../state/wire.js' */
/** @import { Attachment } from '../state/attachments.js' */

import { t } from '../i18n/index.js';
import { ApiError, refusal, sessionPath } from '../net/api.js';
import { key as loginKey } from '../net/key.js';
import { find, newAttachment, withList } from '../state/attachments.js';
import { isUnderWay } from '../state/outbox.js';
import { IMAGE_TYPES, MAX_IMAGES, readImage } from './images.js';
import { keep } from './kept.js';
import { attachments, NEW, openId, outbox } from './signals.js';

export const MAX_FILES = 10;
const AT_ONCE = 2;

/** What stops those that are being sent. @type {Map<string, XMLHttpRequest>} */
const requests = new Map();
let last = 0;

/** Who hears that something of this draft or message is there, was refused or was taken out. */
let settledHandler = (/** @type {string} */ _key) => {};

/** @param {typeof settledHandler} handler */
export function onSettled(handler) {
  settledHandler = handler;
}

/** @param {string} key @returns {Attachment[]} */
export const attachmentsOf = (key) => attachments.get().get(key) ?? [];

/** @param {string} key @param {Attachment[]} list */
const setList = (key, list) => attachments.set(withList(attachments.get(), key, list));

/** @param {string} key @param {Attachment} item */
const keepOne = (key, { id, name, bytes, picture, data, image, file }) => keep('attachment', id,
  { key, name, bytes, picture, data, image, file });

/** In the order of their ids they come back after a reload. */
function nextId() {
  last += 1;
  return `${Date.now()}-${String(last).padStart(4, '0')}-${Math.random().toString(36).slice(2)}`;
}

/** @param {string} id @param {Partial<Attachment>} change */
function change(id, change) {
  const found = find(attachments.get(), id);
  if (found !== null) setList(found.key,
    attachmentsOf(found.key).map((item) => (item.id === id ? { ...item, ...change } : item)));
}

/**
 * Puts files into the message that is being written. Pictures are read at once, a session that is
 * there gets its files at once.
 * @param {string} key the draft
 * @param {File[]} files
 * @param {string[]} [pictures_are] types of what becomes part of the message itself
 * @returns {boolean} whether there was room for all of them
 */
export function addFiles(key, files, pictures_are = IMAGE_TYPES) {
  let room = MAX_FILES;
  let pictures = MAX_IMAGES;
  let all = true;
  for (const { picture } of attachmentsOf(key)) {
    if (picture) pictures -= 1;
    else room -= 1;
  }
  for (const file of files) {
    const picture = pictures_are.includes(file.type) && pictures > 0;
    if (!picture && room <= 0) {
      all = false;
      break;
    }
    if (picture) pictures -= 1;
    else room -= 1;
    const item = newAttachment(nextId(), file.name, file, picture);
    setList(key, [...attachmentsOf(key), item]);
    keepOne(key, item);
  }
  workOn();
  return all;
}

let at_work = 0;

/** Takes up what waits, a few at a time. */
export function workOn() {
  for (const [key, list] of attachments.get()) {
    const session_id = sessionOf(key);
    for (const item of list) {
      if (at_work < AT_ONCE && item.state === 'waiting'
        && (item.picture || session_id !== null)) void take(item, session_id);
    }
  }
}

/**
 * The session that gets its files: the open one, or a message's. None is there before the first
 * message.
 * @param {string} key
 */
function sessionOf(key) {
  for (const [session_id, items] of outbox.get()) {
    const item = items.find(({ client_id }) => client_id === key);
    if (item !== undefined) return isUnderWay(item) && session_id !== NEW ? session_id : null;
  }
  return key === openId.get() ? key : null;
}

/** @param {Attachment} item @param {string | null} session_id */
async function take(item, session_id) {
  const { id, data } = item;
  // Before anything is awaited: nobody else takes it up.
  at_work += 1;
  change(id, { state: 'sending', sent: 0, error: null });
  change(id, await (item.picture ? read(/** @type {File} */ (data)) : send(/** @type {string} */ (session_id), item)));
  at_work -= 1;
  const found = find(attachments.get(), id);
  if (found !== null) {
    keepOne(found.key, found.item);
    settledHandler(found.key);
  }
  workOn();
}

/** What is no picture after all goes as a file. @param {File} data @returns {Promise<Partial<Attachment>>} */
async function read(data) {
  try {
    return { state: 'done', image: await readImage(data), data: null };
  } catch {
    return { state: 'waiting', picture: false };
  }
}

/** @param {string} session_id @param {Attachment} item @returns {Promise<Partial<Attachment>>} */
async function send(session_id, { id, name, data }) {
  try {
    return { state: 'done', file: await upload(session_id, id, name, /** @type {Blob} */ (data)), data: null };
  } catch (error) {
    const { code, message, phrase } = error instanceof ApiError
      ? error
      : { code: 'internal', message: String(error), phrase: undefined };
    return { state: 'failed', error: { code, message, phrase } };
  } finally {
    requests.delete(id);
  }
}

/** @param {string} id */
export function retry(id) {
  change(id, { state: 'waiting', error: null });
  workOn();
}

/** Takes it out of the message. A file that is there already stays with the session's files. @param {string} id */
export function remove(id) {
  const key = find(attachments.get(), id)?.key;
  if (key === undefined) return;
  setList(key, attachmentsOf(key).filter((item) => item.id !== id));
  keep('attachment', id, undefined);
  requests.get(id)?.abort();
  settledHandler(key);
}

/** The message that they go with is complete, or given up. @param {string} key */
export function clear(key) {
  for (const { id } of attachmentsOf(key)) {
    keep('attachment', id, undefined);
    requests.get(id)?.abort();
  }
  setList(key, []);
}

/** A draft became a message, or a message a draft. @param {string} from @param {string} to */
export function move(from, to) {
  const list = [...attachmentsOf(to), ...attachmentsOf(from)];
  for (const item of attachmentsOf(from)) keepOne(to, item);
  attachments.set(withList(withList(attachments.get(), from, []), to, list));
}

/**
 * What goes with a draft or a message of a session that is gone goes with a new one's draft, but for
 * files that only that session had.
 * @param {string} from
 * @param {string[]} images those that are part of the message already
 */
export function moveToNew(from, images) {
  for (const [i, image] of images.entries()) {
    /** @type {Attachment} */
    const item = {
      id: nextId(), name: t('conversation.image', { n: i + 1 }), bytes: Math.floor((image.length * 3) / 4),
      picture: true, data: null, state: 'done', sent: 0, image, file: null, error: null,
    };
    setList(NEW, [...attachmentsOf(NEW), item]);
    keepOne(NEW, item);
  }
  for (const { id, file } of attachmentsOf(from)) if (file !== null) remove(id);
  move(from, NEW);
}

/**
 * `fetch` tells nothing of a body's progress.
 * @param {string} session_id
 * @param {string} id
 * @param {string} name
 * @param {Blob} data
 * @returns {Promise<SessionFile>}
 */
function upload(session_id, id, name, data) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    requests.set(id, request);
    const form = new FormData();
    form.append('file', data, name);
    request.open('POST', `${sessionPath(session_id)}/files`);
    request.setRequestHeader('x-navi-key', loginKey());
    request.responseType = 'json';
    request.upload.onprogress = (event) => change(id,
      { sent: event.lengthComputable
        ? Math.min(data.size, Math.round((event.loaded / event.total) * data.size))
        : event.loaded });
    request.onload = () => {
      const body = request.response;
      if (request.status >= 200 && request.status < 300 && body?.files?.[0] !== undefined) resolve(body.files[0]);
      else reject(refusal(request.status, body));
    };
    request.onerror = () => reject(new ApiError({ code: 'unreachable', message: '' }, 0));
    request.onabort = () => reject(new ApiError({ code: 'internal', message: '' }, 0));
    request.send(form);
  });
}
