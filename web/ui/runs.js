// The runs of the open conversation, newest first, and what they used. Loaded when it is opened.

/** @import { RunInfo, Spending } from '../state/wire.js' */

import { pageError, showRun } from '../app/actions.js';
import { openId, session } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { api } from '../net/api.js';
import { errorCard } from './cards.js';
import { formatDuration, formatMoney, formatTime } from './format.js';
import { icons } from './icons.js';
import { NaviPanel } from './panel.js';
import { tokens } from './run_panel.js';
import { visible } from './visible.js';

/** So many of them the service gives at a time. */
const PAGE = 50;
/** So much of a message stands for it. */
const BRIEF_CHARS = 100;

export class NaviRuns extends NaviPanel {
  static properties = { _runs: { state: true }, _problem: { state: true }, _busy: { state: true } };

  constructor() {
    super();
    this._id = openId.get() ?? '';
    /** @type {RunInfo[] | null} */
    this._runs = null;
    /** What all of them used. @type {Spending | null} */
    this._spent = null;
    /** What all of one's runs used today. @type {Spending | null} */
    this._today = null;
    /** Whether there are older ones. */
    this._more = false;
    /** How the messages begin that they answer, as far as these are there. @type {ReadonlyMap<string, string>} */
    this._asked = new Map();
    /** @type {{ code: string, message: string } | null} */
    this._problem = null;
    this._busy = false;
  }

  firstUpdated() {
    super.firstUpdated();
    void this.#load();
  }

  render() {
    const runs = this._runs;
    return this.frame('runs', t('runs.list'), html`
      ${runs === null ? nothing : this.#list(runs)}
      ${this._problem === null
        ? nothing
        : errorCard(this._problem,
          html`<button type="button" class="button small" data-testid="runs-retry"
            @click=${() => void this.#load()}>${t('subagent.retry')}</button>`)}
      ${runs === null && this._problem === null
        ? html`<div class="skeleton" role="status"
          aria-label=${t('app.loading')}><div class="bone"></div><div class="bone short"></div></div>`
        : nothing}`);
  }

  /** @param {RunInfo[]} runs */
  #list(runs) {
    if (runs.length === 0) return html`<p class="quiet panel-empty" data-testid="runs-empty">${t('runs.none')}</p>`;
    return html`${this.#sums()}
      <ol class="rows">${repeat(runs, ({ run_id }) => run_id, (run) => this.#run(run))}</ol>
      ${this._more
        ? html`<p class="panel-tools"><button type="button" class="button small plain" data-testid="runs-more"
          ?disabled=${this._busy} @click=${() => void this.#load()}>${t('runs.older')}</button></p>`
        : nothing}`;
  }

  #sums() {
    if (this._spent === null) return nothing;
    return html`<dl class="run-facts">
      <div><dt>${t('runs.fact.session')}</dt><dd data-testid="runs-spent">${spending(this._spent)}</dd></div>
      ${this._today === null
        ? nothing
        : html`<div><dt>${t('runs.fact.today')}</dt><dd data-testid="runs-today">${spending(this._today)}</dd></div>`}
    </dl>`;
  }

  /** @param {RunInfo} run */
  #run(run) {
    const { run_id, state, model, started_at, ended_at, message_id, cost } = run;
    const ended = ended_at ?? null;
    const notes = [
      t(`runs.state.${state}`),
      formatTime(started_at),
      ...(ended === null
        ? []
        : [formatDuration(Math.max(0, Date.parse(ended) - Date.parse(started_at))),
          tokens(run.prompt_tokens, run.completion_tokens)]),
      ...(cost == null ? [] : [formatMoney(cost.amount, cost.currency)]),
      ...(model === '' ? [] : [model]),
    ];
    return html`<li class="row" data-testid="runs-run" data-run-id=${run_id}
      data-state=${state}><span class="row-icon">${icons.history}</span><div class="row-text">
      <p class="row-title"
        dir="auto"><button type="button" class="link-button" data-testid="runs-open"
        @click=${() => showRun(run_id)}>${visible(this._asked.get(message_id) ?? t('runs.title'))}</button></p>
      <p class="row-note">${notes.join(' · ')}</p></div></li>`;
  }

  /** The newest, or those before the ones that are there. */
  async #load() {
    const before = this._runs?.at(-1)?.run_id ?? null;
    this._problem = null;
    this._busy = true;
    try {
      const { runs, spent, today } = await api.runs(this._id, before);
      this._asked = begun();
      this._spent = spent;
      this._today = today ?? null;
      this._more = runs.length === PAGE;
      this._runs = [...(this._runs ?? []), ...runs];
    } catch (error) {
      this._problem = pageError(error);
    } finally {
      this._busy = false;
    }
  }
}

/** How the messages of the open conversation begin, by their ids. */
function begun() {
  const entries = session.get()?.entries ?? [];
  return new Map(entries.flatMap((entry) => {
    const begin = entry.kind === 'user' ? entry.content.trim().split('\n', 1)[0].slice(0, BRIEF_CHARS) : '';
    return begin === '' ? [] : [/** @type {[string, string]} */ ([entry.id, begin])];
  }));
}

/** @param {Spending} spent */
function spending({ prompt_tokens, completion_tokens, cost }) {
  return [tokens(prompt_tokens, completion_tokens),
    ...(cost == null ? [] : [formatMoney(cost.amount, cost.currency)])].join(' · ');
}

customElements.define('navi-runs', NaviRuns);
