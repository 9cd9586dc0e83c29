import { t } from '../i18n/index.js';
import { html, signal } from '../lit.js';
import { loadPart } from '../net/part.js';
import { copyButton } from './copy.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';

/** What colours code: loaded with the first. */
const colours = signal(/** @type {typeof import('../markdown/colours.js').coloured | null} */ (null));
let asked = false;

/** Where it cannot be had there is code without colours, until there is more code. */
function wantColours() {
  if (asked) return;
  asked = true;
  loadPart(new URL('./colours.js', import.meta.url)).then(({ coloured }) => colours.set(coloured), () => { asked = false; });
}

/** A block of code with its language and a copy button. */
export class NaviCode extends NaviElement {
  static properties = { lang: { attribute: false }, code: { attribute: false }, growing: { attribute: false }, _wraps: { state: true } };

  constructor() {
    super();
    this.lang = '';
    this.code = '';
    /** Not empty while more may come: colours come when all of it is here. */
    this.growing = '';
    this._wraps = false;
  }

  willUpdate() {
    if (this.lang !== '') wantColours();
  }

  render() {
    const whole = this.growing === '' ? colours.get() : null;
    const pieces = whole?.(this.code, this.lang) ?? [{ kind: '', text: this.code }];
    return html`<div class="code-head"><span class="code-lang">${this.lang || t('code.plain')}</span>
      <button type="button" class="icon-button" data-testid="code-wrap" aria-pressed=${String(this._wraps)} title=${t('code.wrap')} aria-label=${t('code.wrap')}
        @click=${() => { this._wraps = !this._wraps; }}>${icons.wrap}</button>${
      copyButton(() => this.code, 'code.copy')}</div><pre tabindex="0" class=${this._wraps ? 'wraps' : ''}><code>${
        pieces.map(({ kind, text }) => (kind === '' ? text : html`<span class=${`code-${kind}`}>${text}</span>`))}</code></pre>`;
  }
}

customElements.define('navi-code', NaviCode);
