// The open session's files: what was sent in, what tools gave back, and what they changed in the
// workspace, with the way back. Loaded when it is opened.

/** @import { SessionFile } from '../state/wire.js' */

import { pageError } from '../app/actions.js';
import { addFiles, attachmentsOf, MAX_FILES } from '../app/attachments.js';
import { readChanges } from '../app/changes.js';
import { changes, isGuest, mayChangeOpen, openId } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { html, nothing, repeat } from '../lit.js';
import { api, filePath } from '../net/api.js';
import { errorCard } from './cards.js';
import { formatBytes, formatTime, sentence } from './format.js';
import { icons } from './icons.js';
import { NaviPanel } from './panel.js';
import { uploadChips } from './upload_chips.js';
import './change.js';
import './workspace.js';

export class NaviFiles extends NaviPanel {
  static properties = {
    _files: { state: true }, _problem: { state: true }, _asking: { state: true }, _full: { state: true },
  };

  constructor() {
    super();
    /** @type {SessionFile[] | null} */
    this._files = null;
    /** @type {{ code: string, message: string } | null} */
    this._problem = null;
    /** The file of which it is asked whether it shall go. @type {string | null} */
    this._asking = null;
    /** Whether some of those that were chosen had no room. */
    this._full = false;
    this._id = openId.get() ?? '';
    /** How many of the message's files were there when the list was read. */
    this._there = 0;
  }

  firstUpdated() {
    super.firstUpdated();
    void this.#load();
    void readChanges();
  }

  updated() {
    const there = attachmentsOf(this._id).filter(({ file }) => file !== null).length;
    if (there > this._there && this._files !== null) void this.#load();
    this._there = there;
  }

  render() {
    const files = this._files;
    const made = changes.get() ?? [];
    return this.frame('files', t('files.title'), html`
      <p class="quiet">${t('files.hint')}</p>
      ${isGuest.get() ? nothing : this.#tools()}
      ${uploadChips(attachmentsOf(this._id).filter(({ state }) => state !== 'done'))}
      ${this._problem === null
        ? nothing
        : errorCard(this._problem,
          html`<button type="button" class="button small"
            @click=${() => void this.#load()}>${t('subagent.retry')}</button>`)}
      ${files === null
        ? nothing
        : files.length === 0 ? html`<p class="quiet panel-empty" data-testid="files-empty">${t('files.empty')}</p>`
        : html`<ul class="rows">${repeat(files, ({ file_id }) => file_id, (file) => this.#file(file))}</ul>`}
      <h3>${t('workspace.title')}</h3><navi-workspace></navi-workspace>
      ${made.length === 0
        ? nothing
        : html`<h3>${t('files.changes')}</h3><ul class="rows"
          data-testid="files-changes">${repeat(made, ({ id }) => id, (change) => html`<li class="row">
        <div class="row-text"><navi-change .change=${change}></navi-change><p
          class="row-note">${t(`change.action.${change.action}`)} ·
            <time datetime=${change.at}>${formatTime(change.at)}</time></p></div></li>`)}</ul>`}`);
  }

  #tools() {
    return html`<div class="panel-tools"><input type="file" id="files-input" class="off-screen" multiple tabindex="-1"
        aria-hidden="true" data-testid="files-input" @change=${(/** @type {Event} */ event) => this.#chosen(event)}>
        <button type="button" class="button small" data-testid="files-add"
          @click=${() => /** @type {HTMLInputElement | null} */ (this.querySelector('#files-input'))
            ?.click()}>${icons.clip}<span>${t('files.add')}</span></button></div>
      ${!this._full
        ? nothing
        : html`<p class="row-note warn" role="alert"
          data-testid="files-full">${t('composer.file_count', { n: MAX_FILES })}</p>`}`;
  }

  /** @param {SessionFile} file */
  #file(file) {
    const { file_id, name, bytes, media_type, expires_at, problem, phrase } = file;
    const path = filePath(this._id, file_id);
    return html`<li class="row" data-testid="file" data-file-id=${file_id} data-source=${file.source ?? 'upload'}>
      ${file.image === true
        ? html`<img class="row-image" src=${`${path}/image`} alt="" loading="lazy">`
        : html`<span class="row-icon">${icons.file}</span>`}
      <div class="row-text"><p class="row-title" dir="auto">${name}</p>
        <p class="row-note">${formatBytes(bytes)} ·
          ${media_type}${file.source === 'tool' ? html` · ${t('files.by_tool')}` : nothing}${
            expires_at == null ? nothing : html` · ${t('files.until', { at: formatTime(expires_at) })}`}</p>
        ${problem == null ? nothing : html`<p class="row-note warn">${sentence(phraseText(phrase, problem))}</p>`}
        ${this._asking !== file_id
          ? nothing
          : html`<p class="row-actions"><button type="button" class="button small destructive"
            data-testid="file-delete-confirm"
            @click=${() => void this.#remove(file_id)}>${t('files.delete_yes')}</button>
          <button type="button" class="button small plain"
            @click=${() => { this._asking = null; }}>${t('queue.cancel')}</button></p>`}</div>
      <a class="icon-button" href=${path} download=${name} data-testid="file-download"
        title=${t('files.download', { name })} aria-label=${t('files.download', { name })}>${icons.download}</a>
      ${!mayChangeOpen.get()
        ? nothing
        : html`<button type="button" class="icon-button" data-testid="file-delete" title=${t('files.delete')}
          aria-label="${t('files.delete')}: ${name}"
          @click=${() => { this._asking = file_id; }}>${icons.trash}</button>`}</li>`;
  }

  /** @param {Event} event */
  #chosen(event) {
    const input = /** @type {HTMLInputElement} */ (event.target);
    this._full = !addFiles(this._id, [...(input.files ?? [])], []);
    input.value = '';
  }

  async #load() {
    this._problem = null;
    try {
      this._files = await api.files(this._id);
    } catch (error) {
      this._problem = pageError(error);
    }
  }

  /** @param {string} file_id */
  async #remove(file_id) {
    this._asking = null;
    this._problem = null;
    try {
      await api.removeFile(this._id, file_id);
      this._files = await api.files(this._id);
    } catch (error) {
      this._problem = pageError(error);
    }
  }
}

customElements.define('navi-files', NaviFiles);
