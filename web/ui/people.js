// People, as an admin manages them: accounts, what they may use, invitations, the record.

import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { NaviPanel } from './panel.js';
import './people_accounts.js';
import './people_invitations.js';
import './people_powers.js';
import './people_record.js';

const TABS = /** @type {const} */ (['people', 'powers', 'invitations', 'record']);
const CONTENTS = {
  people: () => html`<navi-people-accounts></navi-people-accounts>`,
  powers: () => html`<navi-people-powers></navi-people-powers>`,
  invitations: () => html`<navi-people-invitations></navi-people-invitations>`,
  record: () => html`<navi-people-record></navi-people-record>`,
};

export class NaviPeople extends NaviPanel {
  static properties = { _tab: { state: true } };

  constructor() {
    super();
    /** @type {typeof TABS[number]} */
    this._tab = 'people';
  }

  render() {
    return this.frame('people', t('people.open'), this.tabs(t('people.open'), TABS, this._tab, {
      title: (name) => t(`people.tab.${name}`),
      show: (name) => { this._tab = name; },
      content: CONTENTS[this._tab](),
    }));
  }
}

customElements.define('navi-people', NaviPeople);
