// Conversations as files: out of Navi, and into her.

import { exportAll } from '../app/export.js';
import { importFiles, importing, stopImport } from '../app/import.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { icons } from './icons.js';
import { NaviPanel } from './panel.js';

export class NaviImport extends NaviPanel {
  render() {
    const { busy, files, done, total, problems } = importing.get();
    return this.frame('import', t('import.title'), html`
      <p class="quiet">${t('import.hint')}</p>
      <div class="panel-tools">
        <input type="file" id="import-input" class="off-screen" multiple tabindex="-1" aria-hidden="true"
          accept=".json,.jsonl,application/json" data-testid="import-input"
          @change=${(/** @type {Event} */ event) => void this.#take(/** @type {HTMLInputElement} */ (event.target))}>
        <button type="button" class="button small" data-testid="import-choose" ?disabled=${busy}
          @click=${() => /** @type {HTMLInputElement | null} */ (this.querySelector('#import-input'))
            ?.click()}>${icons.folder}<span>${t('import.choose')}</span></button>
        <button type="button" class="button small plain" data-testid="import-export" ?disabled=${busy}
          @click=${() => void exportAll('jsonl')}>${icons.download}<span>${t('export.all')}</span></button>
        <button type="button" class="button small plain" data-testid="import-export-md" ?disabled=${busy}
          @click=${() => void exportAll('md')}>${icons.download}<span>${t('export.all_md')}</span></button>
      </div>
      ${busy ? html`<p class="import-progress" role="status"
        data-testid="import-progress"><progress max=${Math.max(1, total)} .value=${done}
        aria-label=${t('import.title')}></progress>
        <span>${t('import.progress', { done, total })}${files > 0 ? '…' : ''}</span>
        <button type="button" class="button small plain" data-testid="import-stop"
          @click=${stopImport}>${t('composer.stop')}</button></p>` : nothing}
      ${problems.length === 0
        ? nothing
        : html`<section role="alert" data-testid="import-problems"><h3>${t('import.problems')}</h3>
        <ul class="rows">${
          problems.map(({ file, title, message }) => html`<li
            class="row"><span class="row-icon deny">${icons.warning}</span>
          <div class="row-text"><p class="row-title"
            dir="auto">${title === '' ? file : `${file}: ${title}`}</p><p class="row-note"
            dir="auto">${message}</p></div></li>`)}</ul></section>`}`);
  }

  /** @param {HTMLInputElement} input */
  async #take(input) {
    const files = [...input.files ?? []];
    // The same file chosen again is another choice.
    input.value = '';
    if (files.length > 0 && await importFiles(files) && this.isConnected) this.close();
  }
}

customElements.define('navi-import', NaviImport);
