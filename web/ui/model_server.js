// A model server by its address and key: tried first, then used. In a form of somebody else's it stays a part of that.

/** @import { ModelServerFound, SettingList } from '../state/wire.js' */

import { showToast } from '../app/actions.js';
import { hasText, loadTroubles, t } from '../i18n/index.js';
import { html, live, nothing } from '../lit.js';
import { api } from '../net/api.js';
import { ofSame } from '../state/draft.js';
import { fixedOf, MODEL_SERVER } from '../state/setup.js';
import { Asking } from './asking.js';
import { withCode } from './cards.js';
import { NaviElement } from './element.js';
import { field } from './fields.js';
import { visible } from './visible.js';

export class NaviModelServer extends NaviElement {
  static properties = {
    place: {}, _address: { state: true }, _key: { state: true }, _found: { state: true },
    _model: { state: true }, _list: { state: true },
  };

  constructor() {
    super();
    /** By which its fields are told from those of another one. */
    this.place = 'here';
    this._address = '';
    this._key = '';
    /** What answered there. @type {ModelServerFound | null} */
    this._found = null;
    this._model = '';
    /** @type {SettingList | null} */
    this._list = null;
    /** What was asked last, to ask it again. */
    this._again = () => this.#load();
    this._asking = new Asking(this);
  }

  connectedCallback() {
    super.connectedCallback();
    this.#load();
  }

  render() {
    const list = this._list;
    if (list === null || !hasText('setup.server.try')) return this.#trouble();
    const fixed = fixedOf(list.settings);
    if (fixed !== null) return html`<p class="quiet"
      data-testid="server-fixed">${withCode(t('setup.server.fixed', { name: fixed }))}</p>`;
    const { busy } = this._asking;
    const can_use = (this._found?.models.length ?? 0) > 0;
    return html`<div class="model-server" data-testid="model-server"
      @keydown=${(/** @type {KeyboardEvent} */ event) => this.#onKey(event)}>
      <p class="quiet">${t('setup.server.hint')}</p>
      ${field({ id: `${this.place}-server-address`, testid: 'server-address', label: t('setup.server.address'),
        value: this._address, placeholder: 'https://api.example.com/v1', max: 2048,
        oninput: (_address) => this.#write({ _address }) })}
      ${field({ id: `${this.place}-server-key`, testid: 'server-key', label: t('setup.server.key'),
        value: this._key, type: 'password', autocomplete: 'new-password', max: 4096,
        hint: t('setup.server.key_hint', { file: list.file }),
        oninput: (_key) => this.#write({ _key }) })}
      ${this.#trouble()}
      ${this._found === null ? nothing : this.#choice(this._found)}
      <p class="row-actions"><button type="button" class="button small ${can_use ? 'plain' : ''}"
        data-testid="server-try" ?disabled=${busy || this._address.trim() === ''}
        @click=${() => this.#try()}>${t('setup.server.try')}</button>
        ${can_use
          ? html`<button type="button" class="button small" data-testid="server-use" ?disabled=${busy}
            @click=${() => this.#use()}>${t('setup.server.use')}</button>`
          : nothing}
        ${busy ? html`<span role="status"><span class="spinner"
          aria-hidden="true"></span>${t('setup.server.waits')}</span>` : nothing}</p></div>`;
  }

  /** @param {ModelServerFound} found */
  #choice({ models }) {
    if (models.length === 0) return html`<p class="row-note warn" role="status"
      data-testid="server-empty">${t('setup.server.none')}</p>`;
    return html`<p role="status" data-testid="server-found">${t('setup.server.found', { n: models.length })}</p>
      <div class="field"><label for="${this.place}-server-model">${t('setup.server.model')}</label><select
        id="${this.place}-server-model" data-testid="server-model"
        @change=${(/** @type {Event} */ event) => {
          this._model = /** @type {HTMLSelectElement} */ (event.target).value;
        }}>
        ${models.map(({ name }) => html`<option value=${name}
          .selected=${live(name === this._model)}>${visible(name)}</option>`)}</select></div>`;
  }

  /** What another one changed meanwhile is read anew first. */
  #trouble() {
    return this._asking.problem?.code === 'change_conflict'
      ? this._asking.card(() => this.#load(), t('setup.diagnostics.again'))
      : this._asking.card(this._again);
  }

  /** The form around it is not meant. @param {KeyboardEvent} event */
  #onKey(event) {
    if (event.key !== 'Enter' || event.isComposing || !(event.target instanceof HTMLInputElement)) return;
    event.preventDefault();
    if (this._address.trim() !== '' && !this._asking.busy) this.#try();
  }

  #load() {
    this._again = () => this.#load();
    void this._asking.ask(async () => {
      const [list] = await Promise.all([api.settings(), loadTroubles()]);
      // What somebody has begun to write stays.
      if (this._list === null)
        this._address = list.settings.find(({ key }) => key === MODEL_SERVER.address)?.value ?? '';
      this._list = list;
    });
  }

  /** What stands in the fields; an empty key is the one that was given for this server before. */
  #server() {
    const api_key = this._key.trim();
    return { base_url: this._address.trim(), ...(api_key !== '' && { api_key }) };
  }

  /** What was found or refused was another one. @param {{ _address: string } | { _key: string }} change */
  #write(change) {
    Object.assign(this, change);
    this._found = null;
    this._asking.problem = null;
  }

  #try() {
    this._found = null;
    this._again = () => this.#try();
    void this._asking.ask(async () => {
      const found = await ofSame(() => this.#server(), () => api.tryModelServer(this.#server()));
      if (found === null) return;
      const names = found.models.map(({ name }) => name);
      if (!names.includes(this._model)) this._model = names[0] ?? '';
      this._found = found;
    });
  }

  #use() {
    this._again = () => this.#use();
    void this._asking.ask(async () => {
      const model = this._model;
      const key = this._key;
      this._list = await api.useModelServer({ version: this._list?.version ?? '', model, ...this.#server() });
      // What was written meanwhile is for another one.
      if (this._key === key) this._key = '';
      this._found = null;
      showToast(t('setup.server.used', { model }));
      this.dispatchEvent(new CustomEvent('navi-model-used', { detail: model, bubbles: true }));
    });
  }
}

customElements.define('navi-model-server', NaviModelServer);
