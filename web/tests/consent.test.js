// Questions, modes, live output, differences and files, without a browser.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { find, images, isReady, newAttachment, readAttachment, refs, withList } from '../state/attachments.js';
import { approvalOf, asked as countAsked, askedBy, isDenied, isOpen, remainingMs } from '../state/approvals.js';
import { counts, findDiff } from '../state/diff.js';
import { seen } from '../state/invisible.js';
import { fromSnapshot, newCall } from '../state/model.js';
import { readItem } from '../state/outbox.js';
import { howItEnded, REFUSALS, shownState } from '../state/outcome.js';
import { applyFrame } from '../state/session.js';
import { grown, KEPT_CHARS, plain, settled, tail } from '../state/terminal.js';
import { coloured } from '../ui/ansi.js';
import { at, FakeService, messageOf } from './fake_service.js';

/** @import { SessionState } from '../state/types.js' */
/** @import { Envelope, PendingApproval, SessionSnapshot } from '../state/wire.js' */

const REQUEST = { summary: 'run `cargo test`', effect: 'host', reason: 'it acts on this machine', details: [{ label: 'command', kind: 'code', text: 'cargo test' }], always: '`cargo test` with any arguments' };
const EXPIRES = at(600_000);

/** @param {SessionState} state @param {Envelope[]} frames */
function play(state, frames) {
  return frames.reduce((known, frame) => {
    const step = applyFrame(known, frame);
    assert.equal(step.hole, false, `a hole at ${JSON.stringify(frame)}`);
    return step.state;
  }, state);
}

/** A run whose command is asked about, as it is told. */
function asking() {
  const service = new FakeService();
  service.tell({ type: 'message_accepted', message_id: 'm', queued: false, content: 'run the tests' });
  service.tell({ type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' });
  service.stream('stream_delta', 'a.text', 'I run them.');
  service.tell({ type: 'approval_requested', approval_id: 'q', call_id: 'k', tool: 'terminal', request: REQUEST, expires_at: EXPIRES });
  return service;
}

const start = fromSnapshot(new FakeService().snapshot);
const answer = { type: 'approval_resolved', approval_id: 'q', call_id: 'k', decision: 'once', by: 'user' };
const begin = { type: 'tool_started', tool: 'terminal', args: { command: 'cargo test' }, is_subagent: false, call_id: 'k', message_id: 'a' };

test('a question is shown until it is answered, and its answer stands at its call', () => {
  const service = asking();
  let state = play(start, service.frames);
  assert.deepEqual(state.approvals.map(({ approval_id, requested_at }) => [approval_id, requested_at]), [['q', service.frames.at(-1)?.at]], 'before its call is told, too');
  service.tell(begin);
  state = play(start, service.frames);
  assert.equal(approvalOf(state.approvals, 'k')?.decision, null);
  service.tell(answer);
  state = play(start, service.frames);
  assert.deepEqual([approvalOf(state.approvals, 'k')?.decision, approvalOf(state.approvals, 'k')?.by], ['once', 'user']);
  assert.equal(state.approvals.some(isOpen), false);
});

test('a denial stands with its reason, a lasting one too, and is no allowance', () => {
  for (const decision of /** @type {const} */ (['deny', 'never'])) {
    const service = asking();
    service.tell({ ...answer, decision, note: 'not there' });
    const told = approvalOf(play(start, service.frames).approvals, 'k');
    assert.deepEqual([told?.decision, told?.note, told !== null && isDenied(told)], [decision, 'not there', true]);
  }
  const allowed = asking();
  allowed.tell(answer);
  const told = approvalOf(play(start, allowed.frames).approvals, 'k');
  assert.deepEqual([told?.note, told !== null && isDenied(told)], [null, false]);
});

test('the same question told twice is one; an answer to one that nobody knows is nothing', () => {
  const service = asking();
  const asked = /** @type {Envelope} */ (service.frames.at(-1));
  const state = play(start, service.frames);
  assert.equal(play(state, [{ ...asked, seq: state.last_seq + 1 }]).approvals.length, 1);
  const stray = play(start, [/** @type {any} */ ({ seq: 1, run_id: 'r9', at: at(1), ...answer })]);
  assert.deepEqual(stray.approvals, []);
});

test('a page that comes while it is asked has the question from the snapshot', () => {
  const service = asking();
  /** @type {PendingApproval} */
  const pending = { approval_id: 'q', run_id: 'r1', call_id: 'k', tool: 'terminal', request: /** @type {any} */ (REQUEST), requested_at: at(1), expires_at: EXPIRES };
  /** @type {SessionSnapshot} */
  const snapshot = {
    ...service.snapshot, mode: 'ask', approvals: [pending], state: 'running', run: { run_id: 'r1', message_id: 'm', model: 'x', started_at: at(0), waiting: null },
    messages: [messageOf({ id: 'a', role: 'assistant', content: 'I run them.', tool_calls: [{ id: 'k', name: 'terminal', arguments: {} }] })],
  };
  let state = fromSnapshot(snapshot);
  assert.equal(state.mode, 'ask');
  assert.equal(approvalOf(state.approvals, 'k')?.decision, null);
  service.tell(answer);
  state = play(state, [service.frames[service.frames.length - 1]]);
  assert.equal(approvalOf(state.approvals, 'k')?.decision, 'once');
});

test('a question of a subagent is asked as any other, and its answer clears its wait', () => {
  const service = new FakeService();
  service.tell({ type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' });
  service.tell({ type: 'tool_started', tool: 'spawn_agent', args: { task: 'test it' }, is_subagent: false, call_id: 'ks', message_id: 'a' });
  const child = { parent_run_id: 'r1' };
  service.tell({ type: 'subagent_started', call_id: 'ks', profile_id: 'p', task: 'test it', ...child }, 'rc');
  service.tell({ type: 'tool_started', tool: 'terminal', args: {}, is_subagent: true, call_id: 'k', message_id: 'c', ...child }, 'rc');
  service.tell({ type: 'approval_requested', approval_id: 'q', call_id: 'k', tool: 'terminal', request: REQUEST, expires_at: EXPIRES, is_subagent: true, ...child }, 'rc');
  service.tell({ type: 'run_waiting', reason: 'approval', detail: '', ...child }, 'rc');
  let state = play(start, service.frames);
  const [asked] = state.approvals.filter(isOpen);
  assert.equal(asked.approval_id, 'q');
  assert.equal(askedBy(state, asked)?.task, 'test it');
  assert.equal(state.children.rc.waiting?.reason, 'approval');
  service.tell({ ...answer, decision: 'deny', is_subagent: true, ...child }, 'rc');
  state = play(start, service.frames);
  assert.equal(state.approvals.some(isOpen), false);
  assert.equal(state.children.rc.waiting, null);
});

test('the end of a run ends its questions; an interruption leaves them', () => {
  for (const [event, left] of /** @type {const} */ ([[{ type: 'stream_stopped' }, 0], [{ type: 'error', message: 'x', recoverable: false, code: 'internal' }, 0], [{ type: 'run_interrupted', reason: 'restart', can_continue: true }, 1]])) {
    const service = asking();
    service.tell(event);
    assert.equal(play(start, service.frames).approvals.length, left, event.type);
  }
  const answered = asking();
  answered.tell(begin);
  answered.tell(answer);
  answered.tell({ type: 'stream_stopped' });
  assert.equal(play(start, answered.frames).approvals.length, 1, 'what was answered stays told');
});

test('the wait for consent ends with the answer', () => {
  const service = asking();
  service.tell({ type: 'run_waiting', reason: 'approval', detail: '' });
  assert.equal(play(start, service.frames).waiting?.reason, 'approval');
  service.tell(answer);
  assert.equal(play(start, service.frames).waiting, null);
});

test('questions of other conversations are counted too', () => {
  const list = /** @type {any[]} */ ([{ id: 's1', asks: 1 }, { id: 's2', asks: 2 }, { id: 's3' }]);
  assert.equal(countAsked('s1', list, 0), 2, 'the open one knows itself');
  assert.equal(countAsked(null, list, 0), 3);
});

test('the chosen model is the newest that was told, and a profile that a person chose stands where they did', () => {
  const service = new FakeService();
  assert.equal(start.chosen_model, null);
  assert.equal(fromSnapshot({ ...service.snapshot, model: 'big' }).chosen_model, 'big');
  service.tell({ type: 'model_changed', model: 'small' });
  assert.equal(play(start, service.frames).chosen_model, 'small');
  service.tell({ type: 'model_changed', model: null });
  for (const profile_id of ['one', 'two']) service.tell({ type: 'profile_switched', profile_id, profile_name: profile_id, run_id: undefined });
  const state = play(start, service.frames);
  assert.deepEqual([state.chosen_model, state.profile_id], [null, 'two']);
  assert.deepEqual(state.entries.map((entry) => entry.kind === 'switch' && entry.profile_name), ['one', 'two']);
});

test('the mode is the newest that was told', () => {
  const service = new FakeService();
  assert.equal(start.mode, 'edits');
  service.tell({ type: 'mode_changed', mode: 'auto' });
  assert.equal(play(start, service.frames).mode, 'auto');
});

test('no more time is left to answer than there was at first, whatever the clocks say', () => {
  const asked = { .../** @type {any} */ ({}), requested_at: at(0), expires_at: at(60_000) };
  const first = Date.parse(at(0));
  assert.equal(remainingMs(asked, first + 10_000), 50_000);
  assert.equal(remainingMs(asked, first - 3_600_000), 60_000);
  assert.equal(remainingMs(asked, first + 99_000), 0);
});

test('live output is kept by its end, and pieces still find their place', () => {
  let { output, output_from } = grown('', 0, 'first\n');
  const line = `${'x'.repeat(99)}\n`;
  for (let i = 0; i < 5_000; i += 1) ({ output, output_from } = grown(output, output_from, line));
  assert.ok(output.length <= KEPT_CHARS * 1.25 && output.length >= KEPT_CHARS * 0.9);
  assert.equal(output_from + output.length, 6 + 5_000 * 100);
  assert.ok(output.startsWith('xxx') && output.length % 100 === 0, 'cut where a line begins');

  const service = new FakeService();
  service.tell({ type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' });
  service.tell(begin);
  const running = play(start, service.frames);
  /** @type {(offset: number, delta: string) => Envelope} */
  const piece = (offset, delta) => ({ run_id: 'r1', at: at(0), type: 'tool_output', call_id: 'k', part_id: 'k.output', offset, delta });
  const much = 'y'.repeat(KEPT_CHARS * 2);
  const state = play(running, [piece(0, much), piece(much.length, 'end'), piece(0, `${much}end`), piece(much.length + 1, 'nd!')]);
  const entry = state.entries.at(-1);
  assert.ok(entry?.kind === 'assistant');
  const [call] = entry.calls;
  assert.ok(call.output.endsWith('yend!'));
  assert.equal(call.output_from + call.output.length, much.length + 4);
  assert.equal(applyFrame(state, piece(much.length + 9, 'z')).hole, true);
});

test('what a terminal would act upon is carried out or taken out', () => {
  assert.equal(settled('plain\ttext\n'), 'plain\ttext\n');
  assert.equal(plain(' 10%\r 50%\r100% done\n'), '100% done\n');
  assert.equal(plain('abcdef\rxy'), 'xycdef');
  assert.equal(plain('working\r\u001b[Kdone'), 'done');
  assert.equal(plain('line\r\nnext\r\n'), 'line\nnext\n');
  assert.equal(plain('ab\bc'), 'ac');
  assert.equal(plain('\u001b]0;title\u0007a\u001b]8;;https://example.org\u001b\\link\u001b]8;;\u001b\\b'), 'alinkb');
  assert.equal(plain('\u001b[2J\u001b[1;1Ha\u001b(Bb\u001b[?25lc\u001b[>4md\u0000\u0007'), 'abcd');
  assert.equal(plain('open \u001b[3'), 'open ', 'the beginning of a sequence whose end is not here yet');
  assert.equal(settled('\u001b[31mred\u001b[0m'), '\u001b[31mred\u001b[0m', 'colours stay');
  // Anything at all ends as text without controls.
  let seed = 11;
  for (let round = 0; round < 300; round += 1) {
    let text = '';
    for (let i = 0; i < 40; i += 1) {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      text += ['\u001b', '[', ']', 'P', '\\', '\r', '\b', '3', ';', 'm', 'K', 'x', '\n', '\u009b', '?', '\u0007'][seed % 16];
    }
    assert.doesNotMatch(plain(text).replaceAll('\u001b', ''), /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/);
  }
  assert.deepEqual(tail('a\nb\nc', 2), { text: 'b\nc', hidden: 1 });
});

test('colours become class names, text stays text', () => {
  assert.deepEqual(coloured('\u001b[1;31mred\u001b[0m <b>'), [{ text: 'red', classes: 'ansi-fg-red ansi-bold' }, { text: ' <b>', classes: '' }]);
  assert.deepEqual(coloured('\u001b[38;5;196mx').map(({ classes }) => classes), ['ansi-fg-red']);
  assert.deepEqual(coloured('\u001b[38;2;20;200;60mx').map(({ classes }) => classes), ['ansi-fg-green']);
  assert.deepEqual(coloured('\u001b[48;5;244mx').map(({ classes }) => classes), ['ansi-bg-white']);
  for (const { classes } of coloured('\u001b[38;5;999m\u001b[99mx\u001b[38;2;my')) assert.match(classes, /^(ansi-[a-z-]+ ?)*$/);
});

const DIFF = 'edited `a.md` (1 replacement):\n--- a/a.md\n+++ b/a.md\n@@ -3,3 +3,4 @@ head\n same\n-old\n+new\n+more\n end\n\\ No newline at end of file\nThe file has 9 lines.';

test('a difference is found in a result, with the numbers of its lines', () => {
  const found = findDiff(DIFF);
  assert.ok(found !== null);
  assert.equal(found.before, 'edited `a.md` (1 replacement):');
  assert.equal(found.after, 'The file has 9 lines.');
  assert.deepEqual(found.rows.filter(({ kind }) => kind === 'same' || kind === 'added' || kind === 'removed'), [
    { kind: 'same', text: 'same', before: 3, after: 3 },
    { kind: 'removed', text: 'old', before: 4, after: null },
    { kind: 'added', text: 'new', before: null, after: 4 },
    { kind: 'added', text: 'more', before: null, after: 5 },
    { kind: 'same', text: 'end', before: 5, after: 6 },
  ]);
  assert.deepEqual(counts(found.rows), { added: 2, removed: 1 });
  assert.equal(findDiff('no difference'), null);
  assert.equal(findDiff('talks of @@ -1 +1 @@ in a line'), null);
  const removedRule = findDiff('@@ -1,2 +1 @@\n--- a title\n-x\n+y');
  assert.deepEqual(removedRule?.rows.map(({ kind, text }) => `${kind}:${text}`), ['gap:@@ -1,2 +1 @@', 'removed:-- a title', 'removed:x', 'added:y']);
});

test('nothing of what is consented to stays unseen', () => {
  assert.deepEqual(seen('rm \u202etxt'), [{ text: 'rm ', unseen: false }, { text: 'U+202E', unseen: true }, { text: 'txt', unseen: false }]);
  assert.deepEqual(seen('a\u200bb\rc\u001b[8m').filter(({ unseen }) => unseen).map(({ text }) => text), ['U+200B', '\\r', '\\e']);
  assert.deepEqual(seen('a\tb\nПривіт, 你好 🙂'), [{ text: 'a\tb\nПривіт, 你好 🙂', unseen: false }]);
  assert.deepEqual(seen('x\u{e0041}'), [{ text: 'x', unseen: false }, { text: 'U+E0041', unseen: true }]);
  assert.deepEqual(seen(''), [{ text: '', unseen: false }]);
});

test('the page names the characters that the service names', async () => {
  /** @type {[number, number][]} */
  const known = JSON.parse(await readFile(new URL('unseen.json', import.meta.url), 'utf8'));
  /** @type {[number, number][]} */
  const ranges = [];
  for (let code = 0; code <= 0x10ffff; code += 1) {
    // Half a pair is none of the service's characters.
    if ((code >= 0xd800 && code <= 0xdfff) || !seen(String.fromCodePoint(code))[0].unseen) continue;
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === code - 1) last[1] = code;
    else ranges.push([code, code]);
  }
  assert.deepEqual(ranges, known);
});

test('a message is ready once its pictures are read and its files are there', () => {
  const file = { file_id: 'f', name: 'a.txt', path: 'uploads/f.txt', media_type: 'text/plain', bytes: 3 };
  const [document, picture] = [newAttachment('1', 'a.txt', new Blob(['abc']), false), newAttachment('2', 'b.png', new Blob(['abcd']), true)];
  const all = withList(new Map(), 's', [document, picture]);
  assert.deepEqual(find(all, '2'), { key: 's', item: picture });
  assert.equal(find(withList(all, 's', []), '2'), null);
  assert.equal(isReady([document, picture]), false);
  const list = [{ ...document, state: /** @type {const} */ ('done'), file: /** @type {any} */ (file) }, { ...picture, state: /** @type {const} */ ('done'), image: 'AAAA' }];
  assert.equal(isReady(list), true);
  assert.deepEqual([refs(list), images(list)], [[{ name: 'a.txt', path: 'uploads/f.txt' }], ['AAAA']]);
});

test('what goes with a message outlives a reload, and goes on where it was', () => {
  const kept = { name: 'a.txt', bytes: 3, picture: false, data: new Blob(['abc']), image: null, file: null };
  assert.equal(readAttachment(kept, '1')?.state, 'waiting');
  assert.equal(readAttachment({ ...kept, data: null, file: { path: 'p' } }, '1')?.state, 'done');
  for (const broken of [null, {}, { ...kept, data: null }, { ...kept, data: 'abc' }, { ...kept, name: 3 }]) assert.equal(readAttachment(broken, '1'), null);
});

test('an unsent message keeps its files over a reload', () => {
  const item = { client_id: 'c', content: 'x', images: [], created_ms: 1, refused: null };
  assert.deepEqual(readItem({ ...item, files: [{ name: 'a', path: 'p', more: 1 }, { name: 3 }] }, 2)?.files, [{ name: 'a', path: 'p' }]);
  assert.deepEqual(readItem({ ...item, files: 'x' }, 2)?.files, []);
});

test('files of a message and of a result are told live and by a snapshot alike', () => {
  const file = { file_id: 'f', name: 'chart.png', path: 'p', media_type: 'image/png', bytes: 3, image: true };
  const service = new FakeService();
  service.tell({ type: 'message_accepted', message_id: 'm', queued: false, content: 'look', files: [file] });
  service.tell({ type: 'stream_start', message_id: 'm', model: 'x', profile_id: 'p' });
  service.tell({ ...begin, tool: 'view_image' });
  service.tell({ type: 'tool_call', tool: 'view_image', args: {}, result: 'seen', success: true, is_subagent: false, call_id: 'k', duration_ms: 1, files: [file] });
  const live = play(start, service.frames);
  const loaded = fromSnapshot({
    ...service.snapshot,
    messages: [
      messageOf({ id: 'm', role: 'user', content: 'look', files: [file] }),
      messageOf({ id: 'a', role: 'assistant', tool_calls: [{ id: 'k', name: 'view_image', arguments: {} }] }),
      messageOf({ id: 't', role: 'tool', content: 'seen', tool_call_id: 'k', name: 'view_image', outcome: 'success', files: [file] }),
    ],
  });
  for (const state of [live, loaded]) {
    const [user, assistant] = state.entries;
    assert.ok(user.kind === 'user' && assistant.kind === 'assistant');
    assert.deepEqual([user.files, assistant.calls[0].files], [[file], [file]]);
  }
});

/** @param {string} name @param {string} result @param {'success' | 'failed'} [state] */
const call = (name, result, state = 'success') => ({ ...newCall('k', name, {}, state), result });

test('a command that ended badly is not drawn as done', () => {
  const missing = call('terminal', 'sh: nosuch: not found\n[exit code 127 after 0.0 s]');
  assert.deepEqual([howItEnded(missing), shownState(missing, null)], [{ code: '127' }, 'exited']);
  assert.deepEqual(howItEnded(call('terminal', '[ended by signal 9 after 0.1 s; in /tmp]')), { signal: '9' });
  assert.deepEqual(howItEnded(call('ssh', 'box: exit code 3')), { code: '3' });
  for (const good of [call('terminal', '[exit code 7 after 1 s]\n[exit code 0 after 0.1 s]'), call('ssh', 'box: exit code 0; no output'), call('filesystem', '[exit code 1 after 0.1 s]'), call('terminal', '')]) {
    assert.deepEqual([howItEnded(good), shownState(good, null)], [null, 'success']);
  }
});

test('what a person did not allow is no failure, for one who comes later too', async () => {
  const sources = ['domain/consent/mod.rs', 'protocol/approval.rs']
    .map((path) => readFile(new URL(`../../actors/src/${path}`, import.meta.url), 'utf8'));
  const source = (await Promise.all(sources)).join('');
  for (const refusal of REFUSALS) {
    assert.ok(source.includes(`"${refusal}`), `the service does not say: ${refusal}`);
    assert.equal(shownState(call('terminal', `${refusal}rm -r x`, 'failed'), null), 'denied');
  }
  const asked = /** @type {any} */ ({ decision: 'deny' });
  assert.equal(shownState(call('terminal', 'no', 'failed'), asked), 'denied');
  assert.equal(shownState(call('terminal', 'no', 'failed'), { ...asked, decision: 'never' }), 'denied');
  assert.equal(shownState(call('terminal', 'no', 'failed'), { ...asked, decision: 'once' }), 'failed');
  assert.equal(shownState({ ...newCall('k', 'terminal', {}, 'running') }, { ...asked, decision: null }), 'asked');
});
