import { t } from '../i18n/index.js';
import { highlight } from '../markdown/highlight.js';
import { html } from '../vendor/lit.js';
import { copyButton } from './copy.js';
import { NaviElement } from './element.js';

/** A block of code with its language and a copy button. */
export class NaviCode extends NaviElement {
  static properties = { lang: { attribute: false }, code: { attribute: false } };

  constructor() {
    super();
    this.lang = '';
    this.code = '';
  }

  render() {
    return html`<div class="code-head"><span class="code-lang">${this.lang || t('code.plain')}</span>${
      copyButton(() => this.code, 'code.copy')}</div><pre tabindex="0"><code>${
        highlight(this.code, this.lang).map(({ kind, text }) => (kind === '' ? text : html`<span class=${`code-${kind}`}>${text}</span>`))}</code></pre>`;
  }
}

customElements.define('navi-code', NaviCode);
