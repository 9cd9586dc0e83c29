// What each setting is for. The service says it in English; another language's words are a file of
// their own, loaded with the first look at the settings.

/** @import { ShownValue } from '../state/wire.js' */
/** @import { Language } from './choose.js' */

import { signal } from '../lit.js';
import { loadPart } from '../net/part.js';
import { language } from './index.js';

/** Those that are here, by their variables. */
const words = signal(/** @type {Partial<Record<Language, Record<string, string>>>} */ ({ en: {} }));

/** Fetches those of the page's language where they are not here yet. */
export async function loadPurposes() {
  const chosen = language.get();
  if (words.get()[chosen] !== undefined) return;
  const { settings } = await loadPart(new URL(`./settings_${chosen}.js`, import.meta.url));
  words.set({ ...words.get(), [chosen]: settings });
}

/** In English until the words are here. @param {ShownValue} setting @returns {ShownValue} */
export function withPurpose(setting) {
  return { ...setting, description: words.get()[language.get()]?.[setting.variable] ?? setting.description };
}
