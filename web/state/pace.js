// How quickly a model writes, and how far it has read.

/** @import { CallInfo } from './wire.js' */
/** @import { Waiting } from './types.js' */

/** Of fewer tokens it would be chance. */
const WORTH_TELLING_TOKENS = 20;

/** Tokens a second, from the first of them on; null where that cannot be told. @param {CallInfo} call */
export function tokensPerSecond({ first_chunk_ms, duration_ms, completion_tokens }) {
  const wrote_ms = duration_ms - (first_chunk_ms ?? duration_ms);
  return wrote_ms > 0 && (completion_tokens ?? 0) >= WORTH_TELLING_TOKENS
    ? (completion_tokens ?? 0) * 1000 / wrote_ms
    : null;
}

/**
 * The call that an answer came by, of those of its run: the last that had begun when it was there.
 * @param {CallInfo[]} calls
 * @param {string} created_at
 */
export const callBehind = (calls,
  created_at) => calls.findLast(({ kind, started_at }) => kind === 'turn'
    && Date.parse(started_at) <= Date.parse(created_at)) ?? null;

/** How many tokens of how many a model has read, where it tells. @param {Waiting | null} waiting */
export function readSoFar(waiting) {
  if (waiting?.phrase?.code !== 'read_so_far') return null;
  const { read, total } = waiting.phrase.params ?? {};
  const [has_read, of] = [Number(read), Number(total)];
  return of > 0 && has_read >= 0 ? { read: Math.min(has_read, of), total: of } : null;
}
