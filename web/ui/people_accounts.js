/** @import { MadeInvitation, PersonInfo, UserRole } from '../state/wire.js' */

import { loadAccount } from '../app/account.js';
import { t } from '../i18n/index.js';
import { html, live, nothing, repeat } from '../lit.js';
import { people } from '../net/people.js';
import { ROLES, wholeLink } from '../state/people.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText, shownOnce } from './fields.js';
import { formatTime } from './format.js';
import { icons } from './icons.js';
import { visible } from './visible.js';
import './people_limits.js';

/** Everybody who has an account: what they are, another password, and their end. */
export class NaviPeopleAccounts extends NaviElement {
  static properties = {
    _people: { state: true }, _link: { state: true }, _removing: { state: true }, _refused: { state: true },
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
        ${this._refused === id ? fault(faultText(problem, { forbidden: t('people.last_admin') })) : nothing}
        ${link === null
          ? nothing
          : shownOnce(t('people.link_reset', { name, at: formatTime(link.expires_at) }), t('people.link'),
            wholeLink(location.href, link.link), 'person-link')}
        ${this._removing === id ? this.#question(id, name) : html`<p class="row-actions">
          <button type="button" class="button small plain" data-testid="person-reset"
            aria-label="${t('people.reset')}: ${name}" ?disabled=${busy}
            @click=${() => this.#reset(id)}>${t('people.reset')}</button>
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

  /** @param {string} id */
  async #doubt(id) {
    this._removing = id;
    await this.updateComplete;
    /** @type {HTMLElement | null} */ (this.querySelector('[data-testid="person-remove-no"]'))?.focus();
  }

  /** @param {string} id @param {UserRole} role */
  #change(id, role) {
    this.#ask(id, async () => {
      await people.setRole(id, role);
      // It may have been one's own.
      await loadAccount();
    });
  }

  /** @param {string} id */
  #reset(id) {
    this.#ask(id, async () => { this._link = { person: id, made: await people.reset(id) }; });
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
