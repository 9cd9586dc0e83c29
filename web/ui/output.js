// What a program prints while it runs, in its colours: the newest lines, and their end in view
// for who reads there.

import { announce } from '../app/announce.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { colourer } from '../net/part.js';
import { isColoured, plain, settled, tail } from '../state/terminal.js';
import { copyButton } from './copy.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';
import { isAtEnd } from './scroll.js';

/** So much is drawn; the rest can be copied. */
const LINES = 500;
const CHARS = 96 * 1024;
/** Output that comes faster is drawn no more often. */
const DRAWN_EVERY_MS = 80;

/** @type {ReturnType<typeof colourer<typeof import('./ansi.js').coloured>>} */
const ansi = colourer('./ansi.js');

export class NaviOutput extends NaviElement {
  static properties = {
    text: { attribute: false }, from: { attribute: false }, running: { type: Boolean }, _drawn: { state: true },
    _pinned: { state: true },
  };

  constructor() {
    super();
    this.text = '';
    /** How much of it came before and is not kept. */
    this.from = 0;
    this.running = false;
    /** What is drawn just now. */
    this._drawn = '';
    /** Whether the newest line is held in view. */
    this._pinned = true;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this._timer = undefined;
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    clearTimeout(this._timer);
    this._timer = undefined;
  }

  /** @param {Map<PropertyKey, unknown>} changed */
  willUpdate(changed) {
    if (!changed.has('text') || this.text === this._drawn) return;
    if (this._drawn === '' || !this.running) {
      this.#draw();
    } else if (this._timer === undefined) {
      this._timer = setTimeout(() => this.#draw(), DRAWN_EVERY_MS);
    }
  }

  #draw() {
    clearTimeout(this._timer);
    this._timer = undefined;
    this._drawn = this.text;
  }

  updated() {
    const pane = this.querySelector('pre');
    if (pane !== null && this._pinned) pane.scrollTop = pane.scrollHeight;
  }

  render() {
    const lines = tail(settled(this._drawn.slice(-CHARS)), LINES);
    const cut = this.from > 0 || lines.hidden > 0 || this._drawn.length > CHARS;
    return html`<div class="tool-part" data-testid="output" data-pinned=${String(this._pinned)}>
      <div class="tool-label"><span>${t('tool.output')}${this.running
        ? html`<span class="live-dot" aria-hidden="true"></span>`
        : nothing}</span>
        ${this._pinned
          ? nothing
          : html`<button type="button" class="link-button" data-testid="output-follow"
            @click=${() => this.#follow()}>${icons.down}${t('tool.follow')}</button>`}
        ${copyButton(() => plain(this.text), 'message.copy')}</div>
      ${cut ? html`<p class="output-cut">${t('tool.output_cut')}</p>` : nothing}
      <pre tabindex="0" class="tool-text output" role="log" aria-live="off" aria-label=${t('tool.output')}
        data-testid="output-text"
        @scroll=${(/** @type {Event} */ event) => this.#scrolled(/** @type {HTMLElement} */ (event.target))}>${
          this.#words(lines.text)}</pre>
    </div>`;
  }

  /** @param {string} text */
  #words(text) {
    if (!isColoured(text)) return text;
    ansi.want();
    const pieces = ansi.coloured.get()?.(text);
    return pieces === undefined ? plain(text) : pieces.map((piece) => (piece.classes === ''
      ? piece.text
      : html`<span class=${piece.classes}>${piece.text}</span>`));
  }

  #follow() {
    this._pinned = true;
    announce(t('tool.following'));
  }

  /** @param {HTMLElement} pane */
  #scrolled(pane) {
    this._pinned = isAtEnd(pane);
  }
}

customElements.define('navi-output', NaviOutput);
