/** @import { BackendStatus, ModelInfo, ModelPull, ProfileModel, SystemStatus } from '../state/wire.js' */

import { isAdmin, profiles, status } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { phraseText, troubleOf } from '../i18n/phrases.js';
import { html, nothing, repeat } from '../lit.js';
import { api } from '../net/api.js';
import { answersFor, misfits } from '../state/setup.js';
import { Asking } from './asking.js';
import { withCode } from './cards.js';
import { NaviElement } from './element.js';
import { formatBytes, formatTime, formatTokens, sentence } from './format.js';
import { icons } from './icons.js';
import './model_server.js';
import { visible } from './visible.js';

/** The model servers, what each has, and which model answers for whom. */
export class NaviSetupModels extends NaviElement {
  static properties = { _name: { state: true } };

  constructor() {
    super();
    this._name = '';
    /** What was asked last, to ask it again. */
    this._again = () => {};
    this._asking = new Asking(this);
  }

  render() {
    const system = status.get();
    if (system === null) return html`<p class="quiet">${t('connection.connecting')}</p>`;
    return html`${repeat(system.backends, ({ kind }) => kind, (backend) => this.#backend(system, backend))}
      ${isAdmin.get()
        ? html`<details class="sent-tools"
          data-testid="server-open"><summary>${t('first.address')}</summary><navi-model-server
            .place=${'setup'}></navi-model-server></details>`
        : nothing}
      <h3>${t('setup.models.profiles')}</h3>
      <ul class="rows">${
        repeat(profiles.get(), ({ profile_id }) => profile_id, (profile) => profileRow(system, profile))}</ul>`;
  }

  /** @param {SystemStatus} system @param {BackendStatus} backend */
  #backend(system, backend) {
    const { kind, address, state, version, down_since, models, default_model } = backend;
    return html`<section data-testid="backend" data-kind=${kind} data-state=${state}>
      <h3>${t(`setup.backend.${kind}`)}</h3>
      <ul class="rows">
        <li class="row"><span class="row-icon ${state === 'ready'
          ? 'allow'
          : state === 'down' ? 'deny' : ''}">${
            state === 'ready' ? icons.check : state === 'down' ? icons.cross : icons.history}</span>
          <div class="row-text"><p class="row-title">${t(`setup.models.state.${state}`)}
              ${down_since === undefined
                ? nothing
                : html`<span class="quiet">${t('setup.models.since', { at: formatTime(down_since) })}</span>`}
              ${system.active === kind ? html`<span class="tag">${t('setup.models.active')}</span>` : nothing}</p>
            <p class="row-note"><span class="hash">${address}</span>${
              version === undefined ? nothing : html` · ${version}`}</p>
            ${backend.state === 'down' ? troubleNote(troubleOf(backend)) : nothing}
            ${backend.state === 'loading'
              ? html`<p class="row-note">${sentence(backend.detail)}</p>`
              : nothing}</div></li>
        ${repeat(models, ({ name }) => name,
          (model) => modelRow(model, model.name === default_model, answersFor(profiles.get(), backend, model)))}
      </ul>
      ${kind === 'ollama' && isAdmin.get()
        ? this.#pull(system.pull ?? null, version !== undefined)
        : nothing}</section>`;
  }

  /** @param {ModelPull | null} pull @param {boolean} can whether there is a server to ask */
  #pull(pull, can) {
    if (pull !== null && pull.problem === undefined) return this.#going(pull);
    return html`${pull === null ? nothing : this.#failed(pull)}
      ${this._asking.card(this._again)}
      <form class="panel-tools"
        @submit=${(/** @type {Event} */ event) => { event.preventDefault(); this.#begin(this._name); }}>
        <label class="search">${icons.download}<input type="text" data-testid="pull-name" autocapitalize="off"
          autocomplete="off" spellcheck="false" maxlength="300"
          placeholder=${t('setup.pull.placeholder')} aria-label=${t('setup.pull.label')}
          .value=${this._name}
          @input=${(/** @type {InputEvent} */ event) => {
            this._name = /** @type {HTMLInputElement} */ (event.target).value;
          }}></label>
        <button class="button small" data-testid="pull"
          ?disabled=${!can || this._asking.busy || this._name.trim() === ''}>${t('setup.pull.begin')}</button>
      </form>`;
  }

  /** @param {ModelPull} pull */
  #going({ name, received, total, step }) {
    const params = { model: name, received: formatBytes(received), total: formatBytes(total) };
    return html`${this._asking.card(this._again)}<div class="pull"
      data-testid="pulling"><p>${total === 0
        ? t('setup.pull.begun', { model: name })
        : t('banner.fetching', params)}</p>
      <progress max=${Math.max(1, total)} value=${received} aria-label=${t('banner.progress')}></progress>
      <p class="pull-foot"><span class="quiet">${step}</span><button type="button"
        class="button small plain danger" data-testid="pull-stop" ?disabled=${this._asking.busy}
        @click=${() => this.#stop(name)}>${t('composer.stop')}</button></p></div>`;
  }

  /** @param {ModelPull} pull */
  #failed({ name, problem = '', phrase }) {
    return html`<section class="card error" role="alert"
      data-testid="pull-failed"><span class="card-icon">${icons.warning}</span>
      <div class="card-text"><h2>${t('setup.pull.failed', { model: name })}</h2><p>${
        withCode(sentence(phraseText(phrase, problem)))}</p>
        <div class="card-actions"><button type="button" class="button small" data-testid="pull-again"
          ?disabled=${this._asking.busy} @click=${() => this.#begin(name)}>${t('subagent.retry')}</button>
          <button type="button" class="button small plain" data-testid="pull-hide"
            ?disabled=${this._asking.busy}
            @click=${() => this.#stop(name)}>${t('banner.hide')}</button></div></div></section>`;
  }

  /** @param {string} name */
  #begin(name) {
    this._again = () => this.#begin(name);
    void this._asking.ask(async () => {
      await api.pullModel(name.trim());
      this._name = '';
    });
  }

  /** @param {string} name */
  #stop(name) {
    this._again = () => this.#stop(name);
    void this._asking.ask(() => api.stopPull(name));
  }
}

/** @param {{ problem: string, remedy: string }} trouble */
const troubleNote = ({ problem, remedy }) => html`<p class="row-note warn">${withCode(sentence(problem))}
  <span class="remedy">${withCode(sentence(remedy))}</span></p>`;

/** @param {ModelInfo} model @param {boolean} is_default @param {string[]} names of the profiles that it answers for */
function modelRow(model, is_default, names) {
  const { name, bytes, context_window, demo } = model;
  const facts = [
    bytes === undefined ? '' : formatBytes(bytes),
    context_window === undefined ? '' : t('runs.option.window', { n: formatTokens(context_window) }),
    ...(/** @type {const} */ (['tools', 'vision', 'thinking'])).filter((what) => model[what] === true)
      .map((what) => t(`setup.models.can.${what}`)),
    model.tools === false ? t('setup.models.can.no_tools') : '',
  ];
  return html`<li class="row" data-testid="model"
    data-model=${name}><span class="row-icon"></span><div class="row-text">
    <p class="row-title">${visible(name)}
      ${is_default ? html`<span class="tag">${t('setup.models.default')}</span>` : nothing}
        ${demo ? html`<span class="tag">${t('header.demo')}</span>` : nothing}</p>
    <p class="row-note">${facts.filter((fact) => fact !== '').join(' · ')}</p>
    ${names.length === 0
      ? nothing
      : html`<p class="row-note">${t('setup.models.for', { names: names.join(', ') })}</p>`}</div></li>`;
}

/** @param {SystemStatus} system @param {ProfileModel} profile */
function profileRow(system, profile) {
  const { profile_id, name, model } = profile;
  return html`<li class="row" data-testid="profile-model" data-profile=${profile_id}><div class="row-text">
    <p class="row-title">${name}</p>
    ${model === undefined ? nothing : html`<p class="row-note">${visible(model)}</p>`}
    ${misfits(system, profile)
      .map(({ key, params }) => html`<p
        class="row-note warn">${withCode(t(`setup.misfit.${key}`, params))}</p>`)}</div></li>`;
}

customElements.define('navi-setup-models', NaviSetupModels);
