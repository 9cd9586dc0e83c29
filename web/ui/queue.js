/** @import { QueuedMessage } from '../state/wire.js' */

import { editQueued, withdraw } from '../app/session.js';
import { session, steered } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../vendor/lit.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';

/** Messages that wait for the present answer's end. They can be changed and taken back. */
export class NaviQueue extends NaviElement {
  static properties = { _editing: { state: true } };

  constructor() {
    super();
    /** @type {string | null} */
    this._editing = null;
  }

  render() {
    const queue = session.get()?.queue ?? [];
    if (queue.length === 0) return nothing;
    return html`<ul class="queue" aria-label=${t('queue.label')}>${repeat(queue, (item) => item.message_id, (item) => this.#item(item))}</ul>`;
  }

  /** @param {QueuedMessage} item */
  #item(item) {
    const editing = this._editing === item.message_id;
    // The event that tells of a new one does not say its mode; whoever sent it knows.
    const mode = item.mode ?? (item.client_id !== undefined && steered.get().has(item.client_id) ? 'steer' : 'queue');
    return html`<li class="queued" data-testid="queued-message" data-message-id=${item.message_id} data-mode=${mode}>
      ${editing ? this.#form(item) : html`
        <span class="queued-tag">${t(`queue.mode.${mode}`)}</span>
        <span class="queued-text" dir="auto">${item.content}</span>
        <button type="button" class="icon-button" data-testid="queued-edit" title=${t('queue.edit')} aria-label=${t('queue.edit')}
          @click=${() => this.#edit(item.message_id)}>${icons.pencil}</button>
        <button type="button" class="icon-button" data-testid="queued-withdraw" title=${t('queue.withdraw')} aria-label=${t('queue.withdraw')}
          @click=${() => withdraw(item.message_id)}>${icons.close}</button>`}
    </li>`;
  }

  /** @param {QueuedMessage} item */
  #form(item) {
    return html`<form class="queued-form" @submit=${(/** @type {SubmitEvent} */ event) => this.#save(event, item)}>
      <textarea name="content" rows="2" aria-label=${t('queue.edit')} data-testid="queued-input"
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event)} .value=${item.content}></textarea>
      <button type="submit" class="button small" data-testid="queued-save">${t('queue.save')}</button>
      <button type="button" class="button small plain" @click=${() => { this._editing = null; }}>${t('queue.cancel')}</button>
    </form>`;
  }

  /** @param {string} message_id */
  async #edit(message_id) {
    this._editing = message_id;
    await this.updateComplete;
    this.querySelector('textarea')?.focus();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === 'Escape') {
      event.stopPropagation();
      this._editing = null;
    } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      /** @type {HTMLTextAreaElement} */ (event.target).form?.requestSubmit();
    }
  }

  /** @param {SubmitEvent} event @param {QueuedMessage} item */
  #save(event, item) {
    event.preventDefault();
    const content = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get('content') ?? '').trim();
    this._editing = null;
    if (content !== '' && content !== item.content) editQueued(item.message_id, content);
  }
}

customElements.define('navi-queue', NaviQueue);
