// How one comes in, where this browser is not signed in.

/** @import { WaysIn } from '../state/wire.js' */

import { comeIn } from '../app/account.js';
import { lookAround, pageError } from '../app/actions.js';
import { hasLeft, signInThere } from '../app/sign_on.js';
import { returned, signedOut } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { people } from '../net/people.js';
import { NAME_CHARS } from '../state/people.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText, field, showSwitch } from './fields.js';
import { mark } from './icons.js';
import './passkey_sign_in.js';

export class NaviSignIn extends NaviElement {
  static properties = {
    _ways: { state: true }, _name: { state: true }, _secret: { state: true }, _by_code: { state: true },
    _shown: { state: true }, _arriving: { state: true },
  };

  constructor() {
    super();
    /** Whether people sign in here, and by what; null until that is known. @type {WaysIn | null} */
    this._ways = null;
    this._name = '';
    /** The password, or a recovery code. */
    this._secret = '';
    this._by_code = false;
    this._shown = false;
    /** Whether it is found out what came of another's word. */
    this._arriving = false;
    this._asking = new Asking(this);
    /** What comes of a provider, or of a proxy. */
    this._elsewhere = new Asking(this);
  }

  firstUpdated() {
    void this.#look();
  }

  render() {
    // Who comes back sees nothing that they could fill in, until it is known what came of it.
    if (this._ways === null || this._arriving) return html`<main class="signin starting" aria-busy="true"
      data-testid="starting"><span class="welcome-mark">${mark}</span></main>`;
    return this._ways.accounts ? this.#form(this._ways) : link();
  }

  /** @param {WaysIn} ways */
  #form({ passkeys_at, provider, proxy }) {
    const words = {
      unauthorized: t(this._by_code ? 'signin.wrong_code' : 'signin.wrong'), rate_limited: t('signin.too_many'),
    };
    const { busy } = this._asking;
    return html`<main class="signin" data-testid="sign-in" data-by=${this._by_code ? 'code' : 'password'}>
      <span class="welcome-mark">${mark}</span>
      <h1>${t('signin.open')}</h1>
      ${provider == null && proxy == null && this._elsewhere.problem === null ? nothing : html`<div class="person-form">
        ${fault(faultText(this._elsewhere.problem, { rate_limited: t('signin.too_many') }))}
        ${proxy == null
          ? nothing
          : html`<button type="button" class="button" data-testid="signin-proxy"
            ?disabled=${busy || this._elsewhere.busy}
            @click=${() => this.#byProxy()}>${t('signin.proxy', { name: proxy })}</button>`}
        ${provider == null
          ? nothing
          : html`<button type="button" class="button" data-testid="signin-provider"
            ?disabled=${busy || this._elsewhere.busy}
            @click=${() => this.#byProvider()}>${t('signin.provider', { name: provider })}</button>`}
        ${provider == null && proxy == null ? nothing : html`<p class="quiet">${t('signin.or')}</p>`}
      </div>`}
      <form class="person-form"
        @submit=${(/** @type {Event} */ event) => { event.preventDefault(); void this.#enter(); }}>
        ${field({
          id: 'signin-name', label: t('signin.name'), value: this._name, autocomplete: 'username',
          max: NAME_CHARS, oninput: (value) => { this._name = value; },
        })}
        ${this._by_code
          ? field({
            id: 'signin-code', label: t('signin.code'), value: this._secret,
            oninput: (value) => { this._secret = value; },
          })
          : html`${
            field({ id: 'signin-password', label: t('signin.password'), type: this._shown ? 'text' : 'password',
              value: this._secret, autocomplete: 'current-password', oninput: (value) => { this._secret = value; } })}
            ${showSwitch(this._shown, (shown) => { this._shown = shown; })}`}
        ${fault(faultText(this._asking.problem, words))}
        <button class="button" data-testid="signin-submit"
          ?disabled=${this._asking.busy || this._name.trim() === '' || this._secret === ''}>${t('signin.open')}</button>
        <button type="button" class="link-button" data-testid="signin-other"
          @click=${() => void this.#change()}>${t(this._by_code ? 'signin.use_password' : 'signin.use_code')}</button>
      </form>
      <navi-passkey-sign-in .at=${passkeys_at}></navi-passkey-sign-in>
      <p class="quiet">${t('signin.forgotten')}</p>
      ${signedOut.get()
        ? nothing
        : html`<button type="button" class="link-button" data-testid="signin-leave"
          @click=${() => returned.set(null)}>${t('invitation.leave')}</button>`}
    </main>`;
  }

  async #look() {
    const answer = returned.get();
    this._arriving = answer !== null;
    try {
      this._ways = await people.waysIn();
    } catch (error) {
      // Nobody said that people sign in: the link always does.
      if (pageError(error).code !== 'unauthorized') this._ways = { accounts: false };
    }
    if (answer !== null) await this.#enterBy(() => people.finishSignOn(answer));
    else if (this._ways?.proxy != null && !hasLeft()) await this.#byProxy();
    this._arriving = false;
    await this.updateComplete;
    // On a phone the keyboard would cover the form.
    if (matchMedia('(hover: hover)').matches) this.#focus('#signin-name');
  }

  #byProvider() {
    void this._elsewhere.ask(() => signInThere());
  }

  #byProxy() {
    return this.#enterBy(() => people.signInByProxy());
  }

  /** Comes in by another's word. @param {() => Promise<{ key: string }>} proof */
  #enterBy(proof) {
    return this._elsewhere.ask(async () => {
      const { key } = await proof();
      if (await comeIn(key)) await lookAround();
      returned.set(null);
    });
  }

  async #change() {
    this._by_code = !this._by_code;
    this._secret = '';
    this._asking.problem = null;
    await this.updateComplete;
    this.#focus(this._name === '' ? '#signin-name' : this.#field);
  }

  async #enter() {
    await this._asking.ask(async () => {
      const name = this._name.trim();
      const { key } = await people.signIn(this._by_code
        ? { name, recovery_code: this._secret.trim() }
        : { name, password: this._secret });
      if (await comeIn(key)) await lookAround();
      returned.set(null);
    });
    if (this._asking.problem === null) return;
    this._secret = '';
    await this.updateComplete;
    this.#focus(this.#field);
  }

  get #field() {
    return this._by_code ? '#signin-code' : '#signin-password';
  }

  /** @param {string} selector */
  #focus(selector) {
    /** @type {HTMLElement | null} */ (this.querySelector(selector))?.focus();
  }
}

/** The way in of whose machine it is. */
function link() {
  return html`<main class="signin" data-testid="sign-in" data-by="link">
    <span class="welcome-mark">${mark}</span>
    <h1>${t('signin.title')}</h1>
    <p>${t('signin.text')}</p>
    <pre><code>navi link</code></pre>
  </main>`;
}

customElements.define('navi-sign-in', NaviSignIn);
