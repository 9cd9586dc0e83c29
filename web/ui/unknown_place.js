// Where calls stand whose outcome nobody knows: what is said of them is loaded with the first one.

/** @import { Call } from '../state/types.js' */

import { unknownCalls } from '../app/signals.js';
import { withPanelWords } from '../i18n/index.js';
import { html, nothing } from '../vendor/lit.js';

let asked = false;

function load() {
  if (asked) return;
  asked = true;
  // The words first: the elements come to life as soon as they are known.
  withPanelWords().then(() => import('./unknown.js')).catch(() => { asked = false; });
}

/** The place in a call's card. @param {Call} call */
export function unknownPlace(call) {
  if (call.state !== 'outcome_unknown') return nothing;
  load();
  return html`<navi-unknown .call=${call}></navi-unknown>`;
}

/** A place for all of them: at the conversation's end, or above the field where one writes. @param {'rest' | 'line'} which */
export function unknownPlaces(which) {
  if (unknownCalls.get().length === 0) return nothing;
  load();
  return which === 'rest' ? html`<navi-unknown-rest></navi-unknown-rest>` : html`<navi-unknown-line></navi-unknown-line>`;
}
