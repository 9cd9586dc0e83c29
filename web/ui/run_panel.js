// What a run did: its events in their order, the calls of the model among them with what was sent,
// and its subagents, each of which opens in its place. Loaded when it is opened.

/** @import { Envelope, RunDetails, RunSpending, Spending } from '../state/wire.js' */
/** @import { ChildRow, RunRow, TextRow, ToolRow } from '../state/run_log.js' */
/** @import { TemplateResult } from '../lit.js' */

import { pageError } from '../app/actions.js';
import { profileName, shownRun } from '../app/signals.js';
import { loadTroubles, t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { html, nothing, repeat } from '../lit.js';
import { api } from '../net/api.js';
import { runRows } from '../state/run_log.js';
import { errorCard } from './cards.js';
import { brief, formatDuration, formatMoney, formatTime, formatTokens } from './format.js';
import { icons, toolIcon } from './icons.js';
import { callTitle } from './model_call.js';
import { NaviPanel } from './panel.js';
import { callState, pretty } from './tool_card.js';
import { visible } from './visible.js';

/** So much of a text stands in its row; the rest is opened. */
const BRIEF_CHARS = 160;

export class NaviRunPanel extends NaviPanel {
  static properties = {
    _details: { state: true }, _frames: { state: true }, _next: { state: true }, _problem: { state: true },
    _path: { state: true }, _open: { state: true }, _busy: { state: true },
  };

  constructor() {
    super();
    /** The runs that lead here, the shown one last. @type {string[]} */
    this._path = [shownRun.get() ?? ''];
    /** @type {RunDetails | null} */
    this._details = null;
    /** @type {Envelope[]} */
    this._frames = [];
    /** Where the events go on; undefined until any were read. @type {string | null | undefined} */
    this._next = undefined;
    /** @type {{ code: string, message: string } | null} */
    this._problem = null;
    /** The rows that are opened, by key. @type {ReadonlySet<string>} */
    this._open = new Set();
    this._busy = false;
    /** What was last asked of the service, to ask it again. @type {() => Promise<void>} */
    this._asked = async () => {};
  }

  firstUpdated() {
    super.firstUpdated();
    void this.#load();
  }

  get #run_id() {
    return this._path[this._path.length - 1];
  }

  render() {
    const details = this._details;
    return html`<dialog class="panel run-panel" data-testid="run-panel" data-run-id=${this.#run_id}
      aria-labelledby="run-title" @close=${this.closed} @click=${this.pressed}>
      <div class="panel-page" aria-busy=${String(this._busy)}>
        <header class="panel-head">
          ${this._path.length < 2
            ? nothing
            : html`<button type="button" class="icon-button run-back" data-testid="run-back"
              aria-label=${t('runs.back')} title=${t('runs.back')}
              @click=${() => this.#back()}>${icons.chevron}</button>`}
          <h2 id="run-title" tabindex="-1">${t(this._path.length < 2 ? 'runs.title' : 'runs.title_child')}</h2>
          <button type="button" class="icon-button" data-testid="run-refresh" aria-label=${t('runs.refresh')}
            title=${t('runs.refresh')} @click=${() => void this.#load()}>${icons.again}</button>
          ${this.closeButton('run')}</header>
        ${details === null ? nothing : html`${facts(details)}${this.#rows(details)}`}
        ${this._problem === null
          ? nothing
          : errorCard(this._problem,
            html`<button type="button" class="button small" data-testid="run-retry"
              @click=${() => void this.#busy(this._asked)}>${t('subagent.retry')}</button>`)}
        ${this._busy && details === null
          ? html`<div class="skeleton" role="status" aria-label=${t('app.loading')}
            data-testid="run-loading"><div class="bone"></div><div class="bone"></div><div
              class="bone short"></div></div>`
          : nothing}
      </div>
      <navi-toasts class="toasts"></navi-toasts>
    </dialog>`;
  }

  /** @param {RunDetails} details */
  #rows({ run, calls, children }) {
    if (this._next === undefined) return nothing;
    const rows = runRows({
      run_id: run.run_id, started_at: run.started_at, frames: this._frames, calls, children, whole: this._next === null,
    });
    if (rows.length === 0 && this._next === null) return html`<p class="quiet panel-empty"
      data-testid="run-empty">${t('runs.empty')}</p>`;
    return html`<h3 id="run-events">${t('runs.events')}</h3>
      <ol class="rows run-rows"
        aria-labelledby="run-events">${repeat(rows, ({ key }) => key, (row) => this.#row(row))}</ol>
      ${this._next === null
        ? nothing
        : html`<p class="panel-tools"><button type="button" class="button small plain" data-testid="run-more"
          ?disabled=${this._busy} @click=${() => void this.#more()}>${t('runs.more')}</button></p>`}`;
  }

  /** @param {RunRow} row */
  #row(row) {
    if (row.kind === 'call') return this.#foldable(row, callTitle(row.call),
      () => html`<navi-model-call .run=${this.#run_id} .call=${row.call}></navi-model-call>`,
      { icon: icons.thought, name: row.call.kind });
    if (row.kind === 'tool') return this.#foldable(row, toolTitle(row), () => toolBody(row),
      { icon: toolIcon(row.tool), name: row.tool });
    if (row.kind === 'text') return this.#text(row);
    if (row.kind === 'child') return this.#child(row);
    const words = eventWords(row);
    const type = t(`runs.event.${row.type}`);
    const title = html`<span class="row-title">${type.startsWith('runs.') ? row.type : type}</span>`;
    if (words.length > BRIEF_CHARS || words.includes('\n')) {
      return this.#foldable(row,
        html`${title} <span class="run-brief" dir="auto">${visible(words.slice(0, BRIEF_CHARS))}</span>`,
        () => html`<pre tabindex="0" class="tool-text">${visible(words)}</pre>`, { icon: icons.note, name: row.type });
    }
    return html`<li class="row" data-testid="run-row" data-kind="event"
      data-name=${row.type}>${when(row)}<span class="row-icon">${icons.note}</span>
      <div class="row-text"><p>${title} <span class="row-note" dir="auto">${visible(words)}</span></p></div></li>`;
  }

  /** @param {TextRow} row */
  #text(row) {
    const title = html`<span class="row-title">${t(`runs.part.${row.part}`)}</span>`;
    return this.#foldable(row,
      html`${title} <span class="run-brief" dir="auto">${visible(row.text.slice(0, BRIEF_CHARS))}</span>`,
      () => html`<pre tabindex="0" class="tool-text" dir="auto">${visible(row.text)}</pre>`,
      { icon: row.part === 'text' ? icons.note : icons.thought, name: row.part });
  }

  /** @param {ChildRow} row */
  #child(row) {
    const name = profileName(row.profile_id) || t('subagent.name');
    return html`<li class="row" data-testid="run-row" data-kind="child"
      data-name=${row.run_id}>${when(row)}<span class="row-icon">${icons.agent}</span>
      <div class="row-text"><p><button type="button" class="link-button" data-testid="run-child"
        data-run-id=${row.run_id} @click=${() => void this.#show([...this._path, row.run_id])}>${name}</button>
        ${row.state === null
          ? nothing
          : html`<span class="row-note">${t(`runs.state.${row.state}`)}${
            row.duration_ms === null ? nothing : html` · ${formatDuration(row.duration_ms)}`}</span>`}</p>
        ${row.task === '' ? nothing : html`<p class="row-note" dir="auto">${visible(row.task)}</p>`}</div></li>`;
  }

  /**
   * A row that opens.
   * @param {RunRow} row
   * @param {unknown} title
   * @param {() => TemplateResult} body
   * @param {{ icon: unknown, name: string }} look
   */
  #foldable(row, title, body, { icon, name }) {
    const open = this._open.has(row.key);
    const id = `run-row-${row.key}`;
    return html`<li class="row foldable" data-testid="run-row" data-kind=${row.kind} data-name=${name}>
      <button type="button" class="row-head" aria-expanded=${String(open)} aria-controls=${id}
        @click=${() => this.#toggle(row.key)}>
        ${when(row)}<span class="row-icon">${icon}</span><span class="row-text">${title}</span><span
          class="turn">${icons.chevron}</span></button>
      <div id=${id} class="row-body" ?hidden=${!open}>${open ? body() : nothing}</div></li>`;
  }

  /** @param {string} key */
  #toggle(key) {
    const open = new Set(this._open);
    if (!open.delete(key)) open.add(key);
    this._open = open;
  }

  /** @param {string[]} path */
  async #show(path) {
    this._path = path;
    this._details = null;
    this._open = new Set();
    await this.#load();
    // Whoever came here by keyboard is told where they are.
    /** @type {HTMLElement | null} */ (this.querySelector('#run-title'))?.focus();
  }

  #back() {
    return this.#show(this._path.slice(0, -1));
  }

  async #load() {
    const run_id = this.#run_id;
    await this.#busy(async () => {
      const [details] = await Promise.all([api.run(run_id), loadTroubles()]);
      const { events, next } = await api.runPage(details.run.session_id, run_id, null);
      if (run_id !== this.#run_id) return;
      this._details = details;
      this._frames = events;
      this._next = next;
    });
  }

  async #more() {
    const run_id = this.#run_id;
    const from = this._next;
    const session_id = this._details?.run.session_id;
    if (from == null || session_id === undefined) return;
    await this.#busy(async () => {
      const { events, next } = await api.runPage(session_id, run_id, from);
      if (run_id !== this.#run_id || this._next !== from) return;
      this._frames = [...this._frames, ...events];
      this._next = next;
    });
  }

  /** @param {() => Promise<void>} work */
  async #busy(work) {
    this._asked = work;
    this._problem = null;
    this._busy = true;
    try {
      await work();
    } catch (error) {
      this._problem = pageError(error);
    } finally {
      this._busy = false;
    }
  }
}

/** @param {RunDetails} details */
function facts({ run, spent }) {
  const profile = profileName(run.profile_id);
  const ended = run.ended_at ?? null;
  /** @type {[string, unknown][]} */
  const lines = [
    [t('runs.fact.state'),
      html`<span data-testid="run-state"
        data-state=${run.state}>${t(`runs.state.${run.state}`)}</span>${
          run.reason == null || run.reason === ''
            ? nothing
            : html` · ${visible(phraseText(run.reason_phrase, run.reason))}`}`],
    [t('runs.fact.started'), html`<time datetime=${run.started_at}>${formatTime(run.started_at)}</time>`],
    ...(ended === null
      ? []
      : [/** @type {[string, unknown]} */ ([t('runs.fact.took'),
        formatDuration(Math.max(0, Date.parse(ended) - Date.parse(run.started_at)))])]),
    [t('header.profile'), profile],
    [t('header.model'), [run.model, run.backend].filter((word) => word != null && word !== '').join(' · ')],
    [t('runs.fact.iterations'), String(run.iterations)],
    [t('runs.fact.tokens'),
      html`<span data-testid="run-tokens">${tokens(run.prompt_tokens, run.completion_tokens)}</span>`],
    ...(spent === undefined ? [] : spendings(spent)),
  ];
  return html`<dl class="run-facts"
    data-testid="run-facts">${lines.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/**
 * What was spent with subagents, in the conversation and on the day; of a run alone only what it cost.
 * @param {RunSpending} spent
 * @returns {[string, unknown][]}
 */
function spendings({ run, session, day }) {
  const cost = run.cost ?? null;
  /** @type {(name: 'session' | 'day', of: Spending) => [string, unknown]} */
  const line = (name, of) => [t(`runs.fact.${name}`),
    html`<span data-testid="run-${name}">${tokens(of.prompt_tokens, of.completion_tokens)}${
      of.cost == null ? nothing : html` · ${formatMoney(of.cost.amount, of.cost.currency)}`}</span>`];
  return [
    ...(cost === null
      ? []
      : [/** @type {[string, unknown]} */ ([t('runs.fact.cost'),
        html`<span data-testid="run-cost">${formatMoney(cost.amount, cost.currency)}</span>`])]),
    line('session', session),
    line('day', day),
  ];
}

/** @param {number} read @param {number} written */
export const tokens = (read, written) => t('runs.tokens', { read: formatTokens(read), written: formatTokens(written) });

/** @param {RunRow} row */
const when = ({ at_ms }) => html`<span class="row-when" data-testid="run-when"
  data-ms=${at_ms}><span class="off-screen">${t('runs.after')} </span>+${formatDuration(at_ms)}</span>`;

/** @param {ToolRow} row */
function toolTitle({ tool, args, state, duration_ms }) {
  return html`<span class="row-title">${tool}</span> <span class="run-brief" dir="auto">${brief(args)}</span>
    <span class="row-note run-end">${callState(state)}${
      duration_ms === null
        ? nothing
        : html`<span data-testid="run-duration">${formatDuration(duration_ms)}</span>`}</span>`;
}

/** @param {ToolRow} row */
function toolBody({ args, result }) {
  return html`<div class="tool-label"><span>${t('tool.arguments')}</span></div><pre tabindex="0"
    class="tool-text">${visible(JSON.stringify(args, null, 2) ?? '')}</pre>
    ${result === null
      ? nothing
      : html`<div class="tool-label"><span>${t('tool.result')}</span></div><pre tabindex="0"
        class="tool-text">${result === '' ? t('tool.empty') : visible(pretty(result))}</pre>`}`;
}

/** @param {import('../state/run_log.js').EventRow} row */
function eventWords({ type, text: english, phrase, code }) {
  const text = phraseText(phrase, english);
  if (code === '') return text;
  if (type === 'run_waiting') return [t(`waiting.${code}`), text].filter((word) => word !== '').join(' · ');
  return t(type === 'call_resolved' ? `unknown.said.${code}` : `approval.outcome.${code}`);
}

customElements.define('navi-run-panel', NaviRunPanel);
