// The open session's workspace, a directory at a time: what Navi made there, to look at and to keep.

/** @import { WorkspaceEntry, WorkspaceListing } from '../state/wire.js' */

import { pageError, showFile } from '../app/actions.js';
import { openId } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { api, workspacePath } from '../net/api.js';
import { errorCard } from './cards.js';
import { NaviElement } from './element.js';
import { formatBytes, formatTime } from './format.js';
import { icons } from './icons.js';

export class NaviWorkspace extends NaviElement {
  static properties = { _path: { state: true }, _listing: { state: true }, _problem: { state: true } };

  constructor() {
    super();
    this._id = openId.get() ?? '';
    /** The directory that is shown; '' for all of it. */
    this._path = '';
    /** @type {WorkspaceListing | null} */
    this._listing = null;
    /** @type {{ code: string, message: string } | null} */
    this._problem = null;
  }

  firstUpdated() {
    void this.#go('');
  }

  render() {
    const { _listing: listing, _path: path } = this;
    if (this._problem !== null) return errorCard(this._problem,
      html`<button type="button" class="button small"
        @click=${() => void this.#go(path)}>${t('subagent.retry')}</button>`);
    if (listing === null) return nothing;
    const parts = path === '' ? [] : path.split('/');
    return html`${parts.length === 0
      ? nothing
      : html`<p class="crumbs"><button type="button" class="link-button" data-testid="workspace-top"
        @click=${() => void this.#go('')}>${t('workspace.top')}</button>${
        parts.map((name, i) => html`<span aria-hidden="true">/</span><button type="button" class="link-button"
          dir="auto" @click=${() => void this.#go(parts.slice(0, i + 1).join('/'))}>${name}</button>`)}</p>`}
      ${listing.entries.length === 0 ? html`<p class="quiet" data-testid="workspace-empty">${t('workspace.empty')}</p>`
        : html`<ul class="rows">${repeat(listing.entries, (entry) => entry.path, (entry) => this.#entry(entry))}</ul>`}
      ${listing.complete ? nothing : html`<p class="quiet">${t('workspace.more')}</p>`}`;
  }

  /** @param {WorkspaceEntry} entry */
  #entry({ path, kind, bytes, modified_at }) {
    const name = path.slice(path.lastIndexOf('/') + 1);
    const at = modified_at === null ? '' : formatTime(modified_at);
    const open = kind === 'directory' ? () => void this.#go(path) : kind === 'file' ? () => showFile(path) : null;
    return html`<li class="row" data-testid="workspace-entry"
      data-kind=${kind}><span class="row-icon">${kind === 'directory' ? icons.folder : icons.file}</span>
      <div class="row-text"><p class="row-title"
        dir="auto">${open === null
          ? name
          : html`<button type="button" class="link-button" title=${t('workspace.open', { name })}
            @click=${open}>${name}</button>`}</p>
        <p class="row-note">${
          [kind === 'file' ? formatBytes(bytes) : t(`workspace.kind.${kind}`), at].filter((part) => part !== '')
            .join(' · ')}</p></div>
      ${kind !== 'file'
        ? nothing
        : html`<a class="icon-button" href=${workspacePath(this._id, 'file', path)} download=${name}
          data-testid="workspace-download" title=${t('files.download', { name })}
          aria-label=${t('files.download', { name })}>${icons.download}</a>`}</li>`;
  }

  /** @param {string} path */
  async #go(path) {
    this._path = path;
    this._problem = null;
    try {
      const listing = await api.workspace(this._id, path);
      // Somebody may have gone on meanwhile.
      if (this._path === path) this._listing = listing;
    } catch (error) {
      this._problem = pageError(error);
    }
  }
}

customElements.define('navi-workspace', NaviWorkspace);
