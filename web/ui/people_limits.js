/** @import { LimitsInfo, PersonInfo } from '../state/wire.js' */
/** @import { Limit } from '../state/limits.js' */

import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { people } from '../net/people.js';
import { changed, LIMITS, NAMES, standing, written } from '../state/limits.js';
import { Asking } from './asking.js';
import { NaviElement } from './element.js';
import { fault, faultText, field } from './fields.js';
import { formatCount, formatTokens } from './format.js';

/** @param {LimitsInfo} limits @param {Limit} name */
export function told(limits, name) {
  const { used, most } = standing(limits, name);
  const format = name === 'tokens_a_day' ? formatTokens : formatCount;
  return most === null
    ? t('limits.free', { used: format(used) })
    : t('limits.used', { used: format(used), most: format(most) });
}

/** How much one person has of what all share, and what of it an admin sets for them alone. */
export class NaviPersonLimits extends NaviElement {
  static properties = { person: { attribute: false }, _fields: { state: true }, _fault: { state: true } };

  constructor() {
    super();
    /** @type {PersonInfo | null} */
    this.person = null;
    /** As they are written; null where they are as they stand. @type {Record<Limit, string> | null} */
    this._fields = null;
    /** Which no one can have. @type {Limit | null} */
    this._fault = null;
    this._asking = new Asking(this);
  }

  render() {
    if (this.person === null) return nothing;
    const { id, limits, name } = this.person;
    const own = NAMES.filter((limit) => limits.own[limit] !== null);
    const brief = /** @type {const} */ (['sessions', 'files_mb',
      'tokens_a_day']).map((limit) => `${t(`limits.${limit}`)}: ${told(limits, limit)}`);
    return html`<details data-testid="limits"
      data-name=${name}><summary class="row-note"><b>${t('limits.title')}</b>${own.length === 0
          ? nothing
          : html` <span class="tag" data-testid="limits-own">${t('limits.own')}</span>`}
            <span data-testid="limits-told">${brief.join(' · ')}</span></summary>
      <form class="limits-form" novalidate aria-label="${t('limits.title')}: ${name}"
        @submit=${(/** @type {Event} */ event) => { event.preventDefault(); this.#save(); }}>
        <p class="quiet">${t('limits.hint')}</p>
        <div class="limits-fields">${NAMES.map((limit) => this.#field(id, limits, limit))}</div>
        ${fault(this.#refusal())}
        <button class="button small" data-testid="limits-save"
          ?disabled=${this._asking.busy || this._fields === null}>${t('queue.save')}</button>
      </form></details>`;
  }

  /** @param {string} id @param {LimitsInfo} limits @param {Limit} limit */
  #field(id, limits, limit) {
    const fields = this._fields ?? written(limits.own);
    const [min, max] = LIMITS[limit];
    return field({
      id: `limit-${limit}-${id}`, testid: `limit-${limit}`, label: t(`limits.${limit}`), type: 'number', min,
      max, value: fields[limit],
      placeholder: limits.own[limit] === null ? String(limits.in_force[limit]) : '',
      hint: limit === 'tokens_a_day' ? `${told(limits, limit)} · ${t('limits.zero')}` : told(limits, limit),
      oninput: (value) => { this._fields = { ...fields, [limit]: value }; },
    });
  }

  #refusal() {
    if (this._fault === null) return faultText(this._asking.problem);
    const [least, most] = LIMITS[this._fault];
    return t('limits.fault', { limit: t(`limits.${this._fault}`), least: formatCount(least), most: formatCount(most) });
  }

  #save() {
    if (this.person === null || this._fields === null) return;
    const { id, limits } = this.person;
    // What is no number at all a browser gives as nothing, which would take the limit back.
    const unread = NAMES.find((limit) =>
      /** @type {HTMLInputElement | null} */ (this.querySelector(`[data-testid="limit-${limit}"]`))?.validity.badInput);
    const { changes, fault: wrong } = unread === undefined
      ? changed(this._fields, limits.own)
      : { changes: {}, fault: unread };
    this._asking.problem = null;
    this._fault = wrong;
    if (wrong !== null) return;
    void this._asking.ask(async () => {
      await people.setLimits(id, changes);
      this._fields = null;
      this.dispatchEvent(new CustomEvent('saved'));
    });
  }
}

customElements.define('navi-person-limits', NaviPersonLimits);
