// The session list: every session's summary, kept in the service's order.

/** @import { SessionSummary } from './wire.js' */

/**
 * Pinned first, then latest activity (SPEC section 2).
 * @param {Iterable<SessionSummary>} sessions
 * @returns {SessionSummary[]}
 */
export function sorted(sessions) {
  return [...sessions].sort((a, b) => Number(b.pinned) - Number(a.pinned)
    || Date.parse(b.last_active) - Date.parse(a.last_active)
    || (a.id < b.id ? 1 : -1));
}

/**
 * @param {SessionSummary[]} sessions
 * @param {SessionSummary} session
 */
export function withSession(sessions, session) {
  return sorted([...sessions.filter((item) => item.id !== session.id), session]);
}

/**
 * @param {SessionSummary[]} sessions
 * @param {string} id
 */
export function withoutSession(sessions, id) {
  return sessions.filter((item) => item.id !== id);
}

/**
 * Sessions whose title holds every word of the query, whatever its case.
 * @param {SessionSummary[]} sessions
 * @param {string} query
 */
export function matching(sessions, query) {
  const words = query.toLocaleLowerCase().split(/\s+/).filter((word) => word !== '');
  if (words.length === 0) return sessions;
  return sessions.filter((session) => {
    const title = session.title.toLocaleLowerCase();
    return words.every((word) => title.includes(word));
  });
}

/**
 * The group under whose heading a session stands.
 * @param {SessionSummary} session
 * @param {Date} now
 * @returns {'pinned' | 'today' | 'yesterday' | 'week' | 'older'}
 */
export function groupOf(session, now) {
  if (session.pinned) return 'pinned';
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const at = Date.parse(session.last_active);
  const day = 24 * 60 * 60 * 1000;
  if (at >= midnight) return 'today';
  if (at >= midnight - day) return 'yesterday';
  return at >= midnight - 6 * day ? 'week' : 'older';
}

/** Whether its last run went wrong. @param {SessionSummary} session */
export const isTrouble = ({ state }) => state === 'failed' || state === 'interrupted';

/**
 * Whether how a session stands is worth a mark: what went wrong is, until somebody has looked at it.
 * @param {SessionSummary} session
 * @param {ReadonlyMap<string, string>} seen when each was last active, as it was seen
 */
export const isNews = (session, seen) => session.state !== 'idle'
  && !(isTrouble(session) && seen.get(session.id) === session.last_active);

/**
 * What a person who looks elsewhere would want to know.
 * @param {SessionSummary | undefined} before
 * @param {SessionSummary} after
 * @returns {'asks' | 'failed' | 'done' | null}
 */
export function newsOf(before, after) {
  if (before === undefined) return null;
  if ((after.asks ?? 0) > (before.asks ?? 0)) return 'asks';
  if (before.state !== 'running' || after.state === 'running') return null;
  return isTrouble(after) ? 'failed' : 'done';
}
