// What Navi changed in a file, newest first, as differences. Loaded when it is looked at.

/** @import { Problem } from '../state/types.js' */
/** @import { Change, FileChange } from '../state/wire.js' */

import { pageError } from '../app/actions.js';
import { changes, openId } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { api } from '../net/api.js';
import { findDiff } from '../state/diff.js';
import { errorCard } from './cards.js';
import { NaviElement } from './element.js';
import { formatTime } from './format.js';
import './diff.js';

/** A file, and what was changed here by then. @typedef {{ path: string, made: Change[] | null }} Asked */

export class NaviFileChanges extends NaviElement {
  static properties = {
    path: { attribute: false }, _changes: { state: true }, _problem: { state: true },
  };

  constructor() {
    super();
    this.path = '';
    /** Undefined until they are read. @type {FileChange[] | undefined} */
    this._changes = undefined;
    /** @type {Problem | null} */
    this._problem = null;
    /** What was last asked for: no other answer counts. @type {Asked | null} */
    this._asked = null;
  }

  /** Whatever is changed in the conversation may be a change of this file. */
  updated() {
    const made = changes.get();
    if (this._asked?.path === this.path && this._asked.made === made) return;
    if (this._asked?.path !== this.path) this._changes = undefined;
    void this.#load({ path: this.path, made });
  }

  render() {
    // Read here, so that it is drawn again with what comes.
    changes.get();
    const all = this._changes;
    if (this._problem !== null) return errorCard(this._problem,
      html`<button type="button" class="button small" data-testid="file-changes-retry"
        @click=${() => void this.#load({ path: this.path, made: changes.get() })}>${t('subagent.retry')}</button>`);
    if (all === undefined) {
      return html`<p class="quiet loading" role="status">
        <span class="spinner" aria-hidden="true"></span>${t('app.loading')}</p>`;
    }
    if (all.length === 0) return html`<p class="quiet" data-testid="file-unchanged">${t('file.unchanged')}</p>`;
    return html`<ol class="file-changes">${repeat(all, ({ change }) => change.id, shown)}</ol>`;
  }

  /** @param {Asked} asked */
  async #load(asked) {
    this._asked = asked;
    this._problem = null;
    try {
      const all = await api.fileChanges(openId.get() ?? '', asked.path);
      if (this._asked === asked) this._changes = all;
    } catch (error) {
      if (this._asked === asked) this._problem = pageError(error);
    }
  }
}

/** @param {FileChange} told */
function shown({ change, diff }) {
  const { action, at, path, to, undoes } = change;
  const rows = diff == null ? null : findDiff(diff)?.rows ?? null;
  return html`<li data-testid="file-change" data-action=${action}>
    <h3>${t(`change.action.${action}`)} <time class="row-note" datetime=${at}>${formatTime(at)}</time></h3>
    ${to === undefined ? nothing : html`<p class="row-note" dir="ltr">${path} → ${to}</p>`}
    ${rows !== null ? html`<navi-diff .rows=${rows}></navi-diff>`
      : to !== undefined || undoes !== undefined ? nothing : html`<p class="quiet">${t('file.no_diff')}</p>`}
  </li>`;
}

customElements.define('navi-file-changes', NaviFileChanges);
