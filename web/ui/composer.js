import { startSession } from '../app/actions.js';
import { IMAGE_TYPES, MAX_IMAGES, readImage } from '../app/images.js';
import { loadDraft, saveDraft } from '../app/prefs.js';
import { postMessage, stop } from '../app/session.js';
import { creating, openId, profiles, session, sessionError, status, stopping, uploads } from '../app/signals.js';
import { addFiles, clearUploads, MAX_FILES, NEW } from '../app/uploads.js';
import { t } from '../i18n/index.js';
import { expectedModel } from '../state/service.js';
import { isSettled, refs } from '../state/uploads.js';
import { html, live, nothing } from '../vendor/lit.js';
import { NaviElement } from './element.js';
import { formatBytes } from './format.js';
import { icons } from './icons.js';
import { imageSource } from './image.js';
import { uploadChips } from './upload_chips.js';

/** @import { SendMode } from '../state/wire.js' */

/** The service refuses more; said here first, so that nothing is lost on the way. */
const MAX_BYTES = 256 * 1024;

/** What sending does while a run goes. */
const ACTIONS = /** @type {const} */ ({ queue: 'composer.queue', steer: 'composer.steer' });
const COMMAND = /Mac|iP/.test(navigator.platform) ? '⌘' : 'Ctrl';

/** @param {string} text */
function bytesOver(text) {
  // Most texts are far too short for counting.
  return text.length * 3 <= MAX_BYTES ? 0 : Math.max(0, new TextEncoder().encode(text).length - MAX_BYTES);
}

/** Where one writes. Keeps a draft per session. */
export class NaviComposer extends NaviElement {
  static properties = { _text: { state: true }, _images: { state: true }, _problem: { state: true }, _dragging: { state: true }, _mode: { state: true } };

  constructor() {
    super();
    this._text = '';
    /** @type {string[]} */
    this._images = [];
    this._problem = '';
    this._dragging = false;
    /** What becomes of a message while a run goes. @type {SendMode} */
    this._mode = 'queue';
    /** The session whose draft this is. @type {string | null | undefined} */
    this._for = undefined;
    this._ondrag = (/** @type {DragEvent} */ event) => this.#drag(event);
    this._ondrop = (/** @type {DragEvent} */ event) => this.#drop(event);
    this._onleave = (/** @type {DragEvent} */ event) => { if (event.relatedTarget === null) this._dragging = false; };
  }

  connectedCallback() {
    super.connectedCallback();
    // Anywhere in the page: a file that missed the field would take the page's place.
    addEventListener('dragover', this._ondrag);
    addEventListener('dragleave', this._onleave);
    addEventListener('drop', this._ondrop);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    removeEventListener('dragover', this._ondrag);
    removeEventListener('dragleave', this._onleave);
    removeEventListener('drop', this._ondrop);
  }

  willUpdate() {
    const id = openId.get();
    if (session.get()?.run == null) this._mode = 'queue';
    if (id === this._for) return;
    this._for = id;
    this._text = loadDraft(id);
    this._images = [];
    this._problem = '';
  }

  updated() {
    const area = this.querySelector('textarea');
    // Browsers without `field-sizing` get their height from the content by hand.
    if (area === null || CSS.supports('field-sizing', 'content')) return;
    area.style.height = 'auto';
    area.style.height = `${area.scrollHeight}px`;
  }

  focusInput() {
    this.querySelector('textarea')?.focus({ preventScroll: true });
  }

  /** @param {string} text */
  setText(text) {
    this._text = text;
    saveDraft(openId.get(), text);
    this.focusInput();
  }

  render() {
    // Read here, so that the element is drawn again, and the draft changed, with the session.
    const id = openId.get();
    const running = session.get()?.run != null;
    const blocked = id !== null && (sessionError.get() !== null || session.get() === null);
    const over = bytesOver(this._text);
    const problem = over > 0 ? t('composer.too_long', { over: formatBytes(over), max: formatBytes(MAX_BYTES) }) : this._problem || this.#visionProblem();
    const action = running ? ACTIONS[this._mode] : 'composer.send';
    const key = id ?? NEW;
    const files = uploads.get().get(key) ?? [];
    const sendable = !blocked && !creating.get() && over === 0 && this._text.trim() !== '' && (id === null || isSettled(files));
    return html`<form class="composer ${this._dragging ? 'dragging' : ''}" @submit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      void this.#send(this._mode);
    }} data-drop=${t('composer.drop')}>
      ${this._images.length === 0 ? nothing : html`<ul class="previews">${this._images.map((image, i) => html`<li data-testid="preview">
        <img src=${imageSource(image)} alt=${t('conversation.image', { n: i + 1 })}>
        <button type="button" class="icon-button" aria-label=${t('composer.remove_image', { n: i + 1 })}
          @click=${() => { this._images = this._images.filter((_, at) => at !== i); }}>${icons.close}</button></li>`)}</ul>`}
      ${uploadChips(key, files)}
      <textarea id="composer" data-testid="composer" rows="1" dir="auto" aria-label=${t('composer.label')} aria-describedby="composer-hint"
        placeholder=${t(!running ? 'composer.placeholder' : `composer.placeholder.${this._mode}`)} enterkeyhint="send"
        .value=${live(this._text)} @input=${(/** @type {InputEvent} */ event) => this.#input(event)}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event)}
        @paste=${(/** @type {ClipboardEvent} */ event) => this.#paste(event)}></textarea>
      <div class="composer-row">
        <input type="file" id="composer-file" class="off-screen" multiple tabindex="-1" aria-hidden="true"
          data-testid="file-input" @change=${(/** @type {Event} */ event) => this.#chosen(event)}>
        <button type="button" class="icon-button" title=${t('composer.attach')} aria-label=${t('composer.attach')} data-testid="attach"
          @click=${() => /** @type {HTMLInputElement | null} */ (this.querySelector('#composer-file'))?.click()}>${icons.clip}</button>
        <span id="composer-hint" class="composer-hint ${problem === '' ? '' : 'problem'}" role=${problem === '' ? nothing : 'status'}
          >${problem || (running ? t('composer.hint_running', { key: COMMAND }) : t('composer.hint'))}</span>
        ${running ? this.#modes() : nothing}
        ${running ? html`<button type="button" class="round stop" data-testid="stop" ?disabled=${stopping.get()} @click=${stop}
          title=${`${t(stopping.get() ? 'composer.stopping' : 'composer.stop')} (Esc)`} aria-label=${t(stopping.get() ? 'composer.stopping' : 'composer.stop')}>${icons.stop}</button>` : nothing}
        ${running && this._text.trim() === '' ? nothing : html`<button type="submit" class="round send" data-testid="send" ?disabled=${!sendable}
          title=${t(action)} aria-label=${t(action)}>${icons.send}</button>`}
      </div>
    </form>`;
  }

  #modes() {
    return html`<fieldset class="segments modes"><legend class="off-screen">${t('composer.mode')}</legend>${
      /** @type {const} */ (['queue', 'steer']).map((mode) => html`<label title=${t(ACTIONS[mode])}><input type="radio" name="send-mode" class="cover"
        data-testid=${`mode-${mode}`} value=${mode} .checked=${live(this._mode === mode)} aria-label=${t(ACTIONS[mode])}
        @change=${() => { this._mode = mode; }}><span>${t(`composer.mode.${mode}`)}</span></label>`)}</fieldset>`;
  }

  #visionProblem() {
    if (this._images.length === 0) return '';
    const profile = profiles.get().find((item) => item.id === session.get()?.profile_id) ?? null;
    const model = expectedModel(status.get(), profile);
    return model?.vision === false ? t('composer.no_vision', { model: model.name }) : '';
  }

  /** @param {InputEvent} event */
  #input(event) {
    this._text = /** @type {HTMLTextAreaElement} */ (event.target).value;
    this._problem = '';
    saveDraft(openId.get(), this._text);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    // Enter that ends an input method's composition belongs to the input method.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    void this.#send(event.ctrlKey || event.metaKey ? 'steer' : this._mode);
  }

  /** @param {SendMode} mode */
  async #send(mode) {
    const id = openId.get();
    const text = this._text;
    const images = this._images;
    const files = uploads.get().get(id ?? NEW) ?? [];
    if (text.trim() === '' || bytesOver(text) > 0) return;
    if (id === null) {
      if (!(await startSession(text, images))) return;
    } else {
      if (session.get() === null || !isSettled(files)) return;
      if (files.some(({ state }) => state === 'failed')) {
        this._problem = t('composer.upload_failed');
        return;
      }
      postMessage(id, text, images, session.get()?.run == null ? 'queue' : mode, refs(files));
      clearUploads(id);
      saveDraft(id, '');
    }
    this._text = '';
    this._images = [];
    this._problem = '';
  }

  /** @param {DragEvent} event */
  #drag(event) {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    this._dragging = true;
  }

  /** @param {DragEvent} event */
  #drop(event) {
    const files = [...(event.dataTransfer?.files ?? [])];
    this._dragging = false;
    if (files.length === 0) return;
    event.preventDefault();
    if (this.closest('[inert]') !== null) return;
    void this.#add(files);
  }

  /** @param {ClipboardEvent} event */
  #paste(event) {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    void this.#add(files);
  }

  /** @param {Event} event */
  #chosen(event) {
    const input = /** @type {HTMLInputElement} */ (event.target);
    void this.#add([...(input.files ?? [])]);
    input.value = '';
  }

  /** @param {File[]} files */
  async #add(files) {
    const id = this._for;
    this._problem = '';
    /** @type {File[]} */
    const others = [];
    for (const file of files) {
      // Pictures go with the message itself; what cannot be made one of them goes as a file.
      const image = !IMAGE_TYPES.includes(file.type) || this._images.length >= MAX_IMAGES ? null : await readImage(file).catch(() => null);
      // The reader may have gone to another conversation meanwhile.
      if (this._for !== id || id === undefined) return;
      if (image === null) others.push(file);
      else this._images = [...this._images, image];
    }
    const room = MAX_FILES - (uploads.get().get(id ?? NEW) ?? []).length;
    if (others.length > room) this._problem = t('composer.file_count', { n: MAX_FILES });
    if (id !== undefined) addFiles(id, others.slice(0, Math.max(0, room)));
  }
}

customElements.define('navi-composer', NaviComposer);
