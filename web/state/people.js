// People and their accounts, as the service tells of them, and what a person may choose.

/** @import { Scope, UserRole } from './wire.js' */

/** The later has all that the earlier has. */
export const ROLES = /** @type {readonly UserRole[]} */ (['guest', 'user', 'admin']);
export const SCOPES = /** @type {readonly Scope[]} */ (['read', 'run', 'consent', 'files', 'memory', 'admin']);

export const NAME_CHARS = 64;
export const MIN_PASSWORD_CHARS = 10;
export const MAX_PASSWORD_CHARS = 200;
export const TOKEN_NAME_CHARS = 100;
export const TOKEN_DAYS = 3_650;
export const INVITATION_DAYS = 30;
export const LINK_DAYS = 90;

/** @param {string} text */
const length = (text) => [...text].length;

/**
 * What is wrong with a name and a password that are chosen; null where nothing is.
 * @param {string} name
 * @param {string | null} password null where it stays
 * @returns {'name' | 'password' | null}
 */
export function faultIn(name, password) {
  const chars = length(name.trim());
  if (chars === 0 || chars > NAME_CHARS) return 'name';
  if (password !== null && (length(password) < MIN_PASSWORD_CHARS
    || length(password) > MAX_PASSWORD_CHARS)) return 'password';
  return null;
}

/** The first that is found in what a browser says that it is: many claim to be others, too. */
const BROWSERS = /** @type {const} */ ([['Edg', 'Edge'], ['OPR', 'Opera'], ['Firefox', 'Firefox'],
  ['Chrome', 'Chrome'], ['Safari', 'Safari']]);
const SYSTEMS = /** @type {const} */ ([['Android', 'Android'], ['iPhone', 'iPhone'], ['iPad', 'iPad'],
  ['Windows', 'Windows'], ['Mac OS', 'macOS'], ['Linux', 'Linux']]);

/**
 * A browser by its name and system; as much of it as is known, and what it said of itself where
 * nothing is.
 * @param {string | null} agent
 */
export function browserName(agent) {
  if (agent === null) return null;
  const known = [BROWSERS, SYSTEMS].map((list) => list.find(([mark]) => agent.includes(mark))?.[1])
    .filter((name) => name !== undefined);
  return known.length === 0 ? agent : known.join(', ');
}

/**
 * The whole address of what was made for somebody.
 * @param {string} page the address of this page
 * @param {string} link what follows it
 */
export const wholeLink = (page, link) => (link.startsWith('#') ? `${page.split('#')[0]}${link}` : link);
