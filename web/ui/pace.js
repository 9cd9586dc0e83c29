// When an answer was there, and how quickly it came: that is asked for where somebody looks.

/** @import { AssistantEntry } from '../state/types.js' */

import { isRunning, sharedLink } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { api } from '../net/api.js';
import { callBehind, tokensPerSecond } from '../state/pace.js';
import { NaviElement } from './element.js';
import { formatDuration, formatTime, formatTokens } from './format.js';

export class NaviPace extends NaviElement {
  static properties = { entry: { attribute: false }, wanted: { type: Boolean }, _words: { state: true } };

  constructor() {
    super();
    this.entry = /** @type {AssistantEntry} */ (/** @type {unknown} */ (null));
    /** Whether somebody looks. */
    this.wanted = false;
    this._words = '';
    this._asked = false;
  }

  render() {
    const { created_at } = this.entry;
    return html`<time datetime=${created_at}>${formatTime(created_at)}</time>${this._words === ''
      ? nothing
      : html`<span data-testid="answer-pace"> · ${this._words}</span>`}`;
  }

  updated() {
    const { run_id } = this.entry;
    // A call is stored with its end. A link shows the conversation alone.
    if (!this.wanted || this._asked || run_id === null || isRunning.get() || sharedLink.get() !== null) return;
    this._asked = true;
    void this.#ask(run_id);
  }

  /** @param {string} run_id */
  async #ask(run_id) {
    try {
      const call = callBehind((await api.run(run_id)).calls, this.entry.created_at);
      if (call !== null) this._words = words(call);
    } catch {
      // The details of the run say what is wrong. One that was imported has none, however often one asks.
    }
  }
}

/** @param {import('../state/wire.js').CallInfo} call */
function words(call) {
  const pace = tokensPerSecond(call);
  return [
    ...(pace === null ? [] : [t('runs.pace', { n: formatTokens(pace) })]),
    ...(call.first_chunk_ms == null ? [] : [t('runs.first_chunk', { time: formatDuration(call.first_chunk_ms) })]),
  ].join(' · ');
}

customElements.define('navi-pace', NaviPace);
