/** @import { SessionSummary } from '../state/wire.js' */

import { openPanel, showNew } from '../app/actions.js';
import {
  archived, drawerOpen, focusWanted, hasAccounts, isAdmin, isGuest, openId, sessions, shownTag,
} from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { groupOf, matching } from '../state/sessions.js';
import { tagged, tagsOf } from '../state/tags.js';
import { NaviElement } from './element.js';
import { focusFold, fold } from './fold.js';
import { icons, mark } from './icons.js';
import { COMMAND } from './keys.js';
import { TabStop } from './tab_stop.js';
import './archived.js';
import './search.js';
import './session_item.js';
import './settings.js';

/** So many rows are drawn at once; a search reaches the rest. */
const ROWS = 300;

/** The session list with its search, and the settings below it. */
export class NaviSidebar extends NaviElement {
  static properties = { _query: { state: true } };

  constructor() {
    super();
    this._query = '';
    /** @type {TabStop | null} */
    this._stop = null;
  }

  firstUpdated() {
    const list = /** @type {HTMLElement} */ (this.querySelector('nav'));
    this._stop = new TabStop(list, () => this.#search());
  }

  updated() {
    focusFold('sidebar-fold', this);
  }

  render() {
    const { loaded, list } = sessions.get();
    const tags = tagsOf([...list, ...archived.get().list]);
    const tag = tags.find((other) => other === shownTag.get()) ?? null;
    const found = tagged(matching(list, this._query), tag).slice(0, ROWS);
    return html`
      <div class="sidebar-head">
        <a class="brand" href="#/">${mark}<span>Navi</span></a>
        <button type="button" class="icon-button drawer-close" aria-label=${t('sidebar.close')}
          title=${t('sidebar.close')}
          @click=${() => drawerOpen.set(false)}>${icons.close}</button>
        <button type="button" class="icon-button sidebar-fold" aria-label=${t('sidebar.fold')}
          title=${t('sidebar.fold')} data-testid="sidebar-fold"
          @click=${() => fold('sidebar-unfold')}>${icons.sidebar}</button>
      </div>
      ${isGuest.get()
        ? nothing
        : html`<button type="button" class="new-session" data-testid="new-session" title=${`${COMMAND}+Shift+O`}
          @click=${() => this.#new()}>
          ${icons.plus}<span>${t('sidebar.new')}</span></button>`}
      <label class="search">${icons.search}<input type="search" data-testid="session-search"
        placeholder=${t('sidebar.search')} aria-label=${t('sidebar.search')}
        .value=${this._query}
        @input=${(/** @type {InputEvent} */ event) => {
          this._query = /** @type {HTMLInputElement} */ (event.target).value;
        }}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event)}></label>
      ${tags.length === 0
        ? nothing
        : html`<div class="tag-row" role="group"
          aria-label=${t('tags.filter')}>${
            tags.map((other) => html`<button type="button" class="tag-chip" dir="auto" data-testid="tag-filter"
        aria-pressed=${String(other === tag)}
        @click=${() => shownTag.set(other === tag ? null : other)}>${other}</button>`)}</div>`}
      <nav class="session-list" aria-label=${t('sidebar.label')}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event)}>
        ${!loaded
          ? html`<div class="skeleton"><div class="bone"></div><div class="bone"></div><div
            class="bone short"></div></div>`
          : nothing}
        ${loaded && list.length === 0 ? html`<p class="quiet">${t('sidebar.empty')}</p>` : nothing}
        ${groups(found).map(([group, items]) => html`<h2>${t(`sidebar.group.${group}`)}</h2>
          <ul>${repeat(items, (item) => item.id, (item) => html`<li><navi-session-item .session=${item}
            ?current=${item.id === openId.get()}></navi-session-item></li>`)}</ul>`)}
        ${loaded ? html`<navi-archived .query=${this._query} .tag=${tag}></navi-archived>` : nothing}
        ${this._query.trim() !== '' ? html`<navi-search .query=${this._query.trim()}></navi-search>` : nothing}
      </nav>
      <button type="button" class="open-memory" data-testid="open-palette" aria-haspopup="dialog"
        @click=${() => void openPanel('palette')}>${
          icons.command}<span>${t('palette.open')}</span><kbd>${COMMAND} K</kbd></button>
      <button type="button" class="open-memory" data-testid="open-memory" aria-haspopup="dialog"
        @click=${() => void openPanel('memory')}>${icons.memory}<span>${t('memory.open')}</span></button>
      <button type="button" class="open-memory" data-testid="open-permissions" aria-haspopup="dialog"
        @click=${() => void openPanel('permissions')}>${icons.key}<span>${t('permissions.open')}</span></button>
      <button type="button" class="open-memory" data-testid="open-setup" aria-haspopup="dialog"
        @click=${() => void openPanel('setup')}>${icons.sliders}<span>${t('setup.open')}</span></button>
      ${!hasAccounts.get()
        ? nothing
        : html`${isAdmin.get()
          ? html`<button type="button" class="open-memory" data-testid="open-people" aria-haspopup="dialog"
            @click=${() => void openPanel('people')}>${icons.people}<span>${t('people.open')}</span></button>`
          : nothing}
        <button type="button" class="open-memory" data-testid="open-account" aria-haspopup="dialog"
          @click=${() => void openPanel('account')}>${icons.person}<span>${t('account.open')}</span></button>`}
      <navi-settings></navi-settings>`;
  }

  #new() {
    showNew();
    focusWanted.set('composer');
  }

  /** Up and down walk the list, from the search field too. @param {KeyboardEvent} event */
  #key(event) {
    if (event.defaultPrevented || (event.key !== 'ArrowDown' && event.key !== 'ArrowUp' && event.key !== 'Home'
      && event.key !== 'End')) return;
    const in_search = event.target instanceof HTMLInputElement;
    if (in_search && event.key !== 'ArrowDown') return;
    if (in_search && /** @type {HTMLInputElement} */ (event.target).type !== 'search') return;
    const links = this._stop?.links() ?? [];
    if (links.length === 0) return;
    const here = links.findIndex((item) => item.closest('li')?.contains(/** @type {Node} */ (event.target)));
    let next = 0;
    if (event.key === 'ArrowDown') next = Math.min(links.length - 1, here + 1);
    if (event.key === 'ArrowUp') next = here - 1;
    if (event.key === 'End') next = links.length - 1;
    event.preventDefault();
    if (next < 0) this.#search();
    else links[next].focus();
  }

  #search() {
    /** @type {HTMLElement | null} */ (this.querySelector('input[type=search]'))?.focus();
  }
}

/**
 * @param {SessionSummary[]} list
 * @returns {[string, SessionSummary[]][]}
 */
function groups(list) {
  /** @type {Map<string, SessionSummary[]>} */
  const found = new Map();
  const now = new Date();
  for (const item of list) {
    const group = groupOf(item, now);
    found.set(group, [...(found.get(group) ?? []), item]);
  }
  return [...found];
}

customElements.define('navi-sidebar', NaviSidebar);
