/** @import { SessionState } from '../state/types.js' */

import { showToast } from '../app/actions.js';
import { outboxOf } from '../app/session.js';
import { connection, session, target } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { atTheEnd } from '../state/approvals.js';
import { isUnderWay } from '../state/outbox.js';
import { answers, begins, compressedAt, forkAt, holds } from '../state/turns.js';
import { endingCard } from './cards.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';
import { pendingMessages } from './pending.js';
import { ScrollKeeper } from './scroll.js';
import { isQuiet } from './status_line.js';
import { unknownPlaces } from './unknown.js';
import './approval.js';
import './dividers.js';
import './message.js';

/** How many entries are drawn at first, and how many more on demand. */
const PAGE = 200;
const LAID_OUT_MS = 60;
/** How long a message that was looked for stands out. */
const FOUND_MS = 2_500;

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
    const waiting = outboxOf(id).length;
    // A conversation opens at its end, and who has just written wants to see it.
    if (id !== this._session_id || waiting > this._outbox_length) this._keeper.toEnd(false);
    if (id !== this._session_id) this._shown = PAGE;
    this._session_id = id;
    this._outbox_length = waiting;
    void this.#follow();
  }

  /** Goes to the message that a link led to. */
  async #follow() {
    const wanted = target.get();
    const state = session.get();
    if (wanted === null || state === null || wanted.session_id !== state.id) return;
    target.set(null);
    const index = state.entries.findIndex((entry) => holds(entry, wanted.message_id));
    if (index < 0) {
      showToast(t('search.elsewhere'));
      return;
    }
    this._keeper.leave();
    this._shown = Math.max(this._shown, state.entries.length - index);
    await this.updateComplete;
    const messages = /** @type {NaviElement[]} */ ([...this.querySelectorAll('navi-message')]);
    await Promise.all(messages.map((message) => message.updateComplete));
    // Texts are laid out a moment after their messages.
    await new Promise((resolve) => { setTimeout(resolve, LAID_OUT_MS); });
    const found = this.querySelector(`article[data-message-id="${CSS.escape(state.entries[index].id)}"]`);
    if (!(found instanceof HTMLElement)) return;
    found.scrollIntoView({ block: 'start' });
    found.focus({ preventScroll: true });
    found.classList.add('found');
    setTimeout(() => found.classList.remove('found'), FOUND_MS);
  }

  render() {
    const state = session.get();
    if (state === null) return skeleton();
    const hidden = Math.max(0, state.entries.length - this._shown);
    const entries = hidden === 0 ? state.entries : state.entries.slice(hidden);
    const asked = answers(state.entries);
    const compressed = compressedAt(state.compression, state.entries);
    return html`
      <div class="scroll" role="log" aria-live="off" aria-label=${t('conversation.label')} tabindex="0" data-testid="conversation"
        data-last-seq=${state.last_seq} data-running=${String(state.run !== null)}>
        <div class="column">
          ${hidden === 0 ? nothing : html`<button type="button" class="link-button earlier" data-testid="show-earlier"
            @click=${() => this.#earlier()}>${t('conversation.earlier', { n: Math.min(hidden, PAGE) })}</button>`}
          ${repeat(entries, (entry) => entry.id, (entry, i) => html`${hidden + i === compressed ? compression(state) : nothing}<navi-message .entry=${entry}
            ?first=${begins(state.entries, hidden + i)} .fork=${forkAt(state.forks, entry)} .asked=${asked.get(entry.id) ?? null}></navi-message>`)}
          ${compressed === state.entries.length ? compression(state) : nothing}
          ${repeat(atTheEnd(state), (approval) => approval.approval_id, (approval) => html`<navi-approval class="apart" .approval=${approval}></navi-approval>`)}
          ${unknownPlaces('rest')}
          ${pendingMessages(state.id)}
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

/** @param {SessionState} state */
const compression = (state) => html`<navi-compression .mark=${state.compression}></navi-compression>`;

/** @param {SessionState} state */
function ending(state) {
  if (state.run !== null) return isQuiet(state) ? html`<navi-status-line .session=${state}></navi-status-line>` : nothing;
  // A message on its way will start the next run: what ended the last one is history.
  if (state.ending === null || outboxOf(state.id).some(isUnderWay)) return nothing;
  // What a restart cut off may go on with it.
  if (state.ending.kind === 'interrupted' && connection.get() === 'restarting') return nothing;
  return endingCard(state.ending, state.can_continue);
}

function skeleton() {
  return html`<div class="scroll" aria-busy="true" aria-label=${t('app.loading')}><div class="column skeleton" data-testid="skeleton">
    <div class="bone right"></div><div class="bone"></div><div class="bone"></div><div class="bone short"></div>
  </div></div>`;
}

customElements.define('navi-conversation', NaviConversation);
