import { loadPanels } from '../app/actions.js';
import { t } from '../i18n/index.js';
import { html, nothing, signal } from '../lit.js';
import { colourer } from '../net/part.js';
import { CodeText } from './code_text.js';
import { copyButton } from './copy.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';

/** @type {ReturnType<typeof colourer<typeof import('../markdown/colours.js').coloured>>} */
const colours = colourer('./colours.js');

/** @param {string} language */
const isDiagram = (language) => language.toLowerCase() === 'mermaid';

/** Whether what shows diagrams is here: it comes with the first. */
const showsDiagrams = signal(false);

function wantDiagrams() {
  if (!showsDiagrams.get()) loadPanels().then(() => showsDiagrams.set(true), () => {});
}

/** A block of code with its language and a copy button; a diagram, once all of it is here. */
export class NaviCode extends NaviElement {
  static properties = {
    lang: { attribute: false }, code: { attribute: false }, growing: { attribute: false }, _wraps: { state: true },
  };

  constructor() {
    super();
    this.lang = '';
    this.code = '';
    /** Not empty while more may come: colours come when all of it is here. */
    this.growing = '';
    this._wraps = false;
    /** The code without colours. */
    this._text = new CodeText();
  }

  willUpdate() {
    if (isDiagram(this.lang)) {
      if (this.growing === '') wantDiagrams();
    } else if (this.lang !== '') {
      colours.want();
    }
  }

  render() {
    const is_picture = isDiagram(this.lang) && this.growing === '' && showsDiagrams.get();
    if (is_picture) return html`<navi-diagram .code=${this.code}></navi-diagram>`;
    return this.source(this.lang || t('code.plain'));
  }

  /**
   * The code itself.
   * @param {string} label
   * @param {unknown} [button] beside those of all code
   */
  source(label, button = nothing) {
    const whole = this.growing === '' ? colours.coloured.get() : null;
    const pieces = whole?.(this.code, this.lang)
      .map(({ kind, text }) => (kind === '' ? text : html`<span class=${`code-${kind}`}>${text}</span>`));
    return html`<div class="code-head"><span class="code-lang">${label}</span>
      ${button}<button type="button" class="icon-button" data-testid="code-wrap"
        aria-pressed=${String(this._wraps)} title=${t('code.wrap')} aria-label=${t('code.wrap')}
        @click=${() => { this._wraps = !this._wraps; }}>${icons.wrap}</button>${
      copyButton(() => this.code, 'code.copy')}</div><pre tabindex="0" class=${this._wraps ? 'wraps' : ''}><code>${
        pieces ?? this._text.show(this.code)}</code></pre>`;
  }
}

customElements.define('navi-code', NaviCode);
