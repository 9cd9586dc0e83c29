// Tools that are not Navi's own: the user's folders, the servers of the Model Context Protocol,
// and skills. What was never allowed, or is another one than what was, does not run.

/** @import { ExtensionTool, McpEntry, McpServer, SkillInfo } from '../state/wire.js' */

import { pageError } from '../app/actions.js';
import { isAdmin } from '../app/signals.js';
import { hasText, loadTroubles, t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { api } from '../net/api.js';
import { errorCard } from './cards.js';
import { NaviElement } from './element.js';
import { focusNext, focusOn } from './focus.js';
import { sentence } from './format.js';
import { icons } from './icons.js';
import { mcpForm, openForm } from './mcp_form.js';
import { visible } from './visible.js';
import './extension_add.js';

/**
 * What has the keyboard once a button did what it says and went; any other has it again.
 * @type {Record<string, string>}
 */
const NEXT = {
  'mcp-remove': 'mcp-undo', 'mcp-undo': 'mcp-edit', 'tool-allow': 'tool-forbid', 'tool-forbid': 'tool-allow',
};
/** So much of a hash is enough to compare by eye; the whole is in the title. */
const HASH_CHARS = 16;
/** Folders change and servers come and go while this is looked at. */
const LOOK_EVERY_MS = 4_000;

export class NaviExtensions extends NaviElement {
  static properties = {
    _tools: { state: true }, _servers: { state: true }, _skills: { state: true }, _problem: { state: true },
    _busy: { state: true }, _removed: { state: true },
  };

  constructor() {
    super();
    /** @type {ExtensionTool[] | null} */
    this._tools = null;
    /** @type {McpServer[] | null} */
    this._servers = null;
    /** @type {SkillInfo[] | null} */
    this._skills = null;
    /** @type {{ code: string, message: string } | null} */
    this._problem = null;
    /** What did not come about, to ask it again. */
    this._again = () => void this.#load();
    /** What is being changed, by name. */
    this._busy = '';
    /** The server that was taken out last, by its name. */
    this._removed = '';
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this._timer = undefined;
  }

  connectedCallback() {
    super.connectedCallback();
    void this.#load();
    this._timer = setInterval(() => { if (this._busy === '' && this._problem === null) void this.#load(); },
      LOOK_EVERY_MS);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    clearInterval(this._timer);
  }

  render() {
    const tools = this._tools;
    const servers = this._servers;
    const skills = this._skills;
    const canAdd = isAdmin.get() && hasText('extensions.add');
    const own = tools?.filter(({ kind }) => kind === 'user') ?? [];
    return html`<p class="quiet">${t('extensions.hint')}</p>
      ${this.#trouble()}
      <h3>${t('extensions.tools')}</h3>
      ${tools === null
        ? nothing
        : own.length === 0 ? html`<p class="quiet" data-testid="tools-empty">${t('extensions.no_tools')}</p>`
        : html`<ul class="rows">${repeat(own, ({ name }) => name, (tool) => this.#tool(tool))}</ul>`}
      ${canAdd ? html`<navi-extension-add what="tool"></navi-extension-add>` : nothing}
      <h3>${t('extensions.mcp')}</h3>
      ${servers === null
        ? nothing
        : servers.length === 0 ? html`<p class="quiet" data-testid="mcp-empty">${t('extensions.no_mcp')}</p>`
        : repeat(servers, ({ name }) => name,
          (server) => html`<ul class="rows">${this.#server(server)}${
            repeat(tools?.filter((tool) => tool.server === server.name) ?? [], ({ name }) => name,
              (tool) => this.#tool(tool))}</ul>`)}
      ${this.#undo()}${this.#form()}
      <h3>${t('extensions.skills')}</h3>
      ${skills === null || !hasText('extensions.no_skills')
        ? nothing
        : skills.length === 0 ? html`<p class="quiet" data-testid="skills-empty">${t('extensions.no_skills')}</p>`
        : html`<ul class="rows">${skills.map((skill) => html`<li class="row" data-testid="skill">
        <span class="row-icon">${icons.note}</span><div
          class="row-text"><p class="row-title">${visible(skill.name)}</p><p class="row-note"
          dir="auto">${visible(skill.description)}</p></div></li>`)}</ul>`}
      ${canAdd ? html`<navi-extension-add what="skill"></navi-extension-add>` : nothing}`;
  }

  /** What somebody else changed meanwhile is read anew first. */
  #trouble() {
    if (this._problem === null) return nothing;
    const is_old = this._problem.code === 'change_conflict';
    return errorCard(this._problem, html`<button type="button" class="button small"
      @click=${is_old ? () => void this.#load() : this._again}>${
        t(is_old ? 'setup.diagnostics.again' : 'subagent.retry')}</button>`);
  }

  #form() {
    if (!isAdmin.get() || !hasText('extensions.add')) return nothing;
    const open = mcpForm.get();
    // Another server's form begins with nothing of this one's.
    if (open !== null) return repeat([open], ({ entry }) => entry, () => html`<navi-mcp-form
      @navi-mcp-changed=${() => void this.#load()}
      @navi-mcp-closed=${(/** @type {CustomEvent<string>} */ { detail }) =>
        void focusNext(this, `${buttonOf('mcp-edit', detail)}, [data-testid="mcp-add"]`)}></navi-mcp-form>`);
    return html`<p class="row-actions"><button type="button" class="button small" data-testid="mcp-add"
      aria-label="${t('extensions.add')}: ${t('extensions.mcp')}"
      @click=${() => void this.#open(null)}>${t('extensions.add')}</button></p>`;
  }

  /** It is where the keyboard is then, and in sight. @param {McpEntry | null} entry */
  async #open(entry) {
    openForm(entry);
    await this.updateComplete;
    const form = this.querySelector('navi-mcp-form');
    if (form instanceof NaviElement) await form.updateComplete;
    focusOn(form, 'input');
  }

  /** @param {ExtensionTool} tool */
  #tool({ name, state, kind, description, effect, sha256, folder, problem }) {
    return html`<li class="row" data-testid="extension-tool" data-tool=${name} data-kind=${kind}
      data-state=${state}><span class="row-icon">${icons.wrench}</span>
      <div class="row-text"><p class="row-title">${visible(name)} ${stateTag(state)}</p>
        ${description === '' ? nothing : html`<p class="row-note" dir="auto">${visible(description)}</p>`}
        ${effect === undefined && folder === undefined
          ? nothing
          : html`<p class="row-note">${effect === undefined ? nothing : t(`approval.effect.${effect}`)}${
            folder === undefined ? nothing : html` <span class="hash">${folder}</span>`}</p>`}
        ${problem === undefined ? nothing : html`<p class="row-note warn">${visible(sentence(problem))}</p>`}
        ${state === 'changed' ? html`<p class="row-note warn">${t('extensions.changed')}</p>` : nothing}
        ${sha256 === undefined
          ? nothing
          : html`<p class="row-note hash" title=${sha256}>SHA-256 ${sha256.slice(0, HASH_CHARS)}…</p>`}</div>
      ${(state === 'new' || state === 'changed') && sha256 !== undefined
        ? this.#button('tool-allow', 'extensions.allow', name, 'button small', () => api.allowTool(name, sha256))
        : nothing}
      ${state === 'allowed'
        ? this.#button('tool-forbid', 'extensions.forbid', name, 'button small plain danger',
          () => api.forbidTool(name))
        : nothing}</li>`;
  }

  /** @param {McpServer} server */
  #server({ name, state, transport, last_error, problems, tools, version }) {
    return html`<li class="row" data-testid="mcp-server" data-server=${name}
      data-state=${state}><span class="row-icon">${icons.agent}</span>
      <div class="row-text"><p class="row-title">${visible(name)} ${stateTag(state)}</p>
        <p class="row-note">${transport} · ${t('extensions.offers', { n: tools.length })}</p>
        ${last_error === undefined || state === 'ready'
          ? nothing
          : html`<p class="row-note warn">${visible(sentence(last_error))}</p>`}
        ${problems.map((problem) => html`<p class="row-note warn">${visible(sentence(problem))}</p>`)}
        ${!isAdmin.get() || !hasText('extensions.edit')
          ? nothing
          : html`<p class="row-actions">${
            this.#button('mcp-edit', 'extensions.edit', name, 'button small plain',
              async () => this.#open(await api.mcpEntry(name)))}
          ${this.#button('mcp-remove', 'extensions.remove', name, 'button small plain danger',
            () => this.#remove(name, version))}</p>`}</div>
      ${state === 'starting'
        ? nothing
        : this.#button('mcp-restart', 'extensions.restart', name, 'button small plain',
          () => api.restartServer(name))}</li>`;
  }

  /**
   * @param {string} testid
   * @param {string} label
   * @param {string} name
   * @param {string} classes
   * @param {() => Promise<unknown>} request
   */
  #button(testid, label, name, classes, request) {
    if (!isAdmin.get()) return nothing;
    return html`<button type="button" class=${classes} data-testid=${testid} data-name=${name}
      aria-label="${t(label)}: ${name}" ?disabled=${this._busy !== ''}
      @click=${() => void this.#press(testid, name, request)}>${t(label)}</button>`;
  }

  async #load() {
    this._problem = null;
    const [tools, servers, skills, words] = await Promise.allSettled(
      [api.extensions(), api.mcp(), api.skills(), loadTroubles()]);
    if (tools.status === 'fulfilled') this._tools = tools.value;
    if (servers.status === 'fulfilled') this._servers = servers.value;
    if (skills.status === 'fulfilled') this._skills = skills.value;
    const failed = [tools, servers, skills, words].find(({ status }) => status === 'rejected');
    if (failed?.status !== 'rejected') return;
    this._problem = pageError(failed.reason);
    this._again = () => void this.#load();
  }

  /** The one that is shown. @param {string} name @param {string | undefined} version */
  async #remove(name, version) {
    await api.removeMcp(name, version ?? '');
    this._removed = name;
  }

  /** @param {string} name */
  async #bringBack(name) {
    await api.restoreMcp(name);
    this._removed = '';
  }

  #undo() {
    const name = this._removed;
    if (name === '' || !hasText('extensions.removed')) return nothing;
    return html`<p class="row-actions" role="status"
      data-testid="mcp-removed"><span>${t('extensions.removed', { name })}</span>
      ${this.#button('mcp-undo', 'session.undo', name, 'button small plain', () => this.#bringBack(name))}</p>`;
  }

  /** @param {string} testid @param {string} name @param {() => Promise<unknown>} request */
  async #press(testid, name, request) {
    this._busy = name;
    this._problem = null;
    try {
      await request();
      await this.#load();
    } catch (error) {
      this._problem = pageError(error);
      this._again = () => void this.#press(testid, name, request);
    } finally {
      this._busy = '';
    }
    await focusNext(this, `${buttonOf(NEXT[testid] ?? testid, name)}, ${buttonOf(testid, name)}`);
  }
}

/** @param {string} testid @param {string} name of the tool or the server */
const buttonOf = (testid, name) => `[data-testid="${testid}"][data-name="${CSS.escape(name)}"]`;

/** @param {ExtensionTool['state'] | McpServer['state']} state */
const stateTag = (state) => html`<span class="tag ${state === 'failed' || state === 'changed'
  ? 'failed'
  : ''}">${t(`extensions.state.${state}`)}</span>`;

customElements.define('navi-extensions', NaviExtensions);
