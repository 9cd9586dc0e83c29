import { t } from '../i18n/index.js';
import { html, signal } from '../vendor/lit.js';
import { copyButton } from './copy.js';
import { NaviElement } from './element.js';

/** Colours come when the first code does. */
const colours = signal(/** @type {typeof import('../markdown/highlight.js').highlight | null} */ (null));
let asked = false;

/** A block of code with its language and a copy button. */
export class NaviCode extends NaviElement {
  static properties = { lang: { attribute: false }, code: { attribute: false } };

  constructor() {
    super();
    this.lang = '';
    this.code = '';
  }

  connectedCallback() {
    super.connectedCallback();
    if (asked) return;
    asked = true;
    import('../markdown/highlight.js').then(({ highlight }) => colours.set(highlight), () => { asked = false; });
  }

  render() {
    const pieces = colours.get()?.(this.code, this.lang) ?? [{ kind: '', text: this.code }];
    return html`<div class="code-head"><span class="code-lang">${this.lang || t('code.plain')}</span>${
      copyButton(() => this.code, 'code.copy')}</div><pre tabindex="0"><code>${
        pieces.map(({ kind, text }) => (kind === '' ? text : html`<span class=${`code-${kind}`}>${text}</span>`))}</code></pre>`;
  }
}

customElements.define('navi-code', NaviCode);
