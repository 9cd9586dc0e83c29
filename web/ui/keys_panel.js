import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { COMMAND, SHIFT } from './keys.js';
import { NaviPanel } from './panel.js';

/** Each with what it does, in the order in which one meets them. @type {[string[], string][]} */
const KEYS = [
  [['Enter'], 'keys.send'], [[SHIFT, 'Enter'], 'keys.line'], [[COMMAND, 'Enter'], 'keys.steer'],
  [['Esc'], 'keys.stop'], [['↑'], 'keys.edit'],
  [[COMMAND, 'K'], 'palette.open'], [[COMMAND, SHIFT, 'O'], 'keys.new'], [['↑', '↓'], 'keys.list'],
  [['→'], 'keys.row'], [['Y', 'A', 'N'], 'keys.answer'], [['?'], 'keys.open'],
];

/** The keys that do something, and what. */
export class NaviKeys extends NaviPanel {
  render() {
    return this.frame('keys', t('keys.title'), html`
      <dl class="keys">${
        KEYS.map(
          ([keys, what]) => html`<div><dt>${keys.map((key) => html`<kbd>${key}</kbd>`)}</dt><dd>${t(what)}</dd></div>`,
        )}</dl>`);
  }
}

customElements.define('navi-keys', NaviKeys);
