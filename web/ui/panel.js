import { panel } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';
import './toasts.js';

/** A dialog that closes gives the focus back, in Chromium without the caret: what is typed then would go nowhere. */
function giveCaretBack() {
  const at = document.activeElement;
  if (at instanceof HTMLTextAreaElement || (at instanceof HTMLInputElement && at.selectionStart !== null))
    at.setSelectionRange(at.selectionStart, at.selectionEnd);
}

/** What stands over the page until it is closed. */
export class NaviPanel extends NaviElement {
  /** The tab that was brought into sight last. @type {Element | null} */
  #tab = null;
  #sizes = new ResizeObserver(() => this.#showTab());
  /** Where the press began that a click is the end of. @type {EventTarget | null} */
  #began = null;
  #begin = (/** @type {PointerEvent} */ { target }) => { this.#began = target; };

  connectedCallback() {
    super.connectedCallback();
    this.addEventListener('pointerdown', this.#begin);
  }

  firstUpdated() {
    this.open();
    const list = this.querySelector('.tabs');
    if (list !== null) this.#sizes.observe(list);
  }

  updated() {
    const tab = this.querySelector('.tabs [aria-selected="true"]');
    if (tab !== this.#tab) this.#showTab();
    this.#tab = tab;
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.removeEventListener('pointerdown', this.#begin);
    this.#sizes.disconnect();
  }

  /** Where not all tabs have room, the one that is shown is in sight. */
  #showTab() {
    const list = this.querySelector('.tabs');
    const tab = this.querySelector('.tabs [aria-selected="true"]');
    if (!(list instanceof HTMLElement && tab instanceof HTMLElement)) return;
    list.scrollLeft = tab.offsetLeft - list.offsetLeft - (list.clientWidth - tab.offsetWidth) / 2;
  }

  open() {
    this.dialog?.showModal();
  }

  get dialog() {
    return this.querySelector('dialog');
  }

  close() {
    this.dialog?.close();
  }

  /** A dialog tells of its end later: by then another may stand there. */
  closed() {
    giveCaretBack();
    if (this.isConnected) panel.set(null);
  }

  /** A press beside it closes it; one that only ends there selects text. @param {MouseEvent} event */
  pressed(event) {
    if (event.target === this.dialog && this.#began === this.dialog) this.close();
  }

  /** @param {string} name of its parts in tests */
  closeButton(name) {
    return html`<button type="button" class="icon-button" data-testid="${name}-close"
      aria-label=${t('memory.close')} title=${t('memory.close')} @click=${() => this.close()}>${icons.close}</button>`;
  }

  /**
   * Tabs over a part of it; the arrows go from one to the next.
   * @template {string} T
   * @param {string} label
   * @param {readonly T[]} names
   * @param {T} shown
   * @param {{ title: (name: T) => string, show: (name: T) => void, content: unknown }} tabs
   */
  tabs(label, names, shown, { title, show, content }) {
    const key = (/** @type {KeyboardEvent} */ event) => {
      const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
      if (step === 0) return;
      event.preventDefault();
      const next = names[(names.indexOf(shown) + step + names.length) % names.length];
      show(next);
      /** @type {HTMLElement | null} */ (this.querySelector(`#tab-${next}`))?.focus();
    };
    return html`<div class="tabs" role="tablist" aria-label=${label}
      @keydown=${key}>${
        names.map((name) => html`<button type="button" role="tab" id="tab-${name}" aria-controls="tab-panel"
        aria-selected=${String(shown === name)} tabindex=${shown === name ? 0 : -1} data-testid=${`tab-${name}`}
        @click=${() => show(name)}>${title(name)}</button>`)}</div>
      <div id="tab-panel" role="tabpanel" aria-labelledby="tab-${shown}">${content}</div>`;
  }

  /**
   * With a heading, and a button that closes it.
   * @param {string} name
   * @param {string} title
   * @param {unknown} content
   */
  frame(name, title, content) {
    return html`<dialog class="panel ${name}-panel" data-testid=${name} aria-labelledby="${name}-title"
      @close=${this.closed} @click=${this.pressed}>
      <div class="panel-page">
        <header class="panel-head"><h2 id="${name}-title">${title}</h2>${this.closeButton(name)}</header>
        ${content}
      </div>
      <navi-toasts class="toasts"></navi-toasts>
    </dialog>`;
  }
}
