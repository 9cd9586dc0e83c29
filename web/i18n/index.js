// Three languages, small dictionaries, no library. `t` reads a signal: a component that calls it
// while it draws is drawn again when the language changes. Only the chosen one is loaded.

import { signal } from '../lit.js';
import { loadPart } from '../net/part.js';

/** A text, or one per plural category (chosen by `n`). `{name}` stands for a parameter.
 * @typedef {Record<string, string | Partial<Record<Intl.LDMLPluralRule, string>> & { other: string }>} Dictionary */
/** @typedef {import('./choose.js').Language} Language */

/** Those that were loaded. @type {Partial<Record<Language, Dictionary>>} */
const dictionaries = {};
/** Costly to make. @type {Partial<Record<Language, Intl.PluralRules>>} */
const plurals = {};

/** Each language by its own name. */
export const languageNames = /** @type {const} */ ({ en: 'English', uk: 'Українська', ru: 'Русский' });

export const language = signal(/** @type {Language} */ ('en'));
/** Whether there are words to draw with. */
export const hasWords = signal(false);

/**
 * Goes over to a language once its words are here; until then the one before stays.
 * @param {Language} chosen
 */
export async function useLanguage(chosen) {
  dictionaries[chosen] ??= /** @type {Dictionary} */ ((await loadPart(new URL(`./${chosen}.js`, import.meta.url)))[chosen]);
  language.set(chosen);
  hasWords.set(true);
}

/** How often words came later: who drew without them draws again. */
const added = signal(0);
/** Those that come. @type {Partial<Record<Language, Promise<void>>>} */
const troubles = {};

/** Fetches the page's words for what is wrong, which most people never see. */
export function loadTroubles() {
  const chosen = language.get();
  troubles[chosen] ??= addTroubles(chosen);
  return troubles[chosen];
}

/** @param {Language} chosen */
async function addTroubles(chosen) {
  try {
    const { trouble } = await loadPart(new URL(`./trouble_${chosen}.js`, import.meta.url));
    dictionaries[chosen] = { ...dictionaries[chosen], ...trouble };
    added.set(added.get() + 1);
  } catch (error) {
    delete troubles[chosen];
    throw error;
  }
}

/** Whether there are words for it. @param {string} key */
export const hasText = (key) => added.get() >= 0 && dictionaries[language.get()]?.[key] !== undefined;

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
  const found = dictionaries[lang]?.[key] ?? key;
  const text = typeof found === 'string'
    ? found
    : found[(plurals[lang] ??= new Intl.PluralRules(lang)).select(Number(params.n))] ?? found.other;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in params ? String(params[name]) : whole));
}
