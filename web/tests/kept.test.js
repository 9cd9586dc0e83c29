// What a person wrote is lost by nothing: a reload, a full disk, a refusal, another conversation.

import 'fake-indexeddb/auto';
import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';

import { HOLD_AFTER_MS } from '../state/outbox.js';
import { at, story } from './fake_service.js';
import { FakeSocket, sockets } from './fake_socket.js';

const { moments } = story();

/** @type {FakeRequest[]} */
let uploads = [];
/** What `POST /sessions` answers, once it is let go. @type {{ status: number, body: unknown } | null} */
let created = null;
/** @type {() => void} */
let answerCreate = () => {};
/** What `GET /sessions/{id}` answers. @type {any} */
let snapshot = moments[0].snapshot;

class Socket extends FakeSocket {
  /** @override @param {unknown} frame */
  async tell(frame) {
    super.tell(frame);
    await settle();
  }
}

/** An upload that the test ends. */
class FakeRequest {
  upload = {};
  status = 0;
  /** @type {any} */ response = null;
  /** @type {any} */ onload;
  open() {}
  setRequestHeader() {}
  abort() {}
  send() {
    uploads.push(this);
  }

  /** @param {number} status @param {unknown} response */
  async answer(status, response) {
    Object.assign(this, { status, response });
    this.onload();
    await settle();
  }
}

class FakeFileReader {
  result = '';
  /** @param {Blob} blob */
  async readAsDataURL(blob) {
    this.result = `data:image/png;base64,${Buffer.from(await blob.arrayBuffer()).toString('base64')}`;
    /** @type {any} */ (this).onload();
  }
}

const nothing = () => ({});
Object.assign(globalThis, {
  HTMLElement: class {}, document: { baseURI: 'http://navi.test/', createTreeWalker: nothing, createComment: nothing, addEventListener: nothing, removeEventListener: nothing },
  WebSocket: Socket, XMLHttpRequest: FakeRequest, FileReader: FakeFileReader,
  requestAnimationFrame: (/** @type {() => void} */ run) => setImmediate(run),
  createImageBitmap: async () => ({ width: 1, height: 1, close: nothing }),
  fetch: async (/** @type {string} */ path, /** @type {any} */ { method, signal }) => {
    if (method === 'POST' && path === 'sessions') {
      await new Promise((resolve, reject) => {
        answerCreate = () => resolve(undefined);
        signal.addEventListener('abort', () => reject(signal.reason));
      });
      if (created === null) throw new TypeError('refused');
      return { ok: created.status < 300, status: created.status, text: async () => JSON.stringify(created?.body) };
    }
    return { ok: true, status: 200, text: async () => JSON.stringify(path.startsWith('sessions/') ? { ...snapshot, id: path.split(/[/?]/)[1] } : []) };
  },
});

const { addFiles, attachmentsOf } = await import('../app/attachments.js');
const { startSession } = await import('../app/actions.js');
const { draftOf, growEdit, setDraft, setEdit } = await import('../app/drafts.js');
const { isAtRisk } = await import('../app/kept.js');
const { restoreKept } = await import('../app/restore.js');
const { onGone, openSession, outboxOf, post, resend, stop } = await import('../app/session.js');
const { attachments, createError, drafts, edits, NEW, openId, outbox, session, stopping, unkept } = await import('../app/signals.js');

/** Everything that waits for nothing but its turn. */
async function settle() {
  for (let i = 0; i < 30; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

function forget() {
  for (const all of [drafts, edits, attachments, outbox]) all.set(new Map());
  openSession(null);
  unkept.set(null);
}

/** The page is loaded again: what is not kept is gone. */
async function reload() {
  await settle();
  forget();
  await restoreKept();
}

beforeEach(async () => {
  Object.assign(globalThis, { location: { hash: '' } });
  sockets.length = 0;
  uploads = [];
  created = null;
  snapshot = moments[0].snapshot;
  forget();
});

afterEach(async () => {
  forget();
  await settle();
  await emptied();
});

/** The connection stays open, as a page's does: its records go. */
async function emptied() {
  const { createStore, promisifyRequest } = await import('idb-keyval');
  await createStore('navi', 'kept')('readwrite', (kept) => promisifyRequest(kept.clear()));
}

const picture = (name = 'p.png') => new File([name], name, { type: 'image/png' });
const base64 = (/** @type {string} */ text) => Buffer.from(text).toString('base64');
const paper = () => new File(['words'], 'paper.txt', { type: 'text/plain' });
const FILE = { file_id: 'f', name: 'paper.txt', path: 'uploads/f.txt', media_type: 'text/plain', bytes: 5 };

async function opened(id = 's1') {
  openSession(id);
  await settle();
  const socket = sockets[sockets.length - 1];
  socket.open();
  await settle();
  return socket;
}

test('words, pictures and files of a draft outlive another conversation and a reload', async () => {
  await opened('s1');
  setDraft('s1', 'Look at this');
  addFiles('s1', [picture(), paper()]);
  await settle();
  await opened('s2');
  assert.equal(draftOf('s2'), '');
  for (const again of [false, true]) {
    if (again) await reload();
    assert.equal(draftOf('s1'), 'Look at this');
    assert.deepEqual(attachmentsOf('s1').map(({ name, image }) => [name, image]), [['p.png', base64('p.png')], ['paper.txt', null]]);
  }
});

test('what was written while the copy was read stands behind it', async () => {
  setDraft('s1', 'First.');
  await settle();
  forget();
  const restored = restoreKept();
  setDraft('s1', 'Second.');
  await restored;
  assert.equal(draftOf('s1'), 'First.\n\nSecond.');
});

test('the first message of a conversation keeps its photos on the way there', async () => {
  created = { status: 200, body: { session_id: 's9' } };
  setDraft(NEW, 'Holiday');
  addFiles(NEW, [picture('a.png'), picture('b.png'), picture('c.png')]);
  const sent = startSession();
  await settle();
  assert.deepEqual([draftOf(NEW), outboxOf(NEW).length], ['', 1]);
  setDraft(NEW, 'And then');
  answerCreate();
  await sent;
  assert.deepEqual([location.hash, openId.get()], ['#/s/s9', 's9'], 'the next key goes elsewhere');
  await settle();
  assert.equal(draftOf('s9'), 'And then', 'what was typed meanwhile goes along');
  const socket = await opened('s9');
  assert.deepEqual(socket.sent.map(({ content, images }) => [content, images]), [['Holiday', ['a.png', 'b.png', 'c.png'].map(base64)]]);
  assert.deepEqual(attachmentsOf(NEW), []);
});

test('a conversation that cannot be begun gives the words and pictures back, and keeps what was typed meanwhile', async () => {
  for (const answer of [null, { status: 429, body: { code: 'rate_limited', message: 'slower' } }]) {
    forget();
    await emptied();
    created = answer;
    setDraft(NEW, 'First words');
    addFiles(NEW, [picture()]);
    const sent = startSession();
    setDraft(NEW, 'and more');
    await settle();
    answerCreate();
    await sent;
    for (const again of [false, true]) {
      if (again) await reload();
      assert.equal(draftOf(NEW), 'First words\n\nand more');
      assert.deepEqual(attachmentsOf(NEW).map(({ image }) => image), [base64('p.png')]);
      assert.equal(outbox.get().size, 0);
    }
  }
});

test('a service that hangs while a conversation is begun gives the words back', async () => {
  const limit = new AbortController();
  mock.method(AbortSignal, 'timeout', () => limit.signal);
  setDraft(NEW, 'Anybody there?');
  const sent = startSession();
  await settle();
  assert.equal(draftOf(NEW), '');
  limit.abort();
  await sent;
  mock.restoreAll();
  assert.deepEqual([draftOf(NEW), createError.get()?.code], ['Anybody there?', 'unreachable']);
});

test('a page that dies while a conversation is begun gives the next one a draft', async () => {
  setDraft(NEW, 'Begin');
  addFiles(NEW, [picture()]);
  void startSession();
  await reload();
  assert.equal(draftOf(NEW), 'Begin');
  assert.deepEqual(attachmentsOf(NEW).map(({ image }) => image), [base64('p.png')]);
  answerCreate();
  await settle();
});

test('a message waits for its files, is sent once with them, and goes on after its conversation was left', async () => {
  const socket = await opened('s1');
  setDraft('s1', 'Read this');
  addFiles('s1', [paper()]);
  post('s1', 'queue');
  await settle();
  assert.equal(socket.sent.length, 0);
  await opened('s2');
  await uploads[0].answer(200, { files: [FILE] });
  assert.deepEqual(socket.sent.map(({ content, files }) => [content, files]), [['Read this', [{ name: 'paper.txt', path: 'uploads/f.txt' }]]]);
  const [{ client_id }] = outboxOf('s1');
  await socket.tell({ seq: 1, run_id: 'r', at: at(0), type: 'message_accepted', message_id: 'm', queued: false, content: 'Read this', client_id });
  assert.deepEqual(outboxOf('s1'), []);
  assert.equal(socket.readyState, 3, 'nothing is under way any more');
  assert.equal(attachments.get().size, 0);
  await reload();
  assert.equal(outbox.get().size + attachments.get().size + drafts.get().size, 0);
});

test('a file that was refused loses neither the words nor the pictures', async () => {
  const socket = await opened('s1');
  setDraft('s1', 'Both');
  addFiles('s1', [picture(), paper()]);
  const { client_id } = post('s1', 'queue');
  await settle();
  await uploads[0].answer(413, { code: 'file_too_large', message: 'too large' });
  assert.deepEqual(attachmentsOf(client_id).map(({ state }) => state), ['done', 'failed']);
  assert.equal(socket.sent.length, 0);
  resend(client_id);
  await settle();
  await uploads[1].answer(200, { files: [FILE] });
  assert.deepEqual(socket.sent.map(({ content, images, files }) => [content, images, files.length]), [['Both', [base64('p.png')], 1]]);
});

test('an unsent message outlives a reload with all that goes with it', async () => {
  setDraft('s1', 'Offline');
  addFiles('s1', [picture()]);
  await settle();
  openId.set('s1');
  post('s1', 'steer');
  await reload();
  assert.deepEqual(outboxOf('s1').map(({ content, images, mode }) => [content, images, mode]), [['Offline', [base64('p.png')], 'steer']]);
  assert.equal(draftOf('s1'), '');
  const socket = await opened('s1');
  assert.equal(socket.sent.length, 1);
});

test('an unsent message is sent after a reload whichever conversation is open', async () => {
  openId.set('s1');
  setDraft('s1', 'Offline');
  const { client_id } = post('s1', 'queue');
  await reload();
  await settle();
  assert.deepEqual([openId.get(), sockets.length], [null, 1]);
  const [socket] = sockets;
  socket.open();
  assert.deepEqual(socket.sent.map(({ content }) => content), ['Offline']);
  await socket.tell({ seq: 1, run_id: 'r', at: at(0), type: 'message_accepted', message_id: 'm', queued: false, content: 'Offline', client_id });
  assert.deepEqual([outbox.get().size, socket.readyState], [0, 3]);
});

test('a message that waited too long for a connection is held until its writer sends it', async (t) => {
  t.mock.timers.enable({ apis: ['Date'] });
  openSession('s1');
  await settle();
  setDraft('s1', 'Of yesterday');
  const { client_id } = post('s1', 'queue');
  t.mock.timers.tick(HOLD_AFTER_MS + 1);
  setDraft('s1', 'Of now');
  post('s1', 'queue');
  const [socket] = sockets;
  socket.open();
  assert.deepEqual(socket.sent.map(({ content }) => content), ['Of now']);
  assert.deepEqual(outboxOf('s1').map(({ content, held }) => [content, held]), [['Of yesterday', true], ['Of now', false]]);
  resend(client_id);
  assert.equal(socket.sent[1].client_id, client_id, 'it may have arrived after all');
});

test('a conversation that was left is not kept open for what is held', async (t) => {
  t.mock.timers.enable({ apis: ['Date'] });
  openSession('s1');
  await settle();
  setDraft('s1', 'Of yesterday');
  post('s1', 'queue');
  await opened('s2');
  t.mock.timers.tick(HOLD_AFTER_MS + 1);
  const [socket] = sockets;
  socket.open();
  assert.deepEqual([socket.sent, socket.readyState, outboxOf('s1')[0].held], [[], 3, true]);
});

test('an unsent message that had arrived before the reload is not sent again', async () => {
  openId.set('s1');
  setDraft('s1', 'Offline');
  const { client_id } = post('s1', 'queue');
  snapshot = { ...snapshot, messages: [{ id: 'm', run_id: 'r', role: 'user', content: 'Offline', created_at: at(0), client_id }] };
  await reload();
  await settle();
  assert.deepEqual([outbox.get().size, sockets.length], [0, 0]);
});

test('what was written in a conversation that is gone is a draft of a new one', async () => {
  /** @type {string[]} */
  const gone = [];
  onGone((id) => { gone.push(id); });
  const socket = await opened('s1');
  addFiles('s1', [paper()]);
  await settle();
  await uploads[0].answer(200, { files: [FILE] });
  setDraft('s1', 'On its way');
  addFiles('s1', [picture('a.png')]);
  post('s1', 'queue');
  await settle();
  assert.equal(socket.sent.length, 1);
  setDraft('s1', 'Half a thought');
  addFiles('s1', [paper(), picture('b.png')]);
  await settle();
  await uploads[1].answer(200, { files: [FILE] });
  setDraft(NEW, 'Of a new one');
  socket.close(4004);
  assert.deepEqual(gone, ['s1']);
  for (const again of [false, true]) {
    if (again) await reload();
    assert.deepEqual([draftOf('s1'), outbox.get().size, attachmentsOf('s1')], ['', 0, []]);
    assert.equal(draftOf(NEW), 'On its way\n\nHalf a thought\n\nOf a new one');
    assert.deepEqual(attachmentsOf(NEW).map(({ image }) => image).sort(), ['a.png', 'b.png'].map(base64), 'the file was its own');
  }
  assert.equal(sockets.length, 1, 'what is gone is not asked for again');
});

test('an unsent message of a conversation that is gone meanwhile is a draft after a reload', async () => {
  openId.set('s1');
  setDraft('s1', 'Offline');
  post('s1', 'queue');
  await reload();
  await settle();
  sockets[0].open();
  sockets[0].close(4004);
  await settle();
  assert.deepEqual([draftOf(NEW), outbox.get().size, sockets.length], ['Offline', 0, 1]);
});

test('a full disk is told, takes nothing from memory, and nothing that was kept before', async () => {
  const { put } = IDBObjectStore.prototype;
  setDraft('s1', 'Large');
  await settle();
  openId.set('s1');
  IDBObjectStore.prototype.put = () => { throw new DOMException('full', 'QuotaExceededError'); };
  try {
    post('s1', 'queue');
    await settle();
  } finally {
    IDBObjectStore.prototype.put = put;
  }
  assert.deepEqual([unkept.get(), isAtRisk(), outboxOf('s1')[0].content], ['full', true, 'Large']);
  await reload();
  assert.equal(draftOf('s1'), 'Large', 'a draft that could not become a message stays a draft');
});

test('a browser that keeps nothing is told, once there is something to lose', async () => {
  const { transaction } = IDBDatabase.prototype;
  IDBDatabase.prototype.transaction = () => { throw new DOMException('no', 'InvalidStateError'); };
  try {
    await restoreKept();
    assert.deepEqual([unkept.get(), isAtRisk()], ['forbidden', false]);
    setDraft('s1', 'Words');
    await settle();
    assert.deepEqual([isAtRisk(), draftOf('s1')], [true, 'Words']);
  } finally {
    IDBDatabase.prototype.transaction = transaction;
  }
});

/** @param {string} content */
const waiting = (content) => ({ ...snapshot, queue: [{ message_id: 'm', content, created_at: at(0) }] });

test('an edit of a waiting message ends when the service has it', async () => {
  snapshot = waiting('as it was');
  const socket = await opened();
  setEdit('m', 'as it was');
  await socket.tell({ run_id: 'r', at: at(0), type: 'stream_delta', part_id: 'a.text', offset: 0, delta: 'more' });
  assert.equal(edits.get().get('m'), 'as it was', 'the form that was just opened stays');
  growEdit('m', 'as it shall be');
  await socket.tell({ seq: 1, at: at(1), type: 'queue_changed', message_id: 'm', content: 'of another tab' });
  assert.equal(edits.get().get('m'), 'as it shall be');
  await socket.tell({ seq: 2, at: at(2), type: 'queue_changed', message_id: 'm', content: 'as it shall be' });
  assert.equal(edits.get().has('m'), false);
});

test('an edit of a message that a run takes, or that is withdrawn, is not lost', async () => {
  snapshot = waiting('as it was');
  const socket = await opened();
  setEdit('m', 'as it was');
  growEdit('m', 'other words');
  await socket.tell({ seq: 1, run_id: 'r', at: at(1), type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' });
  assert.equal(session.get()?.queue.length, 0);
  assert.equal(edits.get().get('m'), 'other words', 'it goes on in the conversation');
  await reload();
  assert.equal(edits.get().get('m'), 'other words');

  const again = await opened('s3');
  await again.tell({ seq: 1, at: at(1), type: 'queue_changed', message_id: 'm', content: null });
  assert.deepEqual([edits.get().has('m'), draftOf('s3')], [false, 'other words']);
});

test('a Stop that found no connection is for the run that was shown, and for none that came after it', async () => {
  snapshot = { ...snapshot, state: 'running', run: { run_id: 'r1', message_id: 'm1', model: 'x', started_at: at(0), waiting: null } };
  openSession('s1');
  await settle();
  stop();
  const [socket] = sockets;
  socket.open();
  assert.deepEqual(socket.sent, [{ type: 'stop', hold: true, run_id: 'r1' }]);
  assert.equal(stopping.get(), 'r1');
  // Both come at once, as what was missed does.
  socket.tell({ seq: 1, run_id: 'r1', at: at(1), type: 'stream_stopped' });
  await socket.tell({ seq: 2, run_id: 'r2', at: at(2), type: 'stream_start', message_id: 'm2', model: 'x', profile_id: 'p' });
  assert.deepEqual([session.get()?.run?.run_id, stopping.get()], ['r2', null]);
});
