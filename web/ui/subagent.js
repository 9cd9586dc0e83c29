/** @import { Call, Child, Entry, History } from '../state/types.js' */
/** @import { Stretch } from '../state/work.js' */

import { loadRun, stopChild } from '../app/session.js';
import { approvals, histories, isGuest, isLoaded, partFor, profileName, sharedLink } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { approvalOf } from '../state/approvals.js';
import { childOf, nameOf, profileAt, saysCompleted, textOf } from '../state/children.js';
import { profileOf } from '../state/model.js';
import { shownState } from '../state/outcome.js';
import { stretches } from '../state/work.js';
import { errorCard } from './cards.js';
import { NaviElement } from './element.js';
import { brief, formatDuration } from './format.js';
import { icons } from './icons.js';
import { callState } from './tool_card.js';
import { unknownPlace } from './unknown_calls.js';

/** A subagent: who does what, and, opened, all that it said and did, its own subagents too. */
export class NaviSubagent extends NaviElement {
  static properties = {
    call: { attribute: false }, run: { attribute: false }, number: { type: Number }, _open: { state: true },
    _stopping: { state: true },
  };

  constructor() {
    super();
    this.call = /** @type {Call} */ (/** @type {unknown} */ (null));
    /** The run whose call this is. @type {string | null} */
    this.run = null;
    /** Which it is of those beside it that are called the same; 0 where none is. */
    this.number = 0;
    this._open = false;
    this._stopping = false;
    /** The work in what it did. @type {ReadonlyMap<string, Stretch>} */
    this._work = new Map();
    /**
     * What it does, told when that changes and not when another's does; of one that nothing is
     * known of yet, the profile that answered.
     */
    this._part = /** @type {ReturnType<typeof partFor<Child | string>> | null} */ (null);
  }

  connectedCallback() {
    super.connectedCallback();
    const { id } = this.call;
    this._part = partFor((state) => (state === null ? '' : childOf(state, id) ?? profileAt(state, id)));
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._part?.end();
    this._part = null;
  }

  /** @returns {Child | null} */
  get #child() {
    const told = this._part?.told.get() ?? '';
    return typeof told === 'string' ? null : told;
  }

  render() {
    const { call } = this;
    const told = this._part?.told.get() ?? '';
    const child = this.#child;
    const profile_id = child?.profile_id || profileOf(call.args) || (typeof told === 'string' ? told : '');
    const profile = profileName(profile_id) || t('subagent.name');
    const task = child?.task || textOf(call.args, 'task');
    const begin = nameOf(task);
    const name = [begin === '' ? profile : begin, ...(this.number === 0 ? [] : [this.number])].join(' ');
    const running = call.state === 'running';
    // Who came later knows it from the result, until the log is read.
    const completed = child === null
      ? saysCompleted(call.result)
      : child.state === 'running' ? null : child.state === 'completed';
    const shown = shownState(call, approvalOf(approvals.get(), call.id));
    const label = t(`tool.state.${shown}`);
    const body = `subagent-${call.id}`;
    return html`<section role="group" class="tool-card subagent" data-testid="subagent" data-call-id=${call.id}
      data-state=${shown} data-open=${String(this._open)}
      data-run-id=${child?.run_id ?? nothing} data-profile=${profile_id} data-completed=${completed ?? nothing}
      aria-label="${name}: ${label}">
      <div class="subagent-row">
        <button type="button" class="tool-head" aria-expanded=${String(this._open)} aria-controls=${body}
          data-testid="subagent-toggle"
          @click=${() => this.#toggle(child)}>
          <span class="tool-icon">${icons.agent}</span>
          <span class="subagent-text"><span
            class="subagent-head"><span class="tool-name" dir="auto" data-testid="subagent-name">${name}</span>
            ${begin === ''
              ? nothing
              : html`<span class="chip" data-testid="subagent-profile"><span>${profile}</span></span>`}</span>
            ${task.trim() === begin
              ? nothing
              : html`<span class="subagent-task" dir="auto" data-testid="subagent-task">${task}</span>`}
            ${running
              ? html`<span class="subagent-now" data-testid="subagent-activity">${activity(child)}</span>`
              : nothing}
            ${completed === false && !running
              ? html`<span class="subagent-now">${t('subagent.limited')}</span>`
              : nothing}</span>
          <span class="tool-end">
            ${call.duration_ms === null
              ? nothing
              : html`<span class="tool-time">${formatDuration(call.duration_ms)}</span>`}
            ${callState(shown)}<span class="turn">${icons.chevron}</span>
          </span>
        </button>
        ${running && child?.state === 'running' && !isGuest.get()
          ? html`<button type="button" class="icon-button" data-testid="subagent-stop" ?disabled=${this._stopping}
          title=${t('subagent.stop')} aria-label="${t('subagent.stop')}: ${name}"
          @click=${() => void this.#stop(child.run_id)}>${icons.stop}</button>` : nothing}
      </div>
      ${unknownPlace(call)}
      <div id=${body} class="tool-body" ?hidden=${!this._open}>${this._open ? this.#body(child) : nothing}</div>
    </section>`;
  }

  /** @param {Child | null} child */
  #body(child) {
    const history = this.run === null ? undefined : histories.get()[this.run];
    const entries = child?.entries ?? [];
    const context = textOf(this.call.args, 'context');
    this._work = stretches(entries, child?.state === 'running', this._work);
    return html`${context === '' ? nothing : html`<p class="subagent-context" dir="auto">${context}</p>`}
      ${child === null ? this.#absent(history) : nothing}
      <div class="subagent-log" role="group" aria-label=${t('subagent.log')} data-testid="subagent-log">${
        repeat(entries, (entry) => entry.id,
          (/** @type {Entry} */ entry) => html`<navi-message .entry=${entry}
            .work=${this._work.get(entry.id) ?? null} subagent></navi-message>`)}</div>
      ${entries.length === 0 && this.call.result !== null
        ? html`<div class="tool-part"><div class="tool-label"><span>${t('tool.result')}</span></div>
        <pre tabindex="0" class="tool-text" data-testid="subagent-result">${this.call.result}</pre></div>` : nothing}`;
  }

  /** What stands in place of what it did. @param {History | undefined} history */
  #absent(history) {
    // Whoever looks by a link can load none.
    if (sharedLink.get() !== null) return nothing;
    if (history?.state === 'failed')
      return html`<div data-testid="subagent-error">${errorCard(history,
          html`<button type="button" class="button small" data-testid="subagent-retry"
      @click=${() => this.#load()}>${t('subagent.retry')}</button>`)}</div>`;
    if (history?.state === 'ready') return html`<p class="quiet">${t('subagent.nothing')}</p>`;
    return html`<p class="quiet loading" role="status"
      data-testid="subagent-loading"><span class="spinner" aria-hidden="true"></span>${t('app.loading')}</p>`;
  }

  /** @param {Child | null} child */
  #toggle(child) {
    this._open = !this._open;
    if (this._open && child === null) this.#load();
  }

  /** What was open stays so when the session is read again, and has to be read again too. */
  updated() {
    if (this._open && this.run !== null && isLoaded.get() && histories.get()[this.run] === undefined
      && this.#child === null) this.#load();
  }

  #load() {
    if (this.run !== null) void loadRun(this.run);
  }

  /** @param {string} run_id */
  async #stop(run_id) {
    this._stopping = true;
    // Taken: the button goes with the run's end. Refused: it can be asked again.
    if (!(await stopChild(run_id))) this._stopping = false;
  }
}

/** What it does just now, in a few words. @param {Child | null} child */
function activity(child) {
  const last = child?.entries[child.entries.length - 1];
  if (child === null || last === undefined
    || child.waiting !== null) return t(child?.waiting == null
      ? 'subagent.starting'
      : `waiting.${child.waiting.reason}`);
  if (last.kind !== 'assistant') return t('thinking.now');
  const call = last.calls.findLast(({ state }) => state === 'running');
  if (call !== undefined) return `${call.name} ${brief(call.args)}`;
  return t(last.open && last.content !== '' ? 'subagent.writing' : 'thinking.now');
}

customElements.define('navi-subagent', NaviSubagent);
