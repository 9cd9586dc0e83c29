import { comeIn } from '../app/account.js';
import { lookAround } from '../app/actions.js';
import { passkeysHere, passkeyWords, signInByPasskey } from '../app/passkeys.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText } from './fields.js';
import { icons } from './icons.js';

/** The way in by a passkey; where there is none at this address, where there is one. */
export class NaviPasskeySignIn extends NaviElement {
  static properties = { at: { attribute: false } };

  #ending = new AbortController();

  constructor() {
    super();
    /** The page's address at which they work. @type {string | undefined} */
    this.at = undefined;
    this._asking = new Asking(this);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#ending.abort();
  }

  render() {
    const place = passkeysHere(this.at);
    if (place === 'nowhere') return nothing;
    if (place !== 'here') return passkeysElsewhere(place, this.at);
    const { busy, problem } = this._asking;
    return html`<button type="button" class="button plain" data-testid="signin-passkey" ?disabled=${busy}
      @click=${() => void this.#enter()}>${icons.key}${t('passkeys.sign_in')}</button>
      ${busy ? html`<p class="quiet" role="status">${t('passkeys.waiting')}</p>` : nothing}
      ${fault(faultText(problem, { ...passkeyWords(), unauthorized: t('passkeys.fault.refused') }))}`;
  }

  async #enter() {
    this.#ending.abort();
    this.#ending = new AbortController();
    const { signal } = this.#ending;
    await this._asking.ask(async () => {
      const { key } = await signInByPasskey(signal);
      if (await comeIn(key)) await lookAround();
    });
    if (this._asking.problem === null) return;
    await this.updateComplete;
    this.querySelector('button')?.focus();
  }
}

/** Why there are none here. @param {'elsewhere' | 'nowhere' | 'unsupported'} place @param {string | undefined} at */
export function passkeysElsewhere(place, at) {
  return html`<p class="quiet" data-testid="passkeys-place" data-place=${place}>${t(`passkeys.place.${place}`)}
    ${place === 'elsewhere' ? html`<a href=${at ?? ''}>${at}</a>` : nothing}</p>`;
}

customElements.define('navi-passkey-sign-in', NaviPasskeySignIn);
