// A line above the field where one writes, while something waits for an answer: the question
// may be out of sight, and the keyboard is led to it from here.

import { approvals } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { summaryOf } from '../i18n/said.js';
import { html } from '../lit.js';
import { isOpen } from '../state/approvals.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';
import { unknownPlaces } from './unknown.js';
import { visibleWords } from './visible.js';

export class NaviAsks extends NaviElement {
  render() {
    const open = approvals.get().filter(isOpen);
    if (open.length === 0) return unknownPlaces('line');
    const [first] = open;
    return html`<div class="asks" data-testid="asks" data-count=${open.length}>${icons.shield}
      <span class="asks-text">${open.length === 1 ? visibleWords(t('approval.one', { summary: summaryOf(first.request) })) : t('approval.many', { n: open.length })}</span>
      <button type="button" class="button small plain" data-testid="asks-show" @click=${() => show(first.approval_id)}>${t('approval.show')}</button></div>`;
  }
}

/** @param {string} approval_id */
function show(approval_id) {
  const card = document.querySelector(`.approval[data-approval-id="${CSS.escape(approval_id)}"]`);
  /** @type {import('./approval.js').NaviApproval | null | undefined} */ (card?.closest('navi-approval'))?.focusCard();
}

customElements.define('navi-asks', NaviAsks);
