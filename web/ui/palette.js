/** @import { SearchHit, SessionSummary } from '../state/wire.js' */

import { goTo } from '../app/actions.js';
import { matchingCommands } from '../app/commands.js';
import { Finder } from '../app/finder.js';
import { sessions } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { matched } from '../state/search.js';
import { matching } from '../state/sessions.js';
import { formatTime } from './format.js';
import { icons } from './icons.js';
import { isComposing } from './keys.js';
import { NaviPanel } from './panel.js';
import { words } from './search.js';

const SESSIONS = 6;
const HITS = 8;

/** @typedef {{ id: string, icon: keyof typeof icons, text: unknown, side?: string, run: () => void }} Choice */

/** One field from which everything is found and done. */
export class NaviPalette extends NaviPanel {
  static properties = { _query: { state: true }, _at: { state: true } };

  constructor() {
    super();
    this._query = '';
    /** Which of the choices is the one that Enter takes. */
    this._at = 0;
    this._finder = new Finder(this, HITS);
  }

  willUpdate() {
    this._finder.look(this._query.trim());
  }

  updated() {
    this.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }

  render() {
    const query = this._query.trim();
    const groups = this.#groups(query);
    const choices = groups.flatMap(([, items]) => items);
    const at = Math.min(this._at, choices.length - 1);
    let n = -1;
    return html`<dialog class="palette" data-testid="palette" aria-label=${t('palette.label')}
      @close=${this.closed} @click=${this.pressed}>
      <div class="palette-field"><label>${icons.search}<input type="text" role="combobox" autocomplete="off"
        spellcheck="false" data-testid="palette-input"
        aria-label=${t('palette.label')} placeholder=${t('palette.placeholder')} aria-expanded="true"
        aria-controls="palette-list" aria-autocomplete="list"
        aria-activedescendant=${at < 0 ? nothing : `palette-${at}`} .value=${this._query}
        @input=${(/** @type {InputEvent} */ event) => {
          this._query = /** @type {HTMLInputElement} */ (event.target).value;
          this._at = 0;
        }} @keydown=${(/** @type {KeyboardEvent} */ event) => this.#key(event, choices, at)}></label>${
          this.closeButton('palette')}</div>
      <div id="palette-list" class="palette-list" role="listbox" aria-label=${t('palette.label')}>
        ${groups.map(([name, items]) => html`<div role="group"
          aria-label=${name}><p class="palette-group" aria-hidden="true">${name}</p>
          ${items.map((choice) => {
            n += 1;
            return option(choice, n, n === at, () => this.#take(choice));
          })}</div>`)}
      </div>
      ${choices.length > 0 || this._finder.answer.state === 'loading'
        ? nothing
        : html`<p class="quiet palette-none" role="status" data-testid="palette-empty">${t('palette.nothing')}</p>`}
      <navi-toasts class="toasts"></navi-toasts>
    </dialog>`;
  }

  /**
   * The choices under their headings, none of which is empty.
   * @param {string} query
   * @returns {[string, Choice[]][]}
   */
  #groups(query) {
    const { answer } = this._finder;
    const hits = query === '' || answer.state !== 'found' ? [] : answer.hits;
    /** @type {[string, Choice[]][]} */
    const all = [
      [t('sidebar.label'), matching(sessions.get().list, query).slice(0, SESSIONS).map(conversation)],
      [t('palette.actions'),
        matchingCommands(query).map(({ id, name, run }) => ({ id, icon: 'chevron', text: name, run }))],
      [t('search.title'), hits.map(place)],
    ];
    return all.filter(([, items]) => items.length > 0);
  }

  /** @param {KeyboardEvent} event @param {Choice[]} choices @param {number} at */
  #key(event, choices, at) {
    if (isComposing(event)) return;
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key === 'Enter' && choices[at] !== undefined) this.#take(choices[at]);
    else if (event.key === 'ArrowDown'
      || event.key === 'ArrowUp') this._at = (at + steps[event.key] + choices.length) % Math.max(1, choices.length);
    else return;
    event.preventDefault();
  }

  /** @param {Choice} choice */
  #take({ run }) {
    this.close();
    this.closed();
    run();
  }
}

/** @param {SessionSummary} session @returns {Choice} */
function conversation(session) {
  return { id: session.id, icon: 'note', text: session.title || t('sidebar.untitled'),
    side: formatTime(session.last_active), run: () => goTo(session.id) };
}

/** @param {SearchHit} hit @returns {Choice} */
function place(hit) {
  const side = hit.session_archived ? `${hit.session_title} · ${t('archive.mark')}` : hit.session_title;
  return { id: hit.message_id ?? hit.session_id, icon: 'search', text: words(hit), side,
    run: () => goTo(hit.session_id, hit.message_id, matched(hit.snippet)) };
}

/** @param {Choice} choice @param {number} n @param {boolean} selected @param {() => void} take */
function option({ id, icon, text, side }, n, selected, take) {
  return html`<div id="palette-${n}" class="palette-option" role="option" aria-selected=${String(selected)}
    data-testid="palette-option" data-choice=${id}
    @click=${take}>${icons[icon]}<span class="palette-text"
    dir="auto">${text}</span>${side === undefined
      ? nothing
      : html`<span class="palette-side" dir="auto">${side}</span>`}</div>`;
}

customElements.define('navi-palette', NaviPalette);
