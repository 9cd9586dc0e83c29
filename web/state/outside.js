// What of a conversation came from outside: the files that were sent, and the results that say so.

/** @import { Entry, SessionState } from './types.js' */

import { deedOf } from './work.js';

/**
 * `message_id` is where it stands in the conversation.
 * @typedef {{ message_id: string, what: string, at: string }} Source
 */

/** More are not listed: the newest are what led to what is done now. */
const LISTED = 30;

/**
 * The newest first, each once.
 * @param {Pick<SessionState, 'entries' | 'children'>} state
 * @returns {Source[]}
 */
export function sourcesOf({ entries, children }) {
  // What somebody sent is called as they called it.
  const names = new Map(entries.flatMap((entry) => (entry.kind === 'user'
    ? entry.files.map(({ path, name }) => [path, name])
    : [])));
  const all = [...entries.flatMap((entry) => ofEntry(entry, entry.id, names)),
    ...Object.values(children).flatMap((child) => {
    // A subagent's work stands in the card of its call.
    const card = entries.find((entry) => entry.kind === 'assistant'
      && entry.calls.some(({ id }) => id === child.call_id));
    return card === undefined ? [] : child.entries.flatMap((entry) => ofEntry(entry, card.id, names));
  })];
  const newest = new Map(all.sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
    .map((source) => [source.what, source]));
  return [...newest.values()].sort((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, LISTED);
}

/**
 * @param {Entry} entry
 * @param {string} message_id
 * @param {Map<string, string>} names of files by their paths
 * @returns {Source[]}
 */
function ofEntry(entry, message_id, names) {
  if (entry.kind === 'user') return entry.files.map(({ name }) => ({ message_id, what: name, at: entry.created_at }));
  if (entry.kind !== 'assistant') return [];
  return entry.calls.filter(({ outside }) => outside).map((call) => {
    const what = names.get(pathOf(call)) ?? (deedOf(call).what || call.name);
    return { message_id, what, at: call.started_at ?? entry.created_at };
  });
}

/** @param {Pick<import('./types.js').Call, 'args'>} call */
const pathOf = ({ args }) => String(/** @type {Record<string, unknown> | null} */ (args)?.path ?? '');
