// What stands at the end of a conversation: errors with what to do, and how a run ended.

/** @import { Ending, Problem } from '../state/types.js' */
/** @import { TemplateResult } from '../lit.js' */

import { continueRun } from '../app/session.js';
import { connection, isGuest } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { html, nothing } from '../lit.js';
import { errorGroup } from '../state/errors.js';
import { icons } from './icons.js';

/**
 * Text in which `backquoted` words are code.
 * @param {string} text
 */
export function withCode(text) {
  return text.split('`').map((part, i) => (i % 2 === 0 ? part : html`<code>${part}</code>`));
}

/**
 * @param {Problem} error
 * @param {TemplateResult | typeof nothing} [actions]
 */
export function errorCard(error, actions = nothing) {
  const group = errorGroup(error.code);
  return html`<section class="card error" role="alert" data-testid="error-card" data-code=${error.code}>
    <span class="card-icon">${icons.warning}</span>
    <div class="card-text">
      <h2>${t(`error.${group}.title`)}</h2>
      <p>${withCode(t(`error.${group}.hint`))}</p>
      ${error.message === '' ? nothing : html`<p class="card-detail">${phraseText(error.phrase, error.message)}</p>`}
      ${actions === nothing ? nothing : html`<div class="card-actions">${actions}</div>`}
    </div>
  </section>`;
}

/**
 * @param {Ending} ending
 * @param {boolean} can_continue
 */
export function endingCard(ending, can_continue) {
  const button = can_continue && !isGuest.get()
    ? html`<button type="button" class="button" data-testid="continue"
      ?disabled=${connection.get() !== 'open'} @click=${continueRun}>${icons.resume}${t('ending.continue')}</button>`
    : nothing;
  if (ending.kind === 'failed') return errorCard(ending, button);
  if (ending.kind === 'stopped') return html`<p class="quiet" data-testid="stopped">${t('ending.stopped')}</p>`;
  const reason = ending.kind === 'interrupted' ? phraseText(ending.phrase, ending.reason) : '';
  return html`<section class="card pause" data-testid=${`${ending.kind}-card`}>
    <span class="card-icon">${icons.stop}</span>
    <div class="card-text">
      <h2>${t(`ending.${ending.kind}.title`)}</h2>
      <p>${t(`ending.${ending.kind}.text`)}</p>
      ${reason === '' ? nothing : html`<p class="card-detail">${reason}</p>`}
      ${button === nothing ? nothing : html`<div class="card-actions">${button}</div>`}
    </div>
  </section>`;
}
