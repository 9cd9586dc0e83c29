/** @import { QueuedMessage } from '../state/wire.js' */

import { growEdit, setEdit } from '../app/drafts.js';
import { editQueued, sendHeld, withdraw } from '../app/session.js';
import { connection, continuing, edits, isGuest, queue, session, steered, writtenBy } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';
import { isComposing, isSending } from './keys.js';

/** Messages that wait for the present answer's end, or that Stop held back. They can be changed and taken back. */
export class NaviQueue extends NaviElement {
  render() {
    const waiting = queue.get();
    if (waiting.length === 0) return nothing;
    return html`${session.get()?.ending?.held ? this.#held() : nothing}<ul class="queue"
      aria-label=${t('queue.label')}>${repeat(waiting, (item) => item.message_id, (item) => this.#item(item))}</ul>`;
  }

  #held() {
    return html`<p class="queue-held" role="status" data-testid="queue-held">${t('queue.held')}
      ${isGuest.get()
        ? nothing
        : html`<button type="button" class="button small" data-testid="queue-go-on"
          ?disabled=${connection.get() !== 'open' || continuing.get()}
          @click=${sendHeld}>${t('queue.go_on')}</button>`}</p>`;
  }

  /** @param {QueuedMessage} item */
  #item(item) {
    const words = edits.get().get(item.message_id);
    // The event that tells of a new one does not say its mode; whoever sent it knows.
    const author = writtenBy({ author: item.author ?? null });
    const mode = item.mode ?? (item.client_id !== undefined && steered.get().has(item.client_id) ? 'steer' : 'queue');
    return html`<li class="queued" data-testid="queued-message" data-message-id=${item.message_id} data-mode=${mode}>
      ${words !== undefined ? this.#form(item, words) : html`
        <span class="queued-tag">${t(`queue.mode.${mode}`)}</span>
        ${author === null ? nothing : html`<span class="author" dir="auto">${author}</span>`}
        <span class="queued-text" dir="auto">${item.content}</span>
        ${isGuest.get() ? nothing : this.#buttons(item)}`}
    </li>`;
  }

  /** @param {QueuedMessage} item */
  #buttons(item) {
    return html`<button type="button" class="icon-button" data-testid="queued-edit" title=${t('queue.edit')}
        aria-label=${t('queue.edit')}
        @click=${() => this.#edit(item)}>${icons.pencil}</button>
      <button type="button" class="icon-button" data-testid="queued-withdraw" title=${t('queue.withdraw')}
        aria-label=${t('queue.withdraw')}
        @click=${() => withdraw(item.message_id)}>${icons.close}</button>`;
  }

  /**
   * It stays until the service has the words: they may come too late.
   * @param {QueuedMessage} item
   * @param {string} words
   */
  #form(item, words) {
    const offline = connection.get() !== 'open';
    return html`<form class="queued-form" @submit=${(/** @type {SubmitEvent} */ event) => this.#save(event, item)}>
      <textarea name="content" rows="2" aria-label=${t('queue.edit')} data-testid="queued-input"
        @input=${(/** @type {InputEvent} */ event) => growEdit(item.message_id,
          /** @type {HTMLTextAreaElement} */ (event.target).value)}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event, item)} .value=${words}></textarea>
      <button type="submit" class="button small" data-testid="queued-save"
        ?disabled=${offline}>${t('queue.save')}</button>
      <button type="button" class="button small plain"
        @click=${() => setEdit(item.message_id, undefined)}>${t('queue.cancel')}</button>
      ${offline ? html`<p class="quiet" role="status" data-testid="queued-offline">${t('queue.offline')}</p>` : nothing}
    </form>`;
  }

  /** @param {QueuedMessage} item */
  async #edit({ message_id, content }) {
    setEdit(message_id, content);
    await this.updateComplete;
    /** @type {HTMLElement | null} */ (this.querySelector(
      `[data-message-id="${CSS.escape(message_id)}"] textarea`,
    ))?.focus();
  }

  /** @param {KeyboardEvent} event @param {QueuedMessage} item */
  #key(event, item) {
    if (isComposing(event)) return;
    if (event.key === 'Escape') {
      event.stopPropagation();
      setEdit(item.message_id, undefined);
    } else if (isSending(event)) {
      event.preventDefault();
      if (connection.get() === 'open') /** @type {HTMLTextAreaElement} */ (event.target).form?.requestSubmit();
    }
  }

  /** @param {SubmitEvent} event @param {QueuedMessage} item */
  #save(event, item) {
    event.preventDefault();
    const content = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get('content') ?? '').trim();
    if (content === '' || content === item.content) setEdit(item.message_id, undefined);
    else if (editQueued(item.message_id, content)) setEdit(item.message_id, content);
  }
}

customElements.define('navi-queue', NaviQueue);
