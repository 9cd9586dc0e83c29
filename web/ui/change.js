// What a call changed in a file, and the way back.

/** @import { Row } from '../state/diff.js' */
/** @import { Change } from '../state/wire.js' */

import { pageError, showError, showFile } from '../app/actions.js';
import { undoChange } from '../app/changes.js';
import { announce } from '../app/announce.js';
import { isGuest } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { counts } from '../state/diff.js';
import { withCode } from './cards.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';

export class NaviChange extends NaviElement {
  static properties = { change: { attribute: false }, rows: { attribute: false }, _undoing: { state: true } };

  constructor() {
    super();
    this.change = /** @type {Change} */ (/** @type {unknown} */ (null));
    /** The difference, where it is known. @type {Row[] | null} */
    this.rows = null;
    this._undoing = false;
  }

  render() {
    const { change, rows } = this;
    const { added, removed } = counts(rows ?? []);
    const { undoable } = change;
    const path = change.to === undefined ? change.path : `${change.path} → ${change.to}`;
    return html`<div class="change" data-testid="change" data-change-id=${change.id} data-undoable=${String(undoable)}>
      ${icons.file}<button type="button" class="change-path link-button" dir="ltr"
        title=${t('workspace.open', { name: path })} data-testid="change-path"
        @click=${() => showFile(change.to ?? change.path)}>${path}</button>
      ${added + removed === 0
        ? nothing
        : html`<span class="diff-counts"><span class="off-screen">${t('diff.summary', { added, removed })}</span><span
            aria-hidden="true"><b class="added">+${added}</b> <b class="removed">−${removed}</b></span></span>`}
      ${undoable && isGuest.get() ? nothing : undoable
        ? html`<button type="button" class="button small plain" data-testid="undo-change"
          ?disabled=${this._undoing} aria-label="${t('change.undo')}: ${path}"
          @click=${() => void this.#undo()}>${this._undoing
            ? html`<span class="spinner" aria-hidden="true"></span>`
            : icons.undo}<span>${t('change.undo')}</span></button>`
        : html`<span class="change-note"
          data-testid="change-note">${withCode(change.why_not ?? t('change.no_undo'))}</span>`}
    </div>`;
  }

  async #undo() {
    this._undoing = true;
    try {
      await undoChange(this.change.id);
      announce(t('change.undone', { path: this.change.path }));
      this.dispatchEvent(new CustomEvent('navi-undone', { bubbles: true }));
    } catch (error) {
      showError(pageError(error));
    } finally {
      this._undoing = false;
    }
  }
}

customElements.define('navi-change', NaviChange);
