// What a conversation is filed under.

import { setTags } from '../app/actions.js';
import { archived, rowOf, sessions, shownTagsOf } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { MAX_TAGS, TAG_CHARS, tagsOf, toggled } from '../state/tags.js';
import { isComposing } from './keys.js';
import { NaviPanel } from './panel.js';

export class NaviTags extends NaviPanel {
  static properties = { _new: { state: true } };

  constructor() {
    super();
    this._id = shownTagsOf.get();
    this._new = '';
  }

  render() {
    const row = rowOf(this._id);
    const mine = row?.tags ?? [];
    const known = [...mine,
      ...tagsOf([...sessions.get().list, ...archived.get().list]).filter((tag) => !mine.includes(tag))];
    const full = mine.length >= MAX_TAGS;
    return this.frame('tags', t('tags.title'), html`
      <p class="quiet">${t(full ? 'tags.full' : 'tags.hint', { n: MAX_TAGS })}</p>
      ${known.length === 0
        ? nothing
        : html`<div class="tag-row" role="group"
          aria-label=${t('tags.title')}>${
            known.map((tag) => html`<button type="button" class="tag-chip" dir="auto" data-testid="tag"
        aria-pressed=${String(mine.includes(tag))} ?disabled=${full && !mine.includes(tag)}
        @click=${() => this.#set(toggled(mine, tag))}>${tag}</button>`)}</div>`}
      <form class="panel-tools" @submit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        if (!full
          && !mine.some((tag) => tag.toLowerCase() === this._new.trim().toLowerCase()))
            this.#set(toggled(mine, this._new));
        this._new = '';
      }}><label class="search"><input type="text" data-testid="tag-new" maxlength=${TAG_CHARS}
        placeholder=${t('tags.new')} aria-label=${t('tags.new')} .value=${this._new}
          @input=${(/** @type {InputEvent} */ event) => {
            this._new = /** @type {HTMLInputElement} */ (event.target).value;
          }}
          @keydown=${(/** @type {KeyboardEvent} */ event) => {
            if (event.key === 'Enter' && isComposing(event)) event.preventDefault();
          }}></label>
        <button type="submit" class="button small" data-testid="tag-add"
          ?disabled=${full || this._new.trim() === ''}>${t('tags.add')}</button></form>`);
  }

  /** @param {string[]} tags */
  #set(tags) {
    const row = rowOf(this._id);
    if (row !== undefined) setTags(row, tags);
  }
}

customElements.define('navi-tags', NaviTags);
