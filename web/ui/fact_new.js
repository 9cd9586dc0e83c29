/** @import { Problem } from '../state/types.js' */

import { pageError } from '../app/actions.js';
import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { NaviElement } from './element.js';
import { fault, faultText, field } from './fields.js';
import { isComposing } from './keys.js';

/** @typedef {{ category: string, key: string, value: string }} Written */

/** As the service takes them. */
const NAME_CHARS = 60;
const VALUE_CHARS = 500;

/** A fact that its user writes by hand. It is taken by its page's `save`, and tells when it is over (`navi-over`). */
export class NaviFactNew extends NaviElement {
  static properties = {
    categories: { attribute: false }, save: { attribute: false }, _fact: { state: true },
    _saving: { state: true }, _fault: { state: true },
  };

  constructor() {
    super();
    /** @type {{ id: string, name: string }[]} */
    this.categories = [];
    /** Has the service take it; fails where it does not. @type {(fact: Written) => Promise<void>} */
    this.save = async () => {};
    /** @type {Written} */
    this._fact = { category: '', key: '', value: '' };
    this._saving = false;
    /** Why the service did not take it. @type {Problem | null} */
    this._fault = null;
  }

  firstUpdated() {
    this.querySelector('select')?.focus();
  }

  render() {
    const { category, key, value } = this._fact;
    return html`<form class="person-form fact-new" data-testid="fact-new" @submit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      void this.#save();
    }} @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event)}>
      <div class="field"><label for="fact-new-category">${t('memory.new_category')}</label>
        <select id="fact-new-category" data-testid="fact-new-category"
        @change=${(/** @type {Event} */ event) => this.#set('category',
          /** @type {HTMLSelectElement} */ (event.target).value)}>
        ${this.categories.map(({ id, name }) => html`<option value=${id}
          ?selected=${id === category}>${name}</option>`)}</select></div>
      ${field({
        id: 'fact-new-name', label: t('memory.new_name'), hint: t('memory.new_name_hint'), value: key,
        max: NAME_CHARS, oninput: (text) => this.#set('key', text),
      })}
      ${field({
        id: 'fact-new-value', label: t('memory.new_value'), value, max: VALUE_CHARS,
        oninput: (text) => this.#set('value', text),
      })}
      ${fault(faultText(this._fault))}
      <div class="edit-actions"><button type="button" class="button small plain" data-testid="fact-new-cancel"
        @click=${() => this.#over()}>${t('queue.cancel')}</button>
        <button type="submit" class="button small" data-testid="fact-new-save"
          ?disabled=${this._saving || key.trim() === ''
            || value.trim() === ''}>${t('queue.save')}</button></div></form>`;
  }

  /** @param {keyof Written} what @param {string} text */
  #set(what, text) {
    this._fact = { ...this._fact, [what]: text };
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key !== 'Escape' || isComposing(event)) return;
    // The form's, not the dialog's.
    event.preventDefault();
    event.stopPropagation();
    this.#over();
  }

  #over() {
    this.dispatchEvent(new CustomEvent('navi-over'));
  }

  async #save() {
    const { category, key, value } = this._fact;
    if (this._saving || key.trim() === '' || value.trim() === '') return;
    this._saving = true;
    try {
      await this.save({ category: category || (this.categories[0]?.id ?? ''), key: key.trim(), value: value.trim() });
      this.#over();
    } catch (error) {
      // Where it is refused the words stay with their writer.
      this._fault = pageError(error);
    } finally {
      this._saving = false;
    }
  }
}

customElements.define('navi-fact-new', NaviFactNew);
