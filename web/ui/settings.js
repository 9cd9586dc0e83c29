import { changeNotify } from '../app/commands.js';
import { canNotify, notifies } from '../app/notify.js';
import { setLanguage, setTheme, theme } from '../app/prefs.js';
import { listConnection, status } from '../app/signals.js';
import { language, languageNames, t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { activeBackend } from '../state/service.js';
import { linkWords } from './connection.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';

/** @typedef {import('../i18n/index.js').Language} Language */

const THEMES = /** @type {const} */ ([['auto', icons.auto], ['light', icons.sun], ['dark', icons.moon]]);

/** Appearance and language, and how the service is. */
export class NaviSettings extends NaviElement {
  render() {
    const system = status.get();
    const backend = activeBackend(system);
    const link = listConnection.get();
    const up = link === 'open';
    return html`<div class="settings">
      <p class="service"><span class="service-dot ${up && backend !== null ? 'ready' : 'off'}"
        aria-hidden="true"></span>
        <span>${!up
          ? linkWords(link)
          : backend === null
            ? t('header.no_model')
            : t('header.backend', { name: t(`backend.${backend.kind}`) })}</span>
        ${system === null ? nothing : html`<span class="version">${system.version}</span>`}</p>
      <div class="settings-row">
        <fieldset class="segments"><legend class="off-screen">${t('settings.theme')}</legend>
          ${THEMES.map(([name, icon]) => html`<label
            title=${t(`settings.theme.${name}`)}><input type="radio" name="theme" class="cover"
            data-testid=${`theme-${name}`} .checked=${theme.get() === name} @change=${() => setTheme(name)}
            aria-label=${t(`settings.theme.${name}`)}>${icon}</label>`)}
        </fieldset>
        ${canNotify()
          ? html`<button type="button" class="icon-button" data-testid="notify"
            aria-pressed=${String(notifies.get())} aria-label=${t('notify.on')}
            title=${t(notifies.get() ? 'notify.off' : 'notify.on')}
          @click=${() => void changeNotify()}>${icons.bell}</button>` : nothing}
        <label class="select"><span class="off-screen">${t('settings.language')}</span>
          <select data-testid="language"
            @change=${(/** @type {Event} */ event) =>
              void setLanguage(/** @type {Language} */ (/** @type {HTMLSelectElement} */ (event.target).value))}>
            ${Object.entries(languageNames)
              .map(([code, name]) => html`<option value=${code} ?selected=${language.get() === code}
                lang=${code}>${name}</option>`)}
          </select></label>
      </div>
    </div>`;
  }
}

customElements.define('navi-settings', NaviSettings);
