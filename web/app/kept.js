// What a person wrote and no service has yet: drafts, edits, attachments, messages under way. The
// page's memory has it first; IndexedDB keeps a copy for the next page. All that changes at once
// is written at once: a draft that became a message is never neither.

import { clear, createStore, entries, promisifyRequest } from 'idb-keyval';
import { attachments, drafts, edits, outbox, unkept } from './signals.js';

/** @typedef {'draft' | 'edit' | 'attachment' | 'message'} Kind */

const store = createStore('navi', 'kept');

/** Whether all of it was somebody else's: nothing more of it is kept, and the page is left. */
let forgotten = false;
/** What is not written yet. @type {Map<string, { key: [Kind, string], value: unknown }>} */
let changed = new Map();

/**
 * Writes a copy; `undefined` takes it away.
 * @param {Kind} kind
 * @param {string} id
 * @param {unknown} value
 */
export function keep(kind, id, value) {
  if (forgotten) return;
  if (changed.size === 0) queueMicrotask(() => void write());
  changed.set(`${kind} ${id}`, { key: [kind, id], value });
}

async function write() {
  const changes = [...changed.values()];
  changed = new Map();
  if (forgotten) return;
  try {
    await store('readwrite', (kept) => {
      for (const { key, value } of changes) {
        if (value === undefined) kept.delete(key);
        else kept.put(value, key);
      }
      return promisifyRequest(kept.transaction);
    });
  } catch (error) {
    failed(error);
  }
}

/** What an earlier page left. @returns {Promise<[[Kind, string], any][]>} */
export async function readKept() {
  try {
    return await entries(store);
  } catch (error) {
    failed(error);
    return [];
  }
}

/** Forgets it all: another person has this browser now, or nobody. */
export async function forgetKept() {
  forgotten = true;
  try {
    await clear(store);
  } catch {
    // What could not be kept is not there.
  }
}

/** @param {unknown} error */
function failed(error) {
  unkept.set(error instanceof Error && error.name === 'QuotaExceededError' ? 'full' : 'forbidden');
}

/** Whether something is written that no service has. */
export const hasUnsent = () => drafts.get().size + edits.get().size + attachments.get().size + outbox.get().size > 0;

/** Whether something would go with this page that no service has and no copy is sure of. */
export const isAtRisk = () => !forgotten && unkept.get() !== null && hasUnsent();

/** The browser asks before it closes a page that holds the only copy. @param {BeforeUnloadEvent} event */
export function guardClosing(event) {
  if (isAtRisk()) event.preventDefault();
}
