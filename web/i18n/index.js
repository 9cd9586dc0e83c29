// Three languages, small dictionaries, no library. `t` reads a signal: a component that calls it
// while it draws is drawn again when the language changes.

import { signal } from '../vendor/lit.js';
import { en } from './en.js';
import { ru } from './ru.js';
import { uk } from './uk.js';

/** A text, or one per plural category (chosen by `n`). `{name}` stands for a parameter.
 * @typedef {Record<string, string | Partial<Record<Intl.LDMLPluralRule, string>> & { other: string }>} Dictionary */
/** @typedef {'en' | 'uk' | 'ru'} Language */

/** @type {Record<Language, Dictionary>} */
export const dictionaries = { en, uk, ru };

/** Each language by its own name. */
export const languageNames = /** @type {const} */ ({ en: 'English', uk: 'Українська', ru: 'Русский' });

export const language = signal(/** @type {Language} */ ('en'));

/**
 * The first of the wanted languages that there is.
 * @param {readonly (string | null | undefined)[]} wanted
 * @returns {Language}
 */
export function chooseLanguage(wanted) {
  for (const tag of wanted) {
    const base = (tag ?? '').toLowerCase().split('-')[0];
    if (base === 'en' || base === 'uk' || base === 'ru') return base;
  }
  return 'en';
}

/**
 * @param {string} key
 * @param {Record<string, string | number>} [params]
 * @returns {string}
 */
export function t(key, params = {}) {
  return translate(language.get(), key, params);
}

/**
 * @param {Language} lang
 * @param {string} key
 * @param {Record<string, string | number>} params
 */
export function translate(lang, key, params) {
  const found = dictionaries[lang][key] ?? en[key] ?? key;
  const text = typeof found === 'string'
    ? found
    : found[new Intl.PluralRules(lang).select(Number(params.n))] ?? found.other;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in params ? String(params[name]) : whole));
}
