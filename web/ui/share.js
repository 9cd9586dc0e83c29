// With whom a conversation is shared: people who take part, and links for those who only look.

/** @import { LinkInfo, MadeLink, Shared } from '../state/wire.js' */

import { account, mayChangeOpen, openId } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { shares } from '../net/shares.js';
import { LINK_DAYS, NAME_CHARS, wholeLink } from '../state/people.js';
import { Asking } from './asking.js';
import { fault, faultText, field, shownOnce } from './fields.js';
import { formatTime } from './format.js';
import { icons } from './icons.js';
import { NaviPanel } from './panel.js';

const USUAL_DAYS = '7';

export class NaviShare extends NaviPanel {
  static properties = {
    _shared: { state: true }, _links: { state: true }, _made: { state: true }, _name: { state: true },
    _days: { state: true },
  };

  constructor() {
    super();
    this._id = openId.get() ?? '';
    this._owns = mayChangeOpen.get();
    /** @type {Shared | null} */
    this._shared = null;
    /** @type {LinkInfo[]} */
    this._links = [];
    /** The one that was just made. @type {MadeLink | null} */
    this._made = null;
    this._name = '';
    this._days = USUAL_DAYS;
    this._asking = new Asking(this);
    this._adding = new Asking(this);
    this._making = new Asking(this);
  }

  firstUpdated() {
    super.firstUpdated();
    this.#ask(async () => {});
  }

  render() {
    const shared = this._shared;
    return this.frame('share', t('share.open'), html`
      <p class="quiet">${t(this._owns ? 'share.hint' : 'share.hint_other')}</p>
      ${fault(faultText(this._asking.problem))}
      ${shared === null ? nothing : html`<h3 id="share-people">${t('share.people')}</h3>
      <ul class="rows" aria-labelledby="share-people">
        ${this.#person(shared.owner.id, shared.owner.name, t('share.owner'), nothing)}
        ${repeat(shared.people, ({ id }) => id,
          ({ id, name }) => this.#person(id, name, t('share.takes_part'), this._owns
          ? html`<button type="button" class="button small plain danger" data-testid="share-remove"
            aria-label="${t('share.remove')}: ${name}" ?disabled=${this._asking.busy}
            @click=${() => this.#ask(() => shares.remove(this._id, id))}>${t('share.remove')}</button>`
          : id !== account.get()?.id ? nothing
            : html`<button type="button" class="button small plain danger" data-testid="share-leave"
              ?disabled=${this._asking.busy} @click=${() => this.#leave()}>${t('share.leave')}</button>`))}
      </ul>`}
      ${this._owns ? html`${this.#adding()}${this.#linking()}` : nothing}`);
  }

  /** @param {string} id @param {string} name @param {string} note @param {unknown} action */
  #person(id, name, note, action) {
    return html`<li class="row" data-testid="share-person"
      data-person-id=${id}><span class="row-icon">${icons.person}</span>
      <div class="row-text"><p class="row-title"
        dir="auto">${name}</p><p class="row-note">${note}</p></div>${action}</li>`;
  }

  #adding() {
    return html`<form class="person-form" aria-label=${t('share.add')}
      @submit=${(/** @type {Event} */ event) => { event.preventDefault(); this.#add(); }}>
      ${field({
        id: 'share-name', label: t('share.name'), value: this._name, max: NAME_CHARS,
        hint: t('share.name_hint'), oninput: (value) => { this._name = value; },
      })}
      <p class="quiet" data-testid="share-memory">${t('share.memory')}</p>
      ${fault(faultText(this._adding.problem, { person_not_found: t('share.nobody'), session_busy: t('share.busy') }))}
      <button class="button small" data-testid="share-add"
        ?disabled=${this._adding.busy || this._name.trim() === ''}>${t('share.add')}</button>
    </form>`;
  }

  #linking() {
    return html`<h3 id="share-links">${t('share.links')}</h3>
      <p class="quiet">${t('share.links_hint')}</p>
      <form class="person-form" aria-labelledby="share-links"
        @submit=${(/** @type {Event} */ event) => { event.preventDefault(); this.#make(); }}>
        ${field({
          id: 'share-days', label: t('people.days'), type: 'number', value: this._days, max: LINK_DAYS,
          hint: t('share.days_hint'), oninput: (value) => { this._days = value; },
        })}
        ${fault(faultText(this._making.problem))}
        <button class="button small" data-testid="share-make"
          ?disabled=${this._making.busy || this._days === ''}>${t('people.make_link')}</button>
      </form>
      ${this._made === null
        ? nothing
        : shownOnce(t('share.link_made', { at: formatTime(this._made.expires_at) }), t('people.link'),
          wholeLink(location.href, this._made.link), 'share-link')}
      <ul class="rows">${repeat(this._links, ({ id }) => id, (link) => this.#link(link))}</ul>`;
  }

  /** @param {LinkInfo} link */
  #link({ id, created_at, expires_at }) {
    const title = t('share.link_from', { at: formatTime(created_at) });
    return html`<li class="row" data-testid="share-link-row"><span class="row-icon">${icons.key}</span>
      <div class="row-text"><p class="row-title">${title}</p><p
        class="row-note">${t('share.until', { at: formatTime(expires_at) })}</p></div>
      <button type="button" class="button small plain danger" data-testid="share-end"
        aria-label="${t('share.end')}: ${title}" ?disabled=${this._asking.busy}
        @click=${() => this.#end(id)}>${t('share.end')}</button></li>`;
  }

  #add() {
    void this._adding.ask(async () => {
      await shares.add(this._id, this._name);
      this._name = '';
      this._shared = await shares.people(this._id);
    });
  }

  #make() {
    void this._making.ask(async () => {
      this._made = await shares.makeLink(this._id, Number(this._days));
      this._links = await shares.links(this._id);
    });
  }

  /** @param {string} id */
  #end(id) {
    if (this._made?.id === id) this._made = null;
    this.#ask(() => shares.endLink(this._id, id));
  }

  #leave() {
    void this._asking.ask(async () => {
      await shares.leave(this._id);
      this.close();
    });
  }

  /** Does it, and shows what is left. @param {() => Promise<unknown>} request */
  #ask(request) {
    void this._asking.ask(async () => {
      await request();
      [this._shared, this._links] = await Promise.all([shares.people(this._id),
        this._owns ? shares.links(this._id) : []]);
    });
  }
}

customElements.define('navi-share', NaviShare);
