/** @import { AssistantEntry } from '../state/types.js' */

import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { NaviElement } from './element.js';
import { formatDuration } from './format.js';
import { icons } from './icons.js';
import { isAtEnd } from './scroll.js';

/** The model's reasoning: open while it streams, folded when it is over. */
export class NaviThinking extends NaviElement {
  static properties = { entry: { attribute: false }, _chosen: { state: true } };

  constructor() {
    super();
    this.entry = /** @type {AssistantEntry} */ (/** @type {unknown} */ (null));
    /** What the reader chose, if they did. @type {boolean | null} */
    this._chosen = null;
    /** Whether the newest line is held in view. */
    this._pinned = true;
  }

  get #open() {
    return this._chosen ?? this.entry.thinking_open;
  }

  updated() {
    // While it streams the newest line is what one reads, unless one went back in it.
    const body = this.querySelector('.thinking-body');
    if (body !== null && this.entry.thinking_open && this._pinned) body.scrollTop = body.scrollHeight;
  }

  render() {
    const { thinking, thinking_open, thinking_ms, id } = this.entry;
    const open = this.#open;
    const label = thinking_open
      ? t('thinking.now')
      : thinking_ms === null || thinking_ms < 100
        ? t('thinking.done')
        : t('thinking.done_in', { time: formatDuration(thinking_ms) });
    const body = `thinking-${id}`;
    return html`<div class="thinking ${thinking_open ? 'live' : ''}" data-testid="thinking" data-open=${String(open)}>
      <button type="button" class="fold" aria-expanded=${String(open)} aria-controls=${body}
        @click=${() => { this._chosen = !open; }}>
        ${icons.thought}<span class="fold-label">${label}</span><span class="turn">${icons.chevron}</span>
      </button>
      <div id=${body} class="thinking-body" ?hidden=${!open} tabindex="0"
        @scroll=${(/** @type {Event} */ event) => {
          this._pinned = isAtEnd(/** @type {HTMLElement} */ (event.target));
        }}>${open ? thinking : nothing}</div>
    </div>`;
  }
}

customElements.define('navi-thinking', NaviThinking);
