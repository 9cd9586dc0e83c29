// Who answers in the open session, or in the next new one, by which model, and how much Navi may do
// without asking: one button says it, its panel changes it. And what keeps her in.

/** @import { ConsentMode, Fence } from '../state/wire.js' */

import { goTo } from '../app/actions.js';
import { choice } from '../app/choice.js';
import { setMode, setModel, setProfile } from '../app/session.js';
import {
  chosenMode, chosenModel, chosenProfile, isGuest, mayChangeOpen, mode, openId, outside, profiles, runModel,
  session, status,
} from '../app/signals.js';
import { t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { html, live, nothing } from '../lit.js';
import { sourcesOf } from '../state/outside.js';
import { withCode } from './cards.js';
import { NaviElement } from './element.js';
import { formatTime, sentence } from './format.js';
import { icons } from './icons.js';
import { modelChoices } from './models.js';

/** @typedef {{ mode: ConsentMode | null, profile_id: string | null, model: string | null }} Choices */

const MODES = /** @type {const} */ (['ask', 'edits', 'auto']);

/** A change that was taken is told within this, or what holds is shown again. */
const TOLD_MS = 3_000;

export class NaviMode extends NaviElement {
  static properties = { _wanted: { state: true }, _open: { state: true } };

  constructor() {
    super();
    /** What was asked for and is not told yet. @type {Partial<Choices>} */
    this._wanted = {};
    this._open = false;
  }

  willUpdate() {
    const now = this.#now();
    for (const what of /** @type {(keyof Choices)[]} */ (Object.keys(this._wanted))) {
      if (this._wanted[what] === now[what]) this.#settle(what);
    }
  }

  /** @returns {Choices} */
  #now() {
    const { profile_id, chosen } = choice();
    return { mode: openId.get() === null ? chosenMode.get() ?? status.get()?.mode ?? null : mode.get(),
      profile_id, model: chosen };
  }

  render() {
    // Nothing is known before the service was heard of.
    if (status.get() === null) return nothing;
    const { mode: now } = this.#now();
    const read = outside.get();
    const open = holes(status.get()?.fence);
    const title = t('choice.title');
    return html`<span class="mode ${now ?? ''} ${open.length > 0 ? 'unfenced' : ''}">
      <button type="button" class="mode-button head-meta" popovertarget="mode-panel" data-testid="mode-button"
        aria-haspopup="dialog" aria-expanded=${String(this._open)} title=${title}>
        <span class="off-screen">${title}:</span>
        ${now === null
          ? nothing
          : html`<span class="mode-now" data-testid="mode" data-mode=${now}
            title="${t('mode.label')}: ${t(`mode.${now}`)}">${icons.shield}<span
              class="mode-name">${t(`mode.${now}`)}</span>
          ${read ? html`<span data-testid="outside"
            title=${t('mode.outside')}>${icons.globe}<span
              class="off-screen">${t('mode.outside')}</span></span>` : nothing}</span>`}
        ${open.length === 0 ? nothing : fenceBadge(open)}
        ${answers()}
        <span class="mode-more">${icons.chevron}</span></button>
      <div id="mode-panel" popover class="mode-panel" role="dialog" aria-label=${title} data-testid="mode-panel"
        @toggle=${(/** @type {ToggleEvent} */ event) => { this._open = event.newState === 'open'; }}>
        ${this._open ? this.#groups() : nothing}
        ${read ? html`<p class="mode-outside"
          data-testid="outside-text">${icons.globe}<span>${t('mode.outside')}</span></p>${this._open
            ? this.#sources()
            : nothing}` : nothing}
        ${open.length === 0
          ? nothing
          : html`<ul class="fence-list"
            data-testid="fence-list">${
              open.map((text) => html`<li>${icons.warning}<span>${withCode(text)}</span></li>`)}</ul>`}
      </div></span>`;
  }

  #groups() {
    const now = this.#now();
    const list = profiles.get();
    if (!mayChangeOpen.get()) return html`<p class="quiet"
      data-testid="mode-others">${t(isGuest.get() ? 'composer.guest' : 'share.mode')}</p>`;
    return html`<fieldset data-testid="choice-models"><legend>${t('header.model')}${runModel.get() === null
        ? nothing
        : html` <span class="mode-next">${t('choice.next')}</span>`}</legend>
        <div class="model-list">${
          modelChoices(choice())
            .map(({ name, label, notes, problem }) => this.#choice('model', name,
              html`<b class=${name === null ? '' : 'head-model'}>${label}</b>`,
              html`${notes}${problem === null
                ? nothing
                : html`<span class="model-problem"
                  data-testid="model-problem">${icons.warning}<span>${problem}</span></span>`}`))}</div></fieldset>
      ${list.length < 2
        ? nothing
        : html`<fieldset data-testid="choice-profiles"><legend>${t('header.profile')}</legend>${
            list.map(({ profile_id, name, description }) => this.#choice('profile_id', profile_id, html`<b>${name}</b>`,
              description))}</fieldset>`}
      ${now.mode === null
        ? nothing
        : html`<fieldset><legend>${t('mode.label')}</legend>${
          MODES.map((name) => this.#choice('mode', name, html`<b>${t(`mode.${name}`)}</b>`,
            t(`mode.${name}.text`)))}</fieldset>`}`;
  }

  /** What was read from outside, and where that stands. */
  #sources() {
    const state = session.get();
    if (state === null) return nothing;
    return html`<ul class="outside-list"
      aria-label=${t('mode.sources')}>${
        sourcesOf(state).map(({ message_id, what, at }) => html`<li data-testid="outside-source">
        <button type="button" class="link-button" dir="auto" title=${what}
          @click=${() => this.#lead(state.id, message_id)}>${what}</button>
            <time datetime=${at}>${formatTime(at)}</time></li>`)}</ul>
      ${state.earlier === 0 ? nothing : html`<p class="quiet">${t('mode.sources_earlier')}</p>`}`;
  }

  /** @param {string} session_id @param {string} message_id */
  #lead(session_id, message_id) {
    /** @type {HTMLElement | null} */ (this.querySelector('.mode-panel'))?.hidePopover();
    goTo(session_id, message_id);
  }

  /**
   * @template {keyof Choices} What
   * @param {What} what
   * @param {Choices[What]} value
   * @param {unknown} label
   * @param {unknown} text
   */
  #choice(what, value, label, text) {
    const wanted = this._wanted[what];
    const chosen = wanted === undefined ? this.#now()[what] : wanted;
    return html`<label class="mode-choice ${what === 'mode' ? value : ''}">
      <input type="radio" name=${`choice-${what}`} value=${value ?? ''}
        data-testid=${what === 'mode' ? `consent-${value}` : `choice-${what}`}
        aria-disabled=${String(wanted !== undefined)} .checked=${live(chosen === value)}
        @change=${() => void this.#choose(what, value)}>
      <span>${label}${wanted === value ? html` <span class="spinner" aria-hidden="true"></span>` : nothing}<span
        class="mode-text">${text}</span></span></label>`;
  }

  /**
   * @template {keyof Choices} What
   * @param {What} what
   * @param {Choices[What]} value
   */
  async #choose(what, value) {
    // One after the other: what was asked for last is what holds.
    if (this._wanted[what] !== undefined) return this.requestUpdate();
    const send =
      /** @type {(value: Choices[What]) => Promise<boolean>} */ (/** @type {unknown} */ (openId.get() === null
        ? KEEP[what]
        : SEND[what]));
    this._wanted = { ...this._wanted, [what]: value };
    // Every tab is told by an event, this one too.
    if (await send(value)) setTimeout(() => { if (this._wanted[what] === value) this.#settle(what); }, TOLD_MS);
    else this.#settle(what);
  }

  /** @param {keyof Choices} what */
  #settle(what) {
    this._wanted = { ...this._wanted, [what]: undefined };
  }
}

const SEND = { mode: setMode, profile_id: setProfile, model: setModel };
/** For the next new session. */
const KEEP = {
  mode: async (/** @type {ConsentMode} */ name) => { chosenMode.set(name); return true; },
  profile_id: async (/** @type {string} */ id) => { chosenProfile.set(id); return true; },
  model: async (/** @type {string | null} */ name) => { chosenModel.set(name); return true; },
};

/** Who answers, and by which model. */
function answers() {
  const { profile_id, profile, backend, model } = choice();
  const name = runModel.get() || (model?.name ?? null);
  const info = backend?.models.find((item) => item.name === name) ?? model;
  return html`${profile_id === null
    ? nothing
    : html`<span class="head-profile"
      data-testid="profile-name">${profile?.name ?? profile_id}</span><span aria-hidden="true">·</span>`}
    <span class="head-model" data-testid="model-name"
      title=${backend === null
        ? t('header.model')
        : t('header.backend', { name: t(`backend.${backend.kind}`) })}>${name ?? t('header.no_model')}</span>
    ${backend === null ? nothing : html`<span class="head-backend" data-testid="backend-name">${backend.kind}</span>`}
    ${info?.demo === true
      ? html`<span class="badge" data-testid="demo-badge" title=${t('header.demo_hint')}>${t('header.demo')}</span>`
      : nothing}`;
}

/** @param {string[]} open */
const fenceBadge = (open) => html`<span class="badge danger" data-testid="fence-badge"
  title=${open.join('\n')}>${icons.warning}<span class="badge-text">${t('fence.badge')}</span></span>`;

/**
 * Where the fence around the tools is open, a sentence each.
 * @param {Fence | undefined} fence
 */
export function holes(fence) {
  if (fence === undefined) return [];
  return [
    ...(fence.files_open ? [t('fence.files')] : []),
    ...(fence.commands_open ? [t('fence.commands')] : []),
    // Without a fence nobody misses the sandbox.
    ...(fence.sandbox == null || fence.commands_open
      ? []
      : [t('fence.sandbox', { reason: sentence(phraseText(fence.sandbox_phrase, fence.sandbox)) })]),
  ];
}

customElements.define('navi-mode', NaviMode);
