/** @import { FetchableModel, SystemStatus } from '../state/wire.js' */

import { fetchModel, openPanel } from '../app/actions.js';
import { isAtRisk } from '../app/kept.js';
import { account, fetchAsked, isAdmin, outdated, status, unkept } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { phraseText, troubleOf } from '../i18n/phrases.js';
import { html, nothing } from '../lit.js';
import { activeBackend, fetching, modelTrouble, worthFetching } from '../state/service.js';
import { withCode } from './cards.js';
import { NaviElement } from './element.js';
import { formatBytes, sentence } from './format.js';
import { icons } from './icons.js';

/** What the service needs from its user: a model, patience, or attention. */
export class NaviBanner extends NaviElement {
  static properties = { _hidden: { state: true } };

  constructor() {
    super();
    /** What the reader has put away; it comes back when it changes. @type {string[]} */
    this._hidden = [];
  }

  willUpdate() {
    const warnings = status.get()?.warnings ?? [];
    if (this._hidden.some((what) => what !== 'demo' && !warnings.includes(what))) {
      this._hidden = this._hidden.filter((what) => what === 'demo' || warnings.includes(what));
    }
  }

  render() {
    const system = status.get();
    return html`${outdatedNote()}${unkeptNote()}${passwordNote()}${system === null
      ? nothing
      : html`${this.#model(system)}${this.#warnings(system)}`}`;
  }

  /** @param {SystemStatus} system */
  #model(system) {
    const moving = fetching(system);
    const offer = moving === null ? worthFetching(system) : null;
    const trouble = modelTrouble(system);
    if (trouble !== null) return html`<section class="banner trouble" role="status" data-testid="banner"
      data-kind="no-model">
      ${icons.warning}<div class="banner-text">
        <strong>${t('banner.no_model.title')}</strong>
        ${trouble.loading !== null ? html`<p>${t('banner.loading', { detail: trouble.loading })}</p>` : nothing}
        ${trouble.problems.length === 0 && trouble.loading === null && moving === null
          ? html`<p>${t('banner.looking')}</p>`
          : nothing}
        ${trouble.problems.map(troubleOf)
          .map(({ problem, remedy }) => html`<p>${withCode(sentence(problem))}
            <span class="remedy">${withCode(sentence(remedy))}</span></p>`)}
        ${moving === null ? nothing : progress(moving)}
        ${offerButton(offer)}
      </div></section>`;
    if (moving !== null) return html`<section class="banner" role="status" data-testid="banner"
      data-kind="fetching">${icons.download}<div class="banner-text">${progress(moving)}</div></section>`;
    const backend = activeBackend(system);
    const demo = backend?.models.find((model) => model.name === backend.default_model)?.demo === true;
    if (!demo || this._hidden.includes('demo')) return nothing;
    return html`<section class="banner" data-testid="banner"
      data-kind="demo"><div class="banner-text"><p>${t('banner.demo')}</p>${offerButton(offer)}</div>${
        this.#hide('demo')}</section>`;
  }

  /** @param {SystemStatus} system */
  #warnings(system) {
    const warnings = system.warnings.map((text, i) => ({ text, words: phraseText(system.warning_phrases?.[i], text) }));
    return warnings.filter(({ text }) => !this._hidden.includes(text))
      .map(({ text, words }) => html`<section class="banner trouble" role="status" data-testid="banner"
        data-kind="warning">
      ${icons.warning}<div class="banner-text"><p>${withCode(sentence(words))}</p></div>${this.#hide(text)}</section>`);
  }

  /** @param {string} what */
  #hide(what) {
    return html`<button type="button" class="icon-button" aria-label=${t('banner.hide')} title=${t('banner.hide')}
      @click=${() => { this._hidden = [...this._hidden, what]; }}>${icons.close}</button>`;
  }
}

/** Words under way and what is half written outlive the reload. */
function outdatedNote() {
  if (!outdated.get()) return nothing;
  return html`<section class="banner" role="status" data-testid="banner" data-kind="outdated">
    ${icons.again}<div class="banner-text"><p>${t('banner.outdated')}</p>
      <p class="banner-actions"><button type="button" class="button small" data-testid="reload"
        @click=${() => location.reload()}>${t('banner.reload')}</button></p></div></section>`;
}

/** What a person wrote is safe nowhere but in this page. */
function unkeptNote() {
  if (!isAtRisk()) return nothing;
  return html`<section class="banner trouble" role="status" data-testid="banner" data-kind="unkept">
    ${icons.warning}<div class="banner-text"><p>${t(`banner.unkept.${unkept.get()}`)}</p></div></section>`;
}

/** Who came in by the one-time link comes in by nothing else yet. */
function passwordNote() {
  const who = account.get();
  if (who === null || !who.accounts || who.has_password || who.passkeys > 0 || who.sign_ons > 0) return nothing;
  return html`<section class="banner" role="status" data-testid="banner" data-kind="password">
    ${icons.person}<div class="banner-text"><p>${t('account.notice')}</p>
      <p class="banner-actions"><button type="button" class="button small" data-testid="choose-password"
        @click=${() => void openPanel('account')}>${t('account.choose')}</button></p></div></section>`;
}

/** @param {{ model: string, received: number, total: number }} moving */
function progress(moving) {
  const params = { model: moving.model, received: formatBytes(moving.received), total: formatBytes(moving.total) };
  return html`<p>${t('banner.fetching', params)}</p>
    <progress max=${Math.max(1, moving.total)} value=${moving.received} aria-label=${t('banner.progress')}
      data-testid="fetch-progress"></progress>`;
}

/** @param {FetchableModel | null} offer */
function offerButton(offer) {
  if (offer === null || !isAdmin.get()) return nothing;
  const asked = fetchAsked.get() === offer.name;
  return html`<p class="banner-actions"><button type="button" class="button small" data-testid="fetch-model"
    ?disabled=${asked}
      @click=${() => void fetchModel(offer.name)}>${icons.download}${asked
        ? t('banner.starting')
        : t('banner.fetch', { title: offer.title, size: formatBytes(offer.size) })}</button>
    <span class="quiet">${t('banner.fetch_hint', { memory: formatBytes(offer.memory) })}</span></p>`;
}

customElements.define('navi-banner', NaviBanner);
