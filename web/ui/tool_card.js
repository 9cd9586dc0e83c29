/** @import { Approval } from '../state/approvals.js' */
/** @import { Shown } from '../state/outcome.js' */
/** @import { Call } from '../state/types.js' */

import { changeOf } from '../app/changes.js';
import { approvals, openId, sharedLink } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { approvalOf, isOpen } from '../state/approvals.js';
import { counts, findDiff } from '../state/diff.js';
import { howItEnded, shownState } from '../state/outcome.js';
import { plain } from '../state/terminal.js';
import { copyButton } from './copy.js';
import { NaviElement } from './element.js';
import { fileImages } from './files_row.js';
import { brief, formatDuration } from './format.js';
import { icons, toolIcon } from './icons.js';
import { unknownPlace } from './unknown_calls.js';
import { deed } from './work.js';
import './approval.js';
import './change.js';
import './diff.js';
import './output.js';

/** More lines than this are shown on demand. */
const LINES = 30;
const CHARS = 20_000;

/** One tool call: what was asked, what it prints, what came of it. Folded unless it went wrong. */
export class NaviToolCard extends NaviElement {
  static properties = { call: { attribute: false }, _chosen: { state: true }, _whole: { state: true } };

  constructor() {
    super();
    this.call = /** @type {Call} */ (/** @type {unknown} */ (null));
    /** What the reader chose, if they did. @type {boolean | null} */
    this._chosen = null;
    this._whole = false;
  }

  render() {
    const { call } = this;
    const body = `call-${call.id}`;
    const approval = approvalOf(approvals.get(), call.id);
    const shown = shownState(call, approval);
    const open = this._chosen ?? ((call.state === 'running' && call.output !== '') || shown === 'failed'
      || shown === 'outcome_unknown');
    const ended = shown === 'exited' ? endedText(call) : shown === 'denied' ? t('tool.state.denied') : '';
    const state = ended || t(`tool.state.${shown}`);
    const change = changeOf(call.id);
    return html`<section role="group" class="tool-card" data-testid="tool-card" data-call-id=${call.id}
      data-state=${shown}
      data-tool=${call.name} aria-label="${call.name}: ${state}">
      <button type="button" class="tool-head" aria-expanded=${String(open)} aria-controls=${body}
        @click=${() => { this._chosen = !open; }}>
        <span class="tool-icon">${toolIcon(call.name)}</span>
        <span class="tool-what" dir="auto"
          title=${brief(call.args)}>${deed(call, shown === 'success' || shown === 'exited')}</span>
        <span class="tool-end">
          ${call.duration_ms === null || shown === 'denied'
            ? nothing
            : html`<span class="tool-time">${formatDuration(call.duration_ms)}</span>`}
          ${ended === ''
            ? nothing
            : html`<span class="tool-time" data-testid="tool-ended" aria-hidden="true">${ended}</span>`}
          ${callState(shown, state)}
          <span class="turn">${icons.chevron}</span>
        </span>
      </button>
      ${approval === null ? nothing : this.#approval(approval)}
      ${unknownPlace(call)}
      ${change === null
        ? nothing
        : html`<navi-change .change=${change} .rows=${diffOf(call)?.rows ?? null}></navi-change>`}
      ${call.files.length === 0 ? nothing : fileImages(openId.get() ?? '', call.files)}
      <div id=${body} class="tool-body" ?hidden=${!open}>${open ? this.#body(call) : nothing}</div>
    </section>`;
  }

  /** The question stands above the field where one writes, its answer here. @param {Approval} approval */
  #approval(approval) {
    if (isOpen(approval)) return sharedLink.get() !== null
      ? nothing
      : html`<p class="approval-outcome">${icons.shield}<span>${t('approval.below')}</span></p>`;
    return html`<navi-approval .approval=${approval}></navi-approval>`;
  }

  /** @param {Call} call */
  #body(call) {
    return html`
      ${argumentList(call)}
      ${call.result === null && call.output !== ''
        ? html`<navi-output .text=${call.output} .from=${call.output_from}
          ?running=${call.state === 'running'}></navi-output>`
        : nothing}
      ${call.result === null ? nothing : this.#result(call, call.result)}`;
  }

  /** @param {Call} call @param {string} result */
  #result(call, result) {
    const diff = diffOf(call);
    const label = call.outside ? 'tool.result.outside' : 'tool.result';
    if (diff === null) return this.#text(label, pretty(plain(result)));
    return html`<div class="tool-part"><div
      class="tool-label"><span>${t(label)}</span>${copyButton(() => result, 'message.copy')}</div>
      ${diff.before === '' ? nothing : html`<p class="diff-around">${diff.before}</p>`}<navi-diff
        .rows=${diff.rows}></navi-diff>
      ${diff.after === '' ? nothing : html`<p class="diff-around">${diff.after}</p>`}</div>`;
  }

  /**
   * @param {string} label
   * @param {string} text
   */
  #text(label, text) {
    const lines = text.split('\n');
    const cut = !this._whole && (lines.length > LINES + 5 || text.length > CHARS);
    const shown = cut ? lines.slice(0, LINES).join('\n').slice(0, CHARS) : text;
    return html`<div class="tool-part">
      <div class="tool-label"><span>${t(label)}</span>${copyButton(() => text, 'message.copy')}</div>
      <pre tabindex="0" class="tool-text">${shown === '' ? t('tool.empty') : shown}</pre>
      ${cut ? html`<button type="button" class="link-button" @click=${() => { this._whole = true; }}
        >${lines.length > LINES + 5 ? t('tool.more', { n: lines.length - LINES }) : t('tool.all')}</button>` : nothing}
    </div>`;
  }
}

/**
 * Calls do not change, but as whole new objects: what was found in one is found once.
 * @type {WeakMap<Call, ReturnType<typeof findDiff>>}
 */
const diffs = new WeakMap();

/** The difference that a call gave back. @param {Call} call */
function diffOf(call) {
  if (call.result === null || call.state !== 'success') return null;
  const known = diffs.get(call);
  if (known !== undefined) return known;
  const found = findDiff(call.result);
  const { added, removed } = counts(found?.rows ?? []);
  const diff = added + removed > 0 ? found : null;
  diffs.set(call, diff);
  return diff;
}

/** @param {Call} call */
function endedText(call) {
  const { code, signal } = howItEnded(call) ?? {};
  return code === undefined ? t('tool.ended.signal', { signal: signal ?? '' }) : t('tool.ended.code', { code });
}

/** @param {Shown} state @param {string} [text] */
export function callState(state, text = t(`tool.state.${state}`)) {
  return html`<span class="tool-state"
    title=${text}>${stateIcon(state)}<span class="tool-state-text">${text}</span></span>`;
}

/** @param {Shown} state */
function stateIcon(state) {
  if (state === 'asked' || state === 'denied') return icons.shield;
  if (state === 'running') return html`<span class="spinner" aria-hidden="true"></span>`;
  if (state === 'success') return icons.check;
  if (state === 'failed') return icons.cross;
  return state === 'stopped' ? icons.stop : icons.warning;
}

/** Texts of several lines stand last, where they hide nothing. @param {unknown} value */
const isText = (value) => typeof value === 'string' && value.includes('\n');

/** @param {Call} call */
function argumentList({ name, args }) {
  const entries = args !== null && typeof args === 'object' && !Array.isArray(args)
    ? Object.entries(args).sort(([, a], [, b]) => Number(isText(a)) - Number(isText(b)))
    : [['', args]];
  return html`<div class="tool-part"><div
    class="tool-label"><span>${t('tool.arguments')}</span><code>${name}</code></div>
    <dl class="arguments">${entries.map(([name, value]) => html`<div><dt>${name}</dt><dd>${
      typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</dd></div>`)}</dl></div>`;
}

/**
 * JSON set out over lines; any other text as it is.
 * @param {string} text
 */
export function pretty(text) {
  if (!/^\s*[[{]/.test(text) || text.length > 200_000) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

customElements.define('navi-tool-card', NaviToolCard);
