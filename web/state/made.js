// The files that a run left behind, its subagents' too.

/** @import { Call, Entry } from './types.js' */
/** @import { Change } from './wire.js' */

import { written } from './work.js';

/** @typedef {{ id: string, from_ms: number, to_ms: number, end: string, calls: Call[], changes: Change[] }} Run */

/**
 * @param {Entry[]} entries
 * @param {Change[]} changes newest first; the oldest of a long conversation are forgotten
 * @param {string | null} going the run that may make more
 * @param {ReadonlyMap<string, string[]>} before what was found before: what is the same stays the same object
 * @returns {Map<string, string[]>} by the entries that end the runs
 */
export function madeFiles(entries, changes, going, before) {
  const runs = runsOf(entries);
  for (const change of standing(changes)) runOf(change, runs)?.changes.push(change);
  /** @type {Map<string, string[]>} */
  const made = new Map();
  for (const { id, end, calls, changes: own } of runs.values()) {
    const paths = id === going ? [] : own.length > 0 ? left(own) : isKnown(id, changes) ? [] : written(calls);
    if (paths.length === 0) continue;
    const old = before.get(end);
    made.set(end, old?.join('\n') === paths.join('\n') ? old : paths);
  }
  return made;
}

/** The session's own runs, in order. @param {Entry[]} entries @returns {Map<string, Run>} */
function runsOf(entries) {
  /** @type {Map<string, Run>} */
  const runs = new Map();
  for (const entry of entries) {
    if (entry.kind !== 'assistant' || entry.run_id === null) continue;
    const at_ms = Date.parse(entry.created_at);
    const run = runs.get(entry.run_id)
      ?? { id: entry.run_id, from_ms: at_ms, to_ms: at_ms, end: '', calls: [], changes: [] };
    runs.set(run.id, run);
    run.end = entry.id;
    // How long its last calls go on is not told: what was stopped in them ends with them.
    run.to_ms = entry.calls.length === 0 ? at_ms : Infinity;
    run.calls.push(...entry.calls);
  }
  return runs;
}

/**
 * A subagent's run has another id: one goes at a time, and its time says whose it is, or that it is
 * another branch's.
 * @param {Change} change
 * @param {Map<string, Run>} runs
 */
function runOf({ run_id, at }, runs) {
  if (run_id === undefined) return undefined;
  const at_ms = Date.parse(at);
  return runs.get(run_id) ?? [...runs.values()].findLast(({ from_ms, to_ms }) => from_ms <= at_ms && at_ms <= to_ms);
}

/** Those that nobody took back, oldest first. @param {Change[]} changes */
function standing(changes) {
  /** @type {Set<string>} */
  const undone = new Set();
  const kept = changes.filter(({ id, undoes }) => {
    if (undone.has(id)) return false;
    if (undoes !== undefined) undone.add(undoes);
    return undoes === undefined;
  });
  return kept.reverse();
}

/** Whether what it changed is told, be it taken back since. @param {string} id @param {Change[]} changes */
const isKnown = (id, changes) => changes.some(({ run_id }) => run_id === id);

/** The files that are there after all of it. @param {Change[]} changes */
function left(changes) {
  /** @type {string[]} */
  let paths = [];
  for (const { action, path, to } of changes) {
    const is_in = (/** @type {string} */ file) => file === path || file.startsWith(`${path}/`);
    if (action === 'move'
      && to !== undefined) paths = paths.map((file) => (is_in(file) ? `${to}${file.slice(path.length)}` : file));
    else if (action === 'delete') paths = paths.filter((file) => !is_in(file));
    else if (!path.startsWith('/') && !paths.includes(path)) paths.push(path);
  }
  return paths.filter((file) => !file.startsWith('/'));
}
