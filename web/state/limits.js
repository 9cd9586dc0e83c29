// How much one person may have of what all share.

/** @import { LimitsInfo, OwnLimits } from './wire.js' */

/** @typedef {keyof OwnLimits} Limit */

/** Each in its order, with the least and the most that it may be. */
export const LIMITS = /** @type {const} */ ({
  runs: [1, 10_000],
  sessions: [1, 10_000_000],
  files_mb: [1, 100_000_000],
  uploads: [1, 1_000],
  tabs: [1, 4_000],
  tokens_a_day: [0, 1_000_000_000_000],
});
export const NAMES = /** @type {readonly Limit[]} */ (Object.keys(LIMITS));

/**
 * What of it is one person's own, as it is written in fields; empty: what everybody has.
 * @param {OwnLimits} own
 * @returns {Record<Limit, string>}
 */
export const written = (own) =>
  /** @type {Record<Limit, string>} */ (Object.fromEntries(
    NAMES.map((name) => [name, own[name] === null ? '' : String(own[name])]),
  ));

/**
 * What fields say that is not so yet, or which of them no one can have.
 * @param {Record<Limit, string>} fields
 * @param {OwnLimits} own
 * @returns {{ changes: Partial<OwnLimits>, fault: Limit | null }}
 */
export function changed(fields, own) {
  /** @type {Partial<OwnLimits>} */
  const changes = {};
  for (const name of NAMES) {
    const text = fields[name].trim();
    const [least, most] = LIMITS[name];
    const number = Number(text);
    if (text !== '' && !(Number.isInteger(number) && number >= least && number <= most)) return { changes: {},
      fault: name };
    const value = text === '' ? null : number;
    if (value !== own[name]) changes[name] = value;
  }
  return { changes, fault: null };
}

/**
 * How much of it somebody has, and how much at the most; null: as much as they like.
 * @param {LimitsInfo} limits
 * @param {Limit} name
 */
export function standing({ in_force, used }, name) {
  // As the service counts them; a little of one is some.
  if (name === 'files_mb') return { used: Math.ceil(used.file_bytes / 1024 / 1024 * 10) / 10, most: in_force.files_mb };
  const most = in_force[name];
  return { used: used[name], most: name === 'tokens_a_day' && most === 0 ? null : most };
}
