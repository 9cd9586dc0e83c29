// Where calls stand whose outcome nobody knows: what is said of them is loaded with the first one.

/** @import { Call } from '../state/types.js' */

import { unknownCalls } from '../app/signals.js';
import { html, nothing } from '../vendor/lit.js';
import { later } from './later.js';

/** The place in a call's card. @param {Call} call */
export function unknownPlace(call) {
  if (call.state !== 'outcome_unknown') return nothing;
  return html`${later('unknown')}<navi-unknown .call=${call}></navi-unknown>`;
}

/** A place for all of them: at the conversation's end, or above the field where one writes. @param {'rest' | 'line'} which */
export function unknownPlaces(which) {
  if (unknownCalls.get().length === 0) return nothing;
  return which === 'rest' ? html`${later('unknown')}<navi-unknown-rest></navi-unknown-rest>` : html`${later('unknown')}<navi-unknown-line></navi-unknown-line>`;
}
