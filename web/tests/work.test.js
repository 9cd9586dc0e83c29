// Plans, subagents, steering, profile switches and compression, as the page keeps them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { childOf, hasChildren, nameOf, numbersOf, reading, unread, withHistory } from '../state/children.js';
import { fromSnapshot } from '../state/model.js';
import { actionsOf, byMilestone, editOf, isAtHand, liveSteps, markOf, standing } from '../state/plan.js';
import { deedOf, deeds, stretches, undone, unmended } from '../state/work.js';
import { applyFrame } from '../state/session.js';
import { conversationText } from '../state/text.js';
import { answers, begins, compressedAt, forkAt, holds } from '../state/turns.js';
import { at, FakeService } from './fake_service.js';
import { logOf, wholeRun } from './whole_run.js';

/** @import { Entry, SessionState, Thread } from '../state/types.js' */
/** @import { Envelope } from '../state/wire.js' */

/** @param {SessionState} state @param {Envelope[]} frames */
function play(state, frames) {
  for (const frame of frames) {
    const step = applyFrame(state, frame);
    assert.equal(step.hole, false, `a hole at ${JSON.stringify(frame)}`);
    state = step.state;
  }
  return state;
}

/** A thread without what only a tab that watched can know. @param {Thread} thread */
const seen = (thread) => thread.entries.map((entry) => (entry.kind === 'assistant'
  ? [entry.id, entry.content, entry.thinking, entry.is_plan, entry.state, entry.calls.map((call) => [call.id, call.name, call.state, call.result])]
  : entry.kind === 'user' ? [entry.id, entry.content, entry.steered] : [entry.kind, entry.id]));

/** @param {SessionState} state */
const tree = (state) => Object.values(state.children)
  .map((child) => ({ run: child.run_id, parent: child.parent_run_id, call: child.call_id, task: child.task, profile: child.profile_id, state: child.state, said: seen(child) }))
  .sort((a, b) => (a.run < b.run ? -1 : 1));

const { frames, moments, snapshot } = wholeRun();
const start = fromSnapshot(moments[0].snapshot);
const live = play(start, frames);

test('a whole run, live and reloaded, is the same conversation', () => {
  const reloaded = fromSnapshot(snapshot);
  assert.deepEqual(seen(live), seen(reloaded));
  assert.equal(conversationText(live), conversationText(reloaded));
  assert.deepEqual(
    [live.plan, live.todo, live.profile_id, live.queue, live.compression?.before, live.context_tokens],
    [reloaded.plan, reloaded.todo, reloaded.profile_id, reloaded.queue, reloaded.compression?.before, reloaded.context_tokens],
  );
  assert.deepEqual(live.entries.map(({ id }) => id), ['m1', 'p1', 'a1', 'm2', 'a2', 'switch-a2', 'a3']);
});

test('subagents are a tree, each with all that it did', () => {
  assert.deepEqual(tree(live).map(({ run, parent, call, state }) => [run, parent, call, state]), [
    ['ra', 'r1', 'ka', 'limited'], ['rb', 'r1', 'kb', 'completed'], ['rc', 'ra', 'kd', 'completed'],
  ]);
  const first = childOf(live, 'ka');
  assert.ok(first !== null);
  assert.deepEqual([first.task, first.profile_id], ['count the files', 'secretary']);
  assert.deepEqual(seen(first), [
    ['ca1', '', 'Let me count.', false, 'complete', [['kc', 'filesystem', 'success', 'a\nb']]],
    ['ca2', '', '', false, 'complete', [['kd', 'spawn_agent', 'success', 'Deep down.']]],
  ]);
  assert.deepEqual(seen(/** @type {Thread} */ (childOf(live, 'kd'))), [['cc1', 'Deep down.', '', false, 'complete', []]]);
  // Their words are theirs: the conversation has none of them.
  assert.equal(conversationText(live).includes('Let me count'), false);
  const noted = frames.findIndex((frame) => frame.type === 'todo_updated' && frame.parent_run_id !== undefined);
  assert.equal(play(start, frames.slice(0, noted + 1)).todo[1].status, 'in_progress', 'the list of steps is shared');
  const waits = frames.findIndex((frame) => frame.type === 'run_waiting');
  const waiting = play(start, frames.slice(0, waits + 1));
  assert.equal(childOf(waiting, 'kb')?.waiting?.reason, 'lane');
  assert.equal(waiting.waiting, null);
});

test('a tab that loads the page at any moment of the run sees the same tree', () => {
  assert.ok(moments.length > 25);
  for (const { told, snapshot: then, open } of moments) {
    let joined = fromSnapshot(then);
    const watching = play(start, frames.slice(0, told));
    if (joined.run !== null && hasChildren(joined)) {
      // The log may have gone on meanwhile; the socket tells that again.
      for (const ahead of [0, 5, frames.length]) {
        const read = withHistory(joined, 'r1', logOf(frames.slice(0, told + ahead)));
        assert.deepEqual(tree(play(read, [...open, ...frames.slice(told)])), tree(live), `at ${told}, ${ahead} ahead`);
      }
      joined = withHistory(joined, 'r1', logOf(frames.slice(0, told)));
      assert.deepEqual(tree(play(joined, open)), tree(watching), `at ${told}`);
    }
    const whole = play(joined, [...open, ...frames.slice(told)]);
    assert.deepEqual(seen(whole), seen(live), `at ${told}`);
  }
});

test('what subagents do while their past is read is neither lost nor told twice', () => {
  for (const { told, snapshot: then, open } of moments) {
    const joined = fromSnapshot(then);
    if (joined.run === null || !hasChildren(joined)) continue;
    for (const meanwhile of [0, 3, 12, frames.length]) {
      for (const ahead of [0, 7, frames.length]) {
        const waits = play(reading(joined, 'r1'), [...open, ...frames.slice(told, told + meanwhile)]);
        const read = withHistory(waits, 'r1', logOf(frames.slice(0, told + ahead)));
        const whole = play(read, frames.slice(told + meanwhile));
        assert.deepEqual(tree(whole), tree(live), `at ${told}, ${meanwhile} meanwhile, ${ahead} ahead`);
        assert.equal(whole.held, null);
      }
    }
    const failed = unread(reading(joined, 'r1'), 'r1', { code: 'unreachable', message: '' });
    assert.deepEqual([failed.held, failed.histories.r1.state], [null, 'failed']);
  }
});

test('a cut at any frame changes nothing in the tree', () => {
  for (let cut = 0; cut < frames.length; cut += 1) {
    const state = play(start, frames.slice(0, cut));
    const from = frames.findIndex((frame) => frame.seq === state.last_seq) + 1;
    const back = play(state, logOf(frames.slice(from)));
    assert.deepEqual(tree(back), tree(live), `cut at ${cut}`);
    assert.deepEqual(seen(back), seen(live), `cut at ${cut}`);
  }
});

test('every frame told twice is told once, in subagents too', () => {
  assert.deepEqual(play(start, frames.flatMap((frame) => [frame, frame])), live);
});

test('the subagents of a run that is over are read from its log', () => {
  const reloaded = fromSnapshot(snapshot);
  assert.deepEqual(reloaded.children, {});
  assert.equal(hasChildren(reloaded), false);
  const read = withHistory(reloaded, 'r1', logOf(frames));
  assert.deepEqual(tree(read), tree(live));
  assert.deepEqual(read.histories, { r1: { state: 'ready' } });
  assert.deepEqual(withHistory(read, 'r1', logOf(frames)).children, read.children);
  // One that was cut off with the service does not run for ever.
  const cut = frames.findIndex((frame) => frame.type === 'subagent_finished');
  const torn = withHistory(reloaded, 'r1', logOf(frames.slice(0, cut)));
  assert.equal(childOf(torn, 'ka')?.state, 'limited');
  assert.ok(tree(torn).every(({ state }) => state !== 'running'));
});

test('a run that ends ends its subagents', () => {
  const started = frames.findIndex((frame) => frame.type === 'subagent_finished');
  const going = play(start, frames.slice(0, started));
  assert.equal(childOf(going, 'kb')?.state, 'running');
  const last_seq = going.last_seq + 1;
  const stopped = play(going, [{ seq: last_seq, run_id: 'r1', at: at(9), type: 'stream_stopped' }]);
  const child = childOf(stopped, 'kb');
  assert.equal(child?.state, 'limited');
  assert.ok(child?.entries.every((entry) => entry.kind !== 'assistant' || !entry.open));
});

test('a piece of a subagent that is missing is a hole; one whose start nobody saw is let be', () => {
  const started = frames.findIndex((frame) => frame.type === 'stream_delta');
  const going = play(start, frames.slice(0, started));
  /** @type {Envelope} */
  const ahead = { run_id: 'rb', parent_run_id: 'r1', at: at(0), type: 'stream_delta', part_id: 'cb1.text', offset: 7, delta: 'x', is_subagent: true };
  assert.equal(applyFrame(going, ahead).hole, true);
  const unknown = applyFrame(going, { ...ahead, run_id: 'rz' });
  assert.deepEqual([unknown.hole, unknown.state], [false, going]);
});

test('an error and a plan of a subagent are its own', () => {
  const service = new FakeService();
  service.tell({ type: 'subagent_started', parent_run_id: 'r1', call_id: 'k', profile_id: 'p', task: 't' }, 'rx');
  service.tell({ type: 'plan_ready', parent_run_id: 'r1', plan: '1. a', message_id: 'px', steps: [], is_subagent: true }, 'rx');
  service.tell({ type: 'error', parent_run_id: 'r1', message: 'gone', recoverable: false, code: 'backend_error' }, 'rx');
  const state = play(start, service.frames);
  assert.deepEqual([state.plan, state.entries, state.ending], [null, [], null]);
  assert.deepEqual(childOf(state, 'k')?.entries.map(({ kind }) => kind), ['assistant', 'notice']);
});

test('the plan is a live list whose steps stand as the todo items do', () => {
  assert.ok(live.plan !== null);
  const steps = liveSteps(live.plan, live.todo);
  assert.deepEqual(steps.map(({ number, status, note }) => [number, status, note]), [[1, 'done', undefined], [2, 'failed', 'no log there'], [3, 'pending', undefined]]);
  assert.deepEqual(byMilestone(steps).map(({ milestone, steps: own }) => [milestone, own.length]), [['First', 2], ['Then', 1]]);
  assert.deepEqual(liveSteps(live.plan, []).map(({ status }) => status), ['pending', 'pending', 'pending']);
  const more = liveSteps(live.plan, [...live.todo, { id: 9, text: 'one more', status: 'done' }]);
  assert.deepEqual([more.length, more[3]], [4, { number: 9, text: 'one more', executor: 'self', status: 'done', milestone: 'Then' }]);
  assert.equal(isAtHand(live.plan, live.entries), true);
  const asked = { kind: /** @type {const} */ ('user'), id: 'u9', content: '', images: [], files: [], client_id: null, created_at: '' };
  assert.equal(isAtHand(live.plan, [...live.entries, { ...asked, steered: true }]), true);
  assert.equal(isAtHand(live.plan, [...live.entries, { ...asked, steered: false }]), false);
  assert.equal(isAtHand(null, live.entries), false);
});

test('the list of steps has the order, the words and the marks that its user gave it', () => {
  assert.ok(live.plan !== null);
  const [one, two, three] = live.todo;
  const edited = (/** @type {NonNullable<typeof one.edited>['how']} */ how) => ({ how, at: '2026-11-01T00:00:00Z' });
  const steps = liveSteps(live.plan, [three, { id: 4, text: 'mine', status: 'pending', edited: edited('added') }, { ...one, status: 'skipped', edited: edited('skipped') }, { ...two, text: 'other words', edited: edited('rewritten') }]);
  assert.deepEqual(steps.map(({ number }) => number), [3, 4, 1, 2]);
  assert.deepEqual(steps.map(markOf), [null, 'added', 'skipped', 'rewritten']);
  assert.deepEqual([steps[3].text, steps[1].milestone], ['other words', 'Then']);
  assert.equal(liveSteps(live.plan, [one, { ...three, edited: edited('moved') }])[2].milestone, 'First', 'what was moved stands where it is');
  assert.equal(markOf({ status: 'pending', held: true, edited: edited('added') }), 'held');
  assert.equal(markOf({ status: 'done', edited: edited('skipped') }), null);
  assert.deepEqual(liveSteps(live.plan, [three]).map(({ number, status }) => [number, status]), [[1, 'pending'], [2, 'pending'], [3, 'pending']]);
});

test('no heading of a plan stands there twice, whatever was moved', () => {
  const steps = [1, 2, 3, 4].map((number) => ({ number, text: `${number}`, executor: /** @type {const} */ ('self'), milestone: number < 3 ? 'First' : 'Then' }));
  const plan = { run_id: 'r', message_id: 'm', text: '', steps };
  /** @param {string[]} order numbers, with what its user did to it */
  const headings = (...order) => byMilestone(liveSteps(plan, order.map((item) => {
    const [id, how] = item.split(' ');
    return { id: Number(id), text: id, status: /** @type {const} */ ('pending'), ...(how === undefined ? {} : { edited: { how: /** @type {any} */ (how), at: '' } }) };
  }))).map(({ milestone, steps: own }) => `${milestone}: ${own.map(({ number }) => number)}`);
  assert.deepEqual(headings('3 moved', '1', '2', '4'), ['First: 3,1,2', 'Then: 4']);
  // What was reworded says no more that it was moved.
  assert.deepEqual(headings('1', '3 rewritten', '2', '4'), ['First: 1,3,2', 'Then: 4']);
  assert.deepEqual(headings('4 skipped', '1', '2', '3'), ['First: 4,1,2', 'Then: 3']);
  assert.deepEqual(headings('2', '3', '4', '1 restored'), ['First: 2', 'Then: 3,4,1']);
  assert.deepEqual(headings('1', '2 rewritten', '3', '4 skipped'), ['First: 1,2', 'Then: 3,4'], 'what was not moved stays under its own');
  assert.deepEqual(headings('9 added', '1', '2', '3', '4'), ['First: 9,1,2', 'Then: 3,4']);
});

test('a step that a full list let go of cannot be changed', () => {
  assert.ok(live.plan !== null);
  const [one, two] = liveSteps(live.plan, live.todo.slice(1));
  assert.deepEqual([one.number, actionsOf(one)], [1, []]);
  assert.notDeepEqual(actionsOf({ ...two, status: 'pending' }), []);
});

test('what a press on a step is about changes with its words, its state and its place', () => {
  assert.ok(live.plan !== null);
  const [step] = liveSteps(live.plan, live.todo);
  const stands = standing(step, live.todo);
  assert.equal(standing({ ...step, note: 'a note' }, live.todo), stands);
  for (const other of [{ ...step, text: 'other' }, { ...step, status: /** @type {const} */ ('skipped') }, { ...step, held: true }]) assert.notEqual(standing(other, live.todo), stands);
  assert.notEqual(standing(step, live.todo.toReversed()), stands);
});

test('what can be done about a step is what the service takes', () => {
  const step = (/** @type {import('../state/wire.js').TodoStatus} */ status, held = false) => actionsOf({ number: 1, text: 'a', executor: 'self', status, held });
  assert.deepEqual(step('pending'), ['skip', 'hold', 'up', 'down', 'rewrite']);
  assert.deepEqual(step('pending', true)[1], 'release');
  assert.ok(!step('in_progress').includes('hold'));
  assert.deepEqual([step('failed'), step('skipped'), step('done')], [['restore', 'skip'], ['restore'], []]);
  const todo = [1, 2, 3].map((id) => ({ id, text: 'a', status: /** @type {const} */ ('pending') }));
  assert.deepEqual(editOf(2, 'hold', todo), { edit: 'hold', id: 2 });
  assert.deepEqual(editOf(2, 'up', todo), { edit: 'move', id: 2, before: 1 });
  assert.deepEqual(editOf(1, 'down', todo), { edit: 'move', id: 1, before: 3 });
  assert.deepEqual(editOf(2, 'down', todo), { edit: 'move', id: 2, before: undefined });
  assert.deepEqual([editOf(1, 'up', todo), editOf(3, 'down', todo), editOf(9, 'up', todo)], [undefined, undefined, undefined]);
});

test('reasoning after a plan belongs to what is done next', () => {
  const service = new FakeService();
  service.tell({ type: 'plan_ready', plan: '1. a', message_id: 'p1', steps: [] });
  service.tell({ type: 'turn_thinking', thinking: 'so I begin', is_subagent: false });
  service.tell({ type: 'tool_started', tool: 't', args: {}, is_subagent: false, call_id: 'k', message_id: 'a1' });
  assert.deepEqual(play(start, service.frames).entries.map((entry) => entry.kind === 'assistant' && entry.thinking), ['', 'so I begin']);
});

test('a newer plan takes the place of the one before', () => {
  const service = new FakeService();
  service.tell({ type: 'plan_ready', plan: '1. a', message_id: 'p1', steps: [{ number: 1, text: 'a', executor: 'self' }] });
  service.tell({ type: 'plan_ready', plan: '1. b', message_id: 'p2', steps: [{ number: 1, text: 'b', executor: 'self' }] }, 'r2');
  const state = play(start, service.frames);
  assert.equal(state.plan?.message_id, 'p2');
  assert.deepEqual(state.entries.map((entry) => entry.kind === 'assistant' && [entry.content, entry.is_plan, entry.open]), [['1. a', true, false], ['1. b', true, false]]);
});

test('a message that is said into a run joins it there', () => {
  const steered = frames.findIndex((frame) => frame.type === 'message_steered');
  const before = play(start, frames.slice(0, steered));
  assert.equal(before.queue.length, 1);
  const after = play(before, [frames[steered]]);
  assert.deepEqual(after.queue, []);
  const entry = after.entries[after.entries.length - 1];
  assert.ok(entry.kind === 'user' && entry.steered && entry.content === 'Hurry' && entry.client_id === 'c2');
  assert.equal(after.run?.run_id, 'r1');
});

test('a branch that is shown instead asks for the session anew', () => {
  const step = applyFrame(live, { seq: live.last_seq + 1, run_id: 'r1', at: at(0), type: 'branch_changed', branch_id: 2 });
  assert.deepEqual([step.reload, step.hole, step.state.last_seq], [true, false, live.last_seq + 1]);
  assert.equal(applyFrame(step.state, { seq: live.last_seq + 1, at: at(0), type: 'branch_changed', branch_id: 2 }).reload, false);
});

test('each answer knows the message that it answers, steered ones left aside', () => {
  assert.deepEqual([...answers(live.entries)], [['a3', 'm1']]);
  const two = [...live.entries, .../** @type {Entry[]} */ ([{ ...live.entries[0], id: 'm3' }, { ...live.entries[6], id: 'a4' }])];
  assert.deepEqual([...answers(two)], [['a3', 'm1'], ['a4', 'm3']]);
  assert.deepEqual([...answers([])], []);
  assert.deepEqual(live.entries.map((_, i) => begins(live.entries, i)), [false, true, false, false, true, false, false]);
});

test('the line of a compression stands where it happened', () => {
  assert.equal(live.entries[compressedAt(live.compression, live.entries)].id, 'm2');
  assert.equal(compressedAt(null, live.entries), -1);
  // Where nothing was kept it stands behind all that there was, and stays there.
  const gone = applyFrame(live, { seq: live.last_seq + 1, at: at(0), type: 'context_compressed', messages_before: 4, messages_after: 1, first_kept: null }).state;
  assert.equal(compressedAt(gone.compression, gone.entries), gone.entries.length);
  assert.equal(compressedAt(gone.compression, [...gone.entries, { ...live.entries[0], id: 'm9' }]), gone.entries.length);
  assert.equal(fromSnapshot(snapshot).compression?.summary, 'It was all done.');
});

test('a fork stands at the message that begins it, folded results too', () => {
  const reloaded = fromSnapshot({ ...snapshot, forks: [{ message_id: 'm1', branch_ids: [1, 2], shown: 1 }, { message_id: 't-kb', branch_ids: [1, 3], shown: 1 }, { message_id: 'a3', branch_ids: [1], shown: 1 }] });
  assert.deepEqual(reloaded.entries.map((entry) => forkAt(reloaded.forks, entry)?.branch_ids ?? null), [[1, 2], null, [1, 3], null, null, null, null]);
  assert.equal(holds(reloaded.entries[2], 't-ka'), true);
});

/** @param {string} id @param {Partial<import('../state/types.js').Call>} call @returns {import('../state/types.js').Call} */
const made = (id, call) => ({ id, name: 'terminal', args: { action: 'run', command: id }, state: 'success', output: '', output_from: 0, result: '', outside: false, files: [], duration_ms: 10, started_at: null, decision: null, result_id: null, ...call });
/** @param {string} id @param {import('../state/types.js').Call[]} calls @param {string} [content] @returns {import('../state/types.js').Entry} */
const said = (id, calls, content = '') => ({ kind: 'assistant', id, run_id: 'r', content, thinking: '', thinking_started_at: null, thinking_ms: 5, thinking_open: false, open: false, calls, state: 'complete', is_plan: false, created_at: '' });

test('calls without a word between them stand together', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((id) => made(id, {}));
  const entries = [said('1', [a]), said('2', [b]), said('3', [c], 'Words.\nAnd more.'), said('4', [d]), said('5', [], 'The end.')];
  const found = stretches(entries, true, new Map());
  assert.deepEqual([...found].map(([id, stretch]) => [id, stretch.id, stretch.calls.length, stretch.ms, stretch.live]),
    [['1', '1', 2, 30, false], ['2', '1', 2, 30, false], ['3', '3', 2, 25, false], ['4', '3', 2, 25, false]]);
  assert.equal(stretches(entries, true, found).get('1'), found.get('1'), 'what is the same is not drawn again');
  assert.equal(stretches([...entries, said('6', [a]), said('7', [b])], true, found).get('7')?.live, true);
  assert.equal(stretches([said('1', [a])], true, new Map()).size, 0, 'one call stands for itself');
  assert.equal(stretches([said('1', [a, made('t', { name: 'todo' }), made('s', { name: 'spawn_agent' })])], true, new Map()).size, 0);
});

test('words in passing go with the work of their run once its answer stands', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((id) => made(id, {}));
  const agent = made('s', { name: 'spawn_agent' });
  const entries = [said('1', [a], 'I look first.'), said('2', [b]), said('3', [c], 'Then I write.')];
  const ids = (/** @type {import('../state/types.js').Entry[]} */ list, running = false) => [...stretches(list, running, new Map())].map(([id, stretch]) => [id, stretch.id]);
  assert.deepEqual(ids(entries, true), [['1', '1'], ['2', '1']], 'while it goes on every word counts');
  assert.deepEqual(ids(entries), [['1', '1'], ['2', '1']], 'and where nothing was answered');
  const whole = [...entries, said('4', [], 'Both are done.')];
  assert.deepEqual(ids(whole), [['1', '1'], ['2', '1'], ['3', '1']]);
  const [stretch] = stretches(whole, false, new Map()).values();
  assert.deepEqual([stretch.calls, stretch.asides], [[a, b, c], ['1', '3']]);
  assert.equal(stretches(whole, false, new Map([['1', stretch]])).get('1'), stretch, 'what is the same is not drawn again');
  const answering = { ...said('4', [], 'Both'), open: true };
  assert.deepEqual(ids([...entries, /** @type {any} */ (answering)], true), [['1', '1'], ['2', '1']]);
  const others = /** @type {any} */ ({ ...said('4', [], 'Of another run.'), run_id: 'other' });
  assert.deepEqual(ids([...entries, others]), [['1', '1'], ['2', '1']]);
  for (const apart of [said('3', [c, d], 'x'.repeat(201)), said('3', [c, d, agent], 'They look.')]) {
    assert.deepEqual(ids([...entries.slice(0, 2), apart, said('4', [], 'Done.')]), [['1', '1'], ['2', '1'], ['3', '3']]);
  }
});

test('what was done is told in a few words', () => {
  const file = (/** @type {string} */ action, /** @type {string} */ path, more = {}) => made(path, { name: 'filesystem', args: { action, path, ...more } });
  assert.deepEqual(deeds([file('write', 'a/b.md'), file('edit', 'a/b.md'), file('edit', './c.md'), file('list', ''), made('x', { state: 'failed' })]),
    [{ verb: 'write', whats: ['b.md'] }, { verb: 'edit', whats: ['b.md', 'c.md'] }, { verb: 'look', whats: [''] }]);
  assert.deepEqual(deedOf(file('move', 'a/b.md', { to: 'd/e.md' })), { verb: 'move', what: 'b.md → e.md' });
  assert.deepEqual(deedOf(made('ls\nrm', { name: 'ssh', args: { host: 'nas', command: 'ls\nrm' } })), { verb: 'run', what: 'nas: ls' });
  assert.deepEqual(deedOf(made('w', { name: 'web_fetch', args: { url: 'https://www.example.org/' } })), { verb: 'open', what: 'example.org' });
  for (const args of [null, 'text', [], { action: 'fly' }, { action: 7, command: {} }]) {
    for (const name of ['filesystem', 'terminal', 'web_search', 'weather']) assert.deepEqual(deedOf(made('n', { name, args })), { verb: 'use', what: name });
  }
});

test('a failure that none of the same tool made up for is left', () => {
  const [bad, worse] = [made('a', { state: 'failed' }), made('b', { result: '[exit code 3 after 1 ms' })];
  assert.deepEqual(unmended([bad, made('c', {}), worse], []), [worse]);
  assert.deepEqual(unmended([bad, made('c', { name: 'filesystem' })], []), [bad]);
});

test('what was not allowed is no failure, and a command that did not end well did nothing', () => {
  const exited = made('make', { result: '[exit code 127 after 1 ms' });
  const denied = made('rm', { state: 'failed', result: 'the user did not allow this: rm' });
  const calls = [made('ls', {}), exited, denied, made('cat', { state: 'failed', result: 'no such file' })];
  assert.deepEqual(undone(calls, []), { failed: 2, denied: 1 });
  assert.deepEqual(deeds(calls), [{ verb: 'run', whats: ['ls'] }]);
});

test('a subagent is called by how its task begins', () => {
  assert.equal(nameOf('Count the pens. Leave none out.'), 'Count the pens.');
  assert.equal(nameOf('  Count the pens\nLeave none out.'), 'Count the pens');
  assert.equal(nameOf('Read version 2.1 of it'), 'Read version 2.1 of it', 'a dot within a word ends nothing');
  assert.equal(nameOf('Look through all the letters of the last year and find the one about the roof'), 'Look through all the letters of the last year and find the…');
  assert.equal(nameOf('я'.repeat(100)), `${'я'.repeat(60)}…`);
  assert.equal(nameOf(''), '');
});

test('subagents that are called the same are numbered, and those with another profile are not', () => {
  const made = (/** @type {string} */ id, /** @type {string} */ task, profile_id = 'secretary') => ({ id, args: { task, profile_id } });
  const numbers = numbersOf([made('a', 'Count.'), made('b', 'Read.'), made('c', 'Count. Again.'), made('d', 'Count.', 'server_admin')]);
  assert.deepEqual([...numbers], [['a', 1], ['c', 2]]);
  assert.deepEqual([...numbersOf([{ id: 'x', args: null }])], []);
});
