/** @import { SessionSummary } from '../state/wire.js' */

import { remove, rename, sessionHref } from '../app/actions.js';
import { seen } from '../app/seen.js';
import { mayChange, owns } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { isNews } from '../state/sessions.js';
import { NaviElement } from './element.js';
import { formatTime } from './format.js';
import { icons } from './icons.js';
import { isComposing } from './keys.js';
import './session_menu.js';

/** A row of the session list. */
export class NaviSessionItem extends NaviElement {
  static properties = {
    session: { attribute: false }, current: { type: Boolean }, _named: { state: true }, _typed: { state: true },
  };

  constructor() {
    super();
    this.session = /** @type {SessionSummary} */ (/** @type {unknown} */ (null));
    this.current = false;
    /**
     * What it was called when its renaming began: a title that comes meanwhile does not touch what
     * is typed.
     * @type {string | null}
     */
    this._named = null;
    /** Another name that the service did not take: it stays with its writer. @type {string | null} */
    this._typed = null;
  }

  render() {
    const { session } = this;
    const title = session.title || t('sidebar.untitled');
    if (this._named !== null) return this.#form(this._named);
    const asks = (session.asks ?? 0) > 0;
    const phase = asks ? 'asking' : session.state;
    const state = phase === 'idle' ? '' : t(`session.state.${phase}`);
    return html`<div class="session-item ${this.current ? 'current' : ''}" data-testid="session-item"
      data-session-id=${session.id}
      data-state=${phase} data-pinned=${String(session.pinned)}>
      <a class="session-link" tabindex="-1" href=${sessionHref(session.id)}
        aria-current=${this.current ? 'page' : nothing}
        title=${[title, ...(state === '' ? [] : [state]), formatTime(session.last_active)].join('\n')}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event)}
        @dblclick=${() => void this.#rename()}>
        <span class="session-title" dir="auto">${title}</span>
        ${(session.tags ?? []).length === 0
          ? nothing
          : html`<span class="session-tags" dir="auto" data-testid="session-tags">${session.tags?.join(', ')}</span>`}
        ${sharedNote(session)}
        ${!asks && !isNews(session, seen.get())
          ? nothing
          : html`<span class="state-dot ${phase}" role="img" aria-label=${state} title=${state}></span>`}
      </a>
      <navi-session-menu .session=${session} .onrename=${() => void this.#rename()}></navi-session-menu>
    </div>`;
  }

  /** @param {string} title */
  #form(title) {
    return html`<form class="session-item renaming" @submit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      this.#finish(true);
    }}><input class="rename-input" data-testid="rename-input" maxlength="200"
      aria-label=${t('session.rename_label')} .value=${this._typed ?? title}
      @blur=${() => this.#finish(true)} @keydown=${(/** @type {KeyboardEvent} */ event) => {
        if (event.key !== 'Escape' || isComposing(event)) return;
        event.stopPropagation();
        this.#finish(false);
      }}></form>`;
  }

  async #rename() {
    if (!mayChange(this.session)) return;
    this._typed = null;
    this._named = this.session.title || t('sidebar.untitled');
    await this.updateComplete;
    this.querySelector('input')?.select();
  }

  /** @param {boolean} keep */
  async #finish(keep) {
    if (this._named === null) return;
    const input = this.querySelector('input');
    const focused = document.activeElement === input;
    if (keep && input !== null && input.value !== this._named) void this.#send(this._named, input.value);
    this._named = null;
    await this.updateComplete;
    if (focused) this.querySelector('a')?.focus();
  }

  /** @param {string} named @param {string} typed */
  async #send(named, typed) {
    if (await rename(this.session, typed)) return;
    this._typed = typed;
    this._named = named;
  }

  get #menu() {
    return /** @type {import('./session_menu.js').NaviSessionMenu | null} */ (this.querySelector('navi-session-menu'));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === 'F2') void this.#rename();
    else if ((event.key === 'ArrowRight' && !event.altKey && !event.metaKey) || event.key === 'ContextMenu'
      || (event.key === 'F10' && event.shiftKey)) this.#menu?.open();
    else if (event.key === 'Delete' && mayChange(this.session)) void remove(this.session);
    else return;
    event.preventDefault();
  }
}

/** @param {SessionSummary} session */
function sharedNote(session) {
  const { shared } = session;
  if (shared == null || (owns(session) && shared.people.length === 0)) return nothing;
  const text = owns(session)
    ? t('share.with', { names: shared.people.map(({ name }) => name).join(', ') })
    : t('share.of', { name: shared.owner.name });
  return html`<span class="session-shared" dir="auto" data-testid="session-shared"
    title=${text}>${icons.people}<span class="session-tags">${owns(session) ? '' : shared.owner.name}</span><span
        class="off-screen">${text}</span></span>`;
}

customElements.define('navi-session-item', NaviSessionItem);
