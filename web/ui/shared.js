// A conversation that is looked at by a link, by whoever has it.

import { connection, ownTitle, sessionError, sharedUntil } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { NaviElement } from './element.js';
import { formatTime } from './format.js';
import { icons, mark } from './icons.js';
import './connection.js';
import './conversation.js';

export class NaviShared extends NaviElement {
  render() {
    const error = sessionError.get();
    const until = sharedUntil.get();
    if (error !== null) {
      return html`<main class="signin" data-testid="shared-ended"><span class="welcome-mark">${mark}</span>
        <h1>${t('share.ended.title')}</h1><p role="alert">${t('share.ended.hint')}</p></main>`;
    }
    const link = connection.get();
    return html`<div class="layout looks"><main class="main" data-testid="shared">
      <header class="page-head"><div class="head-text">
        <h1 data-testid="session-title" dir="auto">${ownTitle.get() || t('sidebar.untitled')}</h1>
        <div class="head-line"><span class="head-mark"
          data-testid="looks-badge">${icons.people}${t('share.looks')}</span>
          ${until === null
            ? nothing
            : html`<span class="quiet">${t('share.until', { at: formatTime(until) })}</span>`}</div></div>
        ${link === 'open' ? nothing : html`<navi-connection .state=${link}></navi-connection>`}</header>
      <navi-conversation class="body"></navi-conversation>
    </main></div>`;
  }
}

customElements.define('navi-shared', NaviShared);
