/** @import { OutboxItem } from '../state/outbox.js' */
/** @import { Entry, SessionState } from '../state/model.js' */

import { outbox, session } from '../app/signals.js';
import { discard, resend } from '../app/session.js';
import { t } from '../i18n/index.js';
import { errorGroup } from '../state/errors.js';
import { html, nothing, repeat } from '../vendor/lit.js';
import { endingCard } from './cards.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';
import { imageRow } from './image.js';
import { ScrollKeeper } from './scroll.js';
import { isQuiet } from './status_line.js';
import './message.js';

/** How many entries are drawn at first, and how many more on demand. */
const PAGE = 200;

/** The open conversation, newest at the bottom. */
export class NaviConversation extends NaviElement {
  static properties = { _shown: { state: true }, _away: { state: true } };

  constructor() {
    super();
    this._shown = PAGE;
    /** Whether the reader is away from the end. */
    this._away = false;
    this._session_id = '';
    this._keeper = new ScrollKeeper((away) => { this._away = away; });
    this._outbox_length = 0;
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._keeper.stop();
  }

  updated() {
    const scroller = this.querySelector('.scroll');
    const content = this.querySelector('.column');
    if (scroller instanceof HTMLElement && content instanceof HTMLElement) this._keeper.watch(scroller, content);
    const id = session.get()?.id ?? '';
    const waiting = outbox.get().length;
    // A conversation opens at its end, and who has just written wants to see it.
    if (id !== this._session_id || waiting > this._outbox_length) this._keeper.toEnd(false);
    if (id !== this._session_id) this._shown = PAGE;
    this._session_id = id;
    this._outbox_length = waiting;
  }

  render() {
    const state = session.get();
    if (state === null) return skeleton();
    const hidden = Math.max(0, state.entries.length - this._shown);
    const entries = hidden === 0 ? state.entries : state.entries.slice(hidden);
    return html`
      <div class="scroll" role="log" aria-live="off" aria-label=${t('conversation.label')} tabindex="0" data-testid="conversation"
        data-last-seq=${state.last_seq} data-running=${String(state.run !== null)}>
        <div class="column">
          ${hidden === 0 ? nothing : html`<button type="button" class="link-button earlier" data-testid="show-earlier"
            @click=${() => this.#earlier()}>${t('conversation.earlier', { n: Math.min(hidden, PAGE) })}</button>`}
          ${repeat(entries, (entry) => entry.id, (entry, i) => html`<navi-message .entry=${entry}
            ?first=${begins(state.entries, hidden + i)}></navi-message>`)}
          ${repeat(outbox.get(), (item) => item.client_id, pending)}
          ${ending(state)}
        </div>
      </div>
      ${this._away ? html`<button type="button" class="to-end" data-testid="jump-latest" @click=${() => this._keeper.toEnd(true)}
        aria-label=${t('conversation.latest')} title=${t('conversation.latest')}>${icons.down}</button>` : nothing}`;
  }

  #earlier() {
    this._keeper.hold();
    this._shown += PAGE;
  }
}

/**
 * Whether the entry begins an answer.
 * @param {Entry[]} entries
 * @param {number} index
 */
function begins(entries, index) {
  if (entries[index].kind !== 'assistant') return false;
  for (let i = index - 1; i >= 0; i -= 1) {
    if (entries[i].kind !== 'notice') return entries[i].kind === 'user';
  }
  return true;
}

/** @param {SessionState} state */
function ending(state) {
  if (state.run !== null) return isQuiet(state) ? html`<navi-status-line .session=${state}></navi-status-line>` : nothing;
  // A message on its way will start the next run: what ended the last one is history.
  if (state.ending === null || outbox.get().length > 0) return nothing;
  return endingCard(state.ending, state.can_continue);
}

/** A message that the service has not acknowledged. @param {OutboxItem} item */
function pending(item) {
  const { refused } = item;
  const note = refused !== null ? t(`error.${errorGroup(refused.code)}.title`) : t(item.held ? 'message.unsent' : 'message.sending');
  return html`<article class="message user pending ${refused === null ? '' : 'refused'}" data-testid="pending-message" data-client-id=${item.client_id}>
    ${item.images.length === 0 ? nothing : imageRow(item.images, (n) => t('conversation.image', { n }))}
    <div class="bubble" dir="auto">${item.content}</div>
    <div class="message-foot pending-foot"><span>${note}${refused !== null && refused.message !== '' ? `: ${refused.message}` : ''}</span>
      ${refused === null && !item.held ? nothing : html`
        <button type="button" class="link-button" @click=${() => resend(item.client_id)}>${t('message.resend')}</button>
        <button type="button" class="link-button" @click=${() => discard(item.client_id)}>${t('message.discard')}</button>`}
    </div>
  </article>`;
}

function skeleton() {
  return html`<div class="scroll" aria-busy="true" aria-label=${t('app.loading')}><div class="column skeleton" data-testid="skeleton">
    <div class="bone right"></div><div class="bone"></div><div class="bone"></div><div class="bone short"></div>
  </div></div>`;
}

customElements.define('navi-conversation', NaviConversation);
