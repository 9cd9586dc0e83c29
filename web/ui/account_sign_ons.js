/** @import { LinkedSignOn } from '../state/wire.js' */

import { showAccount } from '../app/account.js';
import { linkThere } from '../app/sign_on.js';
import { account } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { people } from '../net/people.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText, field, proofFault } from './fields.js';
import { formatTime } from './format.js';
import { icons } from './icons.js';
import { visible } from './visible.js';

/** What a proxy in front is called in the place of an address. */
const PROXY = 'proxy';

/** The accounts elsewhere by which one comes in; each can be linked and unlinked. */
export class NaviAccountSignOns extends NaviElement {
  static properties = { _linked: { state: true }, _password: { state: true } };

  constructor() {
    super();
    /** @type {LinkedSignOn[] | null} */
    this._linked = null;
    this._password = '';
    this._asking = new Asking(this);
    this._linking = new Asking(this);
  }

  firstUpdated() {
    this.#ask(async () => {});
  }

  render() {
    const linked = this._linked;
    const { provider = null, has_password = false } = account.get() ?? {};
    const { problem } = this._asking;
    // Who has no password and one account elsewhere would be locked out.
    const words = { forbidden: t('account.unlink_last') };
    return html`<p class="quiet">${t('account.sign_ons_hint')}</p>
      ${fault(faultText(problem, words))}
      ${linked === null
        ? nothing
        : linked.length === 0
          ? html`<p class="quiet panel-empty" data-testid="sign-ons-empty">${t('account.sign_ons_empty')}</p>`
        : html`<ul class="rows">${repeat(linked, ({ id }) => id, (one) => this.#row(one))}</ul>`}
      ${provider === null ? nothing : this.#link(provider, has_password)}`;
  }

  /** @param {string} provider @param {boolean} has_password */
  #link(provider, has_password) {
    return html`<form class="person-form"
      @submit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        void this._linking.ask(() => linkThere({ current_password: this._password }));
      }}>
      ${has_password
        ? field({
          id: 'link-password', label: t('account.password_current'), type: 'password', value: this._password,
          autocomplete: 'current-password', oninput: (value) => { this._password = value; },
        })
        : nothing}
      ${fault(proofFault(this._linking.problem))}
      <button class="button small soft" data-testid="link"
        ?disabled=${this._linking.busy
          || (has_password && this._password === '')}>${t('account.link', { name: provider })}</button></form>`;
  }

  /** @param {LinkedSignOn} linked */
  #row({ id, iss, address, created_at, last_used_at }) {
    const name = iss === PROXY ? t('account.sign_on_proxy') : iss.replace(/^https?:[/][/]/, '');
    return html`<li class="row" data-testid="sign-on"><span class="row-icon">${icons.key}</span>
      <div class="row-text"><p class="row-title" dir="auto">${visible(name)}</p>
        <p class="row-note">${address === null
          ? nothing
          : html`<span dir="auto">${visible(address)}</span> · `}${t('account.device_since',
            { at: formatTime(created_at) })}${last_used_at === null
              ? nothing
              : html` · ${t('account.device_used', { at: formatTime(last_used_at) })}`}</p></div>
      <button type="button" class="button small plain danger" data-testid="unlink"
        aria-label="${t('account.unlink')}: ${name}" ?disabled=${this._asking.busy}
        @click=${() => this.#ask(() => people.unlink(id))}>${t('account.unlink')}</button></li>`;
  }

  /** Does it, and shows what is left. @param {() => Promise<unknown>} request */
  #ask(request) {
    void this._asking.ask(async () => {
      await request();
      this._linked = await people.signOns();
      await showAccount(await people.account());
    });
  }
}

customElements.define('navi-account-sign-ons', NaviAccountSignOns);
