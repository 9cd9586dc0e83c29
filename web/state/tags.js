// What conversations are filed under.

/** @import { SessionSummary } from './wire.js' */

/** The most of one conversation, and the most characters of one: what the service takes. */
export const MAX_TAGS = 10;
export const TAG_CHARS = 40;

/** Every tag of these, the most used first. @param {SessionSummary[]} sessions @returns {string[]} */
export function tagsOf(sessions) {
  /** @type {Map<string, number>} */
  const uses = new Map();
  for (const tag of sessions.flatMap(({ tags }) => tags ?? [])) uses.set(tag, (uses.get(tag) ?? 0) + 1);
  return [...uses].sort(([a, n], [b, m]) => m - n || a.localeCompare(b)).map(([tag]) => tag);
}

/** Those that have this tag; all where it is null. @param {SessionSummary[]} sessions @param {string | null} tag */
export const tagged = (sessions, tag) => (tag === null
  ? sessions
  : sessions.filter(({ tags }) => tags?.includes(tag) === true));

/**
 * With a tag more, or without it. One that is there in another case is the same.
 * @param {string[]} tags
 * @param {string} wanted
 */
export function toggled(tags, wanted) {
  const tag = wanted.trim().replace(/\s+/g, ' ');
  const rest = tags.filter((other) => other.toLowerCase() !== tag.toLowerCase());
  if (tag === '' || rest.length < tags.length) return rest;
  return [...tags, tag];
}
