// Records what the service tells of a conversation with all that one can have, for the page's tests
// (`web/tests/recorded.test.js`): a plan, subagents, consent, output of a program, words said into the run,
// a summary, a message that waited, Stop, and a branch.
//
//   npm --prefix web run record
//
// Needs NAVI_BIN and FAKE_MODEL_BIN, as the browser tests do. Rerun it when the events change.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { startModel } from './harness/model.js';
import { backendSettings, startNavi } from './harness/navi.js';

const RECORD = new URL('../../web/tests/fixtures/recorded.json', import.meta.url);
const TOKEN = 'a-token-for-the-record';
const REQUEST = 'Move the site to the new server: count its files, read the old log, write a note on it.';
const PLAN = [
  'MILESTONE: Look around',
  '1. Count the files of the site | AGENT: secretary',
  '2. Read the log of the old server | AGENT: server_admin',
  'MILESTONE: Do it',
  '3. Write the note | TOOL: filesystem',
  '4. Tell how it went | SELF',
].join('\n');
const FILES = 'List the files of the site and say how many there are.';
const LOG = 'Find the log of the old server and say what stands in it.';
const CHECK = 'echo I look at the note; while [ ! -e go ]; do sleep 0.1; done; echo It is in order';
const PIECE_MS = 30;
const FULL = { finish: { reason: 'stop', prompt_tokens: 30_000, completion_tokens: 20 } };

/** Said piece by piece, as models do. @param {'text' | 'thinking'} kind */
const pieces = (kind, words) => words.match(/.{1,5}/gsu).flatMap((piece) => [{ [kind]: piece }, { delay_ms: PIECE_MS }]);
const text = (words) => pieces('text', words);
const thinking = (words) => pieces('thinking', words);
const call = (name, args) => ({ tool_call: { name, arguments: args } });
const mark = (ids, status, more = {}) => call('todo', { action: 'mark', ids, status, ...more });
const spawn = (task, profile_id) => call('spawn_agent', { task, profile_id });

const model = await startModel();
const navi = await startNavi({
  ...backendSettings('ollama', model.address),
  NAVI_API_TOKEN: TOKEN, NAVI_CONSENT_MODE: 'ask', OLLAMA_NUM_CTX: '32768', CONTEXT_KEEP_RECENT: '1', CONTEXT_COMPRESSION_THRESHOLD: '0.8',
});
const address = new URL(navi.link).origin;

async function ask(method, path, body) {
  const response = await fetch(`${address}/${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response;
}
const get = async (path) => (await ask('GET', path)).json();

/** A tab that has seen a session up to an event. */
async function tabOf({ id, epoch }, after) {
  const frames = [];
  const waiting = new Set();
  const path = `${address}/ws/sessions/${id}?after=${after}&epoch=${epoch}&messages=100`;
  const socket = new WebSocket(path.replace(/^http/, 'ws'), { protocols: ['navi'], headers: { authorization: `Bearer ${TOKEN}` } });
  socket.addEventListener('message', ({ data }) => {
    frames.push(JSON.parse(data));
    waiting.forEach((look) => look());
  });
  await new Promise((done, fail) => {
    socket.addEventListener('open', done);
    socket.addEventListener('error', () => fail(new Error(`${path} does not open`)));
  });
  return {
    frames,
    send: (frame) => socket.send(JSON.stringify(frame)),
    /** Waits until what was told so far fits. */
    until: (fits) => new Promise((done) => {
      const look = () => {
        if (!fits(frames)) return;
        waiting.delete(look);
        done();
      };
      waiting.add(look);
      look();
    }),
    close: () => socket.close(),
  };
}

/** An event that was told before, word for word, by its number. */
const known = (frames, frame) => (frame.seq !== undefined && frames.some((told) => isDeepStrictEqual(told, frame)) ? frame.seq : frame);
const newest = (frames) => frames.reduce((seq, frame) => Math.max(seq, frame.seq ?? 0), 0);
/** The text of each part, as it was told. */
function texts(frames) {
  const parts = new Map();
  for (const { part_id, offset, delta } of frames) {
    if (part_id !== undefined) parts.set(part_id, (parts.get(part_id) ?? '').slice(0, offset) + delta);
  }
  return [...parts.values()];
}
/** Whether a text that ends so is being written, or was. */
const hasText = (text) => (frames) => texts(frames).some((part) => part.endsWith(text));
const has = (type, fits = () => true) => (frames) => frames.some((frame) => frame.type === type && fits(frame));
const count = (type, n) => (frames) => frames.filter((frame) => frame.type === type && frame.parent_run_id === undefined).length >= n;

try {
  const { session_id: id } = await (await ask('POST', 'sessions', {})).json();
  const start = await get(`sessions/${id}`);
  const watch = await tabOf(start, start.last_seq);
  const moments = [];
  const say = (content, mode = 'queue') => watch.send({ type: 'message', client_id: `said: ${content}`, content, images: [], files: [], mode });
  const allow = async (n) => {
    await watch.until(count('approval_requested', n));
    await moment();
    const { approval_id } = watch.frames.findLast(({ type }) => type === 'approval_requested');
    await ask('POST', `sessions/${id}/approvals/${approval_id}`, { decision: 'once' });
  };

  /** What a tab gets that comes just now: with nothing, and back with what it saw before. `open` is how a text ends that is being written. */
  async function moment(open = null) {
    const snapshot = await get(`sessions/${id}`);
    await watch.until((frames) => newest(frames) >= snapshot.last_seq);
    const told = watch.frames.length;
    assert.equal(newest(watch.frames), snapshot.last_seq, 'nothing happens meanwhile');
    const replays = [];
    for (const share of [0, 0.5, 0.9, 1]) {
      const after = Math.max(start.last_seq, Math.floor(snapshot.last_seq * share));
      const tab = await tabOf(start, after);
      await tab.until((frames) => (after === snapshot.last_seq || newest(frames) >= snapshot.last_seq) && (open === null || hasText(open)(frames)));
      replays.push({ after, frames: tab.frames.map((frame) => known(watch.frames, frame)) });
      tab.close();
    }
    assert.equal(watch.frames.length, told, 'nothing happens meanwhile');
    moments.push({ told, snapshot, replays });
  }

  await model.script([...text('Good morning. The old server is called Marigold.')]);
  say('Good morning!');
  await watch.until(count('stream_end', 1));
  await moment();

  await model.script(
    { streamed: false, system: 'DIRECT', when: 'Move the site', steps: [{ text: 'Two places to look at.\nREFLECT: no' }] },
    { streamed: false, system: 'TOOL: tool_name', steps: [{ text: PLAN }] },
    { with_tools: true, when: REQUEST, steps: [...thinking('I think about it 🤔 for a while.'), { hold: 'begin' }, mark([1, 2], 'in_progress')] },
    { with_tools: true, when: REQUEST, steps: [...text('Both can be looked at now. 🙂'), spawn(FILES, 'secretary'), spawn(LOG, 'server_admin')] },
    { when: FILES, steps: [...thinking('I list them.'), call('filesystem', { action: 'list', path: '.' })] },
    { when: LOG, steps: [...text('I look for the log.'), call('filesystem', { action: 'read', path: 'old/server.log' })] },
    { when: FILES, steps: [...text('There are '), { hold: 'counted' }, ...text('three files.')] },
    { when: LOG, steps: [...text('There are '), { hold: 'counted' }, ...text('no logs of the old server.')] },
    { with_tools: true, when: REQUEST, steps: [mark([1], 'done', { validation: 'three files' }), mark([2], 'failed', { note: 'there is no log' })] },
    { with_tools: true, when: REQUEST, last: '[replan]', steps: [...text('Then another way.'), call('todo', { action: 'add', texts: ['Ask the owner for the log'] })] },
    { with_tools: true, when: REQUEST, steps: [call('filesystem', { action: 'write', path: 'note.md', content: 'Three files, no log.\n' })] },
    { with_tools: true, when: REQUEST, steps: [call('terminal', { action: 'run', command: CHECK })] },
    { with_tools: true, when: REQUEST, steps: [...text('The note is written, '), { hold: 'noted' }, mark([3, 4], 'done', { validation: 'note.md is there' }), mark([5], 'skipped', { note: 'nobody to ask' })] },
    { with_tools: true, when: 'Be brief', steps: [...text('The site is moved: **three files**. There was no log.'), FULL] },
    { streamed: false, system: 'You shorten the old part', steps: [{ text: '- The old server is called Marigold.' }] },
    { with_tools: true, when: 'What is next?', steps: [...text('Next is, '), { hold: 'never' }] },
  );
  say(REQUEST);
  await watch.until(hasText('for a while.'));
  await moment('for a while.');
  await model.release('begin');
  await watch.until(hasText('There are '));
  await watch.until(has('run_waiting', ({ parent_run_id }) => parent_run_id !== undefined));
  await moment('There are ');
  await model.release('counted');
  await allow(1);
  await allow(2);
  await watch.until(hasText('I look at the note\n'));
  await moment('I look at the note\n');
  await writeFile(join(navi.dataDir, 'session_files', id, 'go'), '');
  await watch.until(hasText('The note is written, '));
  say('Be brief', 'steer');
  await watch.until(has('message_accepted', ({ queued }) => queued === true));
  say('What is next?');
  await watch.until((frames) => frames.filter(({ type, queued }) => type === 'message_accepted' && queued === true).length === 2);
  await moment('The note is written, ');
  await model.release('noted');
  await watch.until(hasText('Next is, '));
  await watch.until(has('context_compressed'));
  await moment('Next is, ');
  await ask('POST', `sessions/${id}/stop`);
  await watch.until(has('stream_stopped'));
  await moment();

  await model.script({ with_tools: true, when: 'What is left?', steps: [...text('Nothing is left.')] });
  const { messages } = await get(`sessions/${id}`);
  await ask('POST', `sessions/${id}/branches`, { message_id: messages.findLast(({ role }) => role === 'user').id, content: 'What is left?' });
  await watch.until(has('branch_changed'));
  await watch.until(count('stream_end', 3));
  await moment();
  watch.close();
  assert.deepEqual(await model.violations(), []);

  const line = (value) => JSON.stringify(value).replaceAll(navi.dataDir, '/data');
  const list = (values, indent) => values.map((value) => `${indent}${line(value)}`).join(',\n');
  await writeFile(RECORD, `{\n"start": ${line(start)},\n"frames": [\n${list(watch.frames, '')}\n],\n"moments": [\n${list(moments, '')}\n]\n}\n`);
  console.log(`${watch.frames.length} frames, ${moments.length} moments`);
} finally {
  await navi.remove();
  await model.stop();
}
