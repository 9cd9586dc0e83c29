import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';

const ICONS = {
  note: icons.note, tip: icons.check, important: icons.shield, warning: icons.warning, caution: icons.cross,
};

/** What stands over an alert in an answer: its kind, in the reader's language. */
export class NaviAlert extends NaviElement {
  static properties = { kind: { attribute: false } };

  constructor() {
    super();
    this.kind = /** @type {keyof typeof ICONS} */ ('note');
  }

  render() {
    return html`<p class="alert-title">${ICONS[this.kind]}<strong>${t(`alert.${this.kind}`)}</strong></p>`;
  }
}

customElements.define('navi-alert', NaviAlert);
