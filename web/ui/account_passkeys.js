/** @import { AccountInfo, PasskeyInfo } from '../state/wire.js' */

import { loadAccount } from '../app/account.js';
import { makePasskey, passkeysHere, passkeyWords } from '../app/passkeys.js';
import { account } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat, signal } from '../lit.js';
import { passkeys } from '../net/passkeys.js';
import { people } from '../net/people.js';
import { MOST_PASSKEYS, PASSKEY_NAME_CHARS } from '../state/passkeys.js';
import { browserName } from '../state/people.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText, field, proofFault, showSwitch } from './fields.js';
import { formatTime } from './format.js';
import { icons } from './icons.js';
import { passkeysElsewhere } from './passkey_sign_in.js';
import { visible } from './visible.js';

/** The one that is to be called something else: it outlives a look elsewhere. */
const renaming = signal(/** @type {{ id: string, name: string } | null} */ (null));

/** By what one signs in without a password. */
export class NaviAccountPasskeys extends NaviElement {
  static properties = {
    _passkeys: { state: true }, _at: { state: true }, _removing: { state: true }, _name: { state: true },
    _password: { state: true }, _shown: { state: true },
  };

  #ending = new AbortController();

  constructor() {
    super();
    /** @type {PasskeyInfo[] | null} */
    this._passkeys = null;
    /** Where they work. @type {string | undefined} */
    this._at = undefined;
    /** The one of which it is asked whether it shall go. */
    this._removing = '';
    this._name = (browserName(navigator.userAgent) ?? '').slice(0, PASSKEY_NAME_CHARS);
    this._password = '';
    this._shown = false;
    this._asking = new Asking(this);
    this._making = new Asking(this);
  }

  /** A form in which nobody wrote does not outlive it. */
  disconnectedCallback() {
    super.disconnectedCallback();
    this.#ending.abort();
    const open = renaming.get();
    if (this._passkeys?.some(({ id, name }) => id === open?.id && name === open.name)) renaming.set(null);
  }

  firstUpdated() {
    this.#ask(async () => { this._at = (await people.waysIn()).passkeys_at; });
  }

  render() {
    const { _passkeys: all } = this;
    const who = account.get();
    return html`<p class="quiet">${t('passkeys.hint')}</p>
      ${fault(faultText(this._asking.problem, { forbidden: t('passkeys.fault.last') }))}
      ${all === null || who === null
        ? nothing
        : html`${all.length === 0
          ? html`<p class="quiet panel-empty" data-testid="passkeys-empty">${t('passkeys.empty')}</p>`
        : html`<ul class="rows">${repeat(all, ({ id }) => id, (passkey) => this.#row(passkey))}</ul>`}
        ${this.#making(who, all.length)}`}`;
  }

  /** @param {AccountInfo} who @param {number} many */
  #making(who, many) {
    const place = passkeysHere(this._at);
    if (place !== 'here') return passkeysElsewhere(place, this._at);
    if (many >= MOST_PASSKEYS) return html`<p class="quiet"
      data-testid="passkeys-most">${t('passkeys.most', { n: MOST_PASSKEYS })}</p>`;
    const { busy, problem } = this._making;
    return html`<h3 id="passkey-new">${t('passkeys.new')}</h3>
      <form class="person-form" aria-labelledby="passkey-new"
        @submit=${(/** @type {Event} */ event) => { event.preventDefault(); void this.#make(who.has_password); }}>
        ${field({
          id: 'passkey-name', label: t('passkeys.name'), value: this._name, max: PASSKEY_NAME_CHARS,
          hint: t('passkeys.name_hint'), oninput: (value) => { this._name = value; },
        })}
        ${who.has_password
          ? html`${
            field({ id: 'passkey-password', label: t('account.password_current'),
              type: this._shown ? 'text' : 'password', value: this._password, autocomplete: 'current-password',
              oninput: (value) => { this._password = value; } })}
          ${showSwitch(this._shown, (shown) => { this._shown = shown; })}` : nothing}
        ${busy ? html`<p class="quiet" role="status">${t('passkeys.waiting')}</p>` : nothing}
        ${fault(proofFault(problem, passkeyWords()))}
        <button class="button small" data-testid="passkey-make"
          ?disabled=${busy || this._name.trim() === ''
            || (who.has_password && this._password === '')}>${t('passkeys.make')}</button>
      </form>`;
  }

  /** @param {PasskeyInfo} passkey */
  #row({ id, name, host, created_at, last_used_at }) {
    const is_elsewhere = this._at !== undefined && new URL(this._at).hostname !== host;
    return html`<li class="row" data-testid="passkey" data-name=${name}><span class="row-icon">${icons.key}</span>
      <div class="row-text"><p class="row-title"
        dir="auto">${visible(name)} ${is_elsewhere
          ? html`<span class="tag" title=${t('passkeys.other_host')}>${visible(host)}</span>`
          : nothing}</p>
        <p class="row-note">${t('passkeys.since', { at: formatTime(created_at) })} ·
          ${last_used_at === null
            ? t('account.token_unused')
            : t('account.device_used', { at: formatTime(last_used_at) })}</p>
        ${this.#below(id)}</div>
      ${renaming.get()?.id === id || this._removing === id
        ? nothing
        : html`<button type="button" class="button small plain" data-testid="passkey-rename"
          aria-label="${t('passkeys.rename')}: ${name}" ?disabled=${this._asking.busy}
          @click=${() => void this.#call(id, name)}>${t('passkeys.rename')}</button>
      <button type="button" class="button small plain danger" data-testid="passkey-remove"
        aria-label="${t('account.token_remove')}: ${name}" ?disabled=${this._asking.busy}
        @click=${() => void this.#doubt(id)}>${t('account.token_remove')}</button>`}</li>`;
  }

  /** What is being done with it. @param {string} id */
  #below(id) {
    if (this._removing === id) {
      return html`<p class="row-note">${t('passkeys.remove_question')}</p>
        <p class="row-actions"><button type="button" class="button small destructive"
          data-testid="passkey-remove-yes" @click=${() => this.#remove(id)}>${t('account.token_remove')}</button>
          <button type="button" class="button small plain" data-testid="passkey-remove-no"
            @click=${() => { this._removing = ''; }}>${t('queue.cancel')}</button></p>`;
    }
    const open = renaming.get();
    if (open?.id !== id) return nothing;
    return html`<form @submit=${(/** @type {Event} */ event) => { event.preventDefault(); this.#rename(open); }}>
      ${field({
        id: 'passkey-new-name', label: t('passkeys.name'), value: open.name, max: PASSKEY_NAME_CHARS,
        oninput: (name) => renaming.set({ id, name }),
      })}
      <p class="row-actions"><button class="button small" data-testid="passkey-rename-save"
        ?disabled=${this._asking.busy || open.name.trim() === ''}>${t('queue.save')}</button>
        <button type="button" class="button small plain"
          @click=${() => renaming.set(null)}>${t('queue.cancel')}</button></p></form>`;
  }

  /** @param {string} id */
  async #doubt(id) {
    this._removing = id;
    await this.updateComplete;
    this.#focus('[data-testid="passkey-remove-no"]');
  }

  /** @param {string} id @param {string} name */
  async #call(id, name) {
    renaming.set({ id, name });
    this._removing = '';
    await this.updateComplete;
    this.#focus('#passkey-new-name');
  }

  /** The form closes once the service has the name. @param {{ id: string, name: string }} open */
  #rename(open) {
    this.#ask(async () => {
      await passkeys.rename(open.id, open.name.trim());
      if (renaming.get() === open) renaming.set(null);
    });
  }

  /** @param {string} id */
  #remove(id) {
    this._removing = '';
    this.#ask(async () => {
      await passkeys.remove(id);
      await loadAccount();
    });
  }

  /** @param {boolean} has_password */
  async #make(has_password) {
    this.#ending.abort();
    this.#ending = new AbortController();
    const { signal } = this.#ending;
    await this._making.ask(async () => {
      await makePasskey({
        name: this._name.trim(), ...(has_password ? { current_password: this._password } : {}),
      }, signal);
      this._password = '';
      this._passkeys = await passkeys.list();
      await loadAccount();
    });
    if (this._making.problem === null) return;
    await this.updateComplete;
    this.#focus(has_password ? '#passkey-password' : '#passkey-name');
  }

  /** @param {string} selector */
  #focus(selector) {
    /** @type {HTMLElement | null} */ (this.querySelector(selector))?.focus();
  }

  /** Does it, and shows what is left. @param {() => Promise<unknown>} request */
  #ask(request) {
    void this._asking.ask(async () => {
      await request();
      this._passkeys = await passkeys.list();
    });
  }
}

customElements.define('navi-account-passkeys', NaviAccountPasskeys);
