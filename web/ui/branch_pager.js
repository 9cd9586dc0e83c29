/** @import { Fork } from '../state/wire.js' */

import { showBranch } from '../app/session.js';
import { isGuest, isRunning } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html } from '../lit.js';
import { icons } from './icons.js';

/**
 * Goes through the branches that begin at a message.
 * @param {Fork} fork
 */
export function branchPager(fork) {
  const at = fork.branch_ids.indexOf(fork.shown);
  const label = t('branch.label', { n: at + 1, total: fork.branch_ids.length });
  return html`<span class="pager" role="group" aria-label=${label} data-testid="branch-pager"
    data-shown=${at + 1} data-total=${fork.branch_ids.length}>
    ${step(fork.branch_ids[at - 1], 'previous')}<span
      class="pager-text">${at + 1}/${fork.branch_ids.length}</span>${step(fork.branch_ids[at + 1], 'next')}</span>`;
}

/**
 * @param {number | undefined} branch_id where it leads, if anywhere
 * @param {'previous' | 'next'} way
 */
function step(branch_id, way) {
  // A run writes to the branch that is shown.
  const blocked = branch_id === undefined || isRunning.get() || isGuest.get();
  return html`<button type="button" class="icon-button ${way}" data-testid=${`branch-${way}`}
    ?disabled=${blocked} title=${t(`branch.${way}`)} aria-label=${t(`branch.${way}`)}
    @click=${() => { if (branch_id !== undefined) void showBranch(branch_id); }}>${icons.chevron}</button>`;
}
