// A call that had begun when the service went down: did it take effect? The first word from any
// tab counts, and every tab shows it.

/** @import { CallDecision, UnknownCall } from '../state/wire.js' */
/** @import { Call } from '../state/types.js' */

import { announce } from '../app/announce.js';
import { continueAfter, resolveCall } from '../app/unknown_calls.js';
import { connection, focusWanted, isGuest, resolving, session, target, unknownCalls } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { placeOf, withoutCard } from '../state/unknown_calls.js';
import { NaviElement } from './element.js';
import { brief } from './format.js';
import { icons, toolIcon } from './icons.js';

const DECISIONS = /** @type {const} */ (['done', 'retry', 'skip']);
const ICONS = { done: icons.check, retry: icons.again, skip: icons.cross };

/** The place in a call's card. @param {Call} call */
export function unknownPlace(call) {
  if (call.state !== 'outcome_unknown') return nothing;
  return html`<navi-unknown .call=${call}></navi-unknown>`;
}

/**
 * A place for all of them: at the conversation's end, or above the field where one writes.
 * @param {'rest' | 'line'} which
 */
export function unknownPlaces(which) {
  if (unknownCalls.get().length === 0) return nothing;
  return which === 'rest'
    ? html`<navi-unknown-rest></navi-unknown-rest>`
    : html`<navi-unknown-line></navi-unknown-line>`;
}

/** At a call's card: the question, and what was said to it. */
export class NaviUnknown extends NaviElement {
  static properties = { call: { attribute: false } };

  constructor() {
    super();
    this.call = /** @type {Call} */ (/** @type {unknown} */ (null));
  }

  updated() {
    continueAfter(this.call);
    focusQuestion(this);
  }

  render() {
    const { id, decision } = this.call;
    const asked = unknownCalls.get().find(({ call_id }) => call_id === id);
    if (asked !== undefined) return question(asked, nothing);
    if (decision === null) return html`<p class="approval-outcome"
      data-testid="unknown-hint">${icons.warning}<span>${t('unknown.hint')}</span></p>`;
    return html`<p class="approval-outcome" role="status" data-testid="unknown-outcome"
      data-decision=${decision}>${ICONS[decision]}<span>${t(`unknown.said.${decision}`)}</span></p>`;
  }
}

/** At the end of the conversation: those that have no card in it. */
export class NaviUnknownRest extends NaviElement {
  updated() {
    focusQuestion(this);
  }

  render() {
    const state = session.get();
    return state === null
      ? nothing
      : html`<div class="apart">${repeat(withoutCard(state), ({ call_id }) => call_id,
        (call) => question(call,
          html`<p class="approval-meta"><span
            class="chip">${toolIcon(call.tool)}<span>${call.tool} ${brief(call.args)}</span></span></p>`))}</div>`;
  }
}

/** Above the field where one writes: the question may be out of sight, and the keyboard is led to it from here. */
export class NaviUnknownLine extends NaviElement {
  firstUpdated() {
    announce(t('unknown.title'));
  }

  render() {
    const calls = unknownCalls.get();
    return html`<div class="unknown-line" data-testid="unknown-line"
      data-count=${calls.length}>${icons.warning}<span
        class="unknown-line-text">${t('unknown.many', { n: calls.length })}</span>
      <button type="button" class="button small plain" data-testid="unknown-show"
        @click=${() => show(calls[0])}>${t('approval.show')}</button></div>`;
  }
}

/** @param {UnknownCall} call @param {unknown} what the call is, where nothing beside it says so */
function question({ call_id }, what) {
  const chosen = resolving.get().get(call_id);
  const blocked = chosen !== undefined || connection.get() !== 'open';
  const title = `unknown-${call_id}`;
  return html`<section class="approval" role="group" aria-labelledby=${title} tabindex="-1"
    data-testid="unknown-call" data-call-id=${call_id}>
    <div class="approval-head"><span class="approval-icon">${icons.warning}</span><div>
      <h2 id=${title}>${t('unknown.title')}</h2>${what}</div></div>
    ${isGuest.get() ? nothing : html`<div class="approval-actions">${
      DECISIONS.map((decision) => html`<button type="button"
        class="button small ${decision === 'skip' ? 'plain' : 'soft'}"
      data-testid=${`unknown-${decision}`} aria-disabled=${String(blocked)}
      @click=${(/** @type {Event} */ event) => { if (!blocked) say(event, call_id, decision); }}
      >${chosen === decision
        ? html`<span class="spinner" aria-hidden="true"></span>`
        : nothing}<span>${t(`unknown.${decision}`)}</span></button>`)}</div>`}
  </section>`;
}

/** @param {Event} event @param {string} call_id @param {CallDecision} decision */
function say(event, call_id, decision) {
  const held = /** @type {Element} */ (event.currentTarget).contains(document.activeElement);
  if (!resolveCall(call_id, decision) || !held) return;
  // The keyboard goes on to the next one, and else to what comes after the last.
  const next = unknownCalls.get().find((other) => other.call_id !== call_id);
  if (next !== undefined) show(next);
  else focusWanted.set('continue');
}

/** Where its card is not drawn, the conversation goes there first. @param {UnknownCall} call */
function show(call) {
  const state = session.get();
  focusWanted.set({ unknown_call: call.call_id });
  if (state === null || cardOf(document, call.call_id) !== null) return;
  target.set({ session_id: state.id, message_id: placeOf(state, call), words: [] });
}

/** @param {ParentNode} host @param {string} call_id @returns {HTMLElement | null} */
const cardOf = (host, call_id) =>
  host.querySelector(`[data-testid="unknown-call"][data-call-id="${CSS.escape(call_id)}"]`);

/** Takes the keyboard to a question, where it is wanted there. @param {Element} host */
function focusQuestion(host) {
  const wanted = focusWanted.get();
  if (wanted === null || typeof wanted === 'string') return;
  const card = cardOf(host, wanted.unknown_call);
  if (card === null) return;
  focusWanted.set(null);
  card.scrollIntoView({ block: 'nearest' });
  card.focus({ preventScroll: true });
}

customElements.define('navi-unknown', NaviUnknown);
customElements.define('navi-unknown-rest', NaviUnknownRest);
customElements.define('navi-unknown-line', NaviUnknownLine);
