/** @import { AccountInfo } from '../state/wire.js' */

import { showAccount } from '../app/account.js';
import { showToast } from '../app/actions.js';
import { account } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { people } from '../net/people.js';
import { faultIn, NAME_CHARS } from '../state/people.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, field, proofFault, showSwitch, shownOnce } from './fields.js';

/** Name and password, and the codes that stand in for the password. */
export class NaviAccountProfile extends NaviElement {
  static properties = {
    _name: { state: true }, _password: { state: true }, _current: { state: true }, _shown: { state: true },
    _fault: { state: true }, _codes: { state: true },
  };

  constructor() {
    super();
    /** As it is written; null where it is as it was. @type {string | null} */
    this._name = null;
    this._password = '';
    this._current = '';
    this._shown = false;
    /** @type {'name' | 'password' | null} */
    this._fault = null;
    /** Those that were just made. @type {string[]} */
    this._codes = [];
    this._asking = new Asking(this);
    this._making = new Asking(this);
  }

  render() {
    const who = account.get();
    if (who === null) return nothing;
    const { has_password } = who;
    const has_way = has_password || who.passkeys > 0 || who.sign_ons > 0;
    const type = this._shown ? 'text' : 'password';
    return html`<p class="quiet">${has_way
      ? t('account.role', { role: t(`role.${who.role}`) })
      : t('account.notice')} ${has_way ? t(`role.${who.role}.text`) : nothing}</p>
      <form class="person-form" data-testid="account-form"
        @submit=${(/** @type {Event} */ event) => { event.preventDefault(); void this.#save(); }}>
        ${field({
          id: 'account-new-name', label: t('signin.name'), value: this._name ?? who.name,
          autocomplete: 'username', max: NAME_CHARS, hint: t('account.name_hint'),
          oninput: (value) => { this._name = value; },
        })}
        ${field({
          id: 'account-password', label: t(has_password ? 'account.password_new' : 'signin.password'), type,
          value: this._password, autocomplete: 'new-password',
          hint: t(has_password ? 'account.password_new_hint' : 'account.password_hint'),
          oninput: (value) => { this._password = value; },
        })}
        ${has_password
          ? field({
            id: 'account-current', label: t('account.password_current'), type, value: this._current,
            autocomplete: 'current-password', oninput: (value) => { this._current = value; },
          })
          : nothing}
        ${showSwitch(this._shown, (shown) => { this._shown = shown; })}
        ${fault(this._fault === null ? this.#refusal() : t(`account.fault.${this._fault}`))}
        <button class="button small" data-testid="account-save"
          ?disabled=${this._asking.busy || (has_password && this._current === '')}>${t('queue.save')}</button>
      </form>
      ${has_way ? this.#recovery(who) : nothing}`;
  }

  /** @param {AccountInfo} who */
  #recovery({ recovery_codes: left, has_password }) {
    return html`<h3>${t('account.codes')}</h3>
      <p class="quiet">${t('account.codes_hint')}
        <span data-testid="codes-left">${t('account.codes_left', { n: left })}</span></p>
      ${this._codes.length === 0
        ? nothing
        : shownOnce(t('account.once'), t('account.codes'), this._codes.join('\n'), 'codes')}
      ${fault(proofFault(this._making.problem))}
      <p class="row-actions"><button type="button" class="button small soft" data-testid="codes-make"
        ?disabled=${this._making.busy || (has_password && this._current === '')}
        @click=${() => this.#make()}>${t('account.codes_make')}</button>
        ${has_password && this._current === '' ? html`<span class="quiet">${t('account.codes_proof')}</span>` : nothing}
        ${left === 0 ? nothing : html`<span class="quiet">${t('account.codes_void')}</span>`}</p>`;
  }

  #refusal() {
    // The others are found before they are sent.
    return proofFault(this._asking.problem);
  }

  async #save() {
    const who = account.get();
    if (who === null) return;
    const name = (this._name ?? who.name).trim();
    const keeps = who.has_password && this._password === '';
    this._asking.problem = null;
    this._fault = faultIn(name, keeps ? null : this._password);
    if (this._fault !== null) return;
    await this._asking.ask(async () => {
      await showAccount(await people.changeAccount({
        ...(name === who.name ? {} : { name }),
        ...(keeps ? {} : { password: this._password }),
        ...(who.has_password ? { current_password: this._current } : {}),
      }));
      this._name = null;
      this._password = this._current = '';
      showToast(t('account.saved'));
    });
  }

  #make() {
    void this._making.ask(async () => {
      this._codes = (await people.makeRecoveryCodes({ current_password: this._current })).codes;
      this._current = '';
      await showAccount(await people.account());
    });
  }
}

customElements.define('navi-account-profile', NaviAccountProfile);
