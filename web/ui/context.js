// What fills the model's window, part by part.

/** @import { Entry } from '../state/types.js' */
/** @import { CallPrefix, ChatRequest, ContextParts } from '../state/wire.js' */

import { goTo, openPanel, pageError, showRun } from '../app/actions.js';
import { openId, session } from '../app/signals.js';
import { hasText, loadTroubles, t } from '../i18n/index.js';
import { html, nothing, svg } from '../lit.js';
import { api } from '../net/api.js';
import { shares } from '../state/context.js';
import { errorCard } from './cards.js';
import { formatTokens } from './format.js';
import { icons } from './icons.js';
import { requestParts } from './model_call.js';
import { NaviPanel } from './panel.js';
import { lastPrefix, prefixWords } from './prefix.js';

export class NaviContext extends NaviPanel {
  static properties = {
    _parts: { state: true }, _prefix: { state: true }, _problem: { state: true }, _next: { state: true },
  };

  constructor() {
    super();
    this._id = openId.get() ?? '';
    /** @type {ContextParts | null} */
    this._parts = null;
    /** What the newest run kept of what was read before. @type {CallPrefix | null} */
    this._prefix = null;
    /** @type {{ code: string, message: string } | null} */
    this._problem = null;
    /** What the model would be sent now, where one asked for it. @type {ChatRequest | 'loading' | null} */
    this._next = null;
  }

  firstUpdated() {
    super.firstUpdated();
    void this.#load();
  }

  render() {
    const parts = this._parts;
    return this.frame('context', t('context.title'), html`
      ${this._problem === null
        ? nothing
        : errorCard(this._problem,
          html`<button type="button" class="button small"
            @click=${() => void this.#load()}>${t('subagent.retry')}</button>`)}
      ${parts !== null
        ? this.#parts(parts)
        : this._problem === null
          ? html`<div class="skeleton" role="status"
            aria-label=${t('app.loading')}><div class="bone"></div><div class="bone short"></div></div>`
          : nothing}`);
  }

  /** @param {ContextParts} parts */
  #parts(parts) {
    const { window, counted, left_out_turns } = parts;
    const all = shares(parts);
    let x = 0;
    const state = session.get();
    const cut = state?.compression?.before ?? null;
    const run_id = shownRunId();
    return html`
      <p class="quiet">${t('context.guess')}
        ${counted === 0
          ? nothing
          : t('context.counted', { used: formatTokens(counted), max: formatTokens(window) })}</p>
      <svg class="context-bar" viewBox="0 0 ${window} 10" preserveAspectRatio="none"
        aria-hidden="true">${all.map(({ name, tokens }) => {
        x += tokens;
        return svg`<rect class=${name} x=${x - tokens} y="0" width=${tokens} height="10"></rect>`;
      })}</svg>
      <dl class="context-parts">${
        all.map(({ name, tokens }) => html`<div data-testid="context-part"
          data-name=${name}><dt><span class="swatch ${name}"
          aria-hidden="true"></span>${t(`context.part.${name}`)}</dt><dd>${formatTokens(tokens)}</dd></div>`)}</dl>
      ${left_out_turns === 0
        ? nothing
        : html`<p class="quiet" data-testid="context-left-out">${t('context.left_out', { n: left_out_turns })}</p>`}
      ${this._prefix === null || !hasText('context.prefix')
        ? nothing
        : html`<p class="quiet"
          data-testid="context-prefix">${t('context.prefix', { what: prefixWords(this._prefix) })}</p>`}
      <div class="panel-tools">
        ${cut === null
          ? nothing
          : html`<button type="button" class="button small plain" data-testid="context-cut"
            @click=${() => this.#go(() => goTo(this._id, cut))}>${icons.note}<span>${t('context.cut')}</span></button>`}
        ${counted === 0 || run_id === null
          ? nothing
          : html`<button type="button" class="button small plain" data-testid="context-sent"
            @click=${() => this.#go(() => showRun(run_id))}>${icons.history}<span>${t('context.sent')}</span></button>`}
        <button type="button" class="button small plain" data-testid="context-runs"
          @click=${() => this.#go(() => void openPanel('runs'))}>${icons.history}<span>${t('runs.list')}</span></button>
        <button type="button" class="button small plain" data-testid="context-now"
          aria-expanded=${String(this._next !== null)}
          @click=${() => void this.#toggleNext()}>${icons.search}<span>${t('context.now')}</span></button>
      </div>
      ${this.#next()}`;
  }

  #next() {
    const next = this._next;
    if (next === null) return nothing;
    if (next === 'loading') return html`<p class="quiet loading"
      role="status"><span class="spinner" aria-hidden="true"></span>${t('app.loading')}</p>`;
    return html`<section data-testid="context-next">${requestParts(next, t('context.next'))}</section>`;
  }

  async #toggleNext() {
    if (this._next !== null) {
      this._next = null;
      return;
    }
    this._next = 'loading';
    this._problem = null;
    try {
      const next = await api.context(this._id);
      // Nobody waits for it any more where it was closed.
      if (this._next === 'loading') this._next = next;
    } catch (error) {
      if (this._next !== 'loading') return;
      this._next = null;
      this._problem = pageError(error);
    }
  }

  /** @param {() => void} where */
  #go(where) {
    this.close();
    this.closed();
    where();
  }

  async #load() {
    this._problem = null;
    try {
      this._parts = await api.contextParts(this._id);
    } catch (error) {
      this._problem = pageError(error);
      return;
    }
    const run_id = shownRunId();
    if (run_id === null) return;
    // Without it the panel says all else.
    const [details] = await Promise.all([api.run(run_id), loadTroubles()]).catch(() => [null]);
    this._prefix = details === null ? null : lastPrefix(details.calls);
  }
}

function shownRunId() {
  const state = session.get();
  return state === null ? null : state.run?.run_id ?? newestRun(state.entries);
}

/** @param {Entry[]} entries */
function newestRun(entries) {
  const runs = entries.map((entry) => (entry.kind === 'assistant' ? entry.run_id : null));
  return runs.findLast((run_id) => run_id !== null) ?? null;
}

customElements.define('navi-context', NaviContext);
