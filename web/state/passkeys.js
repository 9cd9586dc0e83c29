// Passkeys: where a browser offers them, and what one may be called.

export const PASSKEY_NAME_CHARS = 64;
export const MOST_PASSKEYS = 20;

/**
 * Whether there are passkeys at this page, and why there are none.
 * @typedef {'here' | 'elsewhere' | 'nowhere' | 'unsupported'} PasskeyPlace
 */

/**
 * @param {string | undefined} at the page's address at which they work
 * @param {string} origin where this page is
 * @param {boolean} offered whether the browser knows them
 * @returns {PasskeyPlace}
 */
export function passkeyPlace(at, origin, offered) {
  if (at === undefined) return 'nowhere';
  if (new URL(at).origin !== origin) return 'elsewhere';
  return offered ? 'here' : 'unsupported';
}

/**
 * What browsers say of an authenticator that did not answer, by the names of their errors.
 * @type {Record<string, string>}
 */
const FAULTS = {
  NotAllowedError: 'passkey_cancelled',
  AbortError: 'passkey_cancelled',
  InvalidStateError: 'passkey_known',
  NotSupportedError: 'passkey_unsupported',
  ConstraintError: 'passkey_unsupported',
  SecurityError: 'passkey_elsewhere',
};

/** @param {string} name of an error of the browser's */
export const passkeyFault = (name) => FAULTS[name] ?? 'passkey_failed';
