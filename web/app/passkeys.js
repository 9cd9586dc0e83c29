// What a browser's authenticator is asked, and what it answers.

import { t } from '../i18n/index.js';
import { ApiError } from '../net/api.js';
import { passkeys } from '../net/passkeys.js';
import { passkeyFault, passkeyPlace } from '../state/passkeys.js';

/** How it stands with passkeys at this page. @param {string | undefined} at where they work */
export function passkeysHere(at) {
  // Where the page has no secure context there are none either; those that know them, know since
  // 2024 how to read what they are asked.
  const offered = typeof PublicKeyCredential === 'function'
    && typeof PublicKeyCredential.parseCreationOptionsFromJSON === 'function';
  return passkeyPlace(at, location.origin, offered);
}

/** The page's words for what went wrong. */
export const passkeyWords = () => ({
  passkey_cancelled: t('passkeys.fault.cancelled'),
  passkey_known: t('passkeys.fault.known'),
  passkey_unsupported: t('passkeys.fault.unsupported'),
  passkey_elsewhere: t('passkeys.fault.elsewhere'),
  passkey_failed: t('passkeys.fault.failed'),
  rate_limited: t('signin.too_many'),
});

/** Makes a passkey. @param {{ name: string, current_password?: string }} wanted @param {AbortSignal} signal */
export async function makePasskey(wanted, signal) {
  const { options } = await passkeys.begin(wanted);
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(/** @type {any} */ (options));
  return passkeys.finish(await answered(() => navigator.credentials.create({ publicKey, signal })));
}

/** Signs in by one. @param {AbortSignal} signal @returns {Promise<{ key: string }>} */
export async function signInByPasskey(signal) {
  const { ceremony, options } = await passkeys.beginSignIn();
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(/** @type {any} */ (options));
  return passkeys.finishSignIn(ceremony, await answered(() => navigator.credentials.get({ publicKey, signal })));
}

/** @param {() => Promise<Credential | null>} asked @returns {Promise<object>} */
async function answered(asked) {
  try {
    const credential = await asked();
    if (credential instanceof PublicKeyCredential) return credential.toJSON();
  } catch (error) {
    const { name, message } = /** @type {DOMException} */ (error);
    throw new ApiError({ code: passkeyFault(name), message }, 0);
  }
  throw new ApiError({ code: 'passkey_failed', message: '' }, 0);
}
