// Offers to show a picture that stands elsewhere: its whole address first, and the picture once a person asked.

import { pageError } from '../app/actions.js';
import { t } from '../i18n/index.js';
import { html, nothing, signal } from '../lit.js';
import { ask, read, sessionPath } from '../net/api.js';
import { NaviElement } from './element.js';
import { sentence } from './format.js';
import { icons } from './icons.js';
import { openable } from './image.js';
import { visible } from './visible.js';

/** So many are remembered in this tab, the newest of them. */
const MAX_ASKED = 500;

/**
 * What was asked for in this tab, a conversation and an address each. A press asks for what stands there of one
 * host, and for nothing that comes later: an address may carry words, and its host reads them.
 */
const asked = signal(/** @type {ReadonlySet<string>} */ (new Set()));

/** Those that are in the page. @type {Set<NaviRemotePicture>} */
const standing = new Set();

export class NaviRemotePicture extends NaviElement {
  static properties = {
    session: { attribute: false }, href: { attribute: false }, alt: { attribute: false },
    _src: { state: true }, _problem: { state: true },
  };

  constructor() {
    super();
    this.session = '';
    this.href = '';
    this.alt = '';
    /** Where the browser has it. @type {string | null} */
    this._src = null;
    /** @type {{ code: string, message: string } | null} */
    this._problem = null;
    /** @type {AbortController | null} */
    this._fetching = null;
    /** Whether it was asked for here: who did so goes on from the picture. */
    this._pressed = false;
  }

  get key() {
    return `${this.session} ${this.href}`;
  }

  get host() {
    return new URL(this.href).host;
  }

  connectedCallback() {
    super.connectedCallback();
    standing.add(this);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    standing.delete(this);
    this._fetching?.abort();
    this._fetching = null;
    if (this._src !== null) URL.revokeObjectURL(this._src);
    this._src = null;
  }

  willUpdate() {
    const is_wanted = asked.get().has(this.key) && this.isConnected;
    if (is_wanted && this._src === null && this._problem === null && this._fetching === null) void this.#fetch();
  }

  /** @param {Map<string, unknown>} changed */
  updated(changed) {
    if (!changed.has('_src') || this._src === null || !this._pressed) return;
    this._pressed = false;
    /** @type {HTMLElement | null} */ (this.querySelector('.picture'))?.focus();
  }

  render() {
    const { host, alt, href } = this;
    if (this._src !== null) return openable(this._src, alt || host);
    const waits = asked.get().has(this.key) && this._problem === null;
    return html`<span class="remote-image" data-testid="remote-image" data-state=${waits ? 'fetching' : 'offered'}>
      ${alt === '' ? nothing : html`<span>${visible(alt)}</span>`}
      <a class="remote-address" href=${href} title=${href} target="_blank" rel="noopener noreferrer"
        dir="ltr">${visible(href)}</a>
      ${this._problem === null
        ? nothing
        : html`<span class="remote-problem" role="alert">${t('remote_image.failed', { host })}
        ${visible(sentence(this._problem.message))}</span>`}
      ${waits ? html`<span role="status"><span class="spinner"
        aria-hidden="true"></span>${t('remote_image.fetching')}</span>`
        : html`<button type="button" class="button small plain" data-testid="remote-image-show"
          @click=${() => this.#show()}>${
          icons.image}<span>${t('remote_image.show', { host })}</span></button>`}</span>`;
  }

  #show() {
    this._problem = null;
    this._pressed = true;
    const { session, host } = this;
    const alike = [...standing].filter((other) => other.session === session && other.host === host);
    asked.set(new Set([...asked.get(), ...alike.map(({ key }) => key)].slice(-MAX_ASKED)));
    this.requestUpdate();
  }

  async #fetch() {
    const fetching = new AbortController();
    this._fetching = fetching;
    const path = `${sessionPath(this.session)}/remote-image?url=${encodeURIComponent(this.href)}`;
    try {
      const response = await ask('GET', path, undefined, fetching.signal);
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
