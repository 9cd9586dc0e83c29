/** @import { ShownValue, SettingList } from '../state/wire.js' */

import { t } from '../i18n/index.js';
import { loadPurposes, withPurpose } from '../i18n/purposes.js';
import { html, nothing, repeat } from '../lit.js';
import { api } from '../net/api.js';
import { isSet, namesOf, settingsFor } from '../state/setup.js';
import { Asking } from './asking.js';
import { withCode } from './cards.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';
import { visible } from './visible.js';

const KNOWN_ORIGINS = ['default', 'environment', 'command line'];

/** Each setting with its value, where that came from, and what it is for. */
export class NaviSetupSettings extends NaviElement {
  static properties = { _list: { state: true }, _query: { state: true }, _only_set: { state: true } };

  constructor() {
    super();
    /** @type {SettingList | null} */
    this._list = null;
    this._query = '';
    this._only_set = false;
    this._asking = new Asking(this);
  }

  firstUpdated() {
    this.#load();
  }

  updated() {
    // Without them it says what it is for in English.
    loadPurposes().catch(() => {});
  }

  render() {
    const list = this._list;
    const found = list === null ? [] : settingsFor(list.settings.map(withPurpose), this._query, this._only_set);
    return html`${this._asking.card(() => this.#load())}
      ${list === null ? nothing : html`<p class="quiet">${withCode(t('setup.settings.hint', { file: list.file }))}</p>
      <div class="panel-tools">
        <label class="search">${icons.search}<input type="search" data-testid="settings-filter" placeholder=${t('setup.settings.filter')} aria-label=${t('setup.settings.filter')}
          .value=${this._query} @input=${(/** @type {InputEvent} */ event) => { this._query = /** @type {HTMLInputElement} */ (event.target).value; }}></label>
        <label class="check-label"><input type="checkbox" data-testid="settings-only-set" .checked=${this._only_set}
          @change=${(/** @type {Event} */ event) => { this._only_set = /** @type {HTMLInputElement} */ (event.target).checked; }}>${t('setup.settings.only_set')}</label>
      </div>
      ${found.length > 0 ? nothing : html`<p class="quiet panel-empty" role="status" data-testid="settings-empty">${t('setup.settings.nothing')}</p>`}
      ${repeat(found, ({ section }) => section, ({ section, settings }) => html`<h3><code>[${section}]</code></h3>
        <ul class="rows">${repeat(settings, ({ key }) => key, row)}</ul>`)}`}`;
  }

  #load() {
    void this._asking.ask(async () => { this._list = await api.settings(); });
  }
}

/** @param {ShownValue} setting */
function row(setting) {
  const { key, variable, description, secret, value, origin } = setting;
  const known = KNOWN_ORIGINS.includes(origin);
  return html`<li class="row" data-testid="setting" data-key=${key} data-origin=${known ? origin : 'file'}><div class="row-text">
    <p class="row-title setting-head"><code>${namesOf(setting).name}</code>
      ${value === null ? html`<span class="quiet">${t('setup.settings.unset')}</span>` : secret ? html`<span class="quiet">${t('setup.settings.hidden')}</span>` : html`<code class="setting-value">${visible(value)}</code>`}</p>
    <p class="row-note">${withCode(description)}</p>
    <p class="row-note"><code>${variable}</code>${value === null ? nothing : html` · <span class=${isSet(setting) ? 'tag' : ''}>${known ? t(`setup.origin.${origin.replace(' ', '_')}`) : t('setup.origin.file', { file: origin })}</span>`}</p></div></li>`;
}

customElements.define('navi-setup-settings', NaviSetupSettings);
