/** @import { Fork } from '../state/wire.js' */
/** @import { UserEntry } from '../state/types.js' */

import { beginEdit, growEdit, setEdit } from '../app/drafts.js';
import { editMessage } from '../app/session.js';
import { edits, editWanted, isGuest, isRunning, openId, writtenBy } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { branchPager } from './branch_pager.js';
import { copyButton } from './copy.js';
import { NaviElement } from './element.js';
import { fileRow } from './files_row.js';
import { formatTime } from './format.js';
import { icons } from './icons.js';
import { imageRow } from './image.js';
import { isComposing, isKeyboardFree, isSending } from './keys.js';

/** What a person said. It can be said in other words: the conversation goes on from there anew. */
export class NaviUserMessage extends NaviElement {
  static properties = { entry: { attribute: false }, fork: { attribute: false }, _sending: { state: true } };

  constructor() {
    super();
    this.entry = /** @type {UserEntry} */ (/** @type {unknown} */ (null));
    this.fork = /** @type {Fork | null} */ (null);
    this._sending = false;
  }

  /** Words that were begun while it waited its turn go on here. */
  firstUpdated() {
    if (edits.get().has(this.entry.id) && isKeyboardFree()) this.#focusForm();
  }

  updated() {
    if (editWanted.get() !== this.entry.id) return;
    editWanted.set(null);
    this.#focusForm();
  }

  render() {
    const { entry } = this;
    const running = isRunning.get();
    const words = edits.get().get(entry.id);
    const author = writtenBy(entry);
    return html`<article class="message user" data-testid="message" data-role="user" data-message-id=${entry.id}
      data-steered=${String(entry.steered)}
      tabindex="-1" aria-label=${author ?? t('conversation.you')}>
      ${author === null ? nothing : html`<p class="author" dir="auto" data-testid="author">${author}</p>`}
      ${entry.images.length === 0 ? nothing : imageRow(entry.images, (n) => t('conversation.image', { n }))}
      ${entry.files.length === 0 ? nothing : fileRow(openId.get() ?? '', entry.files)}
      ${words !== undefined ? this.#form(running, words) : html`<div class="bubble" dir="auto">${entry.content}</div>`}
      ${words !== undefined
        ? nothing
        : html`<div class="message-foot"><span
          class="message-actions"><time datetime=${entry.created_at}>${formatTime(entry.created_at)}</time>${
          running || isGuest.get()
            ? nothing
            : html`<button type="button" class="icon-button" data-testid="edit-message"
              title=${t('message.edit')} aria-label=${t('message.edit')}
            @click=${() => beginEdit(entry.id, entry.content)}>${icons.pencil}</button>`}${
          copyButton(() => entry.content, 'message.copy')}</span>
        ${entry.steered ? html`<span class="tag" data-testid="steered-tag">${t('message.steered')}</span>` : nothing}
        ${this.fork === null ? nothing : branchPager(this.fork)}</div>`}
    </article>`;
  }

  /** @param {boolean} running @param {string} words */
  #form(running, words) {
    return html`<form class="edit-form" @submit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      void this.#send();
    }}>
      <textarea data-testid="edit-input" dir="auto" rows="2" aria-label=${t('message.edit')} .value=${words}
        @input=${(/** @type {InputEvent} */ event) => growEdit(this.entry.id,
          /** @type {HTMLTextAreaElement} */ (event.target).value)}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event)}></textarea>
      <div class="edit-actions"><span class="quiet">${t('message.edit_hint')}</span>
        <button type="button" class="button small plain" data-testid="edit-cancel"
          @click=${() => void this.#close()}>${t('queue.cancel')}</button>
        <button type="submit" class="button small" data-testid="edit-send"
          ?disabled=${running || this._sending}>${t('composer.send')}</button></div>
    </form>`;
  }

  #focusForm() {
    const area = this.querySelector('textarea');
    area?.focus();
    area?.setSelectionRange(area.value.length, area.value.length);
  }

  async #close() {
    setEdit(this.entry.id, undefined);
    await this.updateComplete;
    /** @type {HTMLElement | null} */ (this.querySelector('[data-testid="edit-message"]'))?.focus();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (isComposing(event)) return;
    if (event.key === 'Escape') {
      event.preventDefault();
      void this.#close();
    } else if (isSending(event)) {
      event.preventDefault();
      void this.#send();
    }
  }

  async #send() {
    const content = this.querySelector('textarea')?.value.trim() ?? '';
    if (content === '' || this._sending || isRunning.get()) return;
    if (content === this.entry.content.trim()) {
      await this.#close();
      return;
    }
    this._sending = true;
    // Where it is refused the words stay with their writer.
    const taken = await editMessage(this.entry.id, content);
    this._sending = false;
    if (taken) await this.#close();
  }
}

customElements.define('navi-user-message', NaviUserMessage);
