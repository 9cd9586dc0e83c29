/** @import { SessionState, Waiting } from '../state/types.js' */

import { t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { html, nothing } from '../lit.js';
import { isOpen } from '../state/approvals.js';
import { readSoFar } from '../state/pace.js';
import { Clock, NaviElement } from './element.js';
import { formatDuration, formatPercent, sentence } from './format.js';

/** A wait shorter than this is not worth counting. */
const COUNT_FROM_MS = 3_000;

/** Why nothing moves just now, in one quiet line. */
export class NaviStatusLine extends NaviElement {
  static properties = { session: { attribute: false } };

  constructor() {
    super();
    this.session = /** @type {SessionState} */ (/** @type {unknown} */ (null));
    this._clock = new Clock(this);
    /** When this page first saw the present wait: its clock, not the service's. */
    this._since = Date.now();
    this._waiting_for = '';
  }

  willUpdate() {
    const waiting_for = this.session.waiting?.reason ?? '';
    if (waiting_for === this._waiting_for) return;
    this._waiting_for = waiting_for;
    this._since = this._clock.now = Date.now();
  }

  render() {
    const { waiting } = this.session;
    const text = t(waiting === null ? 'waiting.thinking_of' : `waiting.${waiting.reason}`);
    const waited = this._clock.now - this._since;
    return html`<p class="status-line" data-testid="status-line" data-reason=${waiting?.reason ?? 'starting'}>
      <span class="dots" aria-hidden="true"><i></i><i></i><i></i></span>
      <span>${waiting === null || waiting.detail === ''
        ? text
        : waiting.reason === 'lane'
          ? sentence(phraseText(waiting.phrase, waiting.detail))
          : html`${text}${detail(waiting)}`}</span>
      ${waited > COUNT_FROM_MS
        ? html`<span class="status-time">${formatDuration(Math.floor(waited / 1000) * 1000)}</span>`
        : nothing}
    </p>`;
  }
}

/** What it is about; of a prompt that is read, how much of it was. @param {Waiting} waiting */
function detail(waiting) {
  const words = phraseText(waiting.phrase, waiting.detail);
  const so_far = readSoFar(waiting);
  if (so_far === null) return html`<span class="status-detail"> · ${words}</span>`;
  const { read, total } = so_far;
  return html`<span class="status-detail"
    title=${words}> · ${formatPercent(read / total)} <progress max=${total} value=${read}
    aria-label=${words}></progress></span>`;
}

customElements.define('navi-status-line', NaviStatusLine);

/**
 * Whether nothing else in the page shows that the run moves.
 * @param {SessionState} state
 */
export function isQuiet(state) {
  if (state.run === null) return false;
  // A question says it better than a line.
  if (state.approvals.some(isOpen)) return false;
  if (state.waiting !== null) return true;
  const last = state.entries[state.entries.length - 1];
  if (last === undefined || last.kind !== 'assistant') return true;
  return !last.thinking_open && !(last.open && last.content !== '')
    && !last.calls.some((call) => call.state === 'running');
}
