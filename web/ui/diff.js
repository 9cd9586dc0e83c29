// A change of a file, line by line. Its signs say what its colours say.

/** @import { Row } from '../state/diff.js' */

import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { counts } from '../state/diff.js';
import { NaviElement } from './element.js';
import { visible } from './visible.js';

/** More rows than these are shown on demand. */
const ROWS = 40;
/** @param {Row[]} rows */
export const isLong = (rows) => rows.length > ROWS + 5;
const SIGNS = { same: ' ', added: '+', removed: '−', gap: '', file: '' };

export class NaviDiff extends NaviElement {
  static properties = { rows: { attribute: false }, whole: { attribute: false } };

  constructor() {
    super();
    this.rows = /** @type {Row[]} */ ([]);
    /** Whether all of a long one is shown. */
    this.whole = false;
  }

  render() {
    const { rows } = this;
    const { added, removed } = counts(rows);
    const cut = !this.whole && isLong(rows);
    const shown = cut ? rows.slice(0, ROWS) : rows;
    const summary = t('diff.summary', { added, removed });
    return html`<div class="diff" data-testid="diff" data-added=${added} data-removed=${removed}
      data-whole=${String(!cut)}>
      <p class="diff-counts"><span class="off-screen">${summary}</span><span
        aria-hidden="true"><b class="added">+${added}</b> <b class="removed">−${removed}</b></span></p>
      <div class="diff-scroll" tabindex="0" role="group"
        aria-label=${summary}><table><tbody>${shown.map(row)}</tbody></table></div>
      ${cut ? html`<button type="button" class="link-button" data-testid="diff-all"
        @click=${this.#unfold}>${t('diff.all', { n: rows.length })}</button>` : nothing}
    </div>`;
  }

  #unfold() {
    this.whole = true;
    this.dispatchEvent(new CustomEvent('navi-unfolded'));
  }
}

/** @param {Row} item */
function row({ kind, text, before, after }) {
  if (kind === 'gap'
    || kind === 'file') return html`<tr class="diff-row ${kind}"><td class="diff-number"></td><td
        class="diff-number"></td><td></td><td>${text}</td></tr>`;
  const words = visible(text);
  return html`<tr class="diff-row ${kind}"><td class="diff-number"
    aria-hidden="true">${before ?? ''}</td><td class="diff-number" aria-hidden="true">${after ?? ''}</td>
    <td class="diff-sign">${SIGNS[kind]}</td><td>${kind === 'added'
      ? html`<ins>${words}</ins>`
      : kind === 'removed' ? html`<del>${words}</del>` : words}</td></tr>`;
}

customElements.define('navi-diff', NaviDiff);
