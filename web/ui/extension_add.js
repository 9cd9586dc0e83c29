// How a tool or a skill of one's own is added: which folder, and what stands in it.

import { hasText, loadTroubles, t } from '../i18n/index.js';
import { html } from '../lit.js';
import { api } from '../net/api.js';
import { Asking } from './asking.js';
import { withCode } from './cards.js';
import { copyButton } from './copy.js';
import { NaviElement } from './element.js';
import { visible } from './visible.js';

/** Where they are, and the files that one is made of: their paths in there, and the words' keys. */
const WHAT = {
  tool: {
    folder: /** @type {const} */ ('tools_dir'),
    files: [
      { path: 'disk_room/tool.toml', text: 'extensions.example.manifest' },
      { path: 'disk_room/run.sh', text: 'extensions.example.script' },
    ],
  },
  skill: {
    folder: /** @type {const} */ ('skills_dir'),
    files: [{ path: 'release-notes/SKILL.md', text: 'extensions.example.skill' }],
  },
};

export class NaviExtensionAdd extends NaviElement {
  static properties = { what: { type: String }, _dir: { state: true } };

  constructor() {
    super();
    /** @type {'tool' | 'skill'} */
    this.what = 'tool';
    /** @type {string | null} */
    this._dir = null;
    this._asking = new Asking(this);
  }

  render() {
    return html`<details class="sent-tools" data-testid="add-${this.what}" @toggle=${(/** @type {Event} */ event) => {
      if (/** @type {HTMLDetailsElement} */ (event.target).open) this.#look();
    }}><summary aria-label="${t('extensions.add')}: ${t(`extensions.${this.what}s`)}">${
      t('extensions.add')}</summary>${this.#steps()}</details>`;
  }

  #steps() {
    const dir = this._dir;
    if (dir === null || !hasText('extensions.add.tool')) return this._asking.card(() => this.#look());
    return html`<p class="quiet">${withCode(t(`extensions.add.${this.what}`))}</p>
      ${WHAT[this.what].files.map(({ path, text }) => html`<section
        class="once"><p class="hash">${visible(`${dir}/${path}`)}</p>
        <div class="once-text"><pre tabindex="0"
          aria-label=${path}>${t(text)}</pre>${copyButton(() => t(text), 'message.copy')}</div></section>`)}`;
  }

  #look() {
    if (this._dir !== null) return;
    void this._asking.ask(async () => {
      const [folders] = await Promise.all([api.extensionFolders(), loadTroubles()]);
      this._dir = folders[WHAT[this.what].folder];
    });
  }
}

customElements.define('navi-extension-add', NaviExtensionAdd);
