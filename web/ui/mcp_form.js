// A server of tools as a form: what it is, a try that keeps nothing, and what is written then.

/** @import { McpDraft, McpEntry, McpTrial } from '../state/wire.js' */

import { account } from '../app/signals.js';
import { hasText, loadTroubles, t } from '../i18n/index.js';
import { html, nothing, signal } from '../lit.js';
import { api } from '../net/api.js';
import { ofSame } from '../state/draft.js';
import { begun, commandLine, draftOf, isWritten, needsProof, withoutSecrets } from '../state/mcp.js';
import { Asking } from './asking.js';
import { withCode } from './cards.js';
import { NaviElement } from './element.js';
import { fault, field, proofFault, showSwitch } from './fields.js';
import { sentence } from './format.js';
import { icons } from './icons.js';
import { visible } from './visible.js';

/** @typedef {import('../state/mcp.js').McpForm} McpForm */

/** A program may be fetched before it answers. */
const TRY_MS = 150_000;
const NAME_CHARS = 32;

/**
 * `is_held` where another was asked for, and somebody wrote in this one.
 * @typedef {{ form: McpForm, entry: McpEntry | null, is_held: boolean }} OpenForm
 */

/** What is being written, and what it was: it outlives a look elsewhere. */
export const mcpForm = signal(/** @type {OpenForm | null} */ (null));

/** What somebody wrote stays, whatever else is asked for. @param {McpEntry | null} entry null for a new one */
export function openForm(entry) {
  const open = mcpForm.get();
  const is_held = open !== null && isWritten(open.form, open.entry);
  mcpForm.set(is_held ? { ...open, is_held } : { entry, form: begun(entry), is_held });
}

/** What is secret in it stays no longer than what it is written in. */
export function dropSecrets() {
  const open = mcpForm.get();
  if (open !== null) mcpForm.set({ ...open, form: withoutSecrets(open.form, open.entry) });
}

export class NaviMcpForm extends NaviElement {
  static properties = { _trial: { state: true }, _password: { state: true }, _shown: { state: true } };

  constructor() {
    super();
    /** @type {McpTrial | null} */
    this._trial = null;
    /** What was asked last, to ask it again. */
    this._again = () => this.#load();
    /** For a try and what is saved then. */
    this._password = '';
    this._shown = false;
    this._asking = new Asking(this);
    this._trying = new AbortController();
  }

  connectedCallback() {
    super.connectedCallback();
    this.#load();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    // What was started to be tried ends with whoever asked for it.
    this._trying.abort();
  }

  render() {
    const open = mcpForm.get();
    if (open === null) return nothing;
    if (!hasText('mcp.form.name')) return this.#trouble();
    const { form, entry, is_held } = open;
    const is_program = form.kind === 'program';
    const draft = draftOf(form, entry);
    return html`<form class="mcp-form" data-testid="mcp-form" novalidate
      @submit=${(/** @type {Event} */ event) => { event.preventDefault(); this.#save(); }}>
      ${is_held
        ? html`<p class="notice" role="status"
          data-testid="mcp-first">${icons.warning}<span>${t('mcp.form.first')}</span></p>`
        : nothing}
      ${field({ id: 'mcp-name', label: t('mcp.form.name'), value: form.name, max: NAME_CHARS, fixed: entry !== null,
        hint: t('mcp.form.name_hint'), oninput: (name) => this.#set({ name }) })}
      <fieldset class="choices"><legend>${t('mcp.form.kind')}</legend>
        ${/** @type {const} */ (['program', 'address']).map(
          (kind) => html`<label class="choice-line"><input type="radio" name="mcp-kind"
          data-testid="mcp-kind-${kind}" .checked=${form.kind === kind}
          @change=${() => this.#set({ kind })}><span>${t(`mcp.form.kind.${kind}`)}</span></label>`)}</fieldset>
      ${is_program ? this.#program(form) : this.#address(form)}
      <details class="sent-tools"><summary>${t('mcp.form.more')}</summary>
        ${this.#lines('tools', form.tools)}
        ${field({ id: 'mcp-timeout', label: t('mcp.form.timeout'), type: 'number', max: 3600,
          value: form.timeout, placeholder: '60',
          oninput: (timeout) => this.#set({ timeout }) })}
        ${is_program
          ? field({ id: 'mcp-cwd', label: t('mcp.form.cwd'), value: form.cwd, oninput: (cwd) => this.#set({ cwd }) })
          : nothing}</details>
      ${is_program && form.command !== ''
        ? html`<p class="notice" data-testid="mcp-runs">${icons.warning}<span>${t('mcp.form.runs')}
        <code>${visible(commandLine(draft))}</code></span></p>` : nothing}
      ${this.#proof(draft)}
      ${this.#trouble()}
      ${this._trial === null ? nothing : trialResult(this._trial)}
      <p class="row-actions">
        <button type="button" class="button small plain" data-testid="mcp-try" ?disabled=${this._asking.busy}
          @click=${() => this.#try()}>${t('mcp.form.try')}</button>
        <button class="button small" data-testid="mcp-save" ?disabled=${this._asking.busy}>${t('queue.save')}</button>
        <button type="button" class="button small plain" data-testid="mcp-cancel"
          @click=${() => this.#close()}>${t('queue.cancel')}</button>
        ${this._asking.busy
          ? html`<span role="status"><span class="spinner" aria-hidden="true"></span>${t('mcp.form.waits')}</span>`
          : nothing}</p></form>`;
  }

  /** What another one changed meanwhile would be refused again. */
  #trouble() {
    if (isUnproven(this._asking.problem)) return fault(proofFault(this._asking.problem));
    return this._asking.problem?.code === 'change_conflict'
      ? this._asking.card(() => { this._asking.problem = null; this.requestUpdate(); }, t('memory.close'))
      : this._asking.card(this._again);
  }

  #load() {
    this._again = () => this.#load();
    void this._asking.ask(loadTroubles);
  }

  /** By what one shows that one is there oneself, where there is a password. @param {McpDraft} draft */
  #proof(draft) {
    if (account.get()?.has_password !== true || !needsProof(draft)) return nothing;
    return html`${field({
      id: 'mcp-password', label: t('account.password_current'), type: this._shown ? 'text' : 'password',
      value: this._password, autocomplete: 'current-password', hint: t('mcp.form.proof'),
      oninput: (password) => { this._password = password; },
    })}${showSwitch(this._shown, (shown) => { this._shown = shown; })}`;
  }

  /** @param {McpForm} form */
  #program(form) {
    return html`${
      field({ id: 'mcp-command', label: t('mcp.form.command'), value: form.command, placeholder: 'npx',
        oninput: (command) => this.#set({ command }) })}
      ${this.#lines('args', form.args)}${this.#lines('env', form.env)}`;
  }

  /** @param {McpForm} form */
  #address(form) {
    return html`${
      field({ id: 'mcp-url', label: t('mcp.form.url'), value: form.url, placeholder: 'https://example.com/mcp',
        oninput: (url) => this.#set({ url }) })}
      ${this.#lines('headers', form.headers)}`;
  }

  /** @param {'args' | 'env' | 'headers' | 'tools'} name @param {string} value */
  #lines(name, value) {
    return html`<div class="field"><label for="mcp-${name}">${t(`mcp.form.${name}`)}</label>
      <textarea id="mcp-${name}" data-testid="mcp-${name}" rows="3" spellcheck="false" autocapitalize="off"
        autocomplete="off" dir="ltr"
        aria-describedby="mcp-${name}-hint" .value=${value}
        @input=${(/** @type {InputEvent} */ event) =>
          this.#set({ [name]: /** @type {HTMLTextAreaElement} */ (event.target).value })}></textarea>
      <p class="quiet" id="mcp-${name}-hint">${withCode(t(`mcp.form.${name}_hint`))}</p></div>`;
  }

  /** @param {Partial<McpForm>} change */
  #set(change) {
    const open = mcpForm.get();
    if (open === null) return;
    // What was or is tried is another one.
    this._trial = null;
    mcpForm.set({ ...open, form: { ...open.form, ...change }, is_held: false });
    this._trying.abort();
  }

  /** What is written, and under which name. @returns {{ name: string, draft: McpDraft } | null} */
  #written() {
    const open = mcpForm.get();
    if (open === null) return null;
    const name = open.form.name.trim();
    // A path without a name is another one.
    const draft = draftOf(open.form, open.entry);
    return {
      name: name === '' ? ' ' : name,
      draft: this._password !== '' && needsProof(draft) ? { ...draft, current_password: this._password } : draft,
    };
  }

  /** Where something is no number, which a browser gives as nothing: it says so itself. */
  #isUnread() {
    const input = this.querySelector('input:invalid');
    if (!(input instanceof HTMLInputElement)) return false;
    input.closest('details')?.setAttribute('open', '');
    return !input.reportValidity();
  }

  #try() {
    if (this.#isUnread()) return;
    this._again = () => this.#try();
    this._trial = null;
    this._trying = new AbortController();
    void this._asking.ask(async () => {
      const written = this.#written();
      if (written === null) return;
      const limit = setTimeout(() => this._trying.abort(), TRY_MS);
      try {
        this._trial = await ofSame(() => mcpForm.get()?.form,
          () => api.tryMcp(written.name, written.draft, this._trying.signal));
      } finally {
        clearTimeout(limit);
      }
    });
  }

  #save() {
    if (this.#isUnread()) return;
    this._again = () => this.#save();
    void this._asking.ask(async () => {
      const written = this.#written();
      if (written === null) return;
      await api.writeMcp(written.name, written.draft);
      this._password = '';
      this.dispatchEvent(new CustomEvent('navi-mcp-changed', { bubbles: true }));
      this.#close();
    });
  }

  #close() {
    const name = mcpForm.get()?.entry?.name ?? '';
    mcpForm.set(null);
    this.dispatchEvent(new CustomEvent('navi-mcp-closed', { detail: name, bubbles: true }));
  }
}

/** Whether it was not shown who asks. @param {{ code: string, message: string } | null} problem */
const isUnproven = (problem) => problem !== null
  && (problem.code === 'forbidden' || /^(current_password|too many tries)/.test(problem.message));

/** @param {McpTrial} trial */
function trialResult({ tools, problems, error }) {
  return html`<section class="once" role="status" data-testid="mcp-trial"
    data-outcome=${error == null ? 'answered' : 'failed'}>
    ${error == null
      ? html`<p>${t('mcp.form.answers', { n: tools.length })}</p>`
      : html`<p class="row-note warn">${t('mcp.form.failed')} ${visible(sentence(error))}</p>`}
    ${problems.map((problem) => html`<p class="row-note warn">${visible(sentence(problem))}</p>`)}
    ${tools.length === 0
      ? nothing
      : html`<ul class="rows">${
        tools.map(({ name, description, effect }) => html`<li class="row" data-testid="tried-tool" data-tool=${name}>
      <span class="row-icon">${icons.wrench}</span><div class="row-text"><p class="row-title">${visible(name)}</p>
        ${description === '' ? nothing : html`<p class="row-note" dir="auto">${visible(description)}</p>`}
        <p class="row-note">${t(`approval.effect.${effect}`)}</p></div></li>`)}</ul>`}</section>`;
}

customElements.define('navi-mcp-form', NaviMcpForm);
