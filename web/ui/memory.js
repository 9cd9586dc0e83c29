// What Navi remembers: every fact can be seen, corrected and forgotten. Loaded when it is opened.

/** @import { Fact, MemoryOverview } from '../state/wire.js' */

import { pageError } from '../app/actions.js';
import { isGuest } from '../app/signals.js';
import { hasText, t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { api } from '../net/api.js';
import { byCategory, plainName, sameFact } from '../state/memory.js';
import { errorCard } from './cards.js';
import { formatTime } from './format.js';
import { icons, mark } from './icons.js';
import { NaviPanel } from './panel.js';
import './fact.js';
import './fact_new.js';
import './markdown.js';

/** @typedef {{ code: string, message: string }} Problem */

/** Those that Navi proposes, as `domain/memory` of the service has them. */
const CATEGORIES = ['identity', 'people', 'places', 'work', 'preferences', 'projects', 'devices', 'other'];

export class NaviMemory extends NaviPanel {
  static properties = {
    _memory: { state: true }, _problem: { state: true }, _query: { state: true }, _asking: { state: true },
    _gone: { state: true }, _summary: { state: true }, _adding: { state: true },
  };

  constructor() {
    super();
    /** @type {MemoryOverview | null} */
    this._memory = null;
    /** @type {Problem | null} */
    this._problem = null;
    this._query = '';
    /** Whether it is asked if everything should be forgotten. */
    this._asking = false;
    /** Facts that were forgotten just now and can be had back. @type {Fact[]} */
    this._gone = [];
    this._summary = false;
    /** Whether there is a form for a fact of one's own. */
    this._adding = false;
  }

  firstUpdated() {
    super.firstUpdated();
    void this.#load();
  }

  render() {
    const memory = this._memory;
    return this.frame('memory', t('memory.title'), html`
      <p class="quiet memory-hint">${t('memory.hint')}</p>
      <div class="panel-tools">
        <label class="search">${icons.search}<input type="search" data-testid="memory-search"
          placeholder=${t('memory.search')} aria-label=${t('memory.search')}
          .value=${this._query}
          @input=${(/** @type {InputEvent} */ event) => {
            this._query = /** @type {HTMLInputElement} */ (event.target).value;
          }}></label>
        ${isGuest.get()
          ? nothing
          : html`<button type="button" class="button small plain" data-testid="memory-add"
            aria-expanded=${String(this._adding)} ?disabled=${memory === null}
            @click=${() => { this._adding = !this._adding; }}>${icons.plus}<span>${t('memory.add')}</span></button>`}
        <button type="button" class="button small plain" data-testid="memory-export"
          @click=${() => void this.#export()}>${icons.download}<span>${t('memory.export')}</span></button>
        ${isGuest.get()
          ? nothing
          : html`<button type="button" class="button small plain danger" data-testid="memory-forget-all"
            ?disabled=${memory === null || memory.facts.length === 0}
            @click=${() => void this.#ask()}>${icons.trash}<span>${t('memory.forget_all')}</span></button>`}
      </div>
      ${this._adding && memory !== null
        ? html`<navi-fact-new .categories=${categories(memory.facts)}
          .save=${(/** @type {import('./fact_new.js').Written} */ fact) => this.#add(fact)}
        @navi-over=${() => void this.#added()}></navi-fact-new>` : nothing}
      ${this._asking ? this.#question(memory?.facts.length ?? 0) : nothing}
      ${this._problem === null
        ? nothing
        : errorCard(this._problem,
          html`<button type="button" class="button small"
            @click=${() => void this.#load()}>${t('subagent.retry')}</button>`)}
      ${memory === null ? this._problem === null ? skeleton() : nothing : this.#facts(memory)}`);
  }

  /** @param {MemoryOverview} memory */
  #facts(memory) {
    // What was forgotten keeps its place until the page is closed, so that it can be had back there.
    const groups = byCategory([...memory.facts,
      ...this._gone.filter((gone) => !memory.facts.some((fact) => sameFact(fact, gone)))], this._query);
    return html`
      ${memory.summary === null || memory.summary === '' ? nothing : this.#narrative(memory.summary, memory.updated_at)}
      ${groups.length > 0
        ? nothing
        : html`<div class="memory-empty"
          data-testid="memory-empty">${mark}<p
            class="quiet">${t(this._query.trim() === '' ? 'memory.empty' : 'memory.no_match')}</p></div>`}
      ${repeat(groups, ({ category }) => category,
        ({ category, facts }) => html`<section data-testid="memory-category" data-category=${category}>
        <h3>${categoryName(category)}</h3>
        <ul class="facts">${repeat(facts, ({ key }) => key,
          (fact) => html`<li><navi-fact .fact=${fact} ?gone=${this.#isGone(fact)}
          @navi-forget=${() => this.#forget(fact)} .save=${(/** @type {string} */ value) => this.#save(fact, value)}
          @navi-leave=${() => this.close()}></navi-fact></li>`)}</ul></section>`)}`;
  }

  /** @param {string} summary @param {string | null} at */
  #narrative(summary, at) {
    return html`<section class="memory-summary"><button type="button" class="fold"
      aria-expanded=${String(this._summary)} aria-controls="memory-summary"
        data-testid="memory-summary-toggle"
        @click=${() => { this._summary = !this._summary; }}>${
          icons.note}<span>${t('memory.summary')}</span><span class="turn">${icons.chevron}</span></button>
      <div id="memory-summary" ?hidden=${!this._summary} data-testid="memory-summary">
        <navi-markdown class="prose" dir="auto" .text=${summary} .complete=${true}></navi-markdown>
        ${at === null
          ? nothing
          : html`<p class="quiet">${t('memory.written', { at: formatTime(at) })}</p>`}</div></section>`;
  }

  /** @param {number} n */
  #question(n) {
    return html`<section class="card pause" role="alertdialog" aria-label=${t('memory.forget_all')}
      data-testid="memory-question"><span class="card-icon">${icons.warning}</span><div class="card-text">
      <p>${t('memory.question', { n })}</p>
      <div class="card-actions"><button type="button" class="button small destructive"
        data-testid="memory-forget-confirm" @click=${() => void this.#forgetAll()}>${t('memory.confirm')}</button>
        <button type="button" class="button small plain" data-testid="memory-forget-cancel"
          @click=${() => { this._asking = false; }}>${t('memory.keep')}</button></div>
    </div></section>`;
  }

  async #ask() {
    this._asking = true;
    await this.updateComplete;
    /** @type {HTMLElement | null} */ (this.querySelector('[data-testid="memory-forget-cancel"]'))?.focus();
  }

  async #load() {
    this._problem = null;
    try {
      this._memory = await api.memory();
    } catch (error) {
      this._problem = pageError(error);
    }
  }

  /** A link would carry the cookie alone. */
  async #export() {
    this._problem = null;
    try {
      const facts = JSON.stringify(await api.exportMemory(), null, 2);
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([facts], { type: 'application/json' }));
      link.download = 'navi-memory.json';
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (error) {
      this._problem = pageError(error);
    }
  }

  /** @param {Fact} fact */
  #isGone(fact) {
    return this._gone.some((gone) => sameFact(gone, fact));
  }

  /**
   * Does what the service has to do, and shows the memory as it is then.
   * @param {() => Promise<unknown>} request
   * @param {() => void} done
   */
  async #change(request, done) {
    this._problem = null;
    try {
      await request();
      done();
      this._memory = await api.memory();
    } catch (error) {
      this._problem = pageError(error);
    }
  }

  /** @param {Fact} fact */
  #forget(fact) {
    return this.#change(() => api.forgetFact(fact), () => { this._gone = [...this._gone, fact]; });
  }

  /**
   * A correction, or the undoing of a deletion; fails where the service does not take it.
   * @param {Fact} fact
   * @param {string} value
   */
  async #save(fact, value) {
    await api.saveFact(fact, value);
    this._gone = this._gone.filter((gone) => !sameFact(gone, fact));
    await this.#load();
  }

  /** A fact that one writes by hand. @param {import('./fact_new.js').Written} fact */
  async #add(fact) {
    await api.saveFact(fact, fact.value);
    this._query = '';
    await this.#load();
  }

  async #added() {
    this._adding = false;
    await this.updateComplete;
    /** @type {HTMLElement | null} */ (this.querySelector('[data-testid="memory-add"]'))?.focus();
  }

  async #forgetAll() {
    this._asking = false;
    await this.#change(() => api.forgetAll(), () => { this._gone = []; });
    /** @type {HTMLElement | null} */ (this.querySelector('[data-testid="memory-close"]'))?.focus();
  }
}

/** Those that Navi proposes have words of the page's; others are as they were made. @param {string} category */
function categoryName(category) {
  const key = `memory.category.${category}`;
  return hasText(key) ? t(key) : plainName(category);
}

/** What a fact may be about: what Navi proposes, and what is there beside it. @param {Fact[]} facts */
const categories = (facts) =>
  [...new Set([...CATEGORIES, ...facts.map(({ category }) => category)])].map((id) => ({ id, name: categoryName(id) }));

function skeleton() {
  return html`<div class="skeleton" role="status"
    aria-label=${t('app.loading')}><div class="bone"></div><div class="bone"></div><div
      class="bone short"></div></div>`;
}

customElements.define('navi-memory', NaviMemory);
