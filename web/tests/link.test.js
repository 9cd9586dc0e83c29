import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';

import { SessionLink } from '../net/session_link.js';
import { conversationText } from '../state/text.js';
import { childOf } from '../state/children.js';
import { at, story } from './fake_service.js';
import { FakeSocket, sockets } from './fake_socket.js';
import { logOf, wholeRun } from './whole_run.js';

/** @import { SessionState } from '../state/types.js' */

const { frames, moments, snapshot } = story();

/** @type {any} what `GET /sessions/{id}` answers */
let answer;
let requests = 0;
/** What `GET /sessions/{id}/runs/{run_id}/events` answers, page by page. @type {any[] | null} */
let log = [];
/** @type {string[]} */
let asked = [];
/** The same, where it takes its time. @type {Promise<any> | null} */
let late_log = null;
/** What was asked for beside it. @type {string[]} */
let paths = [];
/** Whether the service is there and does nothing. */
let frozen = false;

class Socket extends FakeSocket {
  /** Answers as the service does, unless that is frozen. @override */
  pinged() {
    if (!frozen) this.tell({ at: at(0), type: 'pong' });
  }
}

beforeEach(() => {
  sockets.length = 0;
  requests = 0;
  log = [];
  asked = [];
  late_log = null;
  paths = [];
  frozen = false;
  answer = { status: 200, body: moments[0].snapshot };
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: 1_000_000 });
  Object.assign(globalThis, {
    WebSocket: Socket,
    document: { baseURI: 'http://navi.test/', addEventListener() {}, removeEventListener() {} },
    requestAnimationFrame: () => 0,
    fetch: async (/** @type {string} */ path) => {
      requests += 1;
      if (path.includes('/runs/')) {
        asked.push(path);
        const late = await late_log;
        if (late !== null) return { ok: true, status: 200, text: async () => JSON.stringify(late) };
        if (log === null) throw new TypeError('refused');
        return { ok: true, status: 200, text: async () => JSON.stringify(log?.shift()) };
      }
      paths.push(path);
      if (answer === null) throw new TypeError('refused');
      return { ok: answer.status < 300, status: answer.status, text: async () => JSON.stringify(answer.body) };
    },
  });
});

afterEach(() => mock.timers.reset());

/** Lets promises settle; timers stand still meanwhile. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

async function linked() {
  /** @type {{ state: SessionState | null, silent: number, connection: string[], confirmed: string[], fatal: any, opened: number, refused: any }} */
  const seen = { state: null, silent: 0, connection: [], confirmed: [], fatal: null, opened: 0, refused: null };
  const link = new SessionLink('s1', {
    onstate: (state) => { seen.state = state; },
    onconnection: (state, silent_since_ms) => {
      seen.connection.push(state);
      seen.silent = silent_since_ms;
    },
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

/** Time goes by in small steps: a timer that another one sets counts from its own moment. @param {number} ms */
function pass(ms) {
  for (let passed = 0; passed < ms; passed += 250) mock.timers.tick(250);
}

test('it loads the snapshot, attaches where that ends, and shows what comes', async () => {
  const { link, seen } = await linked();
  assert.equal(socket().url.pathname + socket().url.search, '/ws/sessions/s1?after=0&epoch=1&messages=100');
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
  socket().close(1006);
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

test('a service that says that it restarts is knocked at soon and often, and is no trouble for ten seconds', async () => {
  const { link, seen } = await linked();
  socket().open();
  mock.timers.tick(60_000);
  const before = seen.connection.length;
  socket().close(1012);
  // Nobody listens yet: each attempt is refused at once.
  let tries = 0;
  for (let ms = 0; ms < 9_900; ms += 50) {
    mock.timers.tick(50);
    if (sockets.length - 1 > tries) {
      tries += 1;
      if (tries === 1) assert.ok(ms < 300, `the first try came after ${ms} ms`);
      socket().close(1006);
    }
    if (ms === 950) assert.ok(tries >= 2, `${tries} tries within a second`);
  }
  assert.ok(tries >= 10, `${tries} tries`);
  assert.deepEqual([...new Set(seen.connection.slice(before))], ['restarting']);
  const patient = seen.connection.length;
  mock.timers.tick(150);
  assert.equal(seen.connection.slice(patient).find((state) => state !== 'restarting'), 'lost');
  mock.timers.tick(8_000);
  socket().open();
  assert.deepEqual([seen.connection.at(-1), seen.opened], ['open', 2]);
  link.close();
});

test('a service that is back says so, and what breaks after it is trouble at once', async () => {
  const { link, seen } = await linked();
  socket().open();
  socket().close(1012);
  mock.timers.tick(300);
  socket().open();
  assert.equal(seen.connection.at(-1), 'open');
  // What was waited for is forgotten with it.
  mock.timers.tick(20_000);
  assert.equal(seen.connection.at(-1), 'open');
  socket().close(1006);
  assert.equal(seen.connection.at(-1), 'lost');
  link.close();
  socket().close();
  mock.timers.tick(60_000);
  assert.equal(seen.connection.at(-1), 'lost');
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

test('an answer that breaks off is asked for again', async () => {
  answer = { status: 200, get body() { throw new TypeError('terminated'); } };
  const { link, seen } = await linked();
  assert.deepEqual([seen.fatal, seen.connection.at(-1), sockets.length], [null, 'lost', 0]);
  answer = { status: 200, body: moments[0].snapshot };
  mock.timers.tick(5_000);
  await settle();
  assert.equal(sockets.length, 1);
  assert.ok(seen.state !== null);
  link.close();
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
  assert.deepEqual(seen.refused, { client_id: 'c', code: 'empty_message', message: 'no', phrase: undefined });
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
  assert.deepEqual(asked, ['sessions/s1/runs/r1/events', 'sessions/s1/runs/r1/events?cursor=4']);
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

/** A run that an interrupted one is continued by, and what its log tells of it. */
function resumedRun() {
  const asked_at = at(0);
  const messages = [
    { id: 'm1', run_id: 'r1', role: 'user', content: 'Go', created_at: asked_at },
    { id: 'a1', run_id: 'r1', role: 'assistant', content: 'Half', state: 'interrupted', created_at: at(100) },
  ];
  const session = { ...moments[0].snapshot, state: 'running', last_seq: 12, messages, run: { run_id: 'r2', message_id: 'm1', model: 'demo', started_at: at(500) } };
  const notice = { seq: 11, run_id: 'r2', at: at(490), type: 'notice', code: 'run_resumed', message: 'resumed' };
  return { session, notice };
}

test('a run that went on by itself says so to a page that comes later, and once', async () => {
  const { session, notice } = resumedRun();
  answer = { status: 200, body: session };
  // The log may be ahead of the session: what the socket tells again is known then.
  log = [{ events: [{ ...notice, seq: 13 }], next: null }];
  const { link, seen } = await linked();
  await settle();
  const told = () => seen.state?.entries.map((entry) => (entry.kind === 'notice' ? entry.code : entry.id));
  assert.deepEqual(told(), ['m1', 'a1', 'run_resumed']);
  socket().open();
  socket().tell({ ...notice, seq: 13 });
  socket().tell({ ...notice, seq: 14, code: 'other' });
  flush();
  assert.deepEqual(told(), ['m1', 'a1', 'run_resumed', 'other']);
  link.close();
});

test('a tab whose service came back and went on is told so', async () => {
  const { session, notice } = resumedRun();
  const { link, seen } = await linked();
  socket().open();
  answer = { status: 200, body: session };
  log = [{ events: [notice], next: null }];
  socket().tell({ at: at(600), type: 'resync', reason: 'epoch_changed', session });
  flush();
  await settle();
  await settle();
  assert.ok(seen.state?.entries.some((entry) => entry.kind === 'notice' && entry.code === 'run_resumed'));
  assert.equal(socket().url.searchParams.get('after'), '12');
  link.close();
});

test('a service that hangs is told of within 12 seconds, tried again, and comes back', async () => {
  const { link, seen } = await linked();
  socket().open();
  socket().tell(frames[0]);
  const heard = Date.now();
  frozen = true;
  for (let passed = 0; seen.connection.at(-1) !== 'silent'; passed += 500) {
    assert.ok(passed < 12_000, 'nobody noticed');
    mock.timers.tick(500);
  }
  assert.equal(seen.silent, heard, 'it is counted from its last word');
  // It takes connections, as the kernel does for it, and opens none.
  pass(40_000);
  assert.ok(sockets.length > 2, 'it was not tried again');
  assert.deepEqual([seen.connection.at(-1), seen.silent], ['silent', heard]);
  assert.equal(seen.state?.last_seq, 1, 'what came before was applied');
  frozen = false;
  pass(10_000);
  socket().open();
  pass(60_000);
  assert.deepEqual([seen.connection.at(-1), seen.opened], ['open', 2]);
  link.close();
});

test('a service that is silent and then gone is called lost', async () => {
  const { link, seen } = await linked();
  socket().open();
  frozen = true;
  pass(12_000);
  assert.equal(seen.connection.at(-1), 'silent');
  socket().close(1006);
  assert.equal(seen.connection.at(-1), 'lost');
  link.close();
});

test('after sleep a socket that only looks open is opened anew', async () => {
  const { link, seen } = await linked();
  socket().open();
  const dead = socket();
  frozen = true;
  // Timers stand still while the machine sleeps.
  mock.timers.setTime(Date.now() + 3_600_000);
  pass(10_000);
  assert.notEqual(socket(), dead);
  frozen = false;
  mock.timers.tick(500);
  socket().open();
  assert.equal(seen.connection.at(-1), 'open');
  link.close();
});

test('a quiet service that answers is left alone', async () => {
  const { link, seen } = await linked();
  socket().open();
  pass(600_000);
  assert.deepEqual([sockets.length, seen.connection.at(-1)], [1, 'open']);
  link.close();
});

/** @param {SessionState | null} state */
const unreadable = (state) => state?.entries.filter((entry) => entry.kind === 'notice' && entry.code === 'unreadable_frame').length;

test('a frame with broken fields is left out and said so; those before and after it count', async () => {
  const { link, seen } = await linked();
  socket().open();
  const broken = frames.findIndex(({ type, seq }) => type === 'stream_start' && seq !== undefined);
  for (const [index, frame] of frames.entries()) {
    socket().tell(frame);
    if (index === broken) {
      for (const odd of [null, 5, [], 'text', { type: 'stream_delta' }, { at: 3, type: 'tool_output', call_id: {} }]) socket().tell(odd);
    }
  }
  flush();
  assert.equal(sockets.length, 1, 'it attached again');
  assert.equal(seen.state?.last_seq, snapshot.last_seq);
  assert.ok(seen.state !== null && conversationText(seen.state).includes('There are **two** files.'));
  assert.equal(unreadable(seen.state), 1);
  link.close();
});

test('a numbered frame with broken fields leaves no hole', async () => {
  const { link, seen } = await linked();
  socket().open();
  socket().tell({ seq: 1, run_id: 'r1', at: at(0), type: 'stream_delta' });
  socket().tell({ ...frames[0], seq: 2 });
  flush();
  assert.deepEqual([seen.state?.last_seq, sockets.length, unreadable(seen.state)], [2, 1, 1]);
  link.close();
});

test('text that is no frame is said so, and the conversation read anew at the gap: once, not for ever', async () => {
  const { link, seen } = await linked();
  socket().open();
  socket().tell(frames[0]);
  socket().onmessage({ data: '{"seq": 2, "ty' });
  flush();
  assert.deepEqual([seen.state?.last_seq, unreadable(seen.state)], [1, 1]);
  answer = { status: 200, body: snapshot };
  socket().tell({ ...frames[2], seq: 3 });
  flush();
  mock.timers.tick(5_000);
  await settle();
  assert.deepEqual([requests, sockets.length, seen.state?.last_seq, unreadable(seen.state)], [2, 2, snapshot.last_seq, 1]);
  assert.equal(socket().url.searchParams.get('after'), String(snapshot.last_seq));
  link.close();
});

test('too many requests are asked again; what nobody can read is said, not asked for ever', async () => {
  for (const status of [429, 408, 503]) {
    answer = { status, body: { code: 'rate_limited', message: 'slower' } };
    const { link, seen } = await linked();
    assert.deepEqual([seen.fatal, seen.connection.at(-1)], [null, 'lost']);
    answer = { status: 200, body: moments[0].snapshot };
    mock.timers.tick(8_000);
    await settle();
    assert.equal(seen.state?.id, 's1');
    link.close();
  }
  answer = { status: 200, body: { id: 's1' } };
  const { link, seen } = await linked();
  assert.equal(seen.fatal.code, 'internal');
  mock.timers.tick(60_000);
  link.close();
});

test('a page shows the end of a conversation first, and reads what was before', async () => {
  const turn = (/** @type {number} */ n) => [
    { id: `u${n}`, run_id: `r${n}`, role: 'user', content: `${n}?`, created_at: at(n) },
    { id: `a${n}`, run_id: `r${n}`, role: 'assistant', content: `${n}.`, tool_calls: [{ id: `k${n}`, name: 'todo', arguments: {} }], created_at: at(n) },
    { id: `t${n}`, run_id: `r${n}`, role: 'tool', tool_call_id: `k${n}`, content: 'ok', created_at: at(n) },
  ];
  const end = { ...snapshot, state: 'idle', run: null, messages: turn(9), earlier: 24, compression: { summary: 'so far', first_kept: 'u5' }, forks: [] };
  answer = { status: 200, body: end };
  const { link, seen } = await linked();
  assert.deepEqual(paths, ['sessions/s1?messages=100']);
  const shown = () => seen.state?.entries.map(({ id }) => id);
  assert.deepEqual([shown(), seen.state?.earlier], [['u9', 'a9'], 24]);

  const fork = { message_id: 'u8', branch_ids: [0, 1], shown: 1 };
  answer = { status: 200, body: { messages: [...turn(7), ...turn(8)], earlier: 18, forks: [fork], notices: [] } };
  await link.loadEarlier();
  assert.equal(paths[1], 'sessions/s1/messages?before=u9&limit=100');
  assert.deepEqual([shown(), seen.state?.earlier], [['u7', 'a7', 'u8', 'a8', 'u9', 'a9'], 18]);
  assert.deepEqual(seen.state?.forks, [fork]);
  const [, answered] = /** @type {any} */ (seen.state).entries;
  assert.equal(answered.calls[0].state, 'success');

  // Looked for, it is read as far as that.
  answer = { status: 200, body: { messages: [...turn(5), ...turn(6)], earlier: 12, forks: [], notices: [] } };
  await link.loadEarlier('t5');
  assert.deepEqual(paths.slice(2), ['sessions/s1/messages?before=u7&limit=1000']);
  assert.equal(shown()?.[0], 'u5');

  // What was asked about one branch says nothing of another.
  answer = { status: 200, body: { messages: turn(1), earlier: 0, forks: [], notices: [] } };
  const late = link.loadEarlier();
  socket().open();
  socket().tell({ at: at(0), type: 'resync', reason: 'log_expired', session: end });
  flush();
  await late;
  assert.deepEqual([shown(), seen.state?.earlier], [['u9', 'a9'], 24]);
  answer = { status: 200, body: { messages: [], earlier: 0, forks: [], notices: [] } };
  await link.loadEarlier('gone');
  assert.equal(seen.state?.earlier, 0);
  await link.loadEarlier();
  assert.equal(paths.length, 5, 'nothing is before the beginning');
  link.close();
});

test('the session is attached before the past of its subagents is read', async () => {
  assert.ok(middle !== undefined);
  answer = { status: 200, body: middle.snapshot };
  let come = () => {};
  log = null;
  const read = new Promise((resolve) => { come = () => resolve(undefined); });
  late_log = read.then(() => ({ events: logOf(whole.frames.slice(0, middle.told)), next: null }));
  const { link, seen } = await linked();
  socket().open();
  for (const frame of [...middle.open, ...whole.frames.slice(middle.told)]) socket().tell(frame);
  flush();
  assert.equal(seen.state?.last_seq, whole.snapshot.last_seq, 'the conversation goes on meanwhile');
  come();
  await settle();
  await settle();
  assert.ok(seen.state !== null);
  assert.equal(childOf(seen.state, 'kb')?.state, 'completed');
  assert.equal(childOf(seen.state, 'kd')?.entries.length, 1);
  link.close();
});
