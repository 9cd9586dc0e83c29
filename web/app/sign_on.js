// Sign-on by a provider: the browser goes there and comes back. Of what shows that it is the one
// that went, a half stays in this page's storage meanwhile.

/** @import { ProofRequest, SignOnBegun } from '../state/wire.js' */
/** @import { SignOnReturned } from './signals.js' */

import { takeReturned } from '../net/key.js';
import { people } from '../net/people.js';
import { storage } from './prefs.js';

const PLACE = 'navi.sign_on';
/** Who signed out is not signed in again by a proxy that still knows them. */
const LEFT = 'navi.left';

/**
 * Leaves this page for the provider, to come in as whoever one is there.
 * @param {string} [invitation] by which somebody new joins
 */
export async function signInThere(invitation) {
  leave('sign-in', await people.beginSignOn(invitation));
}

/** The same, to be that person here, too. @param {ProofRequest} proof */
export async function linkThere(proof) {
  leave('link', await people.beginLink(proof));
}

/** @param {'sign-in' | 'link'} purpose @param {SignOnBegun} begun */
function leave(purpose, { location: there, key }) {
  storage.set(PLACE, JSON.stringify({ key, purpose }));
  location.assign(there);
}

/**
 * Takes in, once, what the provider sent back.
 * @returns {{ purpose: 'sign-in' | 'link', answer: SignOnReturned } | null}
 */
export function takeAnswer() {
  const answer = takeReturned();
  if (answer === null) return null;
  const { key, purpose } = kept();
  storage.set(PLACE, null);
  return { purpose, answer: { ...answer, key } };
}

/** @returns {{ key: string, purpose: 'sign-in' | 'link' }} */
function kept() {
  try {
    const { key, purpose } = JSON.parse(storage.get(PLACE) ?? '{}');
    return { key: String(key ?? ''), purpose: purpose === 'link' ? 'link' : 'sign-in' };
  } catch {
    return { key: '', purpose: 'sign-in' };
  }
}

/** Whether somebody signed out in this tab, and not in again. */
export function hasLeft() {
  try {
    return sessionStorage.getItem(LEFT) !== null;
  } catch {
    return false;
  }
}

/** @param {boolean} left */
export function noteLeft(left) {
  try {
    if (left) sessionStorage.setItem(LEFT, '1');
    else sessionStorage.removeItem(LEFT);
  } catch {
    // Forbidden: a proxy's word signs in again.
  }
}
