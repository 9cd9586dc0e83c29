// Search in what was said.

/** @import { SearchHit } from '../state/wire.js' */

import { goTo, pageError, sessionHref } from '../app/actions.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { api } from '../net/api.js';
import { errorGroup } from '../state/errors.js';
import { pieces } from '../state/search.js';
import { NaviElement } from './element.js';
import { formatTime } from './format.js';

/** So long nobody types before it is asked for. */
const TYPING_MS = 200;
const LIMIT = 20;

/** What stands in conversations, under the list of those whose titles match. */
export class NaviSearch extends NaviElement {
  static properties = { query: { attribute: false }, _answer: { state: true } };

  constructor() {
    super();
    this.query = '';
    /** @type {{ state: 'loading' } | { state: 'found', hits: SearchHit[] } | { state: 'failed', code: string, message: string }} */
    this._answer = { state: 'loading' };
    this._asked = '';
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this._timer = undefined;
    this._abort = new AbortController();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    clearTimeout(this._timer);
    this._abort.abort();
    this._asked = '';
  }

  willUpdate() {
    if (this.query === this._asked) return;
    this._asked = this.query;
    clearTimeout(this._timer);
    this._abort.abort();
    this._timer = setTimeout(() => void this.#ask(), TYPING_MS);
  }

  async #ask() {
    const abort = new AbortController();
    this._abort = abort;
    // What was found before stays until there is something better to show.
    if (this._answer.state === 'failed') this._answer = { state: 'loading' };
    try {
      const hits = await api.search(this._asked, LIMIT, abort.signal);
      if (!abort.signal.aborted) this._answer = { state: 'found', hits };
    } catch (error) {
      if (!abort.signal.aborted) this._answer = { state: 'failed', ...pageError(error) };
    }
  }

  render() {
    const answer = this._answer;
    return html`<section class="hits" data-testid="search-results" data-state=${answer.state} aria-label=${t('search.title')}>
      <h2>${t('search.title')}</h2>
      ${answer.state === 'loading' ? html`<p class="quiet loading" role="status"><span class="spinner" aria-hidden="true"></span>${t('search.looking')}</p>` : nothing}
      ${answer.state === 'failed' ? html`<p class="quiet failed" role="alert" data-testid="search-error">${t(`error.${errorGroup(answer.code)}.title`)}
        <button type="button" class="link-button" @click=${() => void this.#ask()}>${t('subagent.retry')}</button></p>` : nothing}
      ${answer.state === 'found' ? html`<p class="off-screen" role="status">${t('search.count', { n: answer.hits.length })}</p>` : nothing}
      ${answer.state === 'found' && answer.hits.length === 0 ? html`<p class="quiet" data-testid="search-empty">${t('search.nothing')}</p>` : nothing}
      ${answer.state === 'found' ? html`<ul>${answer.hits.map(hit)}</ul>` : nothing}
    </section>`;
  }
}

/** @param {SearchHit} found */
function hit(found) {
  const { session_id, message_id } = found;
  return html`<li><a class="session-link hit" href=${sessionHref(session_id, message_id)} data-testid="search-hit" data-session-id=${session_id} data-message-id=${message_id ?? nothing}
    @click=${(/** @type {MouseEvent} */ event) => {
      // Another tab is the browser's affair.
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      goTo(session_id, message_id);
    }}>
    <span class="hit-head"><span class="session-title" dir="auto">${found.session_title || t('sidebar.untitled')}</span><time datetime=${found.at}>${formatTime(found.at)}</time></span>
    <span class="hit-text" dir="auto">${found.role === 'user' ? html`<b>${t('conversation.you')}:</b> ` : nothing}${
      pieces(found.snippet).map(({ text, match }) => (match ? html`<mark>${text}</mark>` : text))}</span>
  </a></li>`;
}

customElements.define('navi-search', NaviSearch);
