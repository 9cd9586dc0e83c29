/** @import { PersonInfo, PowersInfo } from '../state/wire.js' */

import { t } from '../i18n/index.js';
import { html, live, nothing, repeat } from '../lit.js';
import { people } from '../net/people.js';
import { isGranted, kindOf, kindsOf, nameOf, withPower } from '../state/powers.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText } from './fields.js';
import { icons } from './icons.js';
import { visible } from './visible.js';

/** Every user, as a holder of powers. */
const USERS = 'users';

/** What of the powerful all users may use, and each person beside that. */
export class NaviPeoplePowers extends NaviElement {
  static properties = { _powers: { state: true }, _people: { state: true } };

  constructor() {
    super();
    /** @type {PowersInfo | null} */
    this._powers = null;
    /** @type {PersonInfo[]} */
    this._people = [];
    this._asking = new Asking(this);
  }

  firstUpdated() {
    this.#ask(async () => {});
  }

  render() {
    const powers = this._powers;
    return html`<p class="quiet">${t('powers.hint')}</p>
      ${fault(faultText(this._asking.problem))}
      ${powers === null ? nothing : html`<ul class="rows">
        ${this.#holder(USERS, t('powers.users'), powers.users, [])}
        ${repeat(this._people, ({ id }) => id,
          ({ id, name, role, powers: own }) => (role === 'user'
            ? this.#holder(id, name, own, powers.users)
            : this.#fixed(name, role)))}</ul>`}`;
  }

  /** An admin may all, a guest nothing. @param {string} name @param {'admin' | 'guest'} role */
  #fixed(name, role) {
    return html`<li class="row" data-testid="powers-fixed"
      data-name=${name}><span class="row-icon">${icons.person}</span>
      <div class="row-text"><p class="row-title"
        dir="auto">${visible(name)}</p><p class="row-note">${t(`powers.role.${role}`)}</p></div></li>`;
  }

  /**
   * @param {string} id
   * @param {string} name
   * @param {string[]} own what they were granted
   * @param {string[]} shared what all were
   */
  #holder(id, name, own, shared) {
    const kinds = kindsOf(this._powers?.grantable ?? [], own);
    const held = kinds.filter(({ kind, names }) => [kind,
      ...names.map((it) => `${kind}:${it}`)].some((power) => isGranted(own, power)));
    const told = held.map(({ kind }) => t(`power.${kind}`)).join(', ');
    return html`<li class="row" data-testid="powers"
      data-name=${name}><span class="row-icon">${id === USERS ? icons.people : icons.person}</span>
      <details class="row-text"><summary><span class="row-title"
        dir="auto">${visible(name)}</span> <span class="row-note"
        data-testid="powers-told">${told === '' ? t('powers.none') : told}</span></summary>
        <fieldset class="choices"><legend class="off-screen">${t('powers.legend', { name })}</legend>
          ${kinds.map(({ kind, names }) => html`${this.#choice(id, own, shared, kind, t(`power.${kind}`),
            t(`power.${kind}.text`))}
            ${names.map((it) => this.#choice(id, own, shared, `${kind}:${it}`, it, ''))}`)}</fieldset></details></li>`;
  }

  /**
   * @param {string} id
   * @param {string[]} own
   * @param {string[]} shared
   * @param {string} power
   * @param {string} label
   * @param {string} text
   */
  #choice(id, own, shared, power, label, text) {
    const by_all = isGranted(shared, power);
    const by_kind = nameOf(power) !== '' && own.includes(kindOf(power));
    const is_gone = nameOf(power) !== '' && !(this._powers?.grantable ?? []).includes(power);
    const notes = [text, by_all ? t('powers.by_all') : '',
      is_gone ? t('powers.gone') : ''].filter((note) => note !== '');
    return html`<label class=${nameOf(power) === ''
      ? 'choice-line'
      : 'choice-line nested'}><input type="checkbox" data-testid="power" value=${power}
        .checked=${live(by_all || isGranted(own, power))}
      ?disabled=${this._asking.busy || by_all || by_kind}
      @change=${(/** @type {Event} */ event) => this.#grant(id,
        withPower(own, power, /** @type {HTMLInputElement} */ (event.target).checked))}>
      <span><span dir="auto">${visible(label)}</span> <span class="quiet">${notes.join(' ')}</span></span></label>`;
  }

  /** @param {string} id @param {string[]} powers */
  #grant(id, powers) {
    // As it was chosen, until it is known how it stands.
    if (id === USERS && this._powers !== null) this._powers = { ...this._powers, users: powers };
    else this._people = this._people.map((person) => (person.id === id ? { ...person, powers } : person));
    this.#ask(() => (id === USERS ? people.grantToUsers(powers) : people.grant(id, powers)));
  }

  /** Does it, and shows who has what then. @param {() => Promise<unknown>} request */
  #ask(request) {
    void this._asking.ask(async () => {
      try {
        await request();
      } finally {
        [this._powers, this._people] = await Promise.all([people.powers(), people.all()]);
      }
    });
  }
}

customElements.define('navi-people-powers', NaviPeoplePowers);
