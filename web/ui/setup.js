// How Navi is set up: her settings, the models that answer, for whom, and what is wrong.

import { isAdmin } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { NaviPanel } from './panel.js';
import './setup_diagnostics.js';
import './setup_models.js';
import './setup_profiles.js';
import './setup_settings.js';

const TABS = /** @type {const} */ (['settings', 'models', 'profiles', 'diagnostics']);
/** What who does not set Navi up may see of it. */
const SEEN = /** @type {const} */ (['models', 'profiles']);
const CONTENTS = {
  settings: () => html`<navi-setup-settings></navi-setup-settings>`,
  models: () => html`<navi-setup-models></navi-setup-models>`,
  profiles: () => html`<navi-setup-profiles></navi-setup-profiles>`,
  diagnostics: () => html`<navi-setup-diagnostics></navi-setup-diagnostics>`,
};

export class NaviSetup extends NaviPanel {
  static properties = { _tab: { state: true } };

  constructor() {
    super();
    /** @type {typeof TABS[number]} */
    this._tab = TABS[0];
  }

  render() {
    /** @type {readonly typeof TABS[number][]} */
    const shown = isAdmin.get() ? TABS : SEEN;
    const tab = shown.includes(this._tab) ? this._tab : shown[0];
    return this.frame('setup', t('setup.open'), this.tabs(t('setup.open'), shown, tab, {
      title: (name) => t(`setup.tab.${name}`),
      show: (name) => { this._tab = name; },
      content: CONTENTS[tab](),
    }));
  }
}

customElements.define('navi-setup', NaviSetup);
