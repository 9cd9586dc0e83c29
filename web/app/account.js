// Who is signed in: what one browser keeps for a person is nobody else's.

/** @import { AccountInfo } from '../state/wire.js' */

import { keepKey } from '../net/key.js';
import { people } from '../net/people.js';
import { forgetKept } from './kept.js';
import { storage } from './prefs.js';
import { forgetSeen } from './seen.js';
import { account } from './signals.js';
import { noteLeft } from './sign_on.js';

/** Whose is what this browser keeps. */
const OWNER = 'navi.account';

/** Reads who is signed in. Where it cannot be read, the page goes on as it was. */
export async function loadAccount() {
  try {
    await showAccount(await people.account());
  } catch {
    // The service refuses what may not be done, whatever is shown.
  }
}

/**
 * @param {AccountInfo} told
 * @returns {Promise<boolean>} whether it is the person whose page this was; for another, it is
 *  opened anew
 */
export async function showAccount(told) {
  const owner = storage.get(OWNER);
  storage.set(OWNER, told.id);
  if (owner !== null && owner !== told.id) {
    forgetSeen();
    await forgetKept();
    openAnew();
    return false;
  }
  if ((account.get()?.id ?? told.id) !== told.id) {
    openAnew();
    return false;
  }
  account.set(told);
  return true;
}

/** A login was made here. @param {string} key @returns {Promise<boolean>} as `showAccount` */
export async function comeIn(key) {
  keepKey(key);
  noteLeft(false);
  return showAccount(await people.account());
}

/** What was written here and not sent goes with its person; where they came in by a provider, they leave there, too. */
export async function signOut() {
  const left = await people.signOut();
  keepKey('');
  noteLeft(true);
  forgetSeen();
  await forgetKept();
  storage.set(OWNER, null);
  if (left === null) openAnew();
  else location.assign(left.location);
}

/** Without anything that is in this page's memory. */
function openAnew() {
  history.replaceState(null, '', location.pathname);
  location.reload();
}
