/** @import { SessionSummary } from '../state/wire.js' */

import { openPanel } from '../app/actions.js';
import { folded } from '../app/prefs.js';
import {
  connection, contextTokens, drawerOpen, isLoaded, listConnection, maxContextTokens, mayShare, openId, openTitle,
  owns, rowOf,
} from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, svg } from '../lit.js';
import { NaviElement } from './element.js';
import { formatTokens } from './format.js';
import { focusFold, fold } from './fold.js';
import { icons } from './icons.js';
import './connection.js';
import './mode.js';

/** The conversation's title, who answers it, and how full its context is. */
export class NaviHeader extends NaviElement {
  updated() {
    focusFold('sidebar-unfold', this);
  }

  render() {
    const id = openId.get();
    const link = id === null ? listConnection.get() : connection.get();
    return html`<header class="page-head">
      <button type="button" class="icon-button drawer-open" aria-label=${t('sidebar.open')}
        title=${t('sidebar.open')} data-testid="drawer-open"
        aria-expanded=${String(drawerOpen.get())} @click=${() => drawerOpen.set(true)}>${icons.menu}</button>
      ${!folded.get()
        ? nothing
        : html`<button type="button" class="icon-button sidebar-unfold" aria-label=${t('sidebar.unfold')}
          title=${t('sidebar.unfold')} data-testid="sidebar-unfold"
        @click=${() => fold('sidebar-fold')}>${icons.sidebar}</button>`}
      <div class="head-text">
        <h1 data-testid="session-title"
          dir="auto">${id === null ? t('sidebar.new') : openTitle() || t('sidebar.untitled')}</h1>
        <div class="head-line"><navi-mode></navi-mode>
          ${sharedMark(rowOf(id))}
          ${rowOf(id)?.archived
            ? html`<span class="head-mark" data-testid="archived-badge">${t('archive.mark')}</span>`
            : nothing}</div>
      </div>
      ${link === 'open' ? nothing : html`<navi-connection .state=${link}></navi-connection>`}
      ${!mayShare.get()
        ? nothing
        : html`<button type="button" class="icon-button" data-testid="open-share" aria-haspopup="dialog"
          title=${t('share.open')} aria-label=${t('share.open')}
        @click=${() => void openPanel('share')}>${icons.people}</button>`}
      ${!isLoaded.get()
        ? nothing
        : html`<button type="button" class="icon-button" data-testid="open-files" aria-haspopup="dialog"
          title=${t('files.open')} aria-label=${t('files.open')}
        @click=${() => void openPanel('files')}>${icons.folder}</button>`}
      ${maxContextTokens.get() === 0 ? nothing : contextMeter(contextTokens.get(), maxContextTokens.get())}
    </header>`;
  }
}

/** With whom it is shared, or whose it is. @param {SessionSummary | undefined} row */
function sharedMark(row) {
  if (row?.shared == null || (owns(row) && row.shared.people.length === 0)) return nothing;
  const text = owns(row)
    ? t('share.with', { names: row.shared.people.map(({ name }) => name).join(', ') })
    : t('share.of', { name: row.shared.owner.name });
  return html`<span class="head-mark" data-testid="shared-badge" dir="auto">${text}</span>`;
}

const RADIUS = 8;
const ROUND = 2 * Math.PI * RADIUS;

/** @param {number} used @param {number} max */
function contextMeter(used, max) {
  const share = Math.min(1, used / max);
  const label = t('header.context', { used: formatTokens(used), max: formatTokens(max) });
  return html`<button type="button" class="context ${share > 0.8 ? 'high' : ''}" aria-haspopup="dialog"
    aria-label=${label} title=${label} data-testid="context-meter" @click=${() => void openPanel('context')}>
    <svg viewBox="0 0 20 20" aria-hidden="true">${svg`<circle class="ring" cx="10" cy="10" r=${RADIUS}/>
      <circle class="fill" cx="10" cy="10" r=${RADIUS} stroke-dasharray="${share * ROUND} ${ROUND}"
        transform="rotate(-90 10 10)"/>`}</svg>
    <span class="context-text">${formatTokens(used)}</span></button>`;
}

customElements.define('navi-header', NaviHeader);
