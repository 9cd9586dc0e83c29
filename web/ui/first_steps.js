// The first steps, on the page of a new conversation: who one is, who answers, and a first task. Each
// can be passed over, and one may as well just write.

import { fetchModel } from '../app/actions.js';
import { choice } from '../app/choice.js';
import { endFirstSteps } from '../app/first_steps.js';
import { setLanguage } from '../app/prefs.js';
import { chosenModel, fetchAsked, isAdmin, status } from '../app/signals.js';
import { language, languageNames, t } from '../i18n/index.js';
import { html, live, nothing } from '../lit.js';
import { api } from '../net/api.js';
import { fetching, readyBackends, worthFetching } from '../state/service.js';
import { Asking } from './asking.js';
import { withCode } from './cards.js';
import { NaviElement } from './element.js';
import { formatBytes } from './format.js';
import { icons } from './icons.js';
import './model_server.js';
import { modelChoices } from './models.js';
import { writeBelow } from './welcome.js';

/** @typedef {import('../i18n/index.js').Language} Language */

const STEPS = /** @type {const} */ (['you', 'model', 'task']);
/** Where a person's name is remembered. */
const NAME = { category: 'identity', key: 'name' };
const NAME_CHARS = 100;

export class NaviFirstSteps extends NaviElement {
  static properties = { _at: { state: true }, _name: { state: true } };

  constructor() {
    super();
    /** Which of the steps is shown. */
    this._at = 0;
    this._name = '';
    /** The name that was remembered here already. */
    this._known = '';
    this._asking = new Asking(this);
  }

  render() {
    const step = STEPS[this._at];
    const last = this._at === STEPS.length - 1;
    return html`<form class="first-steps" data-testid="first-steps" data-step=${step}
      aria-labelledby="first-steps-title"
      @submit=${(/** @type {Event} */ event) => { event.preventDefault(); this.#next(); }}>
      <div class="first-head"><h3 id="first-steps-title"
        tabindex="-1"><span class="quiet">${
          t('todo.progress', { done: this._at + 1, total: STEPS.length })}</span> ${t(`first.${step}`)}</h3>
        <button type="button" class="button small plain" data-testid="first-skip"
          @click=${endFirstSteps}>${t('first.skip')}</button></div>
      ${step === 'you' ? this.#you() : step === 'model' ? this.#model() : task()}
      ${this._asking.card(() => this.#next())}
      <div class="first-foot">${
        this._at === 0
          ? nothing
          : html`<button type="button" class="button small plain" data-testid="first-back"
            @click=${() => void this.#go(this._at - 1)}>${t('first.back')}</button>`}
        <button class="button small" data-testid="first-next"
          ?disabled=${this._asking.busy}>${t(last ? 'first.done' : 'first.next')}</button></div>
    </form>`;
  }

  #you() {
    return html`<fieldset class="segments modes"><legend class="off-screen">${t('settings.language')}</legend>
        ${Object.entries(languageNames)
          .map(([code, name]) => html`<label lang=${code}><input type="radio" name="first-language"
            class="cover" value=${code} data-testid=${`first-language-${code}`}
          .checked=${live(language.get() === code)}
          @change=${() => void setLanguage(/** @type {Language} */ (code))}><span>${name}</span></label>`)}</fieldset>
      <label class="first-field"><span>${t('first.name')}</span><input type="text" autocomplete="name"
        maxlength=${NAME_CHARS} data-testid="first-name" aria-describedby="first-name-hint"
        .value=${live(this._name)}
        @input=${(/** @type {InputEvent} */ event) => {
          this._name = /** @type {HTMLInputElement} */ (event.target).value;
        }}></label>
      <p class="quiet" id="first-name-hint">${t('first.name_hint')}</p>`;
  }

  #model() {
    const system = status.get();
    return html`${readyBackends(system).length === 0
      ? html`<p data-testid="first-no-model">${withCode(t('first.no_model'))}</p>`
      : models()}
      ${fetchOffer(system)}
      ${!isAdmin.get() ? nothing : html`<details data-testid="first-address"><summary>${t('first.address')}</summary>
        <navi-model-server .place=${'first'}
          @navi-model-used=${(/** @type {CustomEvent<string>} */ event) =>
            chosenModel.set(event.detail)}></navi-model-server></details>`}`;
  }

  #next() {
    void this._asking.ask(async () => {
      const name = this._name.trim();
      if (this._at === 0 && name !== '' && name !== this._known) {
        await api.saveFact(NAME, name);
        this._known = name;
      }
      if (this._at === STEPS.length - 1) endFirstSteps();
      else await this.#go(this._at + 1);
    });
  }

  /** The keyboard goes along. @param {number} at */
  async #go(at) {
    this._at = at;
    await this.updateComplete;
    this.querySelector('h3')?.focus();
  }
}

/** Who can answer, as the header's menu has them. */
function models() {
  const now = choice();
  return html`<fieldset class="first-models"
    data-testid="first-models"><legend class="off-screen">${t('header.model')}</legend>
    ${modelChoices(now)
      .map(({ name, label, notes, problem }) => html`<label class="mode-choice"><input type="radio"
        name="first-model" value=${name ?? ''} data-testid="first-model"
      .checked=${live(name === now.chosen)} @change=${() => chosenModel.set(name)}>
      <span><b>${label}</b><span
        class="mode-text">${notes}${problem === null
          ? nothing
          : html`<span class="model-problem">${
            icons.warning}<span>${problem}</span></span>`}</span></span></label>`)}</fieldset>`;
}

/**
 * A model that Navi fetches herself; how far that is, the banner says.
 * @param {import('../state/wire.js').SystemStatus | null} system
 */
function fetchOffer(system) {
  const offer = fetching(system) === null ? worthFetching(system) : null;
  if (offer === null || !isAdmin.get()) return nothing;
  return html`<p><button type="button" class="button small soft" data-testid="first-fetch"
    ?disabled=${fetchAsked.get() === offer.name}
    @click=${() => void fetchModel(offer.name)}>${icons.download}${
      t('banner.fetch', { title: offer.title, size: formatBytes(offer.size) })}</button>
    <span class="quiet">${t('banner.fetch_hint', { memory: formatBytes(offer.memory) })}</span></p>`;
}

function task() {
  const text = t('first.task_text');
  return html`<p class="quiet">${t('first.task_hint')}</p>
    <button type="button" class="example" data-testid="first-task"
      @click=${() => { endFirstSteps(); writeBelow(text); }}>${text}</button>`;
}

customElements.define('navi-first-steps', NaviFirstSteps);
