// What Navi may do: the rules that were made, what was allowed and by whom, what keeps her tools
// in, and the tools that come from outside. Loaded when it is opened.

/** @import { ConsentEntry, ConsentRule } from '../state/wire.js' */

import { pageError, sessionHref } from '../app/actions.js';
import { isGuest, panel, sessions, status } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { html, nothing, repeat } from '../lit.js';
import { api } from '../net/api.js';
import { errorCard, withCode } from './cards.js';
import { formatTime } from './format.js';
import { icons, toolIcon } from './icons.js';
import { dropSecrets } from './mcp_form.js';
import { holes } from './mode.js';
import { NaviPanel } from './panel.js';
import { visible, visibleWords } from './visible.js';
import './extensions.js';

/** @typedef {{ code: string, message: string }} Problem */

const TABS = /** @type {const} */ (['rules', 'log', 'extensions']);

export class NaviPermissions extends NaviPanel {
  static properties = {
    _tab: { state: true }, _rules: { state: true }, _log: { state: true }, _next: { state: true },
    _problem: { state: true }, _busy: { state: true },
  };

  constructor() {
    super();
    /** @type {typeof TABS[number]} */
    this._tab = 'rules';
    /** @type {ConsentRule[] | null} */
    this._rules = null;
    /** @type {ConsentEntry[] | null} */
    this._log = null;
    /** Where the list goes on, if it does. @type {string | null} */
    this._next = null;
    /** @type {Problem | null} */
    this._problem = null;
    this._busy = false;
    /** What was asked last, to ask it again. @type {() => Promise<void>} */
    this._asked = async () => {};
  }

  firstUpdated() {
    super.firstUpdated();
    void this.#load();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    dropSecrets();
  }

  render() {
    const open = holes(status.get()?.fence);
    return this.frame('permissions', t('permissions.title'), html`
      ${open.length === 0
        ? nothing
        : html`<ul class="fence-list"
          data-testid="fence-list">${
            open.map((text) => html`<li>${icons.warning}<span>${withCode(text)}</span></li>`)}</ul>`}
      ${this.tabs(t('permissions.title'), TABS, this._tab, {
        title: (name) => t(`permissions.tab.${name}`),
        show: (name) => this.#show(name),
        content: html`${this._problem === null
          ? nothing
          : errorCard(this._problem,
            html`<button type="button" class="button small"
              @click=${() => void this.#ask(this._asked)}>${t('subagent.retry')}</button>`)}
          ${this._tab === 'rules'
            ? this.#ruleList()
            : this._tab === 'log' ? this.#logList() : html`<navi-extensions></navi-extensions>`}`,
      })}`);
  }

  #ruleList() {
    const rules = this._rules;
    return html`<p class="quiet">${t('permissions.rules_hint')}</p>
      ${rules === null
        ? nothing
        : rules.length === 0
          ? html`<p class="quiet panel-empty" data-testid="rules-empty">${t('permissions.no_rules')}</p>`
        : html`<ul class="rows">${repeat(rules, ({ id }) => id,
          (rule) => html`<li class="row" data-testid="rule" data-rule-id=${rule.id} data-tool=${rule.tool}
            data-decision=${rule.decision}>
          <span class="row-icon">${toolIcon(rule.tool)}</span>
          <div class="row-text"><p class="row-title" dir="auto">${visibleWords(phraseText(rule.phrase, rule.words))}</p>
            <p class="row-note"><span class="tag ${rule.decision === 'deny'
                ? 'failed'
                : ''}">${t(`permissions.decision.${rule.decision}`)}</span> ${rule.tool} ·
                  <time datetime=${rule.created_at}>${formatTime(rule.created_at)}</time></p></div>
          ${isGuest.get()
            ? nothing
            : html`<button type="button" class="button small plain danger" data-testid="rule-delete"
              aria-label="${t('permissions.forget_rule')}: ${phraseText(rule.phrase, rule.words)}"
              ?disabled=${this._busy}
              @click=${() => void this.#forget(rule.id)}>${
                icons.trash}<span>${t('permissions.forget_rule')}</span></button>`}</li>`)}</ul>`}`;
  }

  #logList() {
    const log = this._log;
    return html`<p class="quiet">${t('permissions.log_hint')}</p>
      ${log === null
        ? nothing
        : log.length === 0 ? html`<p class="quiet panel-empty" data-testid="log-empty">${t('permissions.no_log')}</p>`
        : html`<ul class="rows">${repeat(log, ({ id }) => id, logRow)}</ul>`}
      ${this._next === null
        ? nothing
        : html`<button type="button" class="link-button" data-testid="log-more" ?disabled=${this._busy}
          @click=${() => void this.#more()}>${t('permissions.more')}</button>`}`;
  }

  /** @param {typeof TABS[number]} tab */
  #show(tab) {
    this._tab = tab;
    this._problem = null;
    void this.#load();
  }

  async #load() {
    await this.#ask(async () => {
      if (this._tab === 'rules') this._rules = await api.rules();
      if (this._tab === 'log') {
        const { entries, next } = await api.decisions(null);
        this._log = entries;
        this._next = next;
      }
    });
  }

  async #more() {
    await this.#ask(async () => {
      const { entries, next } = await api.decisions(this._next);
      this._log = [...(this._log ?? []), ...entries];
      this._next = next;
    });
  }

  /** @param {string} id */
  async #forget(id) {
    await this.#ask(async () => {
      await api.forgetRule(id);
      this._rules = await api.rules();
    });
    /** @type {HTMLElement | null} */ (this.querySelector('#tab-rules'))?.focus();
  }

  /** @param {() => Promise<void>} request */
  async #ask(request) {
    this._asked = request;
    this._problem = null;
    this._busy = true;
    try {
      await request();
    } catch (error) {
      this._problem = pageError(error);
    } finally {
      this._busy = false;
    }
  }
}

/** @param {ConsentEntry} entry */
function logRow(entry) {
  const session = sessions.get().list.find(({ id }) => id === entry.session_id);
  return html`<li class="row" data-testid="log-entry" data-decision=${entry.decision} data-by=${entry.by}
    data-tool=${entry.tool}>
    <span class="row-icon ${entry.decision}">${entry.decision === 'allow' ? icons.check : icons.cross}</span>
    <div class="row-text"><p class="row-title"
      dir="auto">${visibleWords(phraseText(entry.phrases?.summary, entry.summary))}</p>
      <p class="row-note"><b>${t(`permissions.decided.${entry.decision}`)}</b>
        ${t(`permissions.by.${entry.by}`)}${entry.rule === undefined
          ? nothing
          : html` <q dir="auto"
            data-testid="log-rule">${visibleWords(phraseText(entry.phrases?.rule, entry.rule))}</q>`} · ${entry.tool}
              · ${t(`approval.effect.${entry.effect}`)} · <time datetime=${entry.at}>${formatTime(entry.at)}</time>${
        session === undefined
          ? nothing
          : html` · <a href=${sessionHref(session.id)} dir="auto"
            @click=${() => panel.set(null)}>${session.title || t('sidebar.untitled')}</a>`}</p>
      ${entry.note === undefined
        ? nothing
        : html`<p class="row-note" data-testid="log-note">${t('approval.said')}
          <q dir="auto">${visible(entry.note)}</q></p>`}</div></li>`;
}

customElements.define('navi-permissions', NaviPermissions);
