import { panel } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';
import { COMMAND } from './keys.js';

/** Each with what it does, in the order in which one meets them. @type {[string[], string][]} */
const KEYS = [
  [['Enter'], 'keys.send'], [['Shift', 'Enter'], 'keys.line'], [[COMMAND, 'Enter'], 'keys.steer'], [['Esc'], 'keys.stop'], [['↑'], 'keys.edit'],
  [[COMMAND, 'K'], 'palette.open'], [[COMMAND, '⇧', 'O'], 'keys.new'], [['↑', '↓'], 'keys.list'], [['Y', 'A', 'N'], 'keys.answer'], [['?'], 'keys.open'],
];

/** The keys that do something, and what. */
export class NaviKeys extends NaviElement {
  firstUpdated() {
    this.#dialog?.showModal();
  }

  get #dialog() {
    return this.querySelector('dialog');
  }

  render() {
    return html`<dialog class="panel keys-panel" data-testid="keys" aria-labelledby="keys-title" @close=${() => panel.set(null)}
      @click=${(/** @type {MouseEvent} */ event) => { if (event.target === this.#dialog) this.#dialog?.close(); }}>
      <div class="panel-page">
        <header class="panel-head"><h2 id="keys-title">${t('keys.title')}</h2>
          <button type="button" class="icon-button" aria-label=${t('memory.close')} title=${t('memory.close')} @click=${() => this.#dialog?.close()}>${icons.close}</button></header>
        <dl class="keys">${KEYS.map(([keys, what]) => html`<div><dt>${keys.map((key) => html`<kbd>${key}</kbd>`)}</dt><dd>${t(what)}</dd></div>`)}</dl>
      </div>
    </dialog>`;
  }
}

customElements.define('navi-keys', NaviKeys);
