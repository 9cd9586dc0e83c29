/** @import { CreatedToken, Scope, TokenInfo } from '../state/wire.js' */

import { account } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, live, nothing, repeat } from '../lit.js';
import { people } from '../net/people.js';
import { SCOPES, TOKEN_DAYS, TOKEN_NAME_CHARS } from '../state/people.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText, field, proofFault, proofField, shownOnce } from './fields.js';
import { formatTime } from './format.js';
import { icons } from './icons.js';
import { visible } from './visible.js';

/** What a token is good for where nobody says otherwise: all but the answer to a request for consent. */
const USUAL = SCOPES.filter((scope) => scope !== 'consent');

/** The tokens by which programs come in. */
export class NaviAccountTokens extends NaviElement {
  static properties = {
    _tokens: { state: true }, _made: { state: true }, _removing: { state: true }, _name: { state: true },
    _days: { state: true }, _scopes: { state: true }, _password: { state: true },
  };

  constructor() {
    super();
    /** @type {TokenInfo[] | null} */
    this._tokens = null;
    /** The one that was just made. @type {CreatedToken | null} */
    this._made = null;
    /** The one of which it is asked whether it shall go. */
    this._removing = '';
    this._name = '';
    this._days = '';
    /** @type {readonly Scope[]} */
    this._scopes = USUAL;
    this._password = '';
    this._asking = new Asking(this);
    this._making = new Asking(this);
  }

  firstUpdated() {
    this.#ask(async () => {});
  }

  render() {
    const tokens = this._tokens;
    const has_all = this._scopes.length === SCOPES.length;
    const needs_password = has_all && account.get()?.has_password === true;
    return html`<p class="quiet">${t('account.tokens_hint')}</p>
      ${fault(faultText(this._asking.problem))}
      ${tokens === null
        ? nothing
        : tokens.length === 0
          ? html`<p class="quiet panel-empty" data-testid="tokens-empty">${t('account.tokens_empty')}</p>`
        : html`<ul class="rows">${repeat(tokens, ({ id }) => id, (token) => this.#row(token))}</ul>`}
      <h3 id="token-new">${t('account.token_new')}</h3>
      ${this._made === null ? nothing : shownOnce(t('account.once'), this._made.name, this._made.token, 'token-made')}
      <form class="person-form" aria-labelledby="token-new"
        @submit=${(/** @type {Event} */ event) => { event.preventDefault(); this.#make(); }}>
        ${field({
          id: 'token-name', label: t('account.token_name'), value: this._name, max: TOKEN_NAME_CHARS,
          oninput: (value) => { this._name = value; },
        })}
        ${field({
          id: 'token-days', label: t('account.token_days'), type: 'number', value: this._days, max: TOKEN_DAYS,
          hint: t('account.token_days_hint'), oninput: (value) => { this._days = value; },
        })}
        <fieldset class="choices"><legend>${t('account.token_scopes')}</legend>${
          SCOPES.map((scope) => this.#scope(scope))}</fieldset>
        ${needs_password
          ? proofField('token-password', this._password, (password) => { this._password = password; })
          : nothing}
        ${fault(has_all ? proofFault(this._making.problem) : faultText(this._making.problem))}
        <button class="button small" data-testid="token-make"
          ?disabled=${this._making.busy || this._name.trim() === '' || this._scopes.length === 0
            || (needs_password && this._password === '')}>${t('account.token_make')}</button>
      </form>`;
  }

  /** @param {Scope} scope */
  #scope(scope) {
    return html`<label class="choice-line"><input type="checkbox" data-testid="token-scope" value=${scope}
      .checked=${live(this._scopes.includes(scope))}
      @change=${(/** @type {Event} */ event) => {
        const { checked } = /** @type {HTMLInputElement} */ (event.target);
        this._scopes = SCOPES.filter((other) => (other === scope ? checked : this._scopes.includes(other)));
      }}><span><code>${scope}</code> <span class="quiet">${t(`scope.${scope}`)}</span></span></label>`;
  }

  /** @param {TokenInfo} token */
  #row({ id, name, last_used_at, scopes, expires_at }) {
    return html`<li class="row" data-testid="token" data-name=${name}><span class="row-icon">${icons.key}</span>
      <div class="row-text"><p class="row-title" dir="auto">${visible(name)}</p>
        <p class="row-note">${scopes.map((scope) => html`<span class="tag">${scope}</span> `)}</p>
        <p class="row-note">${last_used_at === null
          ? t('account.token_unused')
          : t('account.device_used', { at: formatTime(last_used_at) })}${expires_at === null
            ? nothing
            : html` · ${t('account.token_until', { at: formatTime(expires_at) })}`}</p>
        ${this._removing !== id ? nothing : html`<p class="row-note">${t('account.token_remove_question')}</p>
          <p class="row-actions"><button type="button" class="button small destructive"
            data-testid="token-remove-yes" @click=${() => this.#remove(id)}>${t('account.token_remove')}</button>
            <button type="button" class="button small plain"
              @click=${() => { this._removing = ''; }}>${t('queue.cancel')}</button></p>`}</div>
      ${this._removing === id
        ? nothing
        : html`<button type="button" class="button small plain danger" data-testid="token-remove"
          aria-label="${t('account.token_remove')}: ${name}" ?disabled=${this._asking.busy}
          @click=${() => { this._removing = id; }}>${t('account.token_remove')}</button>`}</li>`;
  }

  #make() {
    void this._making.ask(async () => {
      this._made = await people.makeToken({
        name: this._name.trim(), scopes: [...this._scopes], ...(this._days === '' ? {} : { days: Number(this._days) }),
        current_password: this._password,
      });
      this._name = this._days = this._password = '';
      this._scopes = USUAL;
      this._tokens = await people.tokens();
    });
  }

  /** @param {string} id */
  #remove(id) {
    this._removing = '';
    if (this._made?.id === id) this._made = null;
    this.#ask(() => people.removeToken(id));
  }

  /** Does it, and shows what is left. @param {() => Promise<unknown>} request */
  #ask(request) {
    void this._asking.ask(async () => {
      await request();
      this._tokens = await people.tokens();
    });
  }
}

customElements.define('navi-account-tokens', NaviAccountTokens);
