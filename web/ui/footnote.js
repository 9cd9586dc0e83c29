import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { NaviElement } from './element.js';

/** One end of the way between a text and a footnote of it. */
class Footnote extends NaviElement {
  static properties = { label: { attribute: false }, number: { attribute: false } };

  constructor() {
    super();
    this.label = '';
    this.number = '';
  }

  /** To the first element with the footnote's label. @param {string} name of the other end */
  goTo(name) {
    const ends = /** @type {NodeListOf<Footnote>} */ (this.closest('navi-markdown')?.querySelectorAll(name) ?? []);
    const end = [...ends].find(({ label }) => label.toLowerCase() === this.label.toLowerCase());
    end?.scrollIntoView({ block: 'center' });
    end?.querySelector('button')?.focus({ preventScroll: true });
  }
}

/** Where a text names a footnote; as it was written where there is none. */
export class NaviFootnote extends Footnote {
  render() {
    if (this.number === '') return html`[^${this.label}]`;
    return html`<sup><button type="button" class="link-button" data-testid="footnote"
      aria-label=${t('footnote.read', { n: this.number })}
      @click=${() => this.goTo('navi-footnote-back')}>${this.number}</button></sup>`;
  }
}

/** The end of a footnote: the way back to where it was named first. */
export class NaviFootnoteBack extends Footnote {
  render() {
    return html`<button type="button" class="link-button" data-testid="footnote-back"
      aria-label=${t('footnote.back', { n: this.number })} @click=${() => this.goTo('navi-footnote')}>↩</button>`;
  }
}

customElements.define('navi-footnote', NaviFootnote);
customElements.define('navi-footnote-back', NaviFootnoteBack);
