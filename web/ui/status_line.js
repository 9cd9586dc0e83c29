/** @import { SessionState } from '../state/types.js' */

import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { isOpen } from '../state/approvals.js';
import { Clock, NaviElement } from './element.js';
import { formatDuration } from './format.js';

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
      <span>${text}${waiting === null || waiting.detail === '' ? nothing : html`<span class="status-detail"> · ${waiting.detail}</span>`}</span>
      ${waited > COUNT_FROM_MS ? html`<span class="status-time">${formatDuration(Math.floor(waited / 1000) * 1000)}</span>` : nothing}
    </p>`;
  }
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
  return !last.thinking_open && !(last.open && last.content !== '') && !last.calls.some((call) => call.state === 'running');
}
