/** @import { Check, Report, ShownValue } from '../state/wire.js' */

import { showToast } from '../app/actions.js';
import { status } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { checkWords } from '../i18n/phrases.js';
import { html, nothing } from '../lit.js';
import { api } from '../net/api.js';
import { reportText } from '../state/setup.js';
import { Asking } from './asking.js';
import { withCode } from './cards.js';
import { copyText } from './copy.js';
import { NaviElement } from './element.js';
import { sentence } from './format.js';
import { icons } from './icons.js';

const LEVELS = {
  fine: { icon: icons.check, look: 'allow' },
  warning: { icon: icons.warning, look: 'warn' },
  broken: { icon: icons.cross, look: 'deny' },
};

/** What is wrong, with what to do: looked for when this is opened, and again when that is asked for. */
export class NaviSetupDiagnostics extends NaviElement {
  static properties = { _report: { state: true } };

  constructor() {
    super();
    /** @type {Report | null} */
    this._report = null;
    /** @type {ShownValue[]} */
    this._settings = [];
    this._asking = new Asking(this);
  }

  firstUpdated() {
    this.#look();
  }

  render() {
    const report = this._report;
    const { busy } = this._asking;
    return html`<p class="quiet">${withCode(t('setup.diagnostics.hint'))}</p>
      <div class="panel-tools">
        <button type="button" class="button small" data-testid="diagnostics-again" ?disabled=${busy}
          @click=${() => this.#look()}>${icons.again}${
            t(busy ? 'setup.diagnostics.looking' : 'setup.diagnostics.again')}</button>
        <button type="button" class="button small plain" data-testid="diagnostics-copy"
          ?disabled=${report === null}
          @click=${() => void this.#copy()}>${icons.copy}${t('setup.diagnostics.copy')}</button>
      </div>
      ${this._asking.card(() => this.#look())}
      ${report === null
        ? nothing
        : html`<ul class="rows" data-testid="diagnostics"
          data-level=${report.level}>${report.checks.map(checkRow)}</ul>`}`;
  }

  #look() {
    void this._asking.ask(async () => {
      const [report, { settings }] = await Promise.all([api.diagnostics(), api.settings()]);
      this._report = report;
      this._settings = settings;
    });
  }

  async #copy() {
    if (this._report === null) return;
    const text = reportText(status.get()?.version ?? '', this._report, this._settings);
    if (await copyText(text)) showToast(t('message.copied'));
  }
}

/** @param {Check} check */
function checkRow(check) {
  const { icon, look } = LEVELS[check.level];
  const { name, detail, remedy } = checkWords(check);
  return html`<li class="row" data-testid="check" data-check=${check.name}
    data-level=${check.level}><span class="row-icon ${look}">${icon}</span>
    <div class="row-text"><p class="row-title"><span
      class="off-screen">${t(`setup.level.${check.level}`)}</span> ${name}</p>
      <p class="row-note">${withCode(detail)}</p>
      ${remedy === ''
        ? nothing
        : html`<p class="row-note"><span class="remedy">${withCode(sentence(remedy))}</span></p>`}</div></li>`;
}

customElements.define('navi-setup-diagnostics', NaviSetupDiagnostics);
