/** @import { Problem } from '../state/types.js' */
/** @import { Fact, FormerFact } from '../state/wire.js' */

import { goTo, pageError, sessionHref } from '../app/actions.js';
import { isGuest, sessions } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { html, nothing } from '../lit.js';
import { api } from '../net/api.js';
import { errorGroup } from '../state/errors.js';
import { isUnconfirmed, plainName } from '../state/memory.js';
import { NaviElement } from './element.js';
import { formatTime } from './format.js';
import { icons } from './icons.js';
import { isComposing, isSending } from './keys.js';

/**
 * One fact. It is corrected by its page's `save`, asks it to forget (`navi-forget`), and tells it
 * when a link leads away (`navi-leave`).
 */
export class NaviFact extends NaviElement {
  static properties = {
    fact: { attribute: false }, gone: { type: Boolean }, save: { attribute: false }, _editing: { state: true },
    _saving: { state: true }, _fault: { state: true }, _history: { state: true },
  };

  constructor() {
    super();
    this.fact = /** @type {Fact} */ (/** @type {unknown} */ (null));
    /** Whether it was forgotten just now. */
    this.gone = false;
    /** Has the service take another value; fails where it does not. @type {(value: string) => Promise<void>} */
    this.save = async () => {};
    this._editing = false;
    this._saving = false;
    /** Why the service did not take what was written. @type {Problem | null} */
    this._fault = null;
    /**
     * @type {null | { state: 'loading' } | { state: 'ready', values: FormerFact[] } | { state:
     *  'failed', code: string }}
     */
    this._history = null;
  }

  /** @param {Map<PropertyKey, unknown>} changed */
  willUpdate(changed) {
    const before = /** @type {Fact | undefined} */ (changed.get('fact'));
    if (before !== undefined && before?.updated_at !== this.fact.updated_at) this._history = null;
  }

  render() {
    const { fact } = this;
    const name = plainName(fact.key);
    if (this.gone) return html`<div class="fact gone" data-testid="fact" data-key=${fact.key}
      data-state="forgotten" role="status">
      <span>${t('memory.forgotten', { name })}</span>
      <button type="button" class="link-button" data-testid="fact-undo"
        @click=${() => void this.#send(fact.value)}>${t('session.undo')}</button>${this.#why()}</div>`;
    return html`<article class="fact" data-testid="fact" data-key=${fact.key} data-category=${fact.category}
      data-state=${isUnconfirmed(fact) ? 'unconfirmed' : 'known'} aria-label=${name}>
      <div class="fact-text"><h4>${name}${isUnconfirmed(fact)
        ? html` <span class="badge" data-testid="fact-unconfirmed"
          title=${t('memory.unconfirmed_hint')}>${t('memory.unconfirmed')}</span>`
        : nothing}</h4>
        ${this._editing
          ? this.#form()
          : html`<p class="fact-value" dir="auto" data-testid="fact-value">${fact.value}</p>`}
        <p class="fact-source"><time datetime=${fact.updated_at}>${formatTime(fact.updated_at)}</time>${
          this.#source()}</p>
        ${this.#history()}</div>
      <div class="fact-actions">${
        isGuest.get() ? nothing : this.#button('pencil', 'memory.edit', 'fact-edit', () => void this.#edit())}
        ${this.#button('history', 'memory.history', 'fact-history', () => void this.#toggleHistory(),
          this._history !== null)}
        ${isGuest.get()
          ? nothing
          : this.#button('trash', 'memory.forget', 'fact-forget', () => this.#tell('navi-forget'))}</div>
    </article>`;
  }

  #source() {
    const { session_id, message_id } = this.fact;
    if (session_id === undefined) return html` · ${t('memory.by_you')}`;
    const title = sessions.get().list.find(({ id }) => id === session_id)?.title || t('memory.conversation');
    return html` · <a href=${sessionHref(session_id, message_id)} data-testid="fact-source" dir="auto"
      @click=${(/** @type {MouseEvent} */ event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.#tell('navi-leave');
      goTo(session_id, message_id);
    }}>${title}</a>`;
  }

  #form() {
    return html`<form class="edit-form" @submit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      void this.#save();
    }}><textarea rows="1" dir="auto" data-testid="fact-input"
      aria-label=${`${t('memory.edit')}: ${plainName(this.fact.key)}`} .value=${this.fact.value}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event)}></textarea>
      ${this.#why()}
      <div class="edit-actions"><button type="button" class="button small plain"
        @click=${() => void this.#close()}>${t('queue.cancel')}</button>
        <button type="submit" class="button small" data-testid="fact-save"
          ?disabled=${this._saving}>${t('queue.save')}</button></div></form>`;
  }

  #history() {
    const history = this._history;
    if (history === null) return nothing;
    if (history.state === 'loading') return html`<p class="quiet loading"
      role="status"><span class="spinner" aria-hidden="true"></span>${t('app.loading')}</p>`;
    if (history.state === 'failed') return html`<p class="quiet failed"
      role="alert">${t(`error.${errorGroup(history.code)}.title`)}</p>`;
    if (history.values.length === 0) return html`<p class="quiet"
      data-testid="fact-history-empty">${t('memory.no_history')}</p>`;
    return html`<ul class="former"
      aria-label=${t('memory.history')}>${history.values.map((former) => html`<li data-testid="fact-former">
      <span dir="auto">${former.value}</span>
        <span class="quiet">${t('memory.until', { at: formatTime(former.replaced_at) })}</span></li>`)}</ul>`;
  }

  /**
   * @param {'pencil' | 'history' | 'trash'} icon
   * @param {string} label
   * @param {string} testid
   * @param {() => void} run
   * @param {boolean} [expanded]
   */
  #button(icon, label, testid, run, expanded) {
    return html`<button type="button" class="icon-button" data-testid=${testid} title=${t(label)}
      aria-label=${`${t(label)}: ${plainName(this.fact.key)}`}
      aria-expanded=${expanded === undefined ? nothing : String(expanded)} @click=${run}>${icons[icon]}</button>`;
  }

  #why() {
    const fault = this._fault;
    if (fault === null) return nothing;
    return html`<p class="fault" role="alert"
      data-testid="fact-fault">${icons.warning}<span>${t(`error.${errorGroup(fault.code)}.title`)}${
        fault.message === '' ? '' : `: ${phraseText(fault.phrase, fault.message)}`}</span></p>`;
  }

  /** @param {string} name */
  #tell(name) {
    this.dispatchEvent(new CustomEvent(name));
  }

  async #edit() {
    this._fault = null;
    this._editing = true;
    await this.updateComplete;
    this.querySelector('textarea')?.select();
  }

  async #close() {
    this._fault = null;
    this._editing = false;
    await this.updateComplete;
    /** @type {HTMLElement | null} */ (this.querySelector('[data-testid="fact-edit"]'))?.focus();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (isComposing(event)) return;
    if (event.key === 'Escape') {
      // The field's, not the dialog's.
      event.preventDefault();
      event.stopPropagation();
      void this.#close();
    } else if (isSending(event)) {
      event.preventDefault();
      void this.#save();
    }
  }

  async #save() {
    const value = this.querySelector('textarea')?.value.trim() ?? '';
    if (value === '' || this._saving) return;
    // Where it is refused the words stay with their writer.
    if (value === this.fact.value || await this.#send(value)) await this.#close();
  }

  /** @param {string} value @returns {Promise<boolean>} whether the service has it */
  async #send(value) {
    this._saving = true;
    try {
      await this.save(value);
      this._fault = null;
      return true;
    } catch (error) {
      this._fault = pageError(error);
      return false;
    } finally {
      this._saving = false;
    }
  }

  async #toggleHistory() {
    if (this._history !== null) {
      this._history = null;
      return;
    }
    this._history = { state: 'loading' };
    try {
      this._history = { state: 'ready', values: await api.factHistory(this.fact) };
    } catch (error) {
      this._history = { state: 'failed', code: pageError(error).code };
    }
  }
}

customElements.define('navi-fact', NaviFact);
