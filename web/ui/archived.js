import { readArchived } from '../app/archive.js';
import { archived, openId } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { matching } from '../state/sessions.js';
import { tagged } from '../state/tags.js';
import { NaviElement } from './element.js';
import { icons } from './icons.js';
import './session_item.js';

/** So many rows are drawn at once; a search reaches the rest. */
const ROWS = 300;

/** The conversations that are put away, in a fold. */
export class NaviArchived extends NaviElement {
  static properties = { query: { attribute: false }, tag: { attribute: false } };

  constructor() {
    super();
    this.query = '';
    /** @type {string | null} */
    this.tag = null;
  }

  render() {
    const { state, list } = archived.get();
    return html`<details class="archived" data-testid="archived" data-state=${state}
      @toggle=${(/** @type {Event} */ event) => {
      if (/** @type {HTMLDetailsElement} */ (event.target).open
        && (state === 'unread' || state === 'failed')) void readArchived();
    }}>
      <summary>${icons.chevron}<h2>${t('archive.title')}</h2></summary>
      ${state === 'failed' ? html`<p class="quiet failed" role="alert">${t('archive.failed')}
        <button type="button" class="link-button"
          @click=${() => void readArchived()}>${t('subagent.retry')}</button></p>` : nothing}
      ${state === 'unread' || (state === 'reading' && list.length === 0)
        ? html`<p class="quiet loading"
          role="status"><span class="spinner" aria-hidden="true"></span>${t('app.loading')}</p>`
        : nothing}
      ${state === 'read' && list.length === 0
        ? html`<p class="quiet" data-testid="archived-empty">${t('archive.empty')}</p>`
        : nothing}
      ${state === 'unread' || list.length === 0
        ? nothing
        : html`<ul>${repeat(tagged(matching(list, this.query), this.tag).slice(0, ROWS), (item) => item.id,
          (item) => html`<li><navi-session-item .session=${item}
        ?current=${item.id === openId.get()}></navi-session-item></li>`)}</ul>`}
    </details>`;
  }
}

customElements.define('navi-archived', NaviArchived);
