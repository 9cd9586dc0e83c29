// What a person does about the steps of a plan: what stands below one, and a step of their own.

/** @import { LiveStep, StepAction } from '../state/plan.js' */
/** @import { PlanEdit } from '../state/wire.js' */

import { showToast } from '../app/actions.js';
import { editPlan } from '../app/session.js';
import { connection, isGuest, todo } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { actionsOf, editOf, markOf, standing } from '../state/plan.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';
import { isComposing } from './keys.js';

const MAX_CHARS = 500;
/** What takes an action back. @type {Partial<Record<StepAction, StepAction>>} */
const BACK = { skip: 'restore', restore: 'skip', hold: 'release', release: 'hold' };
let elements = 0;

/**
 * A step's mark and its words, with what came of it and what its user did about it.
 * @param {Omit<LiveStep, 'executor'>} step
 */
export function stepText({ status, text, note, held, edited }) {
  const state = t(`todo.state.${status}`);
  const mark = markOf({ status, held, edited });
  return html`<span class="todo-mark" role="img" aria-label=${state} title=${state}>${
      status === 'done'
        ? icons.check
        : status === 'failed' ? icons.cross : held === true ? icons.pause : nothing}</span>
    <span class="todo-text"><span class="todo-words"
      dir="auto">${text}</span>${note === undefined
        ? nothing
        : html`<span class="todo-note" dir="auto">${note}</span>`}${
      mark === null
        ? nothing
        : html`<span class="todo-note by-you" data-testid="step-by-you">${t(`plan.by_you.${mark}`)}</span>`}</span>`;
}

/** A field of one line: Enter sends it, Escape puts it away. */
class StepForm extends NaviElement {
  static properties = { _words: { state: true }, _sending: { state: true } };

  constructor() {
    super();
    /** What is being written, if anything. @type {string | null} */
    this._words = null;
    this._sending = false;
    this.base = `step-${elements += 1}`;
  }

  /** @param {string} label @param {string} name */
  form(label, name) {
    const blocked = this._sending || connection.get() !== 'open';
    return html`<form class="step-form" @submit=${(/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      if (!blocked) void this.#send();
    }}>
      <input data-testid=${`${name}-input`} dir="auto" maxlength=${MAX_CHARS} autocomplete="off"
        aria-label=${label} placeholder=${label} .value=${this._words ?? ''}
        @input=${(/** @type {InputEvent} */ event) => {
          this._words = /** @type {HTMLInputElement} */ (event.target).value;
        }}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event)}>
      <button type="submit" class="button small" data-testid=${`${name}-save`}
        ?disabled=${blocked}>${t('queue.save')}</button>
      <button type="button" class="button small plain" @click=${() => void this.close()}>${t('queue.cancel')}</button>
    </form>`;
  }

  /** @param {string} words */
  async write(words) {
    this._words = words;
    await this.updateComplete;
    this.querySelector('input')?.select();
  }

  /** The keyboard goes back to where it came from. */
  async close() {
    this._words = null;
    await this.updateComplete;
    this.opener()?.focus();
  }

  /** @returns {HTMLElement | null} */
  opener() {
    return null;
  }

  /** Whether it still is what its writer began to write about. */
  isCurrent() {
    return true;
  }

  /** What the words are for. @param {string} _words @returns {PlanEdit | null} null where they change nothing */
  wish(_words) {
    return null;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key !== 'Escape' || isComposing(event)) return;
    event.preventDefault();
    event.stopPropagation();
    void this.close();
  }

  async #send() {
    if (!this.isCurrent()) {
      showToast(t('plan.changed'), null, undefined, true);
      return;
    }
    const words = (this._words ?? '').trim();
    const edit = words === '' ? null : this.wish(words);
    this._sending = true;
    // Where it is refused the words stay with their writer.
    const taken = edit === null || await editPlan(edit);
    this._sending = false;
    if (taken) await this.close();
  }
}

/** The button of a step, and what it opens: that can be undone where it was done. */
export class NaviStepMenu extends StepForm {
  static properties = { ...StepForm.properties, step: { attribute: false }, _open: { state: true } };

  constructor() {
    super();
    this.step = /** @type {LiveStep} */ (/** @type {unknown} */ (null));
    this._open = false;
    /** What was asked for and is not seen yet. @type {StepAction | null} */
    this._asked = null;
    /** How the step stood when it was last looked at. */
    this._stands = '';
    /** The words that are being written anew. */
    this._written = '';
  }

  /**
   * A step that others changed is not what a press that comes now was meant for: its menu closes.
   * Words that are being written stay.
   */
  willUpdate() {
    const stands = standing(this.step, todo.get());
    this._moved = stands !== this._stands;
    this._stands = stands;
    if (this._moved && this._asked === null && this._words === null) this._open = false;
  }

  render() {
    const { step } = this;
    const actions = actionsOf(step);
    if (isGuest.get() || (actions.length === 0 && this._words === null)) return nothing;
    const label = `${t('plan.edit')}: ${step.text}`;
    return html`<button type="button" class="icon-button step-more" data-testid="step-more"
      aria-expanded=${String(this._open)} aria-controls=${this.base} title=${t('plan.edit')} aria-label=${label}
        @click=${() => this.#toggle()}>${icons.more}</button>
      <div id=${this.base} class="step-actions" role="group" aria-label=${label} ?hidden=${!this._open}
        @keydown=${(/** @type {KeyboardEvent} */ event) => this.#leave(event)}>${!this._open ? nothing
        : this._words !== null ? this.form(t('plan.words'), 'step')
          : repeat(actions, (action) => action, (action) => this.#action(action))}</div>`;
  }

  #toggle() {
    this._open = !this._open;
    this._asked = null;
  }

  /** @param {StepAction} action */
  #action(action) {
    const { step } = this;
    const edit = action === 'rewrite' ? null : editOf(step.number, action, todo.get());
    const label = t(`plan.${action === 'restore' && step.status === 'failed' ? 'again' : action}`);
    return html`<button type="button" class="button small plain" data-testid=${`step-${action}`}
      aria-label=${`${label}: ${step.text}`} ?disabled=${connection.get() !== 'open' || edit === undefined}
      @click=${() => this.#press(action, edit)}>${label}</button>`;
  }

  /** @param {StepAction} action @param {PlanEdit | null | undefined} edit */
  #press(action, edit) {
    // One thing after the other: what the next one is about is seen first.
    if (this._asked !== null || edit === undefined) return;
    if (edit === null) {
      this._written = this.step.text;
      void this.write(this.step.text);
    } else {
      void this.#ask(action, edit);
    }
  }

  /** @param {StepAction} action @param {PlanEdit} edit */
  async #ask(action, edit) {
    this._asked = action;
    if (!await editPlan(edit)) this._asked = null;
  }

  /**
   * A step that moved lets go of the keyboard: it goes on there, or where that can be taken back; with
   * one that can be moved no further it goes back to where it came from.
   */
  updated() {
    if (!this._moved) return;
    const asked = this._asked;
    this._asked = null;
    const at = document.activeElement;
    const lost = at === null || at === document.body || at.matches(':disabled');
    if (lost && asked !== null) (this.#button(asked) ?? this.#button(BACK[asked] ?? asked) ?? this.opener())?.focus();
  }

  /** @param {StepAction} action @returns {HTMLElement | null} */
  #button(action) {
    return this.querySelector(`[data-testid="step-${action}"]:enabled`);
  }

  /** @returns {HTMLElement | null} */
  opener() {
    return this.querySelector('.step-more');
  }

  /** What was written is away: the step is looked at again before more is done about it. */
  async close() {
    this._open = false;
    await super.close();
  }

  /** Another text than the one that was there: once that is told, who writes goes on from it. */
  isCurrent() {
    const was = this._written;
    this._written = this.step.text;
    return was === this._written;
  }

  /** @param {string} words @returns {PlanEdit | null} */
  wish(words) {
    return words === this.step.text ? null : { edit: 'rewrite', id: this.step.number, text: words };
  }

  /** @param {KeyboardEvent} event */
  #leave(event) {
    if (event.key !== 'Escape' || event.defaultPrevented || isComposing(event)) return;
    event.preventDefault();
    this._open = false;
    this.opener()?.focus();
  }
}

/** Below a list of steps: another one. */
export class NaviStepAdd extends StepForm {
  render() {
    if (isGuest.get()) return nothing;
    return this._words !== null ? this.form(t('plan.words'), 'step-add')
      : html`<button type="button" class="button small plain step-add" data-testid="step-add"
        ?disabled=${connection.get() !== 'open'}
        @click=${() => void this.write('')}>${icons.plus}${t('plan.add')}</button>`;
  }

  /** @returns {HTMLElement | null} */
  opener() {
    return this.querySelector('.step-add');
  }

  /** @param {string} words @returns {PlanEdit} */
  wish(words) {
    return { edit: 'add', text: words };
  }
}

customElements.define('navi-step-menu', NaviStepMenu);
customElements.define('navi-step-add', NaviStepAdd);
