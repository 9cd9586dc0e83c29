// Offers to show a picture that stands elsewhere: its whole address first, and the picture once a person asked for
// this very one. An address may carry words, and its host reads them: one press asks for what is read above it alone.

/** @import { Problem } from '../state/types.js' */

import { pageError } from '../app/actions.js';
import { t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { html, nothing } from '../lit.js';
import { ask, read, sessionPath } from '../net/api.js';
import { errorGroup } from '../state/errors.js';
import { NaviElement } from './element.js';
import { sentence } from './format.js';
import { icons } from './icons.js';
import { openable } from './image.js';
import { visible } from './visible.js';

/** Longer than the service gives the picture's host. */
const PATIENCE_MS = 60_000;

export class NaviRemotePicture extends NaviElement {
  static properties = {
    session: { attribute: false }, href: { attribute: false }, alt: { attribute: false },
    _src: { state: true }, _problem: { state: true }, _fetching: { state: true },
  };

  constructor() {
    super();
    this.session = '';
    this.href = '';
    this.alt = '';
    /** Where the browser has it. @type {string | null} */
    this._src = null;
    /** @type {Problem | null} */
    this._problem = null;
    /** @type {AbortController | null} */
    this._fetching = null;
  }

  get host() {
    return new URL(this.href).host;
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._fetching?.abort();
    this._fetching = null;
    if (this._src !== null) URL.revokeObjectURL(this._src);
    this._src = null;
  }

  /**
   * Who pressed goes on from what came of it, unless they are elsewhere by then.
   * @param {Map<string, unknown>} changed
   */
  updated(changed) {
    if (changed.get('_fetching') == null || this._fetching !== null) return;
    const held = document.activeElement;
    if (held !== document.body && !this.contains(held)) return;
    /** @type {HTMLElement | null} */ (this.querySelector('button'))?.focus({ preventScroll: true });
  }

  render() {
    const { host, alt, href } = this;
    if (this._src !== null) return openable(this._src, alt || host);
    const waits = this._fetching !== null;
    return html`<span class="remote-image" data-testid="remote-image" data-state=${waits ? 'fetching' : 'offered'}>
      ${alt === '' ? nothing : html`<span>${visible(alt)}</span>`}
      <a class="remote-address" href=${href} title=${href} target="_blank" rel="noopener noreferrer"
        dir="ltr">${visible(href)}</a>
      ${this._problem === null
        ? nothing
        : html`<span class="remote-problem" role="alert">${t('remote_image.failed', { host })}
        ${visible(sentence(phraseText(this._problem.phrase, this._problem.message)
          || t(`error.${errorGroup(this._problem.code)}.title`)))}</span>`}
      ${waits ? html`<span role="status"><span class="spinner"
        aria-hidden="true"></span>${t('remote_image.fetching')}</span>`
        : html`<button type="button" class="button small plain" data-testid="remote-image-show"
          @click=${() => void this.#show()}>${
          icons.image}<span>${t('remote_image.show', { host })}</span></button>`}</span>`;
  }

  async #show() {
    const fetching = new AbortController();
    this._fetching = fetching;
    this._problem = null;
    const path = `${sessionPath(this.session)}/remote-image?url=${encodeURIComponent(this.href)}`;
    const signal = AbortSignal.any([fetching.signal, AbortSignal.timeout(PATIENCE_MS)]);
    try {
      const response = await ask('GET', path, undefined, signal);
      if (!response.ok) await read(response);
      const image = await response.blob();
      if (this._fetching === fetching) this._src = URL.createObjectURL(image);
    } catch (error) {
      if (this._fetching === fetching) this._problem = pageError(error);
    } finally {
      if (this._fetching === fetching) this._fetching = null;
    }
  }
}

customElements.define('navi-remote-picture', NaviRemotePicture);

/**
 * Puts the offer in place of the link, where that still stands.
 * @param {Element} host
 * @param {string} session
 * @param {Element} link
 */
export function offerPicture(host, session, link) {
  if (link.parentElement !== host) return;
  const picture = new NaviRemotePicture();
  picture.session = session;
  picture.href = host.getAttribute('href') ?? '';
  picture.alt = host.getAttribute('alt') ?? '';
  host.replaceChildren(picture);
}
