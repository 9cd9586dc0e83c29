import { panel } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';

/** What stands over the page until it is closed. */
export class NaviPanel extends NaviElement {
  firstUpdated() {
    this.dialog?.showModal();
  }

  get dialog() {
    return this.querySelector('dialog');
  }

  close() {
    this.dialog?.close();
  }

  /** A dialog tells of its end later: by then another may stand there. */
  closed() {
    if (this.isConnected) panel.set(null);
  }

  /** A press beside it closes it. @param {MouseEvent} event */
  pressed(event) {
    if (event.target === this.dialog) this.close();
  }

  /** @param {string} name of its parts in tests */
  closeButton(name) {
    return html`<button type="button" class="icon-button" data-testid="${name}-close" aria-label=${t('memory.close')} title=${t('memory.close')} @click=${() => this.close()}>${icons.close}</button>`;
  }

  /**
   * With a heading, and a button that closes it.
   * @param {string} name
   * @param {string} title
   * @param {unknown} content
   */
  frame(name, title, content) {
    return html`<dialog class="panel ${name}-panel" data-testid=${name} aria-labelledby="${name}-title" @close=${this.closed} @click=${this.pressed}>
      <div class="panel-page">
        <header class="panel-head"><h2 id="${name}-title">${title}</h2>${this.closeButton(name)}</header>
        ${content}
      </div>
    </dialog>`;
  }
}
