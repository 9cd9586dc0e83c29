// Fields of a form, what is wrong with what stands in them, and what is told only once.

import { language, t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { html, live, nothing } from '../lit.js';
import { errorGroup } from '../state/errors.js';
import { withCode } from './cards.js';
import { copyButton } from './copy.js';
import { sentence } from './format.js';
import { icons } from './icons.js';

/**
 * @typedef {object} Field
 * @property {string} id of its own in the page
 * @property {string} [testid] where it is not the id
 * @property {string} label
 * @property {string} value
 * @property {(value: string) => void} oninput
 * @property {'text' | 'password' | 'number'} [type]
 * @property {string} [autocomplete] what a browser may fill it with
 * @property {string} [hint]
 * @property {number} [max] characters, or the greatest number
 * @property {number} [min] the least number
 * @property {string} [placeholder] what holds where nothing stands in it
 * @property {boolean} [fixed] whether it only shows what stands in it
 */

/** @param {Field} field */
export function field({
  id, testid = id, label, value, oninput, type = 'text', autocomplete = 'off', hint, max, min = 1, placeholder,
  fixed = false,
}) {
  const is_number = type === 'number';
  return html`<div class="field"><label for=${id}>${label}</label>
    <input id=${id} data-testid=${testid} placeholder=${placeholder ?? nothing} type=${type}
      autocomplete=${autocomplete} autocapitalize="off" spellcheck="false" dir=${is_number ? nothing : 'auto'}
      ?readonly=${fixed}
      min=${is_number ? min : nothing} max=${is_number ? max ?? nothing : nothing}
      maxlength=${is_number ? nothing : max ?? nothing} aria-describedby=${hint === undefined ? nothing : `${id}-hint`}
      .value=${live(value)}
      @input=${(/** @type {InputEvent} */ event) => oninput(/** @type {HTMLInputElement} */ (event.target).value)}>
    ${hint === undefined ? nothing : html`<p class="quiet" id="${id}-hint">${hint}</p>`}</div>`;
}

/**
 * By what somebody shows that they are there themselves, where they do what opens all that they may.
 * @param {string} id
 * @param {string} value
 * @param {(value: string) => void} oninput
 */
export function proofField(id, value, oninput) {
  return field({
    id, label: t('account.password_current'), type: 'password', value, autocomplete: 'current-password',
    hint: t('account.proof'), oninput,
  });
}

/**
 * Whether passwords are shown as they are written.
 * @param {boolean} shown
 * @param {(shown: boolean) => void} onchange
 */
export function showSwitch(shown, onchange) {
  return html`<label class="check-label"><input type="checkbox" data-testid="password-show" .checked=${live(shown)}
    @change=${(/** @type {Event} */ event) =>
      onchange(/** @type {HTMLInputElement} */ (event.target).checked)}>${t('signin.show')}</label>`;
}

/** What went wrong, where it was done. @param {string | null} text */
export function fault(text) {
  return text === null
    ? nothing
    : html`<p class="fault" role="alert" data-testid="fault">${icons.warning}<span>${withCode(text)}</span></p>`;
}

/** Of what kind it is tells nobody what to do: the service's own words do. */
const TOLD = ['changed', 'forbidden', 'input', 'limited'];

/**
 * The page's words for a refusal.
 * @param {import('../state/types.js').Problem | null} problem
 * @param {Record<string, string>} [words] texts that fit better here, by codes
 */
export function faultText(problem, words = {}) {
  if (problem === null) return null;
  const { code, message, phrase } = problem;
  if (words[code] !== undefined) return words[code];
  if (code === 'invalid_field' || code === 'invalid_json') return sentence(message);
  const group = errorGroup(code);
  const hint = t(`error.${group}.hint`);
  const title = sentence(t(`error.${group}.title`));
  if (!TOLD.includes(group) || message === '') return `${title} ${hint}`;
  // What the service has in English alone comes after the page's advice; for input that only points to it.
  const is_foreign = phrase === undefined && language.get() !== 'en' && group !== 'input';
  return `${title} ${is_foreign ? `${hint} ` : ''}${sentence(phraseText(phrase, message))}`;
}

/**
 * The same of what is only for who shows that they are there themselves.
 * @param {import('../state/types.js').Problem | null} problem
 * @param {Record<string, string>} [words]
 */
export function proofFault(problem, words = {}) {
  const isCurrent = problem?.message.startsWith('current_password') ?? false;
  return faultText(problem, {
    ...words, rate_limited: t('signin.too_many'),
    ...(isCurrent ? { invalid_field: t('account.fault.current') } : {}),
  });
}

/**
 * What nobody tells again, to be copied.
 * @param {string} hint
 * @param {string} label
 * @param {string} text
 * @param {string} testid
 */
export function shownOnce(hint, label, text, testid) {
  return html`<section class="once" role="status" data-testid=${testid}><p>${hint}</p>
    <div class="once-text"><pre tabindex="0"
      aria-label=${label}>${text}</pre>${copyButton(() => text, 'message.copy')}</div></section>`;
}
