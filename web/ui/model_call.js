// One call of a model in the panel of its run: what was sent, message by message, and the reply.

/** @import { CallDetails, CallInfo, ChatMessage, ChatRequest } from '../state/wire.js' */

import { pageError } from '../app/actions.js';
import { hasText, t } from '../i18n/index.js';
import { html, nothing } from '../lit.js';
import { api } from '../net/api.js';
import { tokensPerSecond } from '../state/pace.js';
import { errorCard } from './cards.js';
import { copyButton } from './copy.js';
import { NaviElement } from './element.js';
import { formatBytes, formatDuration, formatTokens } from './format.js';
import { icons } from './icons.js';
import { prefixWords } from './prefix.js';
import { visible } from './visible.js';

const BRIEF_CHARS = 120;

export class NaviModelCall extends NaviElement {
  static properties = {
    run: { attribute: false }, call: { attribute: false }, _sent: { state: true }, _problem: { state: true },
  };

  constructor() {
    super();
    this.run = '';
    this.call = /** @type {CallInfo} */ (/** @type {unknown} */ (null));
    /** @type {CallDetails | null} */
    this._sent = null;
    /** @type {{ code: string, message: string } | null} */
    this._problem = null;
  }

  firstUpdated() {
    void this.#load();
  }

  async #load() {
    this._problem = null;
    try {
      this._sent = await api.runCall(this.run, this.call.n);
    } catch (error) {
      this._problem = pageError(error);
    }
  }

  render() {
    if (this._problem !== null) return errorCard(this._problem,
      html`<button type="button" class="button small" data-testid="call-retry"
        @click=${() => void this.#load()}>${t('subagent.retry')}</button>`);
    const sent = this._sent;
    if (sent === null) return html`<p class="quiet loading" role="status"
      data-testid="call-loading"><span class="spinner" aria-hidden="true"></span>${t('app.loading')}</p>`;
    const { request, reply } = sent;
    return html`<div data-testid="call-sent" data-exact=${String(sent.exact)}>
      ${sent.exact ? nothing : html`<p class="row-note warn" data-testid="call-inexact">${t('runs.inexact')}</p>`}
      ${requestParts(request, t('runs.sent'))}
      <div class="tool-label"><span>${t('runs.reply')}</span></div>
      ${reply == null ? html`<p class="quiet">${t('runs.no_reply')}</p>` : html`
        ${part('thinking', reply.thinking ?? '')}${part('text', reply.content ?? '')}
        ${(reply.tool_calls
          ?? []).map(({ name, arguments: args }) => html`<div class="tool-label"><span>${name}</span></div>
          <pre tabindex="0" class="tool-text"
            data-testid="call-reply-tool">${visible(JSON.stringify(args, null, 2) ?? '')}</pre>`)}`}
    </div>`;
  }
}

/** What a model is sent, message by message. @param {ChatRequest} request @param {string} label */
export function requestParts(request, label) {
  return html`${options(request)}
    <div class="tool-label"><span>${label}</span>${
      copyButton(() => JSON.stringify(request, null, 2), 'message.copy')}</div>
    <ol class="sent">${request.messages.map(message)}</ol>
    ${(request.tools ?? []).length === 0
      ? nothing
      : html`<details class="sent-tools"><summary>${t('runs.tools', { n: request.tools.length })}</summary>
      <pre tabindex="0" class="tool-text">${visible(JSON.stringify(request.tools, null, 2))}</pre></details>`}`;
}

/** @param {'text' | 'thinking'} kind @param {string} text */
function part(kind, text) {
  if (text === '') return nothing;
  return html`<p class="row-note">${t(`runs.part.${kind}`)}</p><pre tabindex="0" class="tool-text" dir="auto"
    data-testid=${`call-reply-${kind}`}>${visible(text)}</pre>`;
}

/** @param {ChatRequest} request */
function options({ model, temperature, think, context_window, max_output_tokens }) {
  const words = [
    model,
    temperature === undefined ? '' : t('runs.option.temperature', { n: Math.round(temperature * 100) / 100 }),
    think === undefined ? '' : t(think ? 'runs.option.think' : 'runs.option.no_think'),
    context_window === undefined ? '' : t('runs.option.window', { n: formatTokens(context_window) }),
    max_output_tokens == null ? '' : t('runs.option.most', { n: formatTokens(max_output_tokens) }),
  ];
  return html`<p class="row-note" data-testid="call-options">${words.filter((word) => word !== '').join(' · ')}</p>`;
}

/** @param {ChatMessage} sent */
function message(sent) {
  const { role, content } = sent;
  const images = role === 'user' ? sent.images : [];
  const tool_calls = role === 'assistant' ? sent.tool_calls : [];
  const begin = content.trim().split('\n', 1)[0].slice(0, BRIEF_CHARS);
  const calls = tool_calls.map((call) => call.name).join(', ');
  return html`<li><details data-testid="sent-message" data-role=${role}>
    <summary><b>${t(`runs.role.${role}`)}</b>${role === 'tool' ? html` <code>${sent.name}</code>` : nothing}
      <span class="run-brief" dir="auto">${visible(begin === '' ? calls : begin)}</span></summary>
    ${content === '' ? nothing : html`<pre tabindex="0" class="tool-text" dir="auto">${visible(content)}</pre>`}
    ${images.length === 0
      ? nothing
      : html`<p class="row-note">${
        images.map((image) => t('runs.image', { size: formatBytes(image.length * 0.75) })).join(' · ')}</p>`}
    ${tool_calls.map((call) => html`<p class="row-note"><code>${call.name}</code></p><pre tabindex="0"
      class="tool-text">${visible(JSON.stringify(call.arguments, null, 2) ?? '')}</pre>`)}
  </details></li>`;
}

/** A word of the service that we have one for, or as it is. @param {string} key @param {string} word */
const known = (key, word) => (key.startsWith('runs.') ? word : key);

/** The marks that calls of tools have. @type {Record<string, unknown>} */
const OUTCOMES = { done: icons.check, stopped: icons.stop, failed: icons.cross };

/** What was read again, or not. @param {CallInfo} call */
function prefixLine({ prefix }) {
  if (prefix == null || !hasText('runs.prefix.whole')) return nothing;
  return html`<span class="row-note call-prefix" data-testid="call-prefix"
    data-broken-by=${prefix.broken_by ?? ''}>${prefixWords(prefix)}</span>`;
}

/** The line of a call. @param {CallInfo} call */
export function callTitle(call) {
  const { kind, model, first_chunk_ms, duration_ms, prompt_tokens, completion_tokens, outcome } = call;
  const pace = tokensPerSecond(call);
  return html`<span class="row-title">${known(t(`runs.call.${kind}`), kind)}</span>
    <span class="run-brief">${model}</span>
    <span class="row-note run-end"><span class="tool-state" data-testid="call-outcome"
      data-outcome=${outcome}>${OUTCOMES[outcome]
        ?? nothing}<span class="tool-state-text">${known(t(`runs.outcome.${outcome}`), outcome)}</span></span>
      ${duration_ms == null ? nothing : html`<span data-testid="run-duration">${formatDuration(duration_ms)}</span>`}
      ${first_chunk_ms == null
        ? nothing
        : html`<span>${t('runs.first_chunk', { time: formatDuration(first_chunk_ms) })}</span>`}
      ${prompt_tokens == null && completion_tokens == null
        ? nothing
        : html`<span data-testid="call-tokens">${
          t('runs.tokens',
            { read: formatTokens(prompt_tokens ?? 0), written: formatTokens(completion_tokens ?? 0) })}</span>`}
      ${pace === null
        ? nothing
        : html`<span data-testid="call-pace">${t('runs.pace', { n: formatTokens(pace) })}</span>`}</span>
    ${prefixLine(call)}`;
}

customElements.define('navi-model-call', NaviModelCall);
