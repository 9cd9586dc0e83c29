import { closeToast } from '../app/actions.js';
import { toasts } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';

/** The newest that was told aloud; each has a greater id than those before it. */
let last_told = 0;

/** What is said for a while. It stands in the dialog that is open: all beside a modal one is inert. */
export class NaviToasts extends NaviElement {
  /** What was told by then only stands here: a role would have it told again. */
  #told = last_told;

  updated() {
    last_told = Math.max(last_told, ...toasts.get().map(({ id }) => id));
  }

  render() {
    return html`${repeat(toasts.get(), ({ id }) => id,
      ({ id, text, action, error }) => html`<div class="toast ${error ? 'error' : ''}"
        role=${id <= this.#told ? nothing : error ? 'alert' : 'status'} data-testid="toast">
        <span>${text}</span>
        ${action === null
          ? nothing
          : html`<button type="button" class="link-button" data-testid="undo" @click=${() => {
          action.run();
          closeToast(id);
        }}>${action.label}</button>`}
        <button type="button" class="icon-button" aria-label=${t('banner.hide')}
          @click=${() => closeToast(id)}>${icons.close}</button></div>`)}`;
  }
}

customElements.define('navi-toasts', NaviToasts);
