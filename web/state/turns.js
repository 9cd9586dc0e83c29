// The places in a conversation that something stands at beside the entries themselves.

/** @import { Fork } from './wire.js' */
/** @import { CompressionMark, Entry } from './types.js' */

/**
 * The last message of each answer, with the user's message that it answers: what was said into
 * a run that went on is part of that run's turn.
 * @param {Entry[]} entries
 * @returns {Map<string, string>} by the id of the answer's message
 */
export function answers(entries) {
  /** @type {Map<string, string>} */
  const found = new Map();
  let asked = '';
  let last = '';
  const close = () => {
    if (asked !== '' && last !== '') found.set(last, asked);
    last = '';
  };
  for (const entry of entries) {
    if (entry.kind === 'user' && !entry.steered) {
      close();
      asked = entry.id;
    } else if (entry.kind === 'assistant' && !entry.is_plan) {
      last = entry.id;
    }
  }
  close();
  return found;
}

/**
 * The index of the entry before which the conversation was compressed; as many as there are
 * entries where that is the end, -1 where it was not, or among messages that are not there.
 * @param {CompressionMark | null} mark
 * @param {Entry[]} entries
 * @param {number} [earlier] how many messages stand before the entries
 */
export function compressedAt(mark, entries, earlier = 0) {
  if (mark === null) return -1;
  if (mark.before !== null) {
    const kept = entries.findIndex((entry) => holds(entry, /** @type {string} */ (mark.before)));
    if (kept >= 0 || earlier > 0) return kept;
  }
  return entries.findIndex((entry) => entry.id === mark.after) + 1;
}

/**
 * Whether the entry shows a message: its own, or a result that is folded into it.
 * @param {Entry} entry
 * @param {string} message_id
 */
export function holds(entry, message_id) {
  return entry.id === message_id
    || (entry.kind === 'assistant' && entry.calls.some((call) => call.result_id === message_id));
}

/**
 * @param {Fork[]} forks
 * @param {Entry} entry
 * @returns {Fork | null}
 */
export function forkAt(forks, entry) {
  return forks.find((fork) => fork.branch_ids.length > 1 && holds(entry, fork.message_id)) ?? null;
}

/**
 * Whether the entry begins an answer: then it carries Navi's mark.
 * @param {Entry[]} entries
 * @param {number} index
 */
export function begins(entries, index) {
  if (entries[index].kind !== 'assistant') return false;
  for (let i = index - 1; i >= 0; i -= 1) {
    const { kind } = entries[i];
    if (kind === 'user' || kind === 'assistant') return kind === 'user';
  }
  return true;
}
