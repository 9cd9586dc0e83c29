import { t } from '../i18n/index.js';
import { html, LitElement, render, SignalWatcher } from '../lit.js';

/** An element in light DOM that is drawn again when a signal that it read changes. */
export class NaviElement extends SignalWatcher(LitElement) {
  createRenderRoot() {
    return this;
  }

  /**
   * What was taken out of the page is not drawn: it would be watched, and kept, for good. Where it comes back it is.
   * @param {Parameters<LitElement['requestUpdate']>} change
   */
  requestUpdate(...change) {
    if (this.isConnected || !this.hasUpdated) super.requestUpdate(...change);
  }

  /** What cannot be drawn says so in its place, and takes nothing else along. */
  performUpdate() {
    try {
      super.performUpdate();
    } catch (error) {
      render(html`${notDrawn(this, error)}`, this, this.renderOptions);
    }
  }
}

/** What stands in place of something that cannot be drawn. @param {Element} element @param {unknown} error */
export function notDrawn(element, error) {
  console.error('not drawn:', element.localName, error);
  const note = document.createElement('p');
  note.className = 'notice error';
  note.dataset.testid = 'not-drawn';
  note.textContent = t('app.not_drawn');
  return note;
}

/** Draws its element anew each second, while that is in the page. */
export class Clock {
  now = Date.now();

  /** @param {NaviElement} host */
  constructor(host) {
    this.host = host;
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.timer = undefined;
    host.addController(this);
  }

  hostConnected() {
    this.timer = setInterval(() => {
      this.now = Date.now();
      this.host.requestUpdate();
    }, 1000);
  }

  hostDisconnected() {
    clearInterval(this.timer);
  }
}
