// Search in what was said.

/** @import { SearchHit } from '../state/wire.js' */

import { goTo, sessionHref } from '../app/actions.js';
import { Finder } from '../app/finder.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { errorGroup } from '../state/errors.js';
import { matched, pieces } from '../state/search.js';
import { NaviElement } from './element.js';
import { formatTime } from './format.js';

const LIMIT = 20;

/** What stands in conversations, under the list of those whose titles match. */
export class NaviSearch extends NaviElement {
  static properties = { query: { attribute: false } };

  constructor() {
    super();
    this.query = '';
    this._finder = new Finder(this, LIMIT);
  }

  willUpdate() {
    this._finder.look(this.query);
  }

  render() {
    const { answer } = this._finder;
    return html`<section class="hits" data-testid="search-results" data-state=${answer.state}
      aria-label=${t('search.title')}>
      <h2>${t('search.title')}</h2>
      ${answer.state === 'loading'
        ? html`<p class="quiet loading"
          role="status"><span class="spinner" aria-hidden="true"></span>${t('search.looking')}</p>`
        : nothing}
      ${answer.state === 'failed'
        ? html`<p class="quiet failed" role="alert"
          data-testid="search-error">${t(`error.${errorGroup(answer.code)}.title`)}
        <button type="button" class="link-button"
          @click=${() => void this._finder.again()}>${t('subagent.retry')}</button></p>` : nothing}
      ${answer.state === 'found'
        ? html`<p class="off-screen" role="status">${t('search.count', { n: answer.hits.length })}</p>`
        : nothing}
      ${answer.state === 'found' && answer.hits.length === 0
        ? html`<p class="quiet" data-testid="search-empty">${t('search.nothing')}</p>`
        : nothing}
      ${answer.state === 'found' ? html`<ul>${answer.hits.map(hit)}</ul>` : nothing}
    </section>`;
  }
}

/** Who said it, and what, with what was looked for. @param {SearchHit} found */
export const words = (found) => html`<span class="hit-text"
  dir="auto">${found.role === 'user' ? html`<b>${t('conversation.you')}:</b> ` : nothing}${
  pieces(found.snippet).map(({ text, match }) => (match ? html`<mark>${text}</mark>` : text))}</span>`;

/** @param {SearchHit} found */
function hit(found) {
  const { session_id, message_id } = found;
  return html`<li><a class="session-link hit" tabindex="-1" href=${sessionHref(session_id, message_id)}
    data-testid="search-hit" data-session-id=${session_id} data-message-id=${message_id ?? nothing}
    @click=${(/** @type {MouseEvent} */ event) => {
      // Another tab is the browser's affair.
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      goTo(session_id, message_id, matched(found.snippet));
    }}>
    <span class="hit-head"><span class="session-title"
      dir="auto">${found.session_title || t('sidebar.untitled')}</span>${found.session_archived
        ? html`<span class="badge">${t('archive.mark')}</span>`
        : nothing}<time datetime=${found.at}>${formatTime(found.at)}</time></span>
    ${words(found)}
  </a></li>`;
}

customElements.define('navi-search', NaviSearch);
