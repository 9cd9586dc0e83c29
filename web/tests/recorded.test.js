// What the real service told of a conversation (`npm run record` made the file): however a tab's line was cut
// and came back meanwhile, it shows the same.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { isOpen } from '../state/approvals.js';
import { fromSnapshot } from '../state/model.js';
import { applyFrame } from '../state/session.js';
import { conversationText } from '../state/text.js';
import { missed } from './fake_service.js';
import { essence } from './play.js';

/** @import { SessionState } from '../state/types.js' */
/** @import { Envelope, SessionSnapshot } from '../state/wire.js' */

/**
 * What the service held and told when so many frames had been told: to a tab that comes with the snapshot, and to those
 * that come back.
 * @typedef {{ told: number, snapshot: SessionSnapshot, replays: { after: number, frames: (number | Envelope)[] }[] }} Moment
 */

const CUTS = 400;
/** @type {{ start: SessionSnapshot, frames: Envelope[], moments: Moment[] }} */
const { start, frames, moments } = JSON.parse(await readFile(new URL('fixtures/recorded.json', import.meta.url), 'utf8'));

/** Events that were told before stand by their numbers. @param {(number | Envelope)[]} replay @returns {Envelope[]} */
const whole = (replay) => replay.map((frame) => (typeof frame === 'number' ? frames.find(({ seq }) => seq === frame) ?? assert.fail(`no ${frame}`) : frame));

/** What a tab is told that comes with the newest there is. @param {Moment} moment */
const openParts = ({ snapshot, replays }) => whole(replays.find(({ after }) => after === snapshot.last_seq)?.frames ?? assert.fail('no such tab'));

/** A tab of the page, and how many frames had been told when it last heard anything. */
class Tab {
  told = 0;
  /** @type {SessionState} */
  state;

  /** @param {Moment | null} moment when it was opened; null for the beginning */
  constructor(moment) {
    this.state = fromSnapshot(moment?.snapshot ?? start);
    if (moment !== null) this.load(moment);
  }

  /** @param {Moment} moment */
  load(moment) {
    this.state = fromSnapshot(moment.snapshot);
    this.told = moment.told;
    for (const frame of openParts(moment)) this.#apply(frame);
  }

  /** @param {Envelope} frame @returns {boolean} whether the conversation is another one now: it is loaded anew */
  #apply(frame) {
    const step = applyFrame(this.state, frame);
    assert.equal(step.hole, false, `a hole at ${JSON.stringify(frame)}`);
    this.state = step.state;
    return step.reload;
  }

  /** @param {Envelope[]} told @param {number} until so many are told after that */
  #hear(told, until) {
    for (const frame of told) {
      if (!this.#apply(frame)) continue;
      const at = frames.findIndex(({ seq }) => seq === frame.seq);
      this.load(moments.find((moment) => moment.told > at) ?? assert.fail('no moment'));
      return this.watch(Math.max(until, this.told));
    }
    this.told = Math.max(this.told, until);
    return this;
  }

  /** Its line holds. @param {number} [until] @returns {Tab} */
  watch(until = frames.length) {
    return this.#hear(frames.slice(this.told, until), until);
  }

  /** Its line was cut, and it is told what it missed, as the service joined it. @param {number} until @param {Envelope[]} [replay] */
  comeBack(until, replay = missed(frames, until, this.state.last_seq)) {
    return this.#hear(replay, until);
  }
}

/** Times are those of a tab: to one that comes later a text is as old as its last piece. @type {(key: string, value: unknown) => unknown} */
const timeless = (key, value) => {
  const is_time = /^(created_at|started_at|requested_at|thinking_started_at|thinking_ms|since|output)$/.test(key);
  return is_time || (key === 'is_subagent' && value === false) ? undefined : value;
};

/** What a tab shows, but for that. @param {SessionState} state */
const seen = (state) => JSON.parse(JSON.stringify({ ...essence(state), run: state.run && { ...state.run, waiting: null } }, timeless));

/** A call that is asked about is told once it begins; a snapshot has it before. @param {SessionState} state @returns {SessionState} */
function withoutAsked(state) {
  const asked = new Set(state.approvals.filter(isOpen).map(({ call_id }) => call_id));
  const entries = state.entries.map((entry) => (entry.kind === 'assistant' ? { ...entry, calls: entry.calls.filter(({ id }) => !asked.has(id)) } : entry));
  return { ...state, entries: entries.filter((entry) => entry.kind !== 'assistant' || entry.calls.length > 0 || entry.content !== '' || entry.thinking !== '') };
}

/**
 * What any tab shows: what subagents did, what was decided and a summary's words are read by themselves, the list tells the title, and how full
 * the context is is told at a run's end.
 * @param {SessionState} state
 */
const known = (state) => ({
  ...seen({ ...withoutAsked(state), approvals: state.approvals.filter(isOpen) }),
  title: '', children: {}, histories: {}, compression: state.compression?.before ?? null,
  context_tokens: state.run === null ? state.context_tokens : 0,
});
const branched = frames.findIndex(({ type }) => type === 'branch_changed');

/** The same each time. @param {number} seed @returns {(below: number) => number} */
function random(seed) {
  let state = seed;
  return (below) => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9 | 0;
    return (state >>> 0) % below;
  };
}

test('the record has all that a conversation can have', () => {
  const types = new Set(frames.map(({ type }) => type));
  const wanted = [
    'plan_ready', 'todo_updated', 'thinking_delta', 'stream_delta', 'tool_started', 'tool_output', 'subagent_started', 'subagent_finished', 'run_waiting',
    'approval_requested', 'approval_resolved', 'message_steered', 'context_compressed', 'stream_stopped', 'branch_changed', 'stream_end',
  ];
  assert.deepEqual(wanted.filter((type) => !types.has(/** @type {Envelope['type']} */ (type))), []);
  assert.ok(moments.length >= 10);
  const text = conversationText(new Tab(null).watch().state);
  for (const part of ['The site is moved: **three files**', 'Be brief', 'What is left?', 'Nothing is left.']) assert.ok(text.includes(part), part);
});

test('a tab that was there from the beginning and one that comes at any recorded moment show the same, then and at the end', () => {
  const end = new Tab(null).watch();
  for (const moment of moments) {
    const watching = new Tab(null).watch(moment.told);
    const joined = new Tab(moment);
    assert.equal(conversationText(withoutAsked(joined.state)), conversationText(withoutAsked(watching.state)), `${moment.told}`);
    assert.deepEqual(known(joined.state), known(watching.state), `${moment.told}`);
    assert.deepEqual(known(joined.watch().state), known(end.state), `${moment.told}`);
  }
});

test('what the service told a tab that came back makes it the one that never left', () => {
  let tabs = 0;
  for (const { told, replays } of moments) {
    for (const { after, frames: replay } of replays) {
      const numbered = after === start.last_seq ? 0 : frames.findIndex(({ seq }) => seq === after) + 1;
      // It may have heard pieces of text after its last event.
      let heard = numbered;
      for (; heard < told; heard += 1) {
        const tab = new Tab(null).watch(heard);
        if (tab.state.last_seq !== after) break;
        assert.deepEqual(seen(tab.comeBack(told, whole(replay)).state), seen(new Tab(null).watch(told).state), `from ${heard} to ${told}`);
        tabs += 1;
      }
    }
  }
  assert.ok(tabs > moments.length * 3, `${tabs}`);
});

test('a line that is cut anywhere, any number of times, with frames that come twice, changes nothing', () => {
  const before = seen(new Tab(null).watch(branched).state);
  const end = seen(new Tab(null).watch().state);
  for (let seed = 1; seed <= CUTS; seed += 1) {
    const pick = random(seed);
    const tab = new Tab(null);
    for (const [until, expected] of /** @type {const} */ ([[branched, before], [frames.length, end]])) {
      while (tab.told < until) {
        const next = Math.min(until, tab.told + 1 + pick(12));
        const how = pick(3);
        if (how === 0) tab.watch(next);
        else if (how === 1) tab.comeBack(next);
        else tab.watch(next).comeBack(next);
      }
      assert.deepEqual(seen(tab.state), expected, `seed ${seed}, ${until}`);
    }
  }
});

test('a tab that is opened at any moment, and whose line is cut then, ends as every other', () => {
  const end = known(new Tab(null).watch().state);
  for (let seed = 1; seed <= CUTS; seed += 1) {
    const pick = random(seed);
    const tab = new Tab(moments[pick(moments.length)]);
    while (tab.told < frames.length) {
      const next = Math.min(frames.length, tab.told + 1 + pick(20));
      if (pick(2) === 0) tab.watch(next);
      else tab.comeBack(next);
    }
    assert.deepEqual(known(tab.state), end, `seed ${seed}`);
  }
});
