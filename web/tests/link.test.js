import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';

import { SessionLink } from '../net/session_link.js';
import { conversationText } from '../state/text.js';
import { childOf } from '../state/children.js';
import { at, story } from './fake_service.js';
import { logOf, wholeRun } from './whole_run.js';

/** @import { SessionState } from '../state/model.js' */

const { frames, moments, snapshot } = story();

/** @type {FakeSocket[]} */
let sockets = [];
/** @type {any} what `GET /sessions/{id}` answers */
let answer;
let requests = 0;
/** What `GET /sessions/{id}/runs/{run_id}/events` answers, page by page. @type {any[] | null} */
let log = [];
/** @type {string[]} */
let asked = [];

class FakeSocket {
  static OPEN = 1;
  readyState = 0;
  /** @type {any[]} */
  sent = [];
  /** @type {any} */ onopen;
  /** @type {any} */ onmessage;
  /** @type {any} */ onclose;

  /** @param {string} url */
  constructor(url) {
    this.url = new URL(url);
    sockets.push(this);
  }

  open() {
    this.readyState = 1;
    this.onopen();
  }

  /** @param {unknown} frame */
  tell(frame) {
    this.onmessage({ data: JSON.stringify(frame) });
  }

  /** @param {string} text */
  send(text) {
    this.sent.push(JSON.parse(text));
  }

  /** @param {number} [code] */
  close(code) {
    this.readyState = 3;
    if (code !== undefined) this.onclose?.({ code });
  }
}

beforeEach(() => {
  sockets = [];
  requests = 0;
  log = [];
  asked = [];
  answer = { status: 200, body: moments[0].snapshot };
  mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  Object.assign(globalThis, {
    WebSocket: FakeSocket,
    location: { protocol: 'http:', host: 'navi.test' },
    requestAnimationFrame: () => 0,
    fetch: async (/** @type {string} */ path) => {
      requests += 1;
      if (path.includes('/runs/')) {
        asked.push(path);
        if (log === null) throw new TypeError('refused');
        return { ok: true, status: 200, text: async () => JSON.stringify(log?.shift()) };
      }
      if (answer === null) throw new TypeError('refused');
      return { ok: answer.status < 300, status: answer.status, text: async () => JSON.stringify(answer.body) };
    },
  });
});

afterEach(() => mock.timers.reset());

/** Lets promises settle; timers stand still meanwhile. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

async function linked() {
  /** @type {{ state: SessionState | null, connection: string[], confirmed: string[], fatal: any, opened: number, refused: any }} */
  const seen = { state: null, connection: [], confirmed: [], fatal: null, opened: 0, refused: null };
  const link = new SessionLink('s1', {
    onstate: (state) => { seen.state = state; },
    onconnection: (state) => seen.connection.push(state),
    onopen: () => { seen.opened += 1; },
    onconfirmed: (ids) => seen.confirmed.push(...ids),
    onrefused: (refused) => { seen.refused = refused; },
    onevent: () => {},
    onfatal: (error) => { seen.fatal = error; },
  });
  await settle();
  return { link, seen };
}

/** The newest socket. */
const socket = () => sockets[sockets.length - 1];

/** What came is applied within this, in a hidden page too. */
const flush = () => mock.timers.tick(200);

test('it loads the snapshot, attaches where that ends, and shows what comes', async () => {
  const { link, seen } = await linked();
  assert.equal(socket().url.pathname + socket().url.search, '/ws/sessions/s1?after=0&epoch=1');
  socket().open();
  for (const frame of frames) socket().tell(frame);
  flush();
  assert.ok(seen.state !== null);
  assert.equal(seen.state.last_seq, snapshot.last_seq);
  assert.ok(conversationText(seen.state).includes('There are **two** files.'));
  assert.ok(seen.confirmed.includes('c1') && seen.confirmed.includes('c2'));
  link.close();
});

test('a connection that is lost comes back where it was, and says so', async () => {
  const { link, seen } = await linked();
  socket().open();
  for (const frame of frames.slice(0, 20)) socket().tell(frame);
  socket().close(1012);
  assert.equal(seen.connection.at(-1), 'lost');
  const last_seq = seen.state?.last_seq;
  mock.timers.tick(10_000);
  assert.equal(socket().url.searchParams.get('after'), String(last_seq));
  socket().open();
  assert.equal(seen.opened, 2);
  assert.equal(seen.connection.at(-1), 'open');
  assert.equal(requests, 1, 'the snapshot was loaded again for nothing');
  link.close();
});

test('a hole attaches again; holes without end load the snapshot again', async () => {
  const { link, seen } = await linked();
  for (let round = 1; round <= 2; round += 1) {
    socket().open();
    socket().tell({ ...frames[0], seq: 7 });
    flush();
    assert.equal(sockets.length, round + 1);
    assert.equal(socket().url.searchParams.get('after'), '0');
  }
  answer = { status: 200, body: snapshot };
  socket().open();
  socket().tell({ ...frames[0], seq: 7 });
  flush();
  mock.timers.tick(5_000);
  await settle();
  assert.equal(requests, 2);
  assert.equal(seen.state?.last_seq, snapshot.last_seq);
  assert.equal(socket().url.searchParams.get('after'), String(snapshot.last_seq));
  link.close();
});

test('a service that is away is asked again; a session that is gone is not', async () => {
  answer = null;
  const { link, seen } = await linked();
  assert.equal(seen.connection.at(-1), 'lost');
  answer = { status: 200, body: moments[0].snapshot };
  mock.timers.tick(5_000);
  await settle();
  assert.equal(sockets.length, 1);
  socket().open();
  socket().close(4004);
  assert.equal(seen.fatal.code, 'session_not_found');
  mock.timers.tick(60_000);
  assert.equal(sockets.length, 1);
  link.close();

  answer = { status: 404, body: { code: 'session_not_found', message: 'no such session' } };
  const gone = await linked();
  assert.equal(gone.seen.fatal.code, 'session_not_found');
  gone.link.close();
});

test('a resync replaces everything and confirms what it holds', async () => {
  const { link, seen } = await linked();
  socket().open();
  socket().tell({ at: at(0), type: 'resync', reason: 'epoch_changed', session: { ...snapshot, epoch: 5 } });
  flush();
  assert.equal(seen.state?.epoch, 5);
  assert.ok(seen.confirmed.includes('c2'));
  socket().close(1006);
  mock.timers.tick(10_000);
  assert.equal(socket().url.searchParams.get('epoch'), '5');
  link.close();
});

test('a frame is refused to its sender, and sending without a connection says so', async () => {
  const { link, seen } = await linked();
  assert.equal(link.send({ type: 'stop' }), false);
  socket().open();
  assert.equal(link.send({ type: 'stop' }), true);
  assert.deepEqual(socket().sent, [{ type: 'stop' }]);
  socket().tell({ at: at(0), type: 'error', message: 'no', recoverable: true, code: 'empty_message', client_id: 'c' });
  flush();
  assert.deepEqual(seen.refused, { client_id: 'c', code: 'empty_message', message: 'no' });
  link.close();
});

test('a closed link opens nothing any more', async () => {
  const { link, seen } = await linked();
  socket().open();
  link.close();
  mock.timers.tick(60_000);
  assert.equal(sockets.length, 1);
  assert.equal(seen.fatal, null);
});

const whole = wholeRun();
/** In the middle, while two subagents are at work. */
const middle = whole.moments.find(({ told }) => whole.frames[told - 1]?.type === 'tool_output');

test('a page that is loaded in mid-run reads what the subagents did before it attaches', async () => {
  assert.ok(middle !== undefined);
  answer = { status: 200, body: middle.snapshot };
  const told = logOf(whole.frames.slice(0, middle.told));
  log = [{ events: told.slice(0, 4), next: '4' }, { events: told.slice(4), next: null }];
  const { link, seen } = await linked();
  await settle();
  assert.deepEqual(asked, ['/sessions/s1/runs/r1/events', '/sessions/s1/runs/r1/events?cursor=4']);
  assert.equal(socket().url.searchParams.get('after'), String(middle.snapshot.last_seq));
  assert.ok(seen.state !== null && childOf(seen.state, 'ka')?.entries.length === 1);
  socket().open();
  for (const frame of [...middle.open, ...whole.frames.slice(middle.told)]) socket().tell(frame);
  flush();
  assert.equal(childOf(seen.state, 'ka')?.state, 'limited');
  assert.equal(childOf(seen.state, 'kd')?.entries.length, 1);
  link.close();
});

test('a log that cannot be read keeps nobody from the conversation, and can be asked for again', async () => {
  assert.ok(middle !== undefined);
  answer = { status: 200, body: whole.snapshot };
  log = null;
  const { link, seen } = await linked();
  await link.loadRun('r1');
  assert.deepEqual(seen.state?.histories.r1, { state: 'failed', code: 'unreachable', message: '' });
  log = [{ events: logOf(whole.frames), next: null }];
  await link.loadRun('r1');
  assert.equal(seen.state?.histories.r1?.state, 'ready');
  assert.equal(childOf(/** @type {SessionState} */ (seen.state), 'kb')?.state, 'completed');
  await link.loadRun('r1');
  assert.equal(asked.length, 2, 'what is here was asked for again');
  link.close();

  answer = { status: 200, body: middle.snapshot };
  log = null;
  const going = await linked();
  await settle();
  assert.equal(going.seen.state?.histories.r1?.state, 'failed');
  assert.equal(socket().url.searchParams.get('after'), String(middle.snapshot.last_seq));
  log = [{ events: logOf(whole.frames.slice(0, middle.told)), next: null }];
  await going.link.loadRun('r1');
  await settle();
  await settle();
  assert.equal(going.seen.state?.histories.r1?.state, 'ready');
  going.link.close();
});

test('another branch is read anew, and followed from there', async () => {
  const { link, seen } = await linked();
  socket().open();
  const { last_seq } = moments[0].snapshot;
  answer = { status: 200, body: { ...snapshot, last_seq: 40, forks: [{ message_id: 'm1', branch_ids: [1, 2], shown: 2 }] } };
  socket().tell({ seq: last_seq + 1, at: at(0), type: 'branch_changed', branch_id: 2 });
  flush();
  await settle();
  assert.equal(requests, 2);
  assert.equal(seen.state?.forks[0]?.shown, 2);
  assert.equal(sockets.length, 2);
  assert.equal(socket().url.searchParams.get('after'), '40');
  link.close();
});
