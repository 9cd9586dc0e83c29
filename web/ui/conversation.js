/** @import { Entry, SessionState } from '../state/types.js' */
/** @import { Stretch } from '../state/work.js' */
/** @typedef {NonNullable<ReturnType<typeof target.get>>} Target */

import { showToast } from '../app/actions.js';
import { loadEarlier, outboxOf } from '../app/session.js';
import { changes, connection, focusWanted, printing, session, sharedLink, target, unfolded } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { madeFiles } from '../state/made.js';
import { isUnderWay } from '../state/outbox.js';
import { answers, begins, compressedAt, forkAt, holds } from '../state/turns.js';
import { stretches } from '../state/work.js';
import { endingCard } from './cards.js';
import { NaviElement } from './element.js';
import { bringIntoView, markWords, unmark } from './found.js';
import { icons } from './icons.js';
import { pendingMessages } from './pending.js';
import { ScrollKeeper } from './scroll.js';
import { isQuiet } from './status_line.js';
import { unknownPlaces } from './unknown_calls.js';
import './dividers.js';
import './message.js';

/** How many entries are drawn at first and how many more at a time, and how many at once at the most. */
const PAGE = 100;
const DRAWN = 300;
const LAID_OUT_MS = 60;
/** How high a line is where that cannot be told. */
const LINE_PX = 24;
/** @type {never[]} */
const NONE = [];
/** How long a message that was looked for stands out. */
const FOUND_MS = 2_500;

/** The open conversation, newest at the bottom. */
export class NaviConversation extends NaviElement {
  static properties = {
    _shown: { state: true }, _last: { state: true }, _away: { state: true }, _lines: { state: true },
    _reads: { state: true },
  };

  constructor() {
    super();
    /** How many entries are drawn, and the id of the last one; '' while it is the newest. */
    this._shown = PAGE;
    this._last = '';
    /** Whether more of what was said before is on its way. */
    this._reads = false;
    /** Whether the reader is away from the end, and what was the newest entry when that began. */
    this._away = false;
    this._newest_read = '';
    /**
     * That entry as it was drawn last, and by how much and how many lines it grew since.
     * @type {{ entry: Entry | undefined, height: number }}
     */
    this._measured = { entry: undefined, height: 0 };
    this._grown_px = 0;
    this._lines = 0;
    this._session_id = '';
    this._keeper = new ScrollKeeper((away) => this.#left(away),
      (edge) => (edge === 'start' ? void this.#earlier() : this.#later()), () => this.#count());
    this._outbox_length = 0;
    this._printing = false;
    /** The work in what is drawn. @type {ReadonlyMap<string, Stretch>} */
    this._work = new Map();
    /** The files that its runs left behind. @type {ReadonlyMap<string, string[]>} */
    this._made = new Map();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._keeper.stop();
  }

  willUpdate() {
    if (printing.get() === this._printing) return;
    this._printing = printing.get();
    // Whoever reads further up goes on there afterwards.
    if (this._away) this._keeper.hold(this.querySelectorAll('navi-message'));
  }

  updated() {
    const scroller = this.querySelector('.scroll');
    const content = this.querySelector('.column');
    if (scroller instanceof HTMLElement && content instanceof HTMLElement) this._keeper.watch(scroller, content);
    const id = session.get()?.id ?? '';
    const waiting = outboxOf(id).length;
    // A conversation opens at its end, and who has just written wants to see it.
    if (id !== this._session_id) unmark();
    if (id !== this._session_id || waiting > this._outbox_length) void this.#toEnd(false);
    this._session_id = id;
    this._outbox_length = waiting;
    if (focusWanted.get() === 'continue') this.#focusContinue();
    void this.#follow();
  }

  /** Where nothing can be continued one writes. */
  #focusContinue() {
    const button = this.querySelector('[data-testid="continue"]');
    focusWanted.set(button === null ? 'composer' : null);
    if (button instanceof HTMLElement) button.focus();
  }

  /** Goes to the message that a link led to, or to where a question stands: that takes the keyboard itself. */
  async #follow() {
    const wanted = target.get();
    const state = session.get();
    if (wanted === null || state === null || wanted.session_id !== state.id) return;
    target.set(null);
    const asked = focusWanted.get();
    const found = await this.#find(wanted, state);
    if (asked !== null && typeof asked === 'object') {
      // What is asked no more takes none.
      if (focusWanted.get() === asked) focusWanted.set(null);
      else document.activeElement?.scrollIntoView({ block: 'nearest' });
    } else if (found instanceof HTMLElement) {
      found.scrollIntoView({ block: 'start' });
      found.focus({ preventScroll: true });
      await goToWords(found, wanted.words);
      found.classList.add('found');
      setTimeout(() => found.classList.remove('found'), FOUND_MS);
    }
  }

  /** Draws what is around a message. @param {Target} wanted @param {SessionState} state */
  async #find(wanted, state) {
    const place = (/** @type {SessionState} */ { entries }) =>
      entries.findIndex((entry) => holds(entry, wanted.message_id));
    if (place(state) < 0) await this.#read(wanted.message_id);
    const now = session.get();
    if (now?.id !== wanted.session_id) return null;
    const { entries } = now;
    const index = place(now);
    if (index < 0) {
      showToast(t('search.elsewhere'));
      return null;
    }
    this._keeper.leave();
    this.#draw(entries, index - PAGE / 2, index + PAGE / 2);
    await this.updateComplete;
    const work = this._work.get(entries[index].id);
    if (work !== undefined) unfolded.set(new Map([...unfolded.get(), [work.id, true]]));
    const messages = /** @type {NaviElement[]} */ ([...this.querySelectorAll('navi-message')]);
    await Promise.all(messages.map((message) => message.updateComplete));
    // Texts are laid out a moment after their messages.
    await new Promise((resolve) => { setTimeout(resolve, LAID_OUT_MS); });
    return this.querySelector(`article[data-message-id="${CSS.escape(entries[index].id)}"]`);
  }

  render() {
    const state = session.get();
    if (state === null) return skeleton();
    const { from, to } = this.#range(state.entries);
    const hidden = from + state.earlier;
    const whole = to === state.entries.length;
    const unread = this.#since(state.entries).filter(({ kind }) => kind === 'user' || kind === 'assistant').length;
    const news = unread > 0
      ? [t('conversation.new', { n: unread })]
      : this._away && this._lines > 0 ? [t('conversation.new_lines', { n: this._lines })] : [];
    const asked = answers(state.entries);
    const drawn = state.entries.slice(from, to);
    this._work = stretches(drawn, whole && state.run !== null, this._work);
    // Whoever looks by a link can open none.
    if (sharedLink.get() === null)
      this._made = madeFiles(state.entries, changes.get() ?? NONE, state.run?.run_id ?? null, this._made);
    const compressed = compressedAt(state.compression, state.entries, state.earlier);
    return html`
      <div class="scroll" role="log" aria-live="off" aria-label=${t('conversation.label')} tabindex="0"
        data-testid="conversation"
        data-last-seq=${state.last_seq} data-running=${String(state.run !== null)} data-link=${connection.get()}>
        <div class="column">
          ${hidden === 0
            ? nothing
            : html`<button type="button" class="link-button earlier" data-testid="show-earlier"
              aria-busy=${String(this._reads)}
            @click=${() => this.#earlier()}>${t('conversation.earlier', { n: Math.min(hidden, PAGE) })}</button>`}
          ${repeat(drawn, (entry) => entry.id,
            (entry, i) => html`${from + i === compressed ? compression(state) : nothing}<navi-message .entry=${entry}
            ?first=${begins(state.entries, from + i)} steps .work=${this._work.get(entry.id) ?? null}
            .made=${this._made.get(entry.id) ?? NONE} .fork=${forkAt(state.forks, entry)}
            .asked=${asked.get(entry.id) ?? null}></navi-message>`)}
          ${whole
            ? this.#end(state, compressed)
            : html`<button type="button" class="link-button later" data-testid="show-later"
            @click=${() => this.#later()}>${t('conversation.later')}</button>`}
        </div>
      </div>
      ${this._away || !whole
        ? html`<button type="button" class="to-end" data-testid="jump-latest" @click=${() => void this.#toEnd(true)}
        aria-label=${[t('conversation.latest'), ...news].join(', ')}
        title=${t('conversation.latest')}>${icons.down}${
          news.map((text) => html`<span data-testid="unread">${text}</span>`)}</button>` : nothing}`;
  }

  /**
   * What stands after the newest message.
   * @param {SessionState} state
   * @param {number} compressed
   */
  #end(state, compressed) {
    return html`${compressed === state.entries.length ? compression(state) : nothing}
      ${unknownPlaces('rest')}
      ${pendingMessages(state.id)}
      ${ending(state)}`;
  }

  /**
   * Which entries are drawn.
   * @param {Entry[]} entries
   */
  #range(entries) {
    if (printing.get()) return { from: 0, to: entries.length };
    const last = this._last === '' ? -1 : entries.findIndex(({ id }) => id === this._last);
    const to = last < 0 ? entries.length : last + 1;
    // Who reads further up keeps what is drawn there while more comes.
    const shown = last < 0 ? Math.min(DRAWN, this._shown + this.#since(entries).length) : this._shown;
    return { from: Math.max(0, to - shown), to };
  }

  /**
   * Draws these entries.
   * @param {Entry[]} entries
   * @param {number} from
   * @param {number} to
   */
  #draw(entries, from, to) {
    const [first, end] = [Math.max(0, from), Math.min(entries.length, to)];
    this._shown = end - first;
    this._last = end === entries.length ? '' : entries[end - 1].id;
  }

  /** @param {boolean} away */
  #left(away) {
    this._away = away;
    const entry = session.get()?.entries.at(-1);
    this._newest_read = entry?.id ?? '';
    this._measured = { entry, height: this.#newestRead()?.offsetHeight ?? 0 };
    this._grown_px = 0;
    this._lines = 0;
  }

  #newestRead() {
    return /** @type {HTMLElement | null} */ (this.querySelector(
      `article[data-message-id="${CSS.escape(this._newest_read)}"]`,
    ));
  }

  /** While one reads further up the newest message may go on, far below: what else makes it higher is no news. */
  #count() {
    const article = this._away ? this.#newestRead() : null;
    if (article === null) return;
    const before = this._measured;
    this._measured = {
      entry: session.get()?.entries.findLast(({ id }) => id === this._newest_read), height: article.offsetHeight,
    };
    if (this._measured.entry === before.entry || before.height === 0) return;
    this._grown_px += this._measured.height - before.height;
    const line_px = Number.parseFloat(getComputedStyle(article.querySelector('.prose') ?? article).lineHeight)
      || LINE_PX;
    this._lines = Math.max(0, Math.round(this._grown_px / line_px));
  }

  /** What came since the reader left the end. @param {Entry[]} entries */
  #since(entries) {
    const read = this._away ? entries.findLastIndex(({ id }) => id === this._newest_read) : -1;
    return read < 0 ? [] : entries.slice(read + 1);
  }

  /** @param {boolean} smooth */
  async #toEnd(smooth) {
    this._shown = PAGE;
    this._last = '';
    if (!smooth) this._keeper.toEnd(false);
    await this.updateComplete;
    this._keeper.toEnd(smooth);
  }

  async #earlier() {
    const state = session.get();
    if (state === null || this._reads) return;
    if (this.#range(state.entries).from < PAGE && state.earlier > 0) await this.#read(null);
    const entries = session.get()?.entries ?? [];
    const { from, to } = this.#range(entries);
    if (from === 0) return;
    this._keeper.hold(this.querySelectorAll('navi-message'));
    const first = Math.max(0, from - PAGE);
    this.#draw(entries, first, Math.min(to, first + DRAWN));
  }

  #later() {
    const entries = session.get()?.entries ?? [];
    const { from, to } = this.#range(entries);
    if (to === entries.length) return;
    this._keeper.leave();
    this._keeper.hold(this.querySelectorAll('navi-message'));
    const end = Math.min(entries.length, to + PAGE);
    this.#draw(entries, Math.max(from, end - DRAWN), end);
  }

  /** Reads what was said before; with a message's id, until that is there. @param {string | null} message_id */
  async #read(message_id) {
    this._reads = true;
    await loadEarlier(message_id);
    this._reads = false;
  }
}

/** @param {Element} part @param {string[]} words */
async function goToWords(part, words) {
  const range = markWords(part, words);
  if (range === null) return;
  bringIntoView(range);
  // What was out of sight is laid out now, and may be higher than it was taken for.
  await new Promise((resolve) => { requestAnimationFrame(resolve); });
  bringIntoView(range);
}

/** @param {SessionState} state */
const compression = (state) => html`<navi-compression .mark=${state.compression}></navi-compression>`;

/** @param {SessionState} state */
function ending(state) {
  if (state.run !== null) return isQuiet(state)
    ? html`<navi-status-line .session=${state}></navi-status-line>`
    : nothing;
  // A message on its way will start the next run: what ended the last one is history.
  if (state.ending === null || outboxOf(state.id).some(isUnderWay)) return nothing;
  // What a restart cut off may go on with it.
  if (state.ending.kind === 'interrupted' && connection.get() === 'restarting') return nothing;
  return endingCard(state.ending, state.can_continue);
}

function skeleton() {
  return html`<div class="scroll" role="status" aria-busy="true"
    aria-label=${t('app.loading')}><div class="column skeleton" data-testid="skeleton">
    <div class="bone right"></div><div class="bone"></div><div class="bone"></div><div class="bone short"></div>
  </div></div>`;
}

customElements.define('navi-conversation', NaviConversation);
