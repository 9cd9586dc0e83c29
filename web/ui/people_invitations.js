/** @import { InvitationInfo, MadeInvitation, PersonInfo, UserRole } from '../state/wire.js' */

import { account } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, live, nothing, repeat } from '../lit.js';
import { people } from '../net/people.js';
import { INVITATION_DAYS, ROLES, wholeLink } from '../state/people.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText, field, proofFault, proofField, shownOnce } from './fields.js';
import { formatTime } from './format.js';
import { icons } from './icons.js';

const USUAL_DAYS = '7';

/** Links by which somebody comes in, and those that nobody used yet. */
export class NaviPeopleInvitations extends NaviElement {
  static properties = {
    _waiting: { state: true }, _made: { state: true }, _role: { state: true }, _days: { state: true },
    _password: { state: true },
  };

  constructor() {
    super();
    /** @type {InvitationInfo[] | null} */
    this._waiting = null;
    /** @type {PersonInfo[]} */
    this._people = [];
    /** The one that was just made. @type {MadeInvitation | null} */
    this._made = null;
    /** @type {UserRole} */
    this._role = 'user';
    this._days = USUAL_DAYS;
    this._password = '';
    this._asking = new Asking(this);
    this._making = new Asking(this);
  }

  firstUpdated() {
    this.#ask(async () => {});
  }

  render() {
    const waiting = this._waiting;
    const is_admin = this._role === 'admin';
    const needs_password = is_admin && account.get()?.has_password === true;
    return html`<h3 id="invite">${t('people.invite')}</h3>
      <form class="person-form" aria-labelledby="invite"
        @submit=${(/** @type {Event} */ event) => { event.preventDefault(); this.#make(); }}>
        <fieldset class="choices"><legend>${t('people.role')}</legend>${
          ROLES.map((role) => html`<label
            class="choice-line"><input type="radio" name="invite-role" value=${role} data-testid="invite-role"
            .checked=${live(role === this._role)}
          @change=${() => { this._role = role; }}><span>${t(`role.${role}`)}
            <span class="quiet">${t(`role.${role}.text`)}</span></span></label>`)}</fieldset>
        ${field({
          id: 'invite-days', label: t('people.days'), type: 'number', value: this._days, max: INVITATION_DAYS,
          hint: t('people.days_hint'), oninput: (value) => { this._days = value; },
        })}
        ${needs_password
          ? proofField('invite-password', this._password, (password) => { this._password = password; })
          : nothing}
        ${fault(is_admin ? proofFault(this._making.problem) : faultText(this._making.problem))}
        <button class="button small" data-testid="invite-make"
          ?disabled=${this._making.busy || this._days === ''
            || (needs_password && this._password === '')}>${t('people.make_link')}</button>
      </form>
      ${this._made === null
        ? nothing
        : shownOnce(t('people.link_invite', { at: formatTime(this._made.expires_at) }), t('people.link'),
          wholeLink(location.href, this._made.link), 'invite-link')}
      <h3>${t('people.waiting')}</h3>
      ${fault(faultText(this._asking.problem))}
      ${waiting === null
        ? nothing
        : waiting.length === 0
          ? html`<p class="quiet panel-empty" data-testid="invitations-empty">${t('people.invitations_empty')}</p>`
        : html`<ul class="rows">${repeat(waiting, ({ id }) => id, (invitation) => this.#row(invitation))}</ul>`}`;
  }

  /** @param {InvitationInfo} invitation */
  #row({ id, role, person, expires_at }) {
    const name = this._people.find((other) => other.id === person)?.name ?? '';
    const title = person === null
      ? t('people.invitation_new', { role: t(`role.${role}`) })
      : t('people.invitation_for', { name });
    return html`<li class="row" data-testid="invitation-row"
      data-role=${role}><span class="row-icon">${icons.key}</span>
      <div class="row-text"><p class="row-title"
        dir="auto">${title}</p><p class="row-note">${t('invitation.until', { at: formatTime(expires_at) })}</p></div>
      <button type="button" class="button small plain danger" data-testid="invitation-remove"
        aria-label="${t('people.take_back')}: ${title}" ?disabled=${this._asking.busy}
        @click=${() => this.#remove(id)}>${t('people.take_back')}</button></li>`;
  }

  #make() {
    void this._making.ask(async () => {
      this._made = await people.invite(this._role, Number(this._days), { current_password: this._password });
      this._password = '';
      this._waiting = await people.invitations();
    });
  }

  /** @param {string} id */
  #remove(id) {
    if (this._made?.id === id) this._made = null;
    this.#ask(() => people.removeInvitation(id));
  }

  /** Does it, and shows what is left. @param {() => Promise<unknown>} request */
  #ask(request) {
    void this._asking.ask(async () => {
      await request();
      [this._people, this._waiting] = await Promise.all([people.all(), people.invitations()]);
    });
  }
}

customElements.define('navi-people-invitations', NaviPeopleInvitations);
