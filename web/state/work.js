// What a run did between its words, as a person would tell it.

/** @import { Approval } from './approvals.js' */
/** @import { AssistantEntry, Call, Entry } from './types.js' */

import { approvalOf } from './approvals.js';
import { howItEnded, shownState } from './outcome.js';

/**
 * Work that stands together: calls without a word between them. Once the answer stands, words in
 * passing ("Then I write.") go with the work, so that a run has one line of it.
 * @typedef {object} Stretch
 * @property {string} id of the entry that it begins in
 * @property {Call[]} calls
 * @property {string[]} asides the entries whose words go with it
 * @property {number} ms how long they and the reasoning between them took, as far as that is known
 * @property {boolean} live whether more of it may come
 */
/**
 * @typedef {'look' | 'read' | 'write' | 'edit' | 'find' | 'move' | 'delete' | 'run' | 'search' |
 *  'open' | 'view' | 'remember' | 'recall' | 'forget' | 'note' | 'skill' | 'use'} Verb
 */
/**
 * What a call does, and to what; '' where that is all of the workspace.
 * @typedef {{ verb: Verb, what: string }} Deed
 */

const AGENT = 'spawn_agent';
const STEPS = 'todo';
/** Words that are longer, or more than a line, are no aside. */
const ASIDE_CHARS = 200;

/** What is done with files, by the action. @type {Record<string, Verb>} */
const FILES = {
  list: 'look', read: 'read', write: 'write', edit: 'edit', search_names: 'find', search_content: 'find',
  move: 'move', delete: 'delete',
};
/** Of tools with one thing to do: that, and the argument that says to what. @type {Record<string, [Verb, string]>} */
const TOOLS = {
  web_search: ['search', 'query'], web_fetch: ['open', 'url'], view_image: ['view', 'path'],
  scratchpad: ['note', 'section'], skill: ['skill', 'name'],
  memory_save: ['remember', 'value'], memory_search: ['recall', 'query'], memory_forget: ['forget', 'key'],
};

/** Whether the list of steps shows what came of it. @param {Pick<Call, 'name' | 'state'>} call */
export const isInSteps = ({ name, state }) => name === STEPS && (state === 'running' || state === 'success');

/** Whether it starts a subagent. @param {Pick<Call, 'name'>} call */
export const isSubagent = ({ name }) => name === AGENT;

/** Whether it is one that work is folded with: a subagent stands for itself. @param {Call} call */
export const isFolded = (call) => !isSubagent(call) && !isInSteps(call);

/**
 * The entries that say something in passing, on the way to their run's answer.
 * @param {Entry[]} entries
 */
function asidesIn(entries) {
  /** @type {Set<string>} */
  const found = new Set();
  /** @type {string | null} */
  let answered = null;
  for (const entry of [...entries].reverse()) {
    if (entry.kind !== 'assistant' || entry.is_plan || entry.content === '') continue;
    if (entry.calls.length === 0) answered = entry.open ? null : entry.run_id;
    else if (answered !== null && entry.run_id === answered && isAside(entry)) found.add(entry.id);
  }
  return found;
}

/** Words before a subagent stay, as it does. @param {Pick<AssistantEntry, 'content' | 'calls'>} entry */
const isAside = ({ content, calls }) => content.length <= ASIDE_CHARS && !content.trim().includes('\n')
  && !calls.some(isSubagent);

/**
 * The work of entries that has more than one call.
 * @param {Entry[]} entries
 * @param {boolean} running
 * @param {ReadonlyMap<string, Stretch>} before what was found in them before: what is the same stays the same object
 * @returns {Map<string, Stretch>} by the ids of the entries that it is in
 */
export function stretches(entries, running, before) {
  /** @type {Map<string, Stretch>} */
  const found = new Map();
  const passing = asidesIn(entries);
  const begin = () => ({
    calls: /** @type {Call[]} */ ([]), ids: /** @type {string[]} */ ([]), asides: /** @type {string[]} */ ([]), ms: 0,
  });
  let open = begin();
  const close = (/** @type {boolean} */ live) => {
    const { calls, ids, asides, ms } = open;
    open = begin();
    if (calls.length < 2) return;
    const [id] = ids;
    const old = before.get(id);
    const is_same = old !== undefined && old.live === live && old.ms === ms
      && isEqual(old.calls, calls) && isEqual(old.asides, asides);
    const stretch = is_same ? old : { id, calls, asides, ms, live };
    for (const part of ids) found.set(part, stretch);
  };
  for (const entry of entries) {
    const is_aside = passing.has(entry.id);
    if (entry.kind !== 'assistant' || entry.is_plan || (entry.content !== '' && !is_aside)) close(false);
    if (entry.kind !== 'assistant') continue;
    const calls = entry.calls.filter(isFolded);
    if (calls.length === 0 && !is_aside) continue;
    open.ids.push(entry.id);
    open.calls.push(...calls);
    if (is_aside) open.asides.push(entry.id);
    const took_ms = entry.content === '' || is_aside ? entry.thinking_ms ?? 0 : 0;
    open.ms += calls.reduce((sum, { duration_ms }) => sum + (duration_ms ?? 0), took_ms);
  }
  close(running);
  return found;
}

/** @template T @param {T[]} a @param {T[]} b */
const isEqual = (a, b) => a.length === b.length && a.every((item, i) => item === b[i]);

/**
 * How many calls failed, and how many were not allowed.
 * @param {Call[]} calls
 * @param {Approval[]} approvals
 */
export function undone(calls, approvals) {
  const states = calls.map((call) => shownState(call, approvalOf(approvals, call.id)));
  return {
    failed: states.filter((state) => state === 'failed' || state === 'exited').length,
    denied: states.filter((state) => state === 'denied').length,
  };
}

/**
 * Calls that failed and that none of the same tool made up for since.
 * @param {Call[]} calls
 * @param {Approval[]} approvals
 */
export function unmended(calls, approvals) {
  const states = calls.map((call) => shownState(call, approvalOf(approvals, call.id)));
  return calls.filter(({ name }, i) => (states[i] === 'failed' || states[i] === 'exited')
    && !calls.some((later, j) => j > i && later.name === name && states[j] === 'success'));
}

/** @param {Pick<Call, 'name' | 'args'>} call @returns {Deed} */
export function deedOf({ name, args }) {
  const said = (/** @type {string} */ field) => {
    const value = args !== null && typeof args === 'object'
      ? Object.entries(args).find(([key]) => key === field)?.[1]
      : '';
    return typeof value === 'string' ? value.trim() : '';
  };
  const other = { verb: /** @type {const} */ ('use'), what: name };
  if (name === 'filesystem') {
    const verb = FILES[said('action')];
    if (verb === undefined) return other;
    if (verb === 'find') return { verb, what: said('pattern') };
    const what = fileName(said('path'));
    return { verb, what: verb === 'move' ? `${what} → ${fileName(said('to'))}` : what };
  }
  if (name === 'terminal' || name === 'ssh') {
    const command = firstLine(said('command'));
    if (command === '') return other;
    const host = said('host');
    return { verb: 'run', what: host === '' ? command : `${host}: ${command}` };
  }
  const [verb, field] = TOOLS[name] ?? ['use', ''];
  const what = firstLine(said(field));
  if (what === '') return other;
  if (verb === 'open') return { verb, what: what.replace(/^https?:\/\/(www\.)?/, '').replace(/\/$/, '') };
  return { verb, what: verb === 'view' ? fileName(what) : verb === 'forget' ? what.replaceAll('_', ' ') : what };
}

/**
 * What was done, in order: each thing once, with all that it was done to.
 * @param {Call[]} calls
 * @returns {{ verb: Verb, whats: string[] }[]}
 */
export function deeds(calls) {
  /** @type {Map<Verb, Set<string>>} */
  const found = new Map();
  for (const call of calls) {
    if (call.state !== 'success' || howItEnded(call) !== null) continue;
    const { verb, what } = deedOf(call);
    found.set(verb, (found.get(verb) ?? new Set()).add(what));
  }
  return [...found].map(([verb, whats]) => ({ verb, whats: [...whats] }));
}

/** The files that were written, each once. @param {Call[]} calls */
export function written(calls) {
  const paths = calls.filter(({ name, state }) => name === 'filesystem' && state === 'success')
    .map(({ args }) => /** @type {Record<string, unknown>} */ (args ?? {}));
  return [...new Set(
    paths.filter(({ action, path }) => (action === 'write' || action === 'edit') && typeof path === 'string'
      && !path.startsWith('/')).map(({ path }) => String(path)),
  )];
}

/** @param {string} path */
const fileName = (path) => path.split('/').findLast((part) => part !== '' && part !== '.') ?? '';

/** @param {string} text */
const firstLine = (text) => text.split('\n', 1)[0];
