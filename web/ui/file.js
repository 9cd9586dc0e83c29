// A file that Navi made, beside the conversation: as what it is, and to keep.

/** @import { Asked } from './file_changes.js' */

import { pageError } from '../app/actions.js';
import { changes, openId, shownFile } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { api, workspacePath } from '../net/api.js';
import { errorCard } from './cards.js';
import { icons } from './icons.js';
import { NaviPanel } from './panel.js';
import './code.js';
import './file_changes.js';
import './markdown.js';

/** What the service makes a picture of. */
const PICTURE = /\.(png|jpe?g|gif|webp|bmp)$/i;
const MARKDOWN = /\.(md|markdown)$/i;
const TABS = /** @type {const} */ (['text', 'changes']);

export class NaviFile extends NaviPanel {
  static properties = {
    _text: { state: true }, _version: { state: true }, _problem: { state: true }, _tab: { state: true },
  };

  constructor() {
    super();
    this._id = openId.get() ?? '';
    /** What was last asked for: no other answer counts. @type {Asked | null} */
    this._asked = null;
    /** @type {typeof TABS[number]} */
    this._tab = 'text';
    /** Undefined until it is read, null where there is no text to look at. @type {string | null | undefined} */
    this._text = undefined;
    /** How often it was read again, for a picture: its browser reads an address once. */
    this._version = 0;
    /** @type {{ code: string, message: string } | null} */
    this._problem = null;
  }

  /** In a window with room for both it stands beside the conversation, which goes on. */
  open() {
    if (matchMedia('(min-width: 80rem)').matches) this.dialog?.show();
    else super.open();
  }

  /**
   * Another one of the conversation takes its place; with the conversation it goes. Whatever is changed
   * there may be a change of this file.
   */
  updated() {
    const [path, made] = [shownFile.get(), changes.get()];
    if (openId.get() !== this._id) this.close();
    else if (this._asked?.path !== path || this._asked.made !== made) void this.#load({ path, made });
  }

  render() {
    // Read here, so that it is drawn again with what comes.
    changes.get();
    const [path, id] = [shownFile.get(), openId.get() ?? ''];
    const name = path.slice(path.lastIndexOf('/') + 1);
    return this.frame('file-view', name, html`
      <p class="file-place"><span class="row-note" dir="ltr">${path === name ? nothing : path}</span>
        <a class="button small" href=${workspacePath(id, 'file', path)} download=${name}
          data-testid="file-view-download">${icons.download}<span>${t('workspace.download')}</span></a></p>
      ${this.tabs(name, TABS, this._tab, {
        title: (tab) => t(`file.tab.${tab}`),
        show: (tab) => { this._tab = tab; },
        content: this._tab === 'text'
          ? this.#file(id, path, name)
          : html`<navi-file-changes .path=${path}></navi-file-changes>`,
      })}`);
  }

  /** @param {string} id @param {string} path @param {string} name */
  #file(id, path, name) {
    if (this._problem !== null) return errorCard(this._problem);
    if (!PICTURE.test(path)) return this.#content(name);
    return html`<img class="file-picture" alt=${name} data-testid="file-picture"
      src=${`${workspacePath(id, 'image', path)}&version=${this._version}`}>`;
  }

  /** @param {string} name */
  #content(name) {
    const text = this._text;
    if (text === undefined) return html`<p class="quiet loading"
      role="status"><span class="spinner" aria-hidden="true"></span>${t('app.loading')}</p>`;
    if (text === null) return html`<p class="quiet" data-testid="file-no-text">${t('workspace.no_text')}</p>`;
    if (text === '') return html`<p class="quiet">${t('tool.empty')}</p>`;
    return html`<div class="prose file-text-view" data-testid="file-text">${MARKDOWN.test(name)
      ? html`<navi-markdown dir="auto" .text=${text} .complete=${true}></navi-markdown>`
      : html`<navi-code .lang=${/\.(\w+)$/.exec(name)?.[1] ?? ''} .code=${text}></navi-code>`}</div>`;
  }

  /** What is there stays until the same file was read again. @param {Asked} asked */
  async #load(asked) {
    const again = this._asked?.path === asked.path;
    this._asked = asked;
    this._version = again ? this._version + 1 : 0;
    if (!again) {
      this._text = undefined;
      this._problem = null;
    }
    if (PICTURE.test(asked.path)) return;
    try {
      const text = await api.workspaceText(this._id, asked.path);
      if (this._asked !== asked) return;
      this._text = text;
      this._problem = null;
    } catch (error) {
      if (this._asked === asked) this._problem = pageError(error);
    }
  }
}

customElements.define('navi-file', NaviFile);
