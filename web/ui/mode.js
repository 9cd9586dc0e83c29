// How much Navi may do without asking, in the open session, and what keeps her in.

/** @import { ConsentMode, Fence } from '../state/wire.js' */

import { setMode } from '../app/session.js';
import { mode, outside, status } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, live, nothing } from '../lit.js';
import { withCode } from './cards.js';
import { NaviElement } from './element.js';
import { sentence } from './format.js';
import { icons } from './icons.js';

const MODES = /** @type {const} */ (['ask', 'edits', 'auto']);

/** A change that was taken is told within this, or what holds is shown again. */
const TOLD_MS = 3_000;

export class NaviMode extends NaviElement {
  static properties = { _wanted: { state: true }, _open: { state: true } };

  constructor() {
    super();
    /** What was asked for and is not told yet. @type {ConsentMode | null} */
    this._wanted = null;
    this._open = false;
  }

  willUpdate() {
    if (this._wanted !== null && mode.get() === this._wanted) this._wanted = null;
  }

  render() {
    const now = mode.get();
    const read = outside.get();
    const open = holes(status.get()?.fence);
    if (now === null) return open.length === 0 ? nothing : fenceBadge(open);
    return html`<span class="mode ${now} ${open.length > 0 ? 'unfenced' : ''}" data-testid="mode" data-mode=${now}>
      <button type="button" class="mode-button" popovertarget="mode-panel" data-testid="mode-button" aria-haspopup="dialog" aria-expanded=${String(this._open)}
        title="${t('mode.label')}: ${t(`mode.${now}`)}">${icons.shield}<span class="off-screen">${t('mode.label')}:</span> <span class="mode-name">${t(`mode.${now}`)}</span>
        ${read ? html`<span data-testid="outside" title=${t('mode.outside')}>${icons.globe}<span class="off-screen">${t('mode.outside')}</span></span>` : nothing}
        ${open.length === 0 ? nothing : fenceBadge(open)}</button>
      <div id="mode-panel" popover class="mode-panel" role="dialog" aria-label=${t('mode.label')} data-testid="mode-panel" @toggle=${(/** @type {ToggleEvent} */ event) => { this._open = event.newState === 'open'; }}>
        <fieldset><legend>${t('mode.label')}</legend>${MODES.map((name) => html`<label class="mode-choice ${name}">
          <input type="radio" name="consent-mode" value=${name} data-testid=${`consent-${name}`} ?disabled=${this._wanted !== null} .checked=${live((this._wanted ?? now) === name)} @change=${() => void this.#choose(name)}>
          <span><b>${t(`mode.${name}`)}</b>${this._wanted === name ? html` <span class="spinner" aria-hidden="true"></span>` : nothing}<span class="mode-text">${t(`mode.${name}.text`)}</span></span></label>`)}</fieldset>
        ${read ? html`<p class="mode-outside" data-testid="outside-text">${icons.globe}<span>${t('mode.outside')}</span></p>` : nothing}
        ${open.length === 0 ? nothing : html`<ul class="fence-list" data-testid="fence-list">${open.map((text) => html`<li>${icons.warning}<span>${withCode(text)}</span></li>`)}</ul>`}
      </div></span>`;
  }

  /** @param {ConsentMode} chosen */
  async #choose(chosen) {
    this._wanted = chosen;
    // Every tab is told by an event, this one too.
    if (await setMode(chosen)) setTimeout(() => { if (this._wanted === chosen) this._wanted = null; }, TOLD_MS);
    else this._wanted = null;
  }
}

/** @param {string[]} open */
const fenceBadge = (open) => html`<span class="badge danger" data-testid="fence-badge" title=${open.join('\n')}>${icons.warning}<span class="badge-text">${t('fence.badge')}</span></span>`;

/**
 * Where the fence around the tools is open, a sentence each.
 * @param {Fence | undefined} fence
 */
export function holes(fence) {
  if (fence === undefined) return [];
  return [
    ...(fence.files_open ? [t('fence.files')] : []),
    ...(fence.commands_open ? [t('fence.commands')] : []),
    // Without a fence nobody misses the sandbox.
    ...(fence.sandbox == null || fence.commands_open ? [] : [t('fence.sandbox', { reason: sentence(fence.sandbox) })]),
  ];
}

customElements.define('navi-mode', NaviMode);
