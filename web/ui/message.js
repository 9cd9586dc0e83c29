/** @import { AssistantEntry, Entry, NoticeEntry, UserEntry } from '../state/model.js' */

import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../vendor/lit.js';
import { withCode } from './cards.js';
import { copyButton } from './copy.js';
import { NaviElement } from './element.js';
import { formatTime, sentence } from './format.js';
import { icons, mark } from './icons.js';
import { imageRow } from './image.js';
import './code.js';
import './markdown.js';
import './thinking.js';
import './tool_card.js';

/** One entry of the conversation. It is drawn again only when its entry is another object. */
export class NaviMessage extends NaviElement {
  static properties = { entry: { attribute: false }, first: { type: Boolean } };

  constructor() {
    super();
    this.entry = /** @type {Entry} */ (/** @type {unknown} */ (null));
    /** Whether it begins an answer: then it carries Navi's mark. */
    this.first = false;
  }

  render() {
    const { entry } = this;
    if (entry.kind === 'user') return userMessage(entry);
    return entry.kind === 'notice' ? notice(entry) : this.#assistant(entry);
  }

  /** @param {AssistantEntry} entry */
  #assistant(entry) {
    const streaming = entry.open && entry.content !== '';
    // A message that called tools is the middle of an answer; its foot would only part it.
    const isLast = entry.content !== '' && entry.calls.length === 0;
    return html`<article class="message assistant ${this.first ? 'first' : ''}" data-testid="message" data-role="assistant"
      data-message-id=${entry.id} data-state=${entry.open ? 'streaming' : entry.state} aria-label=${t('conversation.navi')}>
      ${this.first ? html`<span class="avatar">${mark}</span>` : nothing}
      ${entry.is_plan ? html`<p class="tag">${t('message.plan')}</p>` : nothing}
      ${entry.thinking === '' ? nothing : html`<navi-thinking .entry=${entry}></navi-thinking>`}
      ${entry.content === '' ? nothing : html`<navi-markdown class="prose ${streaming ? 'streaming' : ''}" dir="auto"
        .text=${entry.content} .complete=${!entry.open}></navi-markdown>`}
      ${repeat(entry.calls, (call) => call.id, (call) => html`<navi-tool-card .call=${call}></navi-tool-card>`)}
      ${entry.open || !isLast ? nothing : html`<div class="message-foot">
        ${entry.state === 'complete' ? nothing : html`<span class="tag ${entry.state}">${t(`message.state.${entry.state}`)}</span>`}
        <span class="message-actions">${copyButton(() => entry.content, 'message.copy')}<time datetime=${entry.created_at}
          >${formatTime(entry.created_at)}</time></span></div>`}
    </article>`;
  }
}

/** @param {UserEntry} entry */
function userMessage(entry) {
  return html`<article class="message user" data-testid="message" data-role="user" data-message-id=${entry.id}
    aria-label=${t('conversation.you')}>
    ${entry.images.length === 0 ? nothing : imageRow(entry.images, (n) => t('conversation.image', { n }))}
    <div class="bubble" dir="auto">${entry.content}</div>
    <div class="message-foot"><span class="message-actions"><time datetime=${entry.created_at}>${formatTime(entry.created_at)}</time>${
      copyButton(() => entry.content, 'message.copy')}</span></div>
  </article>`;
}

/** @param {NoticeEntry} entry */
function notice(entry) {
  return html`<p class="notice ${entry.tone}" data-testid="notice" data-code=${entry.code}>${icons.warning}<span>${withCode(sentence(entry.message))}</span></p>`;
}

customElements.define('navi-message', NaviMessage);
