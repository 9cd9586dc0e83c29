import { loadAccount } from '../app/account.js';
import { account } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { NAMES } from '../state/limits.js';
import { NaviElement } from './element.js';
import { told } from './people_limits.js';

/** How much of what all share is one's own, and what one has of it. */
export class NaviAccountLimits extends NaviElement {
  firstUpdated() {
    // What was used since the page was opened.
    void loadAccount();
  }

  render() {
    const limits = account.get()?.limits ?? null;
    if (limits === null) return nothing;
    return html`<h3>${t('limits.mine')}</h3>
      <dl class="limits-list"
        data-testid="account-limits">${
          NAMES.map((name) => html`<div data-testid="account-limit"
            data-name=${name}><dt>${t(`limits.${name}`)}</dt><dd>${told(limits, name)}</dd></div>`)}</dl>`;
  }
}

customElements.define('navi-account-limits', NaviAccountLimits);
