// A question: may this call be made? With exactly what would be done. The first answer from any
// tab counts, and every tab shows it.

/** @import { Approval } from '../state/approvals.js' */
/** @import { Decision, Detail } from '../state/wire.js' */

import { approve } from '../app/session.js';
import {
  account, answering, approvals, children, connection, focusWanted, isGuest, mayChangeOpen, profileName,
} from '../app/signals.js';
import { t } from '../i18n/index.js';
import { coveredBy, headOf, labelOf, reasonOf, phraseText } from '../i18n/phrases.js';
import { html, nothing } from '../lit.js';
import { askedBy, isDenied, isOpen, remainingMs } from '../state/approvals.js';
import { findDiff } from '../state/diff.js';
import { isLong } from './diff.js';
import { NaviElement } from './element.js';
import { formatDuration, formatTime, sentence } from './format.js';
import { icons, toolIcon } from './icons.js';
import { isComposing, isKeyboardFree } from './keys.js';
import { visible, visibleWords } from './visible.js';

/**
 * A button that has just come to stand under a pointer is not pressed by the press that was meant
 * for something else.
 */
const SETTLES_MS = 400;
/** A time to answer that is longer is told as the hour it ends at. */
const COUNTED_MS = 60 * 60 * 1000;
/** From here on it is said again. */
const URGENT_MS = 60 * 1000;
/** A code of more than these is folded. */
const LINES = 24;
const CHARS = 2000;
/** Nearer to the end than this is at it: a browser tells fractions of pixels. */
const END_PX = 2;
/** So much of the text before stays in view where one reads on. */
const OVERLAP_PX = 40;
/** As long may the service's note be. */
const NOTE_CHARS = 500;
/** Of so many questions the page keeps what was begun to be said of them. */
const NOTES = 20;

/**
 * Why not, by question, until it is answered: it is shown anew where another one stood meanwhile.
 * @type {Map<string, string>}
 */
const notes = new Map();

/** By where a key lies, whatever the layout. @type {Record<string, string>} */
const KEYS = { KeyY: 'approve-once', KeyA: 'approve-always', KeyN: 'approve-deny' };

export class NaviApproval extends NaviElement {
  static properties = {
    approval: { attribute: false }, of: { attribute: false }, _now: { state: true }, _settled: { state: true },
    _whole: { state: true }, _read: { state: true }, _why: { state: true },
  };

  constructor() {
    super();
    this.approval = /** @type {Approval} */ (/** @type {unknown} */ (null));
    /** Of so many questions this is the first. */
    this.of = 1;
    this._now = Date.now();
    this._settled = false;
    /** Whether all that is asked about is unfolded, and its end was in view: nothing is allowed before. */
    this._whole = false;
    this._read = false;
    /** Whether there is a field for why not. */
    this._why = false;
    /** Whether single keys answer: who was led here without asking for it presses a button. */
    this._keys = true;
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this._clock = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this._timer = undefined;
    /** What scrolls around it, where there is little room. @type {Element | null} */
    this._foot = null;
    this._onscroll = () => void this.#look();
  }

  connectedCallback() {
    super.connectedCallback();
    this._foot = this.closest('.foot');
    this._foot?.addEventListener('scroll', this._onscroll, { passive: true });
    this._clock = setInterval(() => { if (isOpen(this.approval)) this._now = Date.now(); }, 1000);
    this.#settle();
  }

  /** @param {Map<PropertyKey, unknown>} changed */
  willUpdate(changed) {
    const before = /** @type {Approval | null | undefined} */ (changed.get('approval'));
    if (!changed.has('approval') || before?.approval_id === this.approval.approval_id) return;
    this._whole = false;
    this._read = false;
    this._why = notes.has(this.approval.approval_id);
    this.#settle();
  }

  #settle() {
    clearTimeout(this._timer);
    this._settled = false;
    this._timer = setTimeout(() => { this._settled = true; }, SETTLES_MS);
  }

  #unfold() {
    // The button that was pressed goes.
    if (this.contains(document.activeElement)) this.querySelector('section')?.focus({ preventScroll: true });
    this._whole = true;
    this._read = false;
    // The press that unfolded is not the one that allows.
    this.#settle();
  }

  /** @param {Map<PropertyKey, unknown>} changed */
  updated(changed) {
    const before = /** @type {Approval | null | undefined} */ (changed.get('approval'));
    if (before != null && before.approval_id !== this.approval.approval_id) this.#scroller()?.scrollTo(0, 0);
    void this.#look();
  }

  #scroller() {
    return this.querySelector('.approval-scroll');
  }

  /** Whether the end of it is in view. */
  async #look() {
    const scroller = this.#scroller();
    if (this._read || scroller === null) return;
    const { approval_id } = this.approval;
    // Differences are drawn after what is around them.
    await Promise.all(
      [.../** @type {NodeListOf<NaviElement>} */ (scroller.querySelectorAll('navi-diff'))].map(
        (diff) => diff.updateComplete,
      ),
    );
    const { scrollHeight, clientHeight, scrollTop } = scroller;
    if (approval_id !== this.approval.approval_id || clientHeight === 0
      || scrollHeight - clientHeight - scrollTop > END_PX || this.#below(scroller) > END_PX) return;
    this._read = true;
    this.#settle();
  }

  /** By how much it ends below what is in sight of the foot. @param {Element} scroller */
  #below(scroller) {
    return this._foot === null
      ? 0
      : scroller.getBoundingClientRect().bottom - this._foot.getBoundingClientRect().bottom;
  }

  #readOn() {
    const scroller = this.#scroller();
    if (scroller === null) return;
    scroller.scrollBy({ top: scroller.clientHeight - OVERLAP_PX, behavior: 'instant' });
    if (this.#below(scroller) > 0) this._foot?.scrollBy({ top: this.#below(scroller), behavior: 'instant' });
    void this.#look();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._foot?.removeEventListener('scroll', this._onscroll);
    clearInterval(this._clock);
    clearTimeout(this._timer);
  }

  /** Whoever has the page open and nothing in hand is led to the question, never onto a button. */
  firstUpdated() {
    if (!isOpen(this.approval) || !isKeyboardFree() || !document.hasFocus()) return;
    const card = this.querySelector('section');
    card?.scrollIntoView({ block: 'nearest' });
    card?.focus({ preventScroll: true });
    // What is typed just then was meant for something else.
    this._keys = false;
  }

  render() {
    const { approval } = this;
    return isOpen(approval) ? this.#question(approval) : outcome(approval);
  }

  /** @param {Approval} approval */
  #question(approval) {
    const { request, approval_id, tool } = approval;
    const child = askedBy({ children: children.get() }, approval);
    const title = `approval-${approval_id}`;
    return html`<section class="approval" data-testid="approval" data-approval-id=${approval_id}
      data-call-id=${approval.call_id} data-tool=${tool} data-state="asked"
      data-effect=${request.effect} role="group" aria-labelledby=${title} tabindex="-1"
      @focusin=${(/** @type {FocusEvent} */ event) => this.#entered(event)}
      @pointerdown=${() => { this._keys = true; }} @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event)}>
      <div class="approval-scroll" tabindex="0" @scroll=${() => void this.#look()}>
      <div class="approval-head"><span class="approval-icon">${icons.shield}</span><div>
        <h2 id=${title}>${t('approval.title')} <span class="approval-summary"
          data-testid="approval-summary">${visibleWords(headOf(request))}</span></h2>
        <p class="approval-meta">${this.#chips(approval, child?.profile_id ?? '')}</p>
      </div></div>
      ${child === null || child.task === ''
        ? nothing
        : html`<p class="approval-task" dir="auto">${visible(child.task)}</p>`}
      ${request.details.map((detail) => this.#detail(detail))}
      <p class="approval-reason" data-testid="approval-reason">${visibleWords(sentence(reasonOf(request)))}</p>
      </div>
      ${isGuest.get() ? nothing : this.#buttons(approval)}
    </section>`;
  }

  /** @param {Approval} approval @param {string} profile_id of the subagent that asks */
  #chips({ tool, request, is_subagent }, profile_id) {
    return html`
      ${this.of < 2
        ? nothing
        : html`<span class="chip" data-testid="approval-of">${t('approval.of', { n: 1, total: this.of })}</span>`}
      <span class="chip">${toolIcon(tool)}<span>${tool}</span></span>
      <span class="chip">${t(`approval.effect.${request.effect}`)}</span>
      ${is_subagent !== true
        ? nothing
        : html`<span class="chip" data-executor="agent" data-testid="approval-subagent">${icons.agent}<span>${
          t('approval.subagent', {
            name: profileName(profile_id) || t('subagent.name'),
          })}</span></span>`}`;
  }

  /**
   * Whoever comes here by themselves may answer by a single key: a window that is in use again
   * asked for nothing.
   * @param {FocusEvent} event
   */
  #entered({ relatedTarget }) {
    if (relatedTarget instanceof Node && !this.contains(relatedTarget)) this._keys = true;
  }

  /** Y, A and N answer where the question has the keyboard. @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === 'Tab') this._keys = true;
    // In the field for a reason they are letters.
    if (!this._keys || event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey
      || event.altKey || event.repeat) return;
    const chosen = KEYS[event.code];
    const button = chosen === undefined
      ? null
      : this.querySelector(`[data-testid="${chosen}"]`)
        ?? (chosen === 'approve-once' ? this.querySelector('[data-testid="approval-show-all"]') : null);
    if (!(button instanceof HTMLElement)) return;
    event.preventDefault();
    button.click();
  }

  /** @param {Detail} detail */
  #detail(detail) {
    const { kind, text, phrase } = detail;
    const label = labelOf(detail);
    if (kind === 'text') return html`<p
      class="approval-fact"><span>${label}</span> <span dir="auto">${visible(phraseText(phrase, text))}</span></p>`;
    const diff = kind === 'diff' ? findDiff(text) : null;
    const start = beginning(text);
    const cut = !this._whole && start !== text;
    return html`<div class="approval-detail" data-testid="approval-detail"
      data-kind=${kind}><span class="approval-label">${label}</span>
      ${diff !== null
        ? html`${diff.before === '' ? nothing : html`<p class="quiet">${visible(diff.before)}</p>`}<navi-diff
          .rows=${diff.rows} .whole=${this._whole}
          @navi-unfolded=${this.#unfold}></navi-diff>${diff.after === ''
            ? nothing
            : html`<p class="quiet">${visible(diff.after)}</p>`}`
        : html`<pre class="approval-code"
          dir="ltr"><code data-testid="approval-code">${visible(cut ? start : text)}</code></pre>
          ${cut ? html`<button type="button" class="link-button" data-testid="approval-all"
            @click=${this.#unfold}>${t('approval.all')}</button>` : nothing}`}
    </div>`;
  }

  /** @param {Approval} approval */
  #buttons(approval) {
    const { request, approval_id } = approval;
    const answer = answering.get().get(approval_id);
    const sent = answer?.sending === true ? answer.decision : undefined;
    const blocked = !this._settled || sent !== undefined || connection.get() !== 'open';
    // What is folded away or further down has not been seen: it is shown first, and then asked about.
    const covered = mayChangeOpen.get() ? coveredBy(request) : undefined;
    const folded = !this._whole && request.details.some(startsFolded);
    const unseen = folded || !this._read;
    return html`<div class="approval-actions">
      <div class="approval-group">${unseen
        ? html`<button type="button" class="button small" data-testid="approval-show-all"
          aria-disabled=${String(blocked)}
          @click=${() => { if (!blocked) this.#show(folded); }}>${
            t(folded ? 'approval.show_all' : 'approval.read_on')}</button>`
        : this.#button('once', t('approval.once'), 'button small', blocked, sent)}
      ${unseen || covered === undefined
        ? nothing
        : this.#button('always',
          html`${t('approval.always')} <q class="approval-words" dir="auto">${visibleWords(covered)}</q>`,
          'button small soft', blocked, sent)}</div>
      <div class="approval-group deny">${this.#button('deny', t('approval.deny'), 'button small plain danger',
        blocked, sent)}
      ${unseen || covered === undefined
        ? nothing
        : this.#button('never',
          html`${t('approval.never')}<span class="off-screen"> <q>${visibleWords(covered)}</q></span>`,
          'button small plain danger', blocked, sent)}
      <button type="button" class="link-button" data-testid="approval-why" aria-expanded=${String(this._why)}
        @click=${() => void this.#toggleWhy()}>${t('approval.why')}</button></div>
      ${this.#time(approval)}
    </div>
    ${this._why
      ? html`<form class="approval-note"
        @submit=${(/** @type {SubmitEvent} */ event) => {
          event.preventDefault();
          if (!blocked) this.#answer('deny');
        }}>
      <input type="text" data-testid="approval-note" maxlength=${NOTE_CHARS} autocomplete="off"
        enterkeyhint="send" placeholder=${t('approval.note')} aria-label=${t('approval.note')}
        .value=${notes.get(approval_id) ?? ''}
        @input=${(/** @type {InputEvent} */ { target }) => {
          keepNote(approval_id, /** @type {HTMLInputElement} */ (target).value);
        }}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#noteKey(event)}>
      <button type="submit" class="button small destructive" data-testid="approval-note-send"
        aria-disabled=${String(blocked)}>${t('approval.note_send')}</button></form>` : nothing}`;
  }

  /** @param {boolean} folded */
  #show(folded) {
    if (folded) this.#unfold();
    else this.#readOn();
  }

  async #toggleWhy() {
    this._why = !this._why;
    if (!this._why) notes.delete(this.approval.approval_id);
    await this.updateComplete;
    /** @type {HTMLElement | null} */ (this.querySelector(
      `[data-testid="${this._why ? 'approval-note' : 'approval-why'}"]`,
    ))?.focus();
  }

  /** @param {KeyboardEvent} event */
  #noteKey(event) {
    if (event.key !== 'Escape' || isComposing(event)) return;
    event.preventDefault();
    void this.#toggleWhy();
  }

  /**
   * @param {Decision} decision
   * @param {unknown} label
   * @param {string} classes
   * @param {boolean} blocked
   * @param {Decision | undefined} sent
   */
  #button(decision, label, classes, blocked, sent) {
    return html`<button type="button" class=${classes} data-testid=${`approve-${decision}`}
      aria-disabled=${String(blocked)} @click=${() => {
      if (!blocked) this.#answer(decision);
    }}>${sent === decision
      ? html`<span class="spinner" aria-hidden="true"></span>`
      : nothing}<span>${label}</span></button>`;
  }

  /** @param {Approval} approval */
  #time(approval) {
    const left = remainingMs(approval, this._now);
    const urgent = left <= URGENT_MS;
    const text = left === 0 ? t('approval.expired')
      : left > COUNTED_MS ? t('approval.until', { at: formatTime(approval.expires_at) })
        : t('approval.left', { time: formatDuration(Math.ceil(left / 1000) * 1000) });
    return html`<span class="approval-time ${urgent ? 'urgent' : ''}" role="timer"
      data-testid="approval-time">${icons.history}<span>${text}</span></span>`;
  }

  /** @param {Decision} decision */
  #answer(decision) {
    const { approval_id } = this.approval;
    const held = this.contains(document.activeElement);
    const note = isDenied({ decision }) ? this.querySelector('input')?.value.trim() ?? '' : '';
    if (!approve(approval_id, decision, note)) return;
    notes.delete(approval_id);
    if (!held) return;
    // The keyboard goes on to what is asked next, and else back to where one writes.
    if (approvals.get().some((other) => isOpen(other) && other.approval_id !== approval_id))
      this.querySelector('section')?.focus();
    else focusWanted.set('composer');
  }
}

/** @param {string} approval_id @param {string} note */
function keepNote(approval_id, note) {
  notes.delete(approval_id);
  if (note !== '') notes.set(approval_id, note);
  if (notes.size > NOTES) notes.delete([...notes.keys()][0]);
}

/** What is shown of a long code. @param {string} text */
function beginning(text) {
  const lines = text.split('\n');
  const short = lines.length > LINES + 3 ? lines.slice(0, LINES).join('\n') : text;
  return short.length > CHARS ? `${[...short.slice(0, CHARS)].slice(0, -1).join('')}…` : short;
}

/** Whether only its beginning is shown at first. @param {Detail} detail */
function startsFolded({ kind, text }) {
  if (kind === 'text') return false;
  const diff = kind === 'diff' ? findDiff(text) : null;
  return diff === null ? beginning(text) !== text : isLong(diff.rows);
}

/**
 * What was answered, and by whom.
 * @param {Approval} approval
 */
function outcome(approval) {
  const { decision, by, note, author, approval_id, request } = approval;
  const sent = answering.get().get(approval_id)?.decision;
  const key = by === 'user' ? `approval.outcome.${decision}` : `approval.outcome.${by}`;
  // Another tab was first, or somebody over REST.
  const elsewhere = by === 'user' && sent !== decision;
  const denied = isDenied(approval);
  const covered = decision === 'always' || decision === 'never' ? coveredBy(request) : undefined;
  return html`<p class="approval-outcome ${denied ? 'denied' : 'allowed'}" data-testid="approval-outcome"
    data-decision=${decision} data-by=${by}
    data-elsewhere=${String(elsewhere)}>${denied ? icons.shield : icons.check}
    <span>${t(key)}${covered === undefined ? nothing : html`: <q dir="auto">${visibleWords(covered)}</q>`}${
      note === null
        ? nothing
        : html` · ${t('approval.said')} <q dir="auto" data-testid="approval-said">${visible(note)}</q>`}${
      author !== null && author.id !== account.get()?.id
        ? html` · <span dir="auto" data-testid="approval-author">${author.name}</span>`
        : elsewhere
          ? html` · ${t(sent === undefined ? 'approval.elsewhere' : 'approval.too_late')}`
          : nothing}</span></p>`;
}

customElements.define('navi-approval', NaviApproval);
