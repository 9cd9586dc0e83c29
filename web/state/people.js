// People and their accounts, as the service tells of them, and what a person may choose.

/** @typedef {'guest' | 'user' | 'admin'} Role */
/** @typedef {'read' | 'run' | 'consent' | 'files' | 'memory' | 'admin'} Scope */
/** @typedef {{ id: string, name: string, role: Role, scopes: Scope[], accounts: boolean, has_password: boolean, recovery_codes: number }} AccountInfo */
/** @typedef {{ id: string, agent: string | null, address: string | null, created_at: string, last_used_at: string | null, current: boolean }} Device */
/** @typedef {{ id: string, name: string, created_at: string, last_used_at: string | null, scopes: Scope[], expires_at: string | null }} TokenInfo */
/** @typedef {{ id: string, name: string, created_at: string, scopes: Scope[], expires_at: string | null, token: string }} CreatedToken */
/** @typedef {{ role: Role, expires_at: string, name: string | null }} InvitationOffer */
/** @typedef {{ id: string, name: string, role: Role, created_at: string, last_seen_at: string | null, has_password: boolean, you: boolean }} PersonInfo */
/** @typedef {{ id: string, role: Role, person: string | null, created_at: string, expires_at: string }} InvitationInfo */
/** @typedef {{ id: string, role: Role, expires_at: string, link: string }} MadeInvitation */
/** @typedef {'signed_in' | 'sign_in_failed' | 'signed_out' | 'device_signed_out' | 'password_changed' | 'recovery_codes_made' | 'token_made' | 'token_removed' | 'invited' | 'invitation_removed' | 'joined' | 'role_changed' | 'person_removed' | 'tool_allowed' | 'tool_forbidden'} Recorded */
/** @typedef {{ id: number, at: string, what: Recorded, person: string | null, name: string | null, about: string | null, address: string | null }} RecordLine */

/** The later has all that the earlier has. */
export const ROLES = /** @type {const} */ (['guest', 'user', 'admin']);
export const SCOPES = /** @type {const} */ (['read', 'run', 'consent', 'files', 'memory', 'admin']);

export const NAME_CHARS = 64;
export const MIN_PASSWORD_CHARS = 10;
export const MAX_PASSWORD_CHARS = 200;
export const TOKEN_NAME_CHARS = 100;
export const TOKEN_DAYS = 3_650;
export const INVITATION_DAYS = 30;

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
  if (password !== null && (length(password) < MIN_PASSWORD_CHARS || length(password) > MAX_PASSWORD_CHARS)) return 'password';
  return null;
}

/** The first that is found in what a browser says that it is: many claim to be others, too. */
const BROWSERS = /** @type {const} */ ([['Edg', 'Edge'], ['OPR', 'Opera'], ['Firefox', 'Firefox'], ['Chrome', 'Chrome'], ['Safari', 'Safari']]);
const SYSTEMS = /** @type {const} */ ([['Android', 'Android'], ['iPhone', 'iPhone'], ['iPad', 'iPad'], ['Windows', 'Windows'], ['Mac OS', 'macOS'], ['Linux', 'Linux']]);

/** A browser by its name and system; as much of it as is known, and what it said of itself where nothing is. @param {string | null} agent */
export function browserName(agent) {
  if (agent === null) return null;
  const known = [BROWSERS, SYSTEMS].map((list) => list.find(([mark]) => agent.includes(mark))?.[1]).filter((name) => name !== undefined);
  return known.length === 0 ? agent : known.join(', ');
}

/** The whole address of what was made for somebody. @param {string} page the address of this page @param {string} link what follows it */
export const wholeLink = (page, link) => `${page.split('#')[0]}${link}`;
