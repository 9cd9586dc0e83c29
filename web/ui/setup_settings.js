/** @import { ShownValue, SettingList } from '../state/wire.js' */

import { showToast } from '../app/actions.js';
import { hasText, loadTroubles, t } from '../i18n/index.js';
import { loadPurposes, withPurpose } from '../i18n/purposes.js';
import { phraseText } from '../i18n/phrases.js';
import { html, live, nothing, repeat, signal } from '../lit.js';
import { api } from '../net/api.js';
import { isChangeable, isSet, namesOf, settingsFor } from '../state/setup.js';
import { Asking } from './asking.js';
import { withCode } from './cards.js';
import { NaviElement } from './element.js';
import { focusNext, focusOn } from './focus.js';
import { sentence } from './format.js';
import { icons } from './icons.js';
import { visible } from './visible.js';

const KNOWN_ORIGINS = ['default', 'environment', 'command line'];
/** What has several lines. */
const LONG = 'persona.text';

/** What is being changed, and what it is to be, by key: it outlives a look elsewhere. */
const texts = signal(/** @type {ReadonlyMap<string, string>} */ (new Map()));

/** Each setting with its value, where that came from, and what it is for; most are changed here. */
export class NaviSetupSettings extends NaviElement {
  static properties = { _list: { state: true }, _query: { state: true }, _only_set: { state: true } };

  constructor() {
    super();
    /** @type {SettingList | null} */
    this._list = null;
    this._query = '';
    this._only_set = false;
    /** What was asked last, to ask it again, and of which key. */
    this._again = () => this.#load();
    this._asked = '';
    this._asking = new Asking(this);
  }

  firstUpdated() {
    this.#load();
  }

  /** No secret outlives it, nor a form in which nobody wrote. */
  disconnectedCallback() {
    super.disconnectedCallback();
    const now = texts.get();
    const kept = this._list?.settings.filter((setting) => !setting.secret
      && now.has(setting.key) && now.get(setting.key) !== standing(setting));
    if (kept !== undefined && kept.length < now.size)
      texts.set(new Map(kept.map(({ key }) => [key, now.get(key) ?? ''])));
  }

  updated() {
    // Without them it says what it is for in English.
    loadPurposes().catch(() => {});
  }

  render() {
    const list = this._list;
    const found = list === null ? [] : settingsFor(list.settings.map(withPurpose), this._query, this._only_set);
    const has_form = texts.get().has(this._asked)
      && found.some(({ settings }) => settings.some(({ key }) => key === this._asked));
    return html`${has_form ? nothing : this.#trouble()}
      ${list === null ? nothing : html`<p class="quiet">${withCode(t('setup.settings.hint', { file: list.file }))}</p>
      ${hasText('setup.settings.edit') ? this.#news(list) : nothing}
      <div class="panel-tools">
        <label class="search">${icons.search}<input type="search" data-testid="settings-filter"
          placeholder=${t('setup.settings.filter')} aria-label=${t('setup.settings.filter')}
          .value=${this._query}
          @input=${(/** @type {InputEvent} */ event) => {
            this._query = /** @type {HTMLInputElement} */ (event.target).value;
          }}></label>
        <label class="check-label"><input type="checkbox" data-testid="settings-only-set" .checked=${this._only_set}
          @change=${(/** @type {Event} */ event) => {
            this._only_set = /** @type {HTMLInputElement} */ (event.target).checked;
          }}>${t('setup.settings.only_set')}</label>
      </div>
      ${found.length > 0
        ? nothing
        : html`<p class="quiet panel-empty" role="status"
          data-testid="settings-empty">${t('setup.settings.nothing')}</p>`}
      ${repeat(found, ({ section }) => section, ({ section, settings }) => html`<h3><code>[${section}]</code></h3>
        <ul class="rows">${repeat(settings, ({ key }) => key, (setting) => this.#row(setting))}</ul>`)}`}`;
  }

  /** What another one changed meanwhile is read anew first; what is written stays. */
  #trouble() {
    return this._asking.problem?.code === 'change_conflict'
      ? this._asking.card(() => this.#load(), t('setup.diagnostics.again'))
      : this._asking.card(this._again);
  }

  /** What waits for the next start, and the way back. @param {SettingList} list */
  #news({ settings, can_undo, problem }) {
    const waiting = settings.filter(({ pending }) => pending != null).length;
    return html`${
      problem == null
        ? nothing
        : html`<p class="row-note warn" role="status"
          data-testid="settings-problem">${t('setup.settings.problem')}
            ${withCode(sentence(phraseText(problem, problem.params?.text ?? '')))}</p>`}
      ${waiting === 0 && !can_undo ? nothing : html`<p class="row-actions">
        ${waiting === 0
          ? nothing
          : html`<span class="tag" role="status"
            data-testid="settings-waiting">${t('setup.settings.waiting', { n: waiting })}</span>`}
        ${can_undo
          ? html`<button type="button" class="button small plain" data-testid="settings-undo"
            ?disabled=${this._asking.busy} @click=${() => this.#undo()}>${t('setup.settings.undo')}</button>`
          : nothing}</p>`}`;
  }

  /** @param {ShownValue} setting */
  #row(setting) {
    const { key, variable, description, value, origin, pending } = setting;
    const known = KNOWN_ORIGINS.includes(origin);
    return html`<li class="row" data-testid="setting" data-key=${key}
      data-origin=${known ? origin : 'file'}><div class="row-text">
      <p class="row-title setting-head"><code>${namesOf(setting).name}</code>${valueOf(setting, value ?? null)}</p>
      <p class="row-note">${withCode(description)}</p>
      <p class="row-note"><code>${variable}</code>${
        value == null
          ? nothing
          : html` · <span class=${isSet(setting)
            ? 'tag'
            : ''}>${known
              ? t(`setup.origin.${origin.replace(' ', '_')}`)
              : t('setup.origin.file', { file: origin })}</span>`}</p>
      ${!hasText('setup.settings.edit') ? nothing : html`
        ${pending == null
          ? nothing
          : html`<p class="row-note warn"
            data-testid="setting-pending">${t('setup.settings.pending')}
              ${valueOf(setting, pending.value ?? null)}</p>`}
        ${texts.get().has(key) ? this.#form(setting) : this.#actions(setting)}`}</div></li>`;
  }

  /** @param {ShownValue} setting */
  #actions(setting) {
    const { key, file_only, in_file } = setting;
    if (file_only !== undefined) return html`<p class="row-note"
      data-testid="setting-held">${t(`setup.settings.file_only.${file_only}`)}</p>`;
    if (!isChangeable(setting)) return html`<p class="row-note"
      data-testid="setting-held">${t('setup.settings.fixed')}</p>`;
    const { name } = namesOf(setting);
    return html`<p class="row-actions"><button type="button" class="button small plain"
      data-testid="setting-edit" aria-label="${t('setup.settings.edit')}: ${name}"
      @click=${() => this.#open(setting)}>${icons.pencil}${t('setup.settings.edit')}</button>
      ${in_file
        ? html`<button type="button" class="button small plain" data-testid="setting-reset"
          aria-label="${t('setup.settings.reset')}: ${name}" ?disabled=${this._asking.busy}
          @click=${() => this.#reset(key)}>${t('setup.settings.reset')}</button>`
        : nothing}</p>`;
  }

  /** @param {ShownValue} setting */
  #form(setting) {
    const { key, secret } = setting;
    const label = t('setup.settings.value', { name: namesOf(setting).name });
    const text = texts.get().get(key) ?? '';
    const write = (/** @type {InputEvent} */ event) =>
      this.#keep(key, /** @type {HTMLInputElement} */ (event.target).value);
    return html`<form class="setting-form"
      @submit=${(/** @type {Event} */ event) => { event.preventDefault(); this.#save(setting); }}>
      <div class="field">${key === LONG
        ? html`<textarea data-testid="setting-value" rows="5" aria-label=${label} .value=${live(text)}
          @input=${write}></textarea>`
        : html`<input type=${secret ? 'password' : 'text'} data-testid="setting-value"
          autocomplete=${secret ? 'new-password' : 'off'} autocapitalize="off" spellcheck="false" dir="auto"
          aria-label=${label} .value=${live(text)}
          @input=${write}>`}
        <p class="quiet">${t(secret ? 'setup.settings.secret' : 'setup.settings.empty')}</p></div>
      ${this._asked === key ? this.#trouble() : nothing}
      <p class="row-actions"><button class="button small" data-testid="setting-save"
        ?disabled=${this._asking.busy}>${t('queue.save')}</button>
        <button type="button" class="button small plain" data-testid="setting-cancel"
          @click=${() => this.#close(key)}>${t('queue.cancel')}</button></p></form>`;
  }

  /** @param {ShownValue} setting */
  #open(setting) {
    const { key } = setting;
    this.#keep(key, standing(setting));
    void this.updateComplete.then(() => focusOn(this, partsOf(key)));
  }

  /** @param {string} key */
  #close(key) {
    if (this._asked === key) this._asking.problem = null;
    this.#keep(key, null);
    void focusNext(this, partsOf(key));
  }

  /** @param {string} key @param {string | null} text null for nothing any more: a secret stays nowhere */
  #keep(key, text) {
    const next = new Map(texts.get());
    if (text === null) next.delete(key);
    else next.set(key, text);
    texts.set(next);
  }

  #load() {
    this.#ask(() => this.#load(), this._asked, async () => {
      [this._list] = await Promise.all([api.settings(), loadTroubles()]);
    });
  }

  /** A secret that nobody wrote is not taken away. @param {ShownValue} setting */
  #save(setting) {
    const { key, secret } = setting;
    const text = texts.get().get(key) ?? '';
    if (secret && text.trim() === '') this.#close(key);
    else this.#write(key, text, () => this.#save(setting));
  }

  /** @param {string} key */
  #reset(key) {
    this.#write(key, null, () => this.#reset(key));
  }

  /** @param {string} key @param {string | null} text null for the default @param {() => void} again */
  #write(key, text, again) {
    this.#ask(again, key, async () => {
      this.#written(await api.changeSettings(this._list?.version ?? '', { [key]: text?.trim() || null }), key);
      // What was written while it was saved stays.
      if (texts.get().get(key) === text) this.#keep(key, null);
    });
  }

  #undo() {
    this.#ask(() => this.#undo(), '', async () =>
      this.#written(await api.undoSettings(this._list?.version ?? ''), null));
  }

  /** @param {() => void} again @param {string} key that it is about, if any @param {() => Promise<void>} request */
  #ask(again, key, request) {
    this._again = again;
    this._asked = key;
    void this._asking.ask(request).then(() => focusNext(this, partsOf(key)));
  }

  /** @param {SettingList} list @param {string | null} key of what was changed */
  #written(list, key) {
    this._list = list;
    const waits = list.settings.some((setting) => (key === null || setting.key === key) && setting.pending != null);
    showToast(t(waits ? 'setup.settings.saved' : 'setup.settings.saved_now'));
  }
}

/** Where the keyboard goes on: in the row that it was in, or above all. @param {string} key */
function partsOf(key) {
  if (key === '') return '[data-testid="settings-undo"], [data-testid="settings-filter"]';
  const row = `[data-testid="setting"][data-key="${CSS.escape(key)}"]`;
  return `${row} [data-testid="setting-value"], ${row} [data-testid="setting-edit"]`;
}

/** What it is, or is to be; of a secret nothing is told. @param {ShownValue} setting */
const standing = ({ secret, value, pending }) => (secret ? '' : (pending == null ? value : pending.value) ?? '');

/** @param {ShownValue} setting @param {string | null} value */
function valueOf({ secret }, value) {
  if (value === null) return html`<span class="quiet">${t('setup.settings.unset')}</span>`;
  return secret
    ? html`<span class="quiet">${t('setup.settings.hidden')}</span>`
    : html`<code class="setting-value">${visible(value)}</code>`;
}

customElements.define('navi-setup-settings', NaviSetupSettings);
