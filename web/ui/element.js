import { t } from '../i18n/index.js';
import { html, LitElement, render, SignalWatcher } from '../vendor/lit.js';

/** An element in light DOM that is drawn again when a signal that it read changes. */
export class NaviElement extends SignalWatcher(LitElement) {
  createRenderRoot() {
    return this;
  }

  /** What cannot be drawn says so in its place, and takes nothing else along. @param {Map<PropertyKey, unknown>} changed */
  update(changed) {
    try {
      super.update(changed);
    } catch (error) {
      console.error('not drawn:', this.localName, error);
      render(html`<p class="notice error" data-testid="not-drawn">${t('app.not_drawn')}</p>`, this, this.renderOptions);
    }
  }
}
