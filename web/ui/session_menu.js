/** @import { SessionSummary } from '../state/wire.js' */

import { archive, bringBack, remove, showTags, togglePin } from '../app/actions.js';
import { exportSession } from '../app/export.js';
import { mayChange } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';

/** @typedef {{ id: string, icon: keyof typeof icons, label: string, run: () => void, danger?: boolean }} Action */

/** What can be done with a conversation of the list: a button, and the menu that it opens. */
export class NaviSessionMenu extends NaviElement {
  static properties = { session: { attribute: false }, onrename: { attribute: false }, _open: { state: true } };

  constructor() {
    super();
    this.session = /** @type {SessionSummary} */ (/** @type {unknown} */ (null));
    this.onrename = () => {};
    this._open = false;
  }

  /** What is taken out of the page closes, and tells nobody. */
  disconnectedCallback() {
    super.disconnectedCallback();
    this._open = false;
  }

  render() {
    const { session } = this;
    const id = `session-menu-${session.id}`;
    const label = `${t('session.actions')}: ${session.title || t('sidebar.untitled')}`;
    return html`<button type="button" class="icon-button session-more" popovertarget=${id} tabindex="-1"
      data-testid="session-more" aria-haspopup="menu" aria-expanded=${String(this._open)}
        title=${t('session.actions')} aria-label=${label}>${icons.more}</button>
      <div id=${id} popover class="menu" role="menu" aria-label=${label} data-testid="session-menu"
        @beforetoggle=${(/** @type {ToggleEvent} */ event) => { this._open = event.newState === 'open'; }}
        @toggle=${(/** @type {ToggleEvent} */ event) => { if (event.newState === 'open') this.#items()[0]?.focus(); }}
        @contextmenu=${(/** @type {Event} */ event) => event.preventDefault()}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event)}>
        ${this._open ? actionsOf(session, this.onrename).map((action) => this.#item(action)) : nothing}</div>`;
  }

  /** @param {Action} action */
  #item({ id, icon, label, run, danger = false }) {
    return html`<button type="button" role="menuitem" tabindex="-1" class="menu-item ${danger ? 'danger' : ''}"
      data-testid="session-action" data-action=${id} @click=${() => {
      this.#close();
      run();
    }}>${icons[icon]}<span>${t(label)}</span></button>`;
  }

  /** The way of the keyboard. */
  open() {
    this.querySelector('button')?.click();
  }

  /** The keyboard goes back to where it came from. */
  #close() {
    /** @type {HTMLElement | null} */ (this.querySelector('[popover]'))?.hidePopover();
  }

  #items() {
    return /** @type {HTMLElement[]} */ ([...this.querySelectorAll('[role=menuitem]')]);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const items = this.#items();
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 };
    if (event.key in steps) items.at(steps[event.key] % items.length)?.focus();
    else if (event.key === 'Tab' || event.key === 'ArrowLeft') this.#close();
    else return;
    event.preventDefault();
  }
}

/**
 * Those that would do something: what is others' may be kept as a file.
 * @param {SessionSummary} session
 * @param {() => void} rename
 * @returns {Action[]}
 */
function actionsOf(session, rename) {
  const mine = mayChange(session);
  /** @type {(Action | false)[]} */
  const all = [
    mine && !session.archived && {
      id: 'pin', icon: 'pin', label: session.pinned ? 'session.unpin' : 'session.pin', run: () => togglePin(session),
    },
    mine && { id: 'rename', icon: 'pencil', label: 'session.rename', run: rename },
    mine && { id: 'tags', icon: 'tag', label: 'tags.title', run: () => showTags(session.id) },
    mine && (session.archived
      ? { id: 'unarchive', icon: 'unarchive', label: 'session.unarchive', run: () => bringBack(session) }
      : { id: 'archive', icon: 'archive', label: 'session.archive', run: () => void archive(session) }),
    { id: 'export-md', icon: 'download', label: 'session.export_md', run: () => void exportSession(session.id, 'md') },
    { id: 'export-json', icon: 'download', label: 'session.export_json',
      run: () => void exportSession(session.id, 'json') },
    mine && { id: 'delete', icon: 'trash', label: 'session.delete', run: () => void remove(session), danger: true },
  ];
  return all.filter((action) => action !== false);
}

customElements.define('navi-session-menu', NaviSessionMenu);
