// An invitation that was opened: somebody new chooses a name and a password, or joins by a provider; somebody
// known chooses another password.

/** @import { InvitationOffer } from '../state/wire.js' */

import { comeIn } from '../app/account.js';
import { lookAround } from '../app/actions.js';
import { invitation } from '../app/signals.js';
import { signInThere } from '../app/sign_on.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { people } from '../net/people.js';
import { errorGroup } from '../state/errors.js';
import { faultIn, NAME_CHARS } from '../state/people.js';
import { Asking } from './asking.js';
import { withCode } from './cards.js';
import { NaviElement } from './element.js';
import { fault, faultText, field, showSwitch } from './fields.js';
import { formatTime } from './format.js';
import { mark } from './icons.js';

export class NaviInvitation extends NaviElement {
  static properties = {
    _offer: { state: true }, _name: { state: true }, _password: { state: true }, _shown: { state: true },
    _fault: { state: true },
  };

  constructor() {
    super();
    /** @type {InvitationOffer | null} */
    this._offer = null;
    /** The one that the offer is of. @type {string | null} */
    this._secret = null;
    this._name = '';
    this._password = '';
    this._shown = false;
    /** What is wrong with what was chosen. @type {'name' | 'password' | null} */
    this._fault = null;
    this._asking = new Asking(this);
    /** What comes of going to the provider. */
    this._elsewhere = new Asking(this);
  }

  updated() {
    // Another link may be opened in the same tab.
    const secret = invitation.get();
    if (secret === null || secret === this._secret) return;
    this._secret = secret;
    void this.#look(secret);
  }

  render() {
    invitation.get();
    const offer = this._offer;
    const reset = offer !== null && offer.name !== null;
    const { busy, problem } = this._asking;
    const code = problem?.code ?? '';
    const group = errorGroup(code);
    if (offer === null && problem === null) return html`<main class="signin starting" aria-busy="true"
      data-testid="starting"><span class="welcome-mark">${mark}</span></main>`;
    return html`<main class="signin" data-testid="invitation" data-role=${offer?.role ?? nothing}>
      <span class="welcome-mark">${mark}</span>
      <h1>${offer === null
        ? t(`error.${group}.title`)
        : t(reset ? 'invitation.reset_title' : 'invitation.title')}</h1>
      ${offer === null
        ? html`<p role="alert"
          data-testid="fault">${this.#words()[code] ?? withCode(t(`error.${group}.hint`))}</p>
        ${code === 'invitation_not_found'
          ? nothing
          : html`<button type="button" class="button" data-testid="invitation-again"
            @click=${() => this.#again()}>${t('subagent.retry')}</button>`}`
        : html`<p>${reset
          ? t('invitation.reset_text')
          : t('invitation.text', { role: t(`role.${offer.role}`) })}
            ${reset ? nothing : t(`role.${offer.role}.text`)}</p>
      ${offer.provider === null ? nothing : html`<div class="person-form">
        ${fault(faultText(this._elsewhere.problem, this.#words()))}
        <button type="button" class="button" data-testid="invitation-provider"
          ?disabled=${busy || this._elsewhere.busy}
          @click=${() => this.#byProvider()}>${t('invitation.provider', { name: offer.provider })}</button>
        <p class="quiet">${t('signin.or')}</p></div>`}
      <form class="person-form"
        @submit=${(/** @type {Event} */ event) => { event.preventDefault(); void this.#accept(); }}>
        ${field({
          id: 'invitation-name', label: t('signin.name'), value: this._name, autocomplete: 'username',
          max: NAME_CHARS, fixed: reset, hint: reset ? undefined : t('account.name_hint'),
          oninput: (value) => { this._name = value; },
        })}
        ${field({
          id: 'invitation-password', label: t('signin.password'), type: this._shown ? 'text' : 'password',
          value: this._password, autocomplete: 'new-password', hint: t('account.password_hint'),
          oninput: (value) => { this._password = value; },
        })}
        ${showSwitch(this._shown, (shown) => { this._shown = shown; })}
        ${fault(this._fault === null ? faultText(problem, this.#words()) : t(`account.fault.${this._fault}`))}
        <button class="button" data-testid="invitation-accept"
          ?disabled=${busy || this._elsewhere.busy}>${t('invitation.accept')}</button>
      </form>
      <p class="quiet">${t('invitation.until', { at: formatTime(offer.expires_at) })}</p>`}
      <button type="button" class="link-button" data-testid="invitation-leave"
        @click=${() => invitation.set(null)}>${t(offer === null ? 'invitation.go_on' : 'invitation.leave')}</button>
    </main>`;
  }

  /** @returns {Record<string, string>} */
  #words() {
    return { rate_limited: t('signin.too_many') };
  }

  /** @param {string} secret */
  async #look(secret) {
    this._offer = null;
    this._elsewhere.problem = null;
    await this._asking.ask(async () => {
      const offer = await people.offer(secret);
      this._name = offer.name ?? '';
      this._offer = offer;
    });
    await this.updateComplete;
    if (matchMedia('(hover: hover)').matches) /** @type {HTMLElement | null} */ (this.querySelector(
      'input:not([readonly]), [data-testid="invitation-again"]'))?.focus();
  }

  /** Nothing else asks for an offer that could not be read. */
  #again() {
    if (this._secret !== null) void this.#look(this._secret);
  }

  /** It is used up when they are back. */
  #byProvider() {
    const secret = this._secret;
    if (secret !== null) void this._elsewhere.ask(() => signInThere(secret));
  }

  async #accept() {
    this._fault = faultIn(this._name, this._password);
    const secret = this._secret;
    if (this._fault !== null || secret === null) return;
    await this._asking.ask(async () => {
      const { key } = await people.accept(secret, this._name, this._password);
      // Whoever was signed in here before is not any more.
      if (!await comeIn(key)) return;
      invitation.set(null);
      await lookAround();
    });
  }
}

customElements.define('navi-invitation', NaviInvitation);
