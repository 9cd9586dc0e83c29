// Tools that are not Navi's own: the user's folders, the servers of the Model Context Protocol,
// and skills. What was never allowed, or is another one than what was, does not run.

/** @import { ExtensionTool, McpServer, SkillInfo } from '../state/wire.js' */

import { pageError } from '../app/actions.js';
import { isAdmin } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { html, nothing, repeat } from '../lit.js';
import { api } from '../net/api.js';
import { errorCard } from './cards.js';
import { NaviElement } from './element.js';
import { sentence } from './format.js';
import { icons } from './icons.js';
import { mcpForm, openForm } from './mcp_form.js';
import { visible } from './visible.js';
import './extension_add.js';

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
    /** @type {SkillInfo[]} */
    this._skills = [];
    /** @type {{ code: string, message: string } | null} */
    this._problem = null;
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
    const own = tools?.filter(({ kind }) => kind === 'user') ?? [];
    return html`<p class="quiet">${t('extensions.hint')}</p>
      ${this._problem === null
        ? nothing
        : errorCard(this._problem,
          html`<button type="button" class="button small"
            @click=${() => void this.#load()}>${t('subagent.retry')}</button>`)}
      <h3>${t('extensions.tools')}</h3>
      ${tools === null
        ? nothing
        : own.length === 0 ? html`<p class="quiet" data-testid="tools-empty">${t('extensions.no_tools')}</p>`
        : html`<ul class="rows">${repeat(own, ({ name }) => name, (tool) => this.#tool(tool))}</ul>`}
      ${isAdmin.get() ? html`<navi-extension-add what="tool"></navi-extension-add>` : nothing}
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
      ${this._skills.length === 0
        ? html`<p class="quiet">${t('extensions.no_skills')}</p>`
        : html`<ul class="rows">${this._skills.map((skill) => html`<li class="row" data-testid="skill">
        <span class="row-icon">${icons.note}</span><div
          class="row-text"><p class="row-title">${visible(skill.name)}</p><p class="row-note"
          dir="auto">${visible(skill.description)}</p></div></li>`)}</ul>`}
      ${isAdmin.get() ? html`<navi-extension-add what="skill"></navi-extension-add>` : nothing}`;
  }

  #form() {
    if (!isAdmin.get()) return nothing;
    if (mcpForm.get() !== null) return html`<navi-mcp-form
      @navi-mcp-changed=${() => void this.#load()}></navi-mcp-form>`;
    return html`<p class="row-actions"><button type="button" class="button small" data-testid="mcp-add"
      aria-label="${t('extensions.add')}: ${t('extensions.mcp')}"
      @click=${() => openForm(null)}>${t('extensions.add')}</button></p>`;
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
  #server({ name, state, transport, last_error, problems, tools }) {
    return html`<li class="row" data-testid="mcp-server" data-server=${name}
      data-state=${state}><span class="row-icon">${icons.agent}</span>
      <div class="row-text"><p class="row-title">${visible(name)} ${stateTag(state)}</p>
        <p class="row-note">${transport} · ${t('extensions.offers', { n: tools.length })}</p>
        ${last_error === undefined || state === 'ready'
          ? nothing
          : html`<p class="row-note warn">${visible(sentence(last_error))}</p>`}
        ${problems.map((problem) => html`<p class="row-note warn">${visible(sentence(problem))}</p>`)}
        ${!isAdmin.get()
          ? nothing
          : html`<p class="row-actions">${
            this.#button('mcp-edit', 'extensions.edit', name, 'button small plain',
              async () => openForm(await api.mcpEntry(name)))}
          ${this.#button('mcp-remove', 'extensions.remove', name, 'button small plain danger',
            () => this.#remove(name))}</p>`}</div>
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
    return html`<button type="button" class=${classes} data-testid=${testid} aria-label="${t(label)}: ${name}"
      ?disabled=${this._busy !== ''} @click=${() => void this.#change(name, request)}>${t(label)}</button>`;
  }

  async #load() {
    this._problem = null;
    const [tools, servers, skills] = await Promise.allSettled([api.extensions(), api.mcp(), api.skills()]);
    if (tools.status === 'fulfilled') this._tools = tools.value;
    if (servers.status === 'fulfilled') this._servers = servers.value;
    if (skills.status === 'fulfilled') this._skills = skills.value;
    const failed = [tools, servers, skills].find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') this._problem = pageError(failed.reason);
  }

  /** @param {string} name */
  async #remove(name) {
    const { version } = await api.mcpEntry(name);
    await api.removeMcp(name, version);
    this._removed = name;
  }

  /** @param {string} name */
  async #bringBack(name) {
    await api.restoreMcp(name);
    this._removed = '';
  }

  #undo() {
    const name = this._removed;
    if (name === '') return nothing;
    return html`<p class="row-actions" role="status"
      data-testid="mcp-removed"><span>${t('extensions.removed', { name })}</span>
      ${this.#button('mcp-undo', 'session.undo', name, 'button small plain', () => this.#bringBack(name))}</p>`;
  }

  /** @param {string} name @param {() => Promise<unknown>} request */
  async #change(name, request) {
    this._busy = name;
    try {
      await request();
      await this.#load();
    } catch (error) {
      this._problem = pageError(error);
    } finally {
      this._busy = '';
    }
  }
}

/** @param {ExtensionTool['state'] | McpServer['state']} state */
const stateTag = (state) => html`<span class="tag ${state === 'failed' || state === 'changed'
  ? 'failed'
  : ''}">${t(`extensions.state.${state}`)}</span>`;

customElements.define('navi-extensions', NaviExtensions);
