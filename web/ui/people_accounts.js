/** @import { MadeInvitation, PersonInfo, UserRole } from '../state/wire.js' */

import { loadAccount } from '../app/account.js';
import { account } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, live, nothing, repeat } from '../lit.js';
import { people } from '../net/people.js';
import { ROLES, wholeLink } from '../state/people.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText, proofFault, proofField, shownOnce } from './fields.js';
import { formatTime } from './format.js';
import { icons } from './icons.js';
import { visible } from './visible.js';
import './people_limits.js';

/** Everybody who has an account: what they are, another password, and their end. */
export class NaviPeopleAccounts extends NaviElement {
  static properties = {
    _people: { state: true }, _link: { state: true }, _removing: { state: true }, _refused: { state: true },
    _proving: { state: true }, _password: { state: true },
  };

  constructor() {
    super();
    /** @type {PersonInfo[]} */
    this._people = [];
    /** The link that was just made, and for whom. @type {{ person: string, made: MadeInvitation } | null} */
    this._link = null;
    /** Of whom it is asked whether they shall go. */
    this._removing = '';
    /** Whom the refusal is about. */
    this._refused = '';
    /** Who is to be an admin, or to choose another password. @type {{ id: string, what: 'admin' | 'reset' } | null} */
    this._proving = null;
    this._password = '';
    this._asking = new Asking(this);
  }

  firstUpdated() {
    this.#ask('', async () => {});
  }

  render() {
    return html`<p class="quiet">${t('people.hint')}</p>
      ${this._refused === '' ? fault(faultText(this._asking.problem)) : nothing}
      <ul class="rows">${repeat(this._people, ({ id }) => id, (person) => this.#row(person))}</ul>`;
  }

  /** @param {PersonInfo} person */
  #row(person) {
    const { id, name, role, created_at, last_seen_at, has_password, passkeys, you } = person;
    const { busy, problem } = this._asking;
    const link = this._link?.person === id ? this._link.made : null;
    const proving = this._proving?.id === id ? this._proving : null;
    return html`<li class="row" data-testid="person" data-name=${name}
      data-role=${role}><span class="row-icon">${icons.person}</span>
      <div class="row-text"><div class="row-line"><p class="row-title"><span dir="auto">${visible(name)}</span>
          ${you ? html`<span class="tag">${t('people.you')}</span>` : nothing}</p>
          <label class="select"><span class="off-screen">${t('people.role')}: ${name}</span><select
            data-testid="person-role" ?disabled=${busy} .value=${live(role)}
            @change=${(/** @type {Event} */ event) => this.#change(id,
              /** @type {UserRole} */ (/** @type {HTMLSelectElement} */ (event.target).value))}>
            ${ROLES.map((other) => html`<option value=${other} ?selected=${other === role}
              title=${t(`role.${other}.text`)}>${t(`role.${other}`)}</option>`)}</select></label></div>
        <p class="row-note">${t('people.joined', { at: formatTime(created_at) })} ·
          ${last_seen_at === null
            ? t('people.unseen')
            : t('people.seen', { at: formatTime(last_seen_at) })}${has_password
              ? nothing
              : html` · ${t('people.no_password')}`}${passkeys === 0
                ? nothing
                : html` · ${t('people.passkeys', { n: passkeys })}`}</p>
        ${this._refused === id && proving === null
          ? fault(faultText(problem, { forbidden: t('people.last_admin') }))
          : nothing}
        ${link === null
          ? nothing
          : shownOnce(t('people.link_reset', { name, at: formatTime(link.expires_at) }), t('people.link'),
            wholeLink(location.href, link.link), 'person-link')}
        ${proving !== null ? this.#proof(proving) : this._removing === id
          ? this.#question(id, name)
          : html`<p class="row-actions">
          <button type="button" class="button small plain" data-testid="person-reset"
            aria-label="${t('people.reset')}: ${name}" ?disabled=${busy}
            @click=${() => void this.#needProof(id, 'reset')}>${t('people.reset')}</button>
          <button type="button" class="button small plain danger" data-testid="person-remove"
            aria-label="${t('people.remove')}: ${name}" ?disabled=${busy}
            @click=${() => void this.#doubt(id)}>${t('people.remove')}</button></p>`}
        <navi-person-limits .person=${person}
          @saved=${() => this.#ask(id, async () => {})}></navi-person-limits></div></li>`;
  }

  /** @param {string} id @param {string} name */
  #question(id, name) {
    return html`<p class="row-note warn">${t('people.remove_question', { name })}</p>
      <p class="row-actions"><button type="button" class="button small destructive"
        data-testid="person-remove-yes" @click=${() => this.#remove(id)}>${t('people.remove_yes')}</button>
        <button type="button" class="button small plain" data-testid="person-remove-no"
          @click=${() => { this._removing = ''; }}>${t('queue.cancel')}</button></p>`;
  }

  /** @param {{ id: string, what: 'admin' | 'reset' }} proving */
  #proof({ id, what }) {
    const { busy, problem } = this._asking;
    const has_password = account.get()?.has_password === true;
    return html`<form class="person-form" data-testid="person-proof"
      @submit=${(/** @type {Event} */ event) => { event.preventDefault(); this.#prove(id, what); }}>
      ${has_password
        ? proofField('person-password', this._password, (password) => { this._password = password; })
        : nothing}
      ${this._refused === id ? fault(proofFault(problem)) : nothing}
      <p class="row-actions"><button class="button small" data-testid="person-proof-yes"
        ?disabled=${busy || (has_password && this._password === '')}>${
          t(what === 'admin' ? 'people.make_admin' : 'people.reset')}</button>
        <button type="button" class="button small plain" data-testid="person-proof-no"
          @click=${() => { this._proving = this._asking.problem = null; }}>${t('queue.cancel')}</button></p></form>`;
  }

  /** Before what opens all that one may, or an account. @param {string} id @param {'admin' | 'reset'} what */
  async #needProof(id, what) {
    this._proving = { id, what };
    this._password = this._removing = '';
    this._refused = id;
    this._asking.problem = null;
    await this.updateComplete;
    /** @type {HTMLElement | null} */ (this.querySelector(
      '[data-testid="person-proof"] :is(input, [data-testid="person-proof-no"])'))?.focus();
  }

  /** @param {string} id @param {'admin' | 'reset'} what */
  #prove(id, what) {
    const proof = { current_password: this._password };
    this.#ask(id, async () => {
      if (what === 'admin') await people.setRole(id, 'admin', proof);
      else this._link = { person: id, made: await people.reset(id, proof) };
      this._proving = null;
      this._password = '';
    });
  }

  /** @param {string} id */
  async #doubt(id) {
    this._removing = id;
    await this.updateComplete;
    /** @type {HTMLElement | null} */ (this.querySelector('[data-testid="person-remove-no"]'))?.focus();
  }

  /** @param {string} id @param {UserRole} role */
  #change(id, role) {
    if (role === 'admin') {
      void this.#needProof(id, 'admin');
      return;
    }
    this.#ask(id, async () => {
      await people.setRole(id, role);
      // It may have been one's own.
      await loadAccount();
    });
  }

  /** @param {string} id */
  #remove(id) {
    this._removing = '';
    this.#ask(id, () => people.remove(id));
  }

  /** Does it, and shows everybody as they are then. @param {string} id @param {() => Promise<unknown>} request */
  #ask(id, request) {
    this._refused = id;
    void this._asking.ask(async () => {
      await request();
      this._people = await people.all();
    });
  }
}

customElements.define('navi-people-accounts', NaviPeopleAccounts);
