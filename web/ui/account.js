// One's own account: by what one signs in, where one is signed in, and the tokens of one's programs.

import { signOut } from '../app/account.js';
import { hasUnsent } from '../app/kept.js';
import { account, justLinked } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { Asking } from './asking.js';
import { fault, faultText } from './fields.js';
import { NaviPanel } from './panel.js';
import './account_archive.js';
import './account_devices.js';
import './account_limits.js';
import './account_passkeys.js';
import './account_profile.js';
import './account_sign_ons.js';
import './account_tokens.js';

const TABS = /** @type {const} */ (['profile', 'passkeys', 'sign_ons', 'devices', 'tokens']);
const CONTENTS = {
  profile: () => html`<navi-account-profile></navi-account-profile><navi-account-limits></navi-account-limits>
    <navi-account-archive></navi-account-archive>`,
  passkeys: () => html`<navi-account-passkeys></navi-account-passkeys>`,
  sign_ons: () => html`<navi-account-sign-ons></navi-account-sign-ons>`,
  devices: () => html`<navi-account-devices></navi-account-devices>`,
  tokens: () => html`<navi-account-tokens></navi-account-tokens>`,
};

export class NaviAccount extends NaviPanel {
  static properties = { _tab: { state: true }, _asks: { state: true } };

  constructor() {
    super();
    /** @type {typeof TABS[number]} */
    this._tab = justLinked.get() ? 'sign_ons' : 'profile';
    justLinked.set(false);
    /** Whether it is asked if what was not sent may go. */
    this._asks = false;
    this._asking = new Asking(this);
  }

  render() {
    const who = account.get();
    // Where there is no provider and no proxy, there is nothing to be linked.
    const elsewhere = who !== null && (who.provider !== null || who.sign_ons > 0);
    const tabs = TABS.filter((name) => name !== 'sign_ons' || elsewhere);
    return this.frame('account', t('account.open'), html`
      ${who === null ? nothing : html`<p class="account-who"><b dir="auto" data-testid="account-name">${who.name}</b>
        <span class="tag" data-testid="account-role" data-role=${who.role}>${t(`role.${who.role}`)}</span>
        <button type="button" class="button small plain" data-testid="sign-out" ?disabled=${this._asking.busy}
          @click=${() => void this.#leave()}>${t('account.sign_out')}</button></p>`}
      ${this._asks
        ? html`<section class="card pause" role="alertdialog"
          aria-label=${t('account.sign_out')}><div class="card-text"><p>${t('account.sign_out_question')}</p>
        <div class="card-actions"><button type="button" class="button small destructive"
          data-testid="sign-out-yes" @click=${() => this.#signOut()}>${t('account.sign_out')}</button>
          <button type="button" class="button small plain" data-testid="sign-out-no"
            @click=${() => { this._asks = false; }}>${t('queue.cancel')}</button></div></div></section>` : nothing}
      ${fault(faultText(this._asking.problem))}
      ${this.tabs(t('account.open'), tabs, this._tab, {
        title: (name) => t(`account.tab.${name}`),
        show: (name) => { this._tab = name; },
        content: CONTENTS[this._tab](),
      })}`);
  }

  async #leave() {
    if (!hasUnsent()) return this.#signOut();
    this._asks = true;
    await this.updateComplete;
    /** @type {HTMLElement | null} */ (this.querySelector('[data-testid="sign-out-no"]'))?.focus();
  }

  #signOut() {
    void this._asking.ask(signOut);
  }
}

customElements.define('navi-account', NaviAccount);
