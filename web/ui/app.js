import { boot, loadPanels, openPanel, showNew } from '../app/actions.js';
import { folded } from '../app/prefs.js';
import { lookAtOpen } from '../app/seen.js';
import { openAgain, stop } from '../app/session.js';
import {
  announcements, approvals, drawerOpen, hasAccounts, invitation, isAdmin, isGuest, isKnown, openId, openTitle,
  panel, returned, sessionError, sessions, sharedLink, signedOut,
} from '../app/signals.js';
import { hasWords, t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { asked, isOpen } from '../state/approvals.js';
import { errorGroup } from '../state/errors.js';
import { errorCard } from './cards.js';
import { NaviElement } from './element.js';
import { icons, mark } from './icons.js';
import { isComposing } from './keys.js';
import './question.js';
import './banner.js';
import './composer.js';
import './conversation.js';
import './header.js';
import './image.js';
import './keys_panel.js';
import './queue.js';
import './shared.js';
import './sidebar.js';
import './sign_in.js';
import './toasts.js';
import './todo.js';
import './welcome.js';

/** Before what could not be loaded is asked for again. */
const PAUSE_MS = 2_000;

/** The whole page. */
export class NaviApp extends NaviElement {
  constructor() {
    super();
    /** @type {string | null | undefined} */
    this._focused_for = undefined;
    this._drawer_was_open = false;
    this._title = '';
    /** How many questions wait for an answer. */
    this._asked = 0;
    this._wide = matchMedia('(min-width: 52.01rem)');
    // A drawer that was open is the sidebar now, and the page beside it must answer again.
    this._onwide = () => drawerOpen.set(false);
    this._onkey = (/** @type {KeyboardEvent} */ event) => this.#key(event);
  }

  connectedCallback() {
    super.connectedCallback();
    addEventListener('keydown', this._onkey);
    this._wide.addEventListener('change', this._onwide);
    boot();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    removeEventListener('keydown', this._onkey);
    this._wide.removeEventListener('change', this._onwide);
  }

  updated() {
    if (!hasWords.get()) return;
    document.title =
      `${this._asked > 0 ? `(${this._asked}) ${t('approval.page')} · ` : ''}${this._title === ''
        ? ''
        : `${this._title} · `}Navi`;
    badge(this._asked);
    lookAtOpen();
    if (this.querySelector('navi-invitation:not(:defined)') !== null)
      loadPanels().catch(() => setTimeout(() => this.requestUpdate(), PAUSE_MS));
    void this.#moveFocus();
  }

  /** Focus follows what was opened: the drawer, or the field of the conversation. */
  async #moveFocus() {
    const drawer = drawerOpen.get();
    if (drawer !== this._drawer_was_open) {
      this._drawer_was_open = drawer;
      const target = drawer ? '.drawer-close' : '.drawer-open';
      /** @type {HTMLElement | null} */ (this.querySelector(target))?.focus();
    }
    const composer = this.#composer();
    if (composer === null || openId.get() === this._focused_for) return;
    const is_load = this._focused_for === undefined;
    this._focused_for = openId.get();
    // On a phone the keyboard would cover what was just opened.
    if (!matchMedia('(hover: hover)').matches) return;
    // It is drawn after the page around it.
    await composer.updateComplete;
    if (!is_load || document.activeElement === document.body) composer.lead();
  }

  #composer() {
    return /** @type {import('./composer.js').NaviComposer | null} */ (this.querySelector('navi-composer'));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    // A dialog over the page has the keyboard for itself.
    if (event.defaultPrevented || isComposing(event)
      || this.querySelector('dialog:modal, [popover]:popover-open') !== null) return;
    if (event.key === 'Escape') {
      // In a field, Escape means the field.
      if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) return;
      /** @type {HTMLDialogElement | null} */
      const beside = this.querySelector('dialog[open]');
      if (drawerOpen.get()) drawerOpen.set(false);
      else if (beside !== null) beside.close();
      else stop();
    } else if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.code === 'KeyK') {
      event.preventDefault();
      void openPanel('palette');
    } else if ((event.ctrlKey || event.metaKey) && event.shiftKey && !event.altKey && event.code === 'KeyO'
      && !isGuest.get()) {
      event.preventDefault();
      showNew();
      this.#composer()?.focusInput();
    } else if (event.key === '?'
      && !(event.target instanceof Element && event.target.closest('input, textarea, select') !== null)) {
      event.preventDefault();
      void openPanel('keys');
    }
  }

  render() {
    if (!hasWords.get()) return starting();
    if (sharedLink.get() !== null)
      return html`<navi-shared></navi-shared>${panel.get() === 'image' ? opened('image') : toasts()}`;
    if (invitation.get() !== null) return html`<navi-invitation></navi-invitation>`;
    if (signedOut.get() || returned.get() !== null) return html`<navi-sign-in></navi-sign-in>`;
    if (!isKnown.get()) return starting();
    const drawer = drawerOpen.get();
    const id = openId.get();
    const error = sessionError.get();
    const over = opened(panel.get());
    this._title = openTitle();
    this._asked = asked(id, sessions.get().list, approvals.get().filter(isOpen).length);
    return html`
      <a class="skip" href="#composer" @click=${(/** @type {Event} */ event) => {
        event.preventDefault();
        this.#composer()?.focusInput();
      }}>${t('app.skip')}</a>
      <div class="layout ${drawer ? 'drawer' : ''} ${folded.get() ? 'folded' : ''}">
        <navi-sidebar class="sidebar" role="complementary" aria-label=${t('sidebar.label')}
          @click=${(/** @type {Event} */ event) => {
          if (event.target instanceof Element && event.target.closest('.session-link') !== null) drawerOpen.set(false);
        }}></navi-sidebar>
        <div class="shade" @click=${() => drawerOpen.set(false)}></div>
        <main class="main" ?inert=${drawer}>
          <navi-header></navi-header>
          <navi-banner></navi-banner>
          ${error !== null
            ? html`<div class="scroll"><div class="column">${errorCard(error,
                errorGroup(error.code) !== 'gone'
                  ? html`<button type="button" class="button" data-testid="open-again"
                    @click=${openAgain}>${icons.again}${t('subagent.retry')}</button>`
                  : nothing)}</div></div>`
            : id === null ? html`<navi-welcome class="body"></navi-welcome>`
              : html`<navi-conversation class="body"></navi-conversation>`}
          <footer class="foot"><div class="column">
            ${id === null || error !== null
              ? nothing
              : html`<navi-todo></navi-todo><navi-queue></navi-queue><navi-question></navi-question>`}
            <navi-composer></navi-composer>
          </div></footer>
        </main>
      </div>
      ${over}
      ${over === nothing ? toasts() : nothing}
      <div class="off-screen" role="status" aria-live="polite" aria-atomic="false"
        data-testid="announcer">${repeat(announcements.get(), ({ id }) => id,
          ({ text }) => html`<p>${text}</p>`)}</div>`;
  }
}

function starting() {
  return html`<main class="signin starting" aria-busy="true"
    data-testid="starting"><span class="welcome-mark">${mark}</span></main>`;
}

/** Where nothing stands over the page: each panel has its own. */
const toasts = () => html`<navi-toasts class="toasts"></navi-toasts>`;

/** What stands over the page. @param {ReturnType<typeof panel.get>} name */
function opened(name) {
  switch (name) {
    case 'account': return hasAccounts.get() ? html`<navi-account></navi-account>` : nothing;
    case 'context': return html`<navi-context></navi-context>`;
    case 'file': return html`<navi-file></navi-file>`;
    case 'files': return html`<navi-files></navi-files>`;
    case 'image': return html`<navi-image></navi-image>`;
    case 'import': return html`<navi-import></navi-import>`;
    case 'keys': return html`<navi-keys></navi-keys>`;
    case 'memory': return html`<navi-memory></navi-memory>`;
    case 'palette': return html`<navi-palette></navi-palette>`;
    case 'people': return hasAccounts.get() && isAdmin.get() ? html`<navi-people></navi-people>` : nothing;
    case 'permissions': return html`<navi-permissions></navi-permissions>`;
    case 'run': return html`<navi-run-panel></navi-run-panel>`;
    case 'runs': return html`<navi-runs></navi-runs>`;
    case 'share': return hasAccounts.get() ? html`<navi-share></navi-share>` : nothing;
    case 'setup': return html`<navi-setup></navi-setup>`;
    case 'tags': return html`<navi-tags></navi-tags>`;
    case null: return nothing;
  }
}

/** Where the page is installed as an app, its icon tells too. @param {number} asked */
function badge(asked) {
  /** @type {{ setAppBadge?: (n: number) => Promise<void>, clearAppBadge?: () => Promise<void> }} */
  const apps = navigator;
  const told = asked > 0 ? apps.setAppBadge?.(asked) : apps.clearAppBadge?.();
  told?.catch(() => {});
}

customElements.define('navi-app', NaviApp);
