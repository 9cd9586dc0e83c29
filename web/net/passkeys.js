// REST calls about passkeys: one's own, and how one signs in by them.

/** @import { PasskeyInfo, PasskeyOptions, PasskeySignInOptions } from '../state/wire.js' */

import { call } from './api.js';

const OWN = 'api/account/passkeys';
const SIGN_IN = 'api/sign-in/passkey';

/** @param {string} id */
const one = (id) => `${OWN}/${encodeURIComponent(id)}`;

export const passkeys = {
  /** @returns {Promise<PasskeyInfo[]>} */
  list: () => call('GET', OWN),
  /** @param {{ name: string, current_password?: string }} wanted @returns {Promise<PasskeyOptions>} */
  begin: (wanted) => call('POST', `${OWN}/begin`, wanted),
  /** @param {object} credential @returns {Promise<PasskeyInfo>} */
  finish: (credential) => call('POST', `${OWN}/finish`, { credential }),
  /** @param {string} id @param {string} name */
  rename: (id, name) => call('PATCH', one(id), { name }),
  /** @param {string} id */
  remove: (id) => call('DELETE', one(id)),
  /** @returns {Promise<PasskeySignInOptions>} */
  beginSignIn: () => call('POST', `${SIGN_IN}/begin`),
  /** @param {string} ceremony @param {object} credential @returns {Promise<{ key: string }>} */
  finishSignIn: (ceremony, credential) => call('POST', `${SIGN_IN}/finish`, { ceremony, credential }),
};
