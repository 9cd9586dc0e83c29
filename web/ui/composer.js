import { startSession } from '../app/actions.js';
import { addFiles, attachmentsOf, MAX_FILES, remove } from '../app/attachments.js';
import { choice } from '../app/choice.js';
import { agree, canDictate, dictate, hearsHere, isAgreed, PROBLEMS } from '../app/dictation.js';
import { beginEdit, draftOf, setDraft } from '../app/drafts.js';
import { post, stop } from '../app/session.js';
import {
  creating, focusWanted, isGuest, isLoaded, isRunning, NEW, openId, session, sessionError, stopping,
} from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, live, nothing, repeat } from '../lit.js';
import { NaviElement } from './element.js';
import { formatBytes } from './format.js';
import { icons } from './icons.js';
import { imageSource } from './image.js';
import { COMMAND, isComposing, isPhone, isSending } from './keys.js';
import { uploadChips } from './upload_chips.js';

/** @import { Attachment } from '../state/attachments.js' */
/** @import { SendMode } from '../state/wire.js' */

/** The service refuses more; said here first, so that nothing is lost on the way. */
const MAX_BYTES = 256 * 1024;

/** What sending does while a run goes. */
const ACTIONS = /** @type {const} */ ({ queue: 'composer.queue', steer: 'composer.steer' });

/** @param {string} text */
function bytesOver(text) {
  // Most texts are far too short for counting.
  return text.length * 3 <= MAX_BYTES ? 0 : Math.max(0, new TextEncoder().encode(text).length - MAX_BYTES);
}

/** Where one writes. Keeps a draft per session. */
export class NaviComposer extends NaviElement {
  static properties = {
    _problem: { state: true }, _dragging: { state: true }, _mode: { state: true }, _heard: { state: true },
    _warns: { state: true },
  };

  constructor() {
    super();
    this._problem = '';
    this._dragging = false;
    /** What becomes of a message while a run goes. @type {SendMode} */
    this._mode = 'queue';
    /** What is being said, where it is written down as one speaks. @type {string | null} */
    this._heard = null;
    /** Whether it is told where the sound goes. */
    this._warns = false;
    /** @type {ReturnType<typeof dictate> | null} */
    this._hearing = null;
    /** Whether the page itself led the keyboard here, and nobody used the field since. */
    this.untouched = false;
    /** The session that the problem is about. @type {string | null | undefined} */
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
    this.#hush();
    removeEventListener('dragover', this._ondrag);
    removeEventListener('dragleave', this._onleave);
    removeEventListener('drop', this._ondrop);
  }

  willUpdate() {
    const id = openId.get();
    if (!isRunning.get()) this._mode = 'queue';
    if (id === this._for) return;
    this._for = id;
    this._problem = '';
    this._warns = false;
    this.#hush();
  }

  updated() {
    if (focusWanted.get() === 'composer') {
      focusWanted.set(null);
      this.focusInput();
    }
    const area = this.querySelector('textarea');
    // Browsers without `field-sizing` get their height from the content by hand.
    if (area === null || CSS.supports('field-sizing', 'content')) return;
    area.style.height = 'auto';
    area.style.height = `${area.scrollHeight}px`;
  }

  /** The draft that is written here. */
  get #key() {
    return openId.get() ?? NEW;
  }

  focusInput() {
    this.querySelector('textarea')?.focus({ preventScroll: true });
  }

  /** The page has the keyboard here, without anybody's asking. */
  lead() {
    const area = this.querySelector('textarea');
    if (area === null || area === document.activeElement) return;
    area.focus({ preventScroll: true });
    this.untouched = true;
  }

  #touch() {
    this.untouched = false;
  }

  /** Not where another window came to the front. */
  #left() {
    if (document.hasFocus()) this.#touch();
  }

  render() {
    // Read here, so that the element is drawn again, and the draft changed, with the session.
    const id = openId.get();
    if (isGuest.get()) return guestNote();
    const running = isRunning.get();
    const blocked = id !== null && (sessionError.get() !== null || !isLoaded.get());
    const text = draftOf(this.#key);
    const list = attachmentsOf(this.#key);
    const over = bytesOver(text);
    const problem = over > 0
      ? t('composer.too_long', { over: formatBytes(over), max: formatBytes(MAX_BYTES) })
      : this._problem || this.#visionProblem(list);
    const action = running ? ACTIONS[this._mode] : 'composer.send';
    const sendable = !blocked && !creating.get() && over === 0 && text.trim() !== '';
    return html`<form class="composer ${this._dragging ? 'dragging' : ''}" @submit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      this.#send(this._mode);
    }} data-drop=${t('composer.drop')}>
      ${previews(list)}
      ${uploadChips(list)}
      <textarea id="composer" data-testid="composer" rows="1" dir="auto" aria-label=${t('composer.label')}
        aria-describedby="composer-hint"
        placeholder=${t(!running ? 'composer.placeholder' : `composer.placeholder.${this._mode}`)}
        enterkeyhint=${isPhone() ? 'enter' : 'send'}
        .value=${live(text)} @input=${(/** @type {InputEvent} */ event) => this.#input(event)}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#pressed(event)} @pointerdown=${this.#touch}
        @blur=${this.#left}
        @paste=${(/** @type {ClipboardEvent} */ event) => this.#paste(event)}></textarea>
      ${this._warns ? this.#warning() : nothing}
      <div class="composer-row">
        <input type="file" id="composer-file" class="off-screen" multiple tabindex="-1" aria-hidden="true"
          data-testid="file-input" @change=${(/** @type {Event} */ event) => this.#chosen(event)}>
        <button type="button" class="icon-button" title=${t('composer.attach')}
          aria-label=${t('composer.attach')} data-testid="attach"
          @click=${() => /** @type {HTMLInputElement | null} */ (this.querySelector('#composer-file'))
            ?.click()}>${icons.clip}</button>
        ${canDictate() ? this.#microphone() : nothing}
        <span id="composer-hint" class="composer-hint ${problem !== ''
          ? 'problem'
          : this._heard !== null ? 'heard' : ''}" data-testid="composer-hint"
            role=${problem === '' ? nothing : 'status'}
          >${problem || this._heard || (this._heard !== null
            ? t('dictate.listening')
            // The keys that they name are not on a phone, or do something else there.
            : isPhone() ? '' : running ? t('composer.hint_running', { key: COMMAND }) : t('composer.hint'))}</span>
        ${running ? this.#modes() : nothing}
        ${running
          ? html`<button type="button" class="round stop" data-testid="stop" ?disabled=${stopping.get()} @click=${stop}
          title=${`${t(stopping.get() ? 'composer.stopping' : 'composer.stop')} (Esc)`}
          aria-label=${t(stopping.get() ? 'composer.stopping' : 'composer.stop')}>${icons.stop}</button>` : nothing}
        ${running && text.trim() === ''
          ? nothing
          : html`<button type="submit" class="round send" data-testid="send" ?disabled=${!sendable}
          title=${t(action)} aria-label=${t(action)}>${icons.send}</button>`}
      </div>
    </form>`;
  }

  #microphone() {
    const label = t(this._heard === null ? 'dictate.start' : 'dictate.stop');
    return html`<button type="button" class="icon-button microphone" data-testid="dictate"
      aria-pressed=${String(this._heard !== null)} title=${label} aria-label=${label}
      @click=${() => void this.#dictate()}>${icons.microphone}</button>`;
  }

  /** Where the sound goes, before it does. */
  #warning() {
    return html`<div class="composer-note" role="group" aria-label=${t('dictate.start')}
      data-testid="dictate-warning"><p>${t('dictate.leaves')}</p>
      <button type="button" class="button small" data-testid="dictate-agree"
        @click=${() => { agree(); void this.#dictate(); }}>${t('dictate.agree')}</button>
      <button type="button" class="button small plain" data-testid="dictate-cancel"
        @click=${() => { this._warns = false; }}>${t('queue.cancel')}</button></div>`;
  }

  async #dictate() {
    this._problem = '';
    if (this._hearing !== null) return this._hearing.stop();
    const here = await hearsHere();
    this._warns = !here && !isAgreed.get();
    if (this._warns || this._hearing !== null) return;
    this._heard = '';
    this._hearing = dictate(here, {
      onheard: (words) => { this._heard = words; },
      onwords: (words) => {
        const text = draftOf(this.#key);
        setDraft(this.#key, text === '' || /\s$/.test(text) ? text + words : `${text} ${words}`);
      },
      onend: (problem) => {
        this._hearing = this._heard = null;
        if (problem !== null) this._problem = t(`dictate.problem.${PROBLEMS[problem] ?? 'broken'}`);
      },
    });
  }

  /** What was said for one message is not written into the next. */
  #hush() {
    this._hearing?.drop();
    this._hearing = this._heard = null;
  }

  #modes() {
    const modes = /** @type {const} */ (['queue', 'steer']);
    return html`<fieldset class="segments modes"><legend class="off-screen">${t('composer.mode')}</legend>${
      modes.map((mode) => html`<label title=${t(ACTIONS[mode])}><input type="radio" name="send-mode" class="cover"
        data-testid=${`mode-${mode}`} value=${mode} .checked=${live(this._mode === mode)} aria-label=${t(ACTIONS[mode])}
        @change=${() => { this._mode = mode; }}><span>${t(`composer.mode.${mode}`)}</span></label>`)}</fieldset>`;
  }

  /** @param {Attachment[]} list */
  #visionProblem(list) {
    if (!list.some(({ picture }) => picture)) return '';
    const { model } = choice();
    return model?.vision === false ? t('composer.no_vision', { model: model.name }) : '';
  }

  /** @param {InputEvent} event */
  #input(event) {
    this.#touch();
    setDraft(this.#key, /** @type {HTMLTextAreaElement} */ (event.target).value);
    this._problem = '';
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    this.#touch();
    if (isComposing(event) || event.shiftKey) return;
    if (event.key === 'ArrowUp' && draftOf(this.#key) === '') this.#editLast(event);
    if (!isSending(event)) return;
    event.preventDefault();
    this.#send(event.ctrlKey || event.metaKey ? 'steer' : this._mode);
  }

  /** One's last message can be said anew. @param {KeyboardEvent} event */
  #editLast(event) {
    const last = session.get()?.entries.findLast((entry) => entry.kind === 'user');
    if (last?.kind !== 'user' || isRunning.get()) return;
    event.preventDefault();
    beginEdit(last.id, last.content);
  }

  /** @param {SendMode} mode */
  #send(mode) {
    const id = openId.get();
    const text = draftOf(this.#key);
    if (text.trim() === '' || bytesOver(text) > 0) return;
    if (attachmentsOf(this.#key).some(({ state }) => state === 'failed')) {
      this._problem = t('composer.upload_failed');
      return;
    }
    this.#hush();
    if (id === null) void startSession();
    else if (isLoaded.get()) post(id, isRunning.get() ? mode : 'queue');
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
    if (this.closest('[inert]') !== null || isGuest.get()) return;
    this.#add(files);
  }

  /** @param {ClipboardEvent} event */
  #paste(event) {
    const files = [...(event.clipboardData?.files ?? [])];
    // A spreadsheet gives its cells as text, and a picture of them; a file manager, files and their names.
    const text = event.clipboardData?.getData('text/plain') ?? '';
    if (files.length === 0 || (text !== '' && !files.every(({ name }) => text.includes(name)))) return;
    event.preventDefault();
    this.#add(files);
  }

  /** @param {Event} event */
  #chosen(event) {
    const input = /** @type {HTMLInputElement} */ (event.target);
    this.#add([...(input.files ?? [])]);
    input.value = '';
  }

  /** @param {File[]} files */
  #add(files) {
    this._problem = addFiles(this.#key, files) ? '' : t('composer.file_count', { n: MAX_FILES });
  }
}

/** A guest looks, and changes nothing. */
function guestNote() {
  return html`<div class="composer guest"
    data-testid="guest"><textarea id="composer" data-testid="composer" rows="1" disabled
    aria-label=${t('composer.label')} aria-describedby="composer-hint"></textarea>
    <div class="composer-row"><span id="composer-hint" class="composer-hint" data-testid="composer-hint"
      role="status">${t('composer.guest')}</span></div></div>`;
}

/** Pictures, as soon as they are read. @param {Attachment[]} list */
function previews(list) {
  const pictures = list.filter(({ image }) => image !== null);
  if (pictures.length === 0) return nothing;
  return html`<ul
    class="previews">${repeat(pictures, ({ id }) => id, ({ id, image }, i) => html`<li data-testid="preview">
    <img src=${imageSource(/** @type {string} */ (image))} alt=${t('conversation.image', { n: i + 1 })}>
    <button type="button" class="icon-button" aria-label=${t('composer.remove_image', { n: i + 1 })}
      @click=${() => remove(id)}>${icons.close}</button></li>`)}</ul>`;
}

customElements.define('navi-composer', NaviComposer);
