/** @import { Profile, ProfileText } from '../state/wire.js' */

import { showToast } from '../app/actions.js';
import { isAdmin, status } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { inWords } from '../i18n/phrases.js';
import { html, nothing, repeat, signal } from '../lit.js';
import { api } from '../net/api.js';
import { copied, idIn } from '../state/setup.js';
import { Asking } from './asking.js';
import { withCode } from './cards.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';

/** @typedef {{ profile: ProfileText, text: string, is_copy: boolean }} Draft */

/** What is being written: it outlives a look elsewhere. */
const draft = signal(/** @type {Draft | null} */ (null));

/** The profiles, each as it is and as its file has it. A file is checked before it is written. */
export class NaviSetupProfiles extends NaviElement {
  static properties = { _profiles: { state: true }, _files: { state: true } };

  constructor() {
    super();
    /** @type {Profile[]} */
    this._profiles = [];
    /** Where those stand that were looked at, by their ids. @type {ReadonlyMap<string, ProfileText>} */
    this._files = new Map();
    /** The status that these profiles are as new as. @type {unknown} */
    this._known = undefined;
    this._asking = new Asking(this);
  }

  updated() {
    // The service tells its status anew when files of profiles changed.
    if (this._known === status.get() || draft.get() !== null) return;
    this._known = status.get();
    void this._asking.ask(async () => {
      this._profiles = await api.profiles();
      const seen = this._profiles.map(({ id }) => id).filter((id) => this._files.has(id));
      this._files = new Map(
        await Promise.all(seen.map(async (id) => /** @type {const} */ ([id, await api.profileFile(id)]))),
      );
    });
  }

  render() {
    status.get();
    const written = draft.get();
    if (written !== null && isAdmin.get()) return this.#editor(written);
    return html`<p class="quiet">${t('setup.profiles.hint')}</p>${this._asking.card(() => this.#retry())}
      <ul class="rows">${repeat(this._profiles, ({ id }) => id,
        (profile) => this.#row(inWords(profile.id, profile)))}</ul>`;
  }

  /** @param {Profile} profile */
  #row({ id, name, description, model, llm_backend, temperature, enabled_tools = [], system_prompt = '' }) {
    const file = this._files.get(id);
    return html`<li class="row" data-testid="profile"
      data-profile=${id}><span class="row-icon">${icons.agent}</span><div class="row-text">
        <p class="row-title">${name} <code>${id}</code></p><p class="row-note">${description}</p>
        <details class="sent-tools" @toggle=${() => this.#look(id)}><summary>${t('setup.profiles.look')}</summary>
          <dl class="run-facts">
            <div><dt>${t('setup.profiles.from')}</dt><dd>${
              file === undefined
                ? '…'
                : file.built_in ? t('setup.origin.default') : html`<span class="hash">${file.file}</span>`}</dd></div>
            <div><dt>${t('header.model')}</dt><dd>${
              [llm_backend, model].filter((part) => part != null).join(' · ') || t('setup.models.default')}</dd></div>
            <div><dt>${t('setup.profiles.temperature')}</dt><dd>${temperature}</dd></div>
            <div class="whole"><dt>${t('setup.profiles.tools')}</dt><dd>${
              enabled_tools.join(', ') || t('setup.models.can.no_tools')}</dd></div>
          </dl>
          <pre class="profile-prompt" tabindex="0" dir="auto">${system_prompt}</pre></details>
        ${!isAdmin.get()
          ? nothing
          : html`<p class="row-actions"><button type="button" class="button small plain"
            data-testid="profile-edit" aria-label="${t('setup.profiles.edit')}: ${name}"
            @click=${() => this.#open(id, false)}>${icons.pencil}${t('setup.profiles.edit')}</button>
          <button type="button" class="button small plain" data-testid="profile-copy"
            aria-label="${t('setup.profiles.copy')}: ${name}"
            @click=${() => this.#open(id, true)}>${icons.copy}${t('setup.profiles.copy')}</button></p>`}</div></li>`;
  }

  /** @param {Draft} written */
  #editor({ profile, text, is_copy }) {
    const { file, built_in } = profile;
    return html`<form class="profile-editor"
      @submit=${(/** @type {Event} */ event) => { event.preventDefault(); this.#save(); }}>
      <p class="quiet">${
        withCode(is_copy
          ? t('setup.profiles.copy_hint')
          : t(built_in ? 'setup.profiles.replace_hint' : 'setup.profiles.edit_hint', { file }))}</p>
      <textarea data-testid="profile-text" spellcheck="false" autocapitalize="off"
        aria-label=${t('setup.profiles.text')} .value=${text}
        @input=${(/** @type {InputEvent} */ event) => draft.set({
          profile, is_copy, text: /** @type {HTMLTextAreaElement} */ (event.target).value,
        })}></textarea>
      ${this._asking.card(() => this.#save())}
      <p class="row-actions"><button class="button small" data-testid="profile-save"
        ?disabled=${this._asking.busy}>${t('queue.save')}</button>
        <button type="button" class="button small plain" data-testid="profile-cancel"
          @click=${() => this.#retry()}>${t('queue.cancel')}</button></p></form>`;
  }

  /** Back to the list, read anew. */
  #retry() {
    draft.set(null);
    this._known = undefined;
    this._asking.problem = null;
    this.requestUpdate();
  }

  /** @param {string} id */
  #look(id) {
    if (this._files.has(id)) return;
    void this._asking.ask(async () => { this._files = new Map([...this._files, [id, await api.profileFile(id)]]); });
  }

  /** @param {string} id @param {boolean} is_copy */
  #open(id, is_copy) {
    void this._asking.ask(async () => {
      const profile = await api.profileFile(id);
      draft.set({ profile, is_copy, text: is_copy ? copied(profile.text) : profile.text });
    });
  }

  #save() {
    void this._asking.ask(async () => {
      const written = draft.get();
      if (written === null) return;
      const { profile, text, is_copy } = written;
      await api.writeProfileFile(idIn(is_copy ? text : profile.text), text,
        is_copy || profile.built_in ? null : profile.text);
      showToast(t('setup.profiles.saved'));
      this.#retry();
    });
  }
}

customElements.define('navi-setup-profiles', NaviSetupProfiles);
