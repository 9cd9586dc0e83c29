// What Navi changed in a file, newest first, as differences. Loaded when it is looked at.

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

export class NaviFileChanges extends NaviElement {
  static properties = {
    path: { attribute: false }, _changes: { state: true }, _problem: { state: true },
  };

  constructor() {
    super();
    this.path = '';
    /** Undefined until they are read. @type {FileChange[] | undefined} */
    this._changes = undefined;
    /** @type {{ code: string, message: string } | null} */
    this._problem = null;
    /** What was last asked for. @type {{ path: string, made: Change[] | null } | null} */
    this._asked = null;
  }

  /** Whatever is changed in the conversation may be a change of this file. */
  updated() {
    const made = changes.get();
    if (this._asked?.path === this.path && this._asked.made === made) return;
    if (this._asked?.path !== this.path) this._changes = undefined;
    this._asked = { path: this.path, made };
    void this.#load(this.path);
  }

  render() {
    // Read here, so that it is drawn again with what comes.
    changes.get();
    const all = this._changes;
    if (this._problem !== null) return errorCard(this._problem);
    if (all === undefined) {
      return html`<p class="quiet loading" role="status">
        <span class="spinner" aria-hidden="true"></span>${t('app.loading')}</p>`;
    }
    if (all.length === 0) return html`<p class="quiet" data-testid="file-unchanged">${t('file.unchanged')}</p>`;
    return html`<ol class="file-changes">${repeat(all, ({ change }) => change.id, shown)}</ol>`;
  }

  /** @param {string} path */
  async #load(path) {
    try {
      const all = await api.fileChanges(openId.get() ?? '', path);
      if (path !== this.path) return;
      this._changes = all;
      this._problem = null;
    } catch (error) {
      if (path === this.path) this._problem = pageError(error);
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
