// Three languages, small dictionaries, no library. `t` reads a signal: a component that calls it
// while it draws is drawn again when the language changes. Only the chosen one is loaded, and the
// words of the panels when the first of them is.

import { signal } from '../vendor/lit.js';

/** A text, or one per plural category (chosen by `n`). `{name}` stands for a parameter.
 * @typedef {Record<string, string | Partial<Record<Intl.LDMLPluralRule, string>> & { other: string }>} Dictionary */
/** @typedef {'en' | 'uk' | 'ru'} Language */

/** Those that were loaded. @type {Partial<Record<Language, Dictionary>>} */
const dictionaries = {};

/** A browser that failed to load a module may keep that in mind: another try has another address. */
let failures = 0;

/** @param {string} name the file's @param {Language} of @returns {Promise<Dictionary>} */
async function load(name, of) {
  try {
    return (await import(`./${name}.js${failures === 0 ? '' : `?again=${failures}`}`))[of];
  } catch (error) {
    failures += 1;
    throw error;
  }
}

/** Those whose panels have their words. @type {Set<Language>} */
const with_panels = new Set();
/** Whether a panel was opened: from then on each language comes with their words. */
let panels_wanted = false;

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
  dictionaries[chosen] ??= await load(chosen, chosen);
  if (panels_wanted) await addPanelWords(chosen);
  language.set(chosen);
  hasWords.set(true);
}

/** The words of what is loaded when it is first opened, in the present language. */
export function withPanelWords() {
  panels_wanted = true;
  return addPanelWords(language.get());
}

/** @param {Language} of */
async function addPanelWords(of) {
  if (with_panels.has(of)) return;
  const words = await load(`${of}.panels`, of);
  dictionaries[of] = { ...dictionaries[of], ...words };
  with_panels.add(of);
}

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
  const found = dictionaries[lang]?.[key] ?? key;
  const text = typeof found === 'string'
    ? found
    : found[new Intl.PluralRules(lang).select(Number(params.n))] ?? found.other;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in params ? String(params[name]) : whole));
}
