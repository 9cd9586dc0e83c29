// What this browser remembers of its user: language, appearance. What they wrote is in `kept.js`.
// Storage may be full or forbidden: then the page works without a memory.

import { chooseLanguage } from '../i18n/choose.js';
import { hasWords, languageNames, useLanguage } from '../i18n/index.js';
import { signal } from '../lit.js';

/** @typedef {'auto' | 'light' | 'dark'} Theme */

export const theme = signal(/** @type {Theme} */ ('auto'));
/** Whether the list of conversations is folded away beside the page. */
export const folded = signal(false);

export const storage = {
  /** @param {string} key */
  get(key) {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  },
  /** @param {string} key @param {string | null} value */
  set(key, value) {
    try {
      if (value === null || value === '') localStorage.removeItem(key);
      else localStorage.setItem(key, value);
    } catch {
      // Full or forbidden.
    }
  },
};

export function loadPrefs() {
  void setLanguage(chooseLanguage([storage.get('navi.language'), ...navigator.languages]), false);
  folded.set(storage.get('navi.sidebar') === 'folded');
  const kept = storage.get('navi.theme');
  setTheme(kept === 'light' || kept === 'dark' ? kept : 'auto');
}

/** @typedef {import('../i18n/index.js').Language} Language */

const AGAIN_MS = 1_000;
const MAX_AGAIN_MS = 15_000;
/** The newest choice: an older one is not tried again. @type {Language | null} */
let wanted = null;

/**
 * Goes over to a language as soon as its words can be had.
 * @param {Language} chosen
 * @param {boolean} [keep]
 */
export async function setLanguage(chosen, keep = true) {
  if (keep) storage.set('navi.language', chosen);
  wanted = chosen;
  for (let wait_ms = AGAIN_MS; wanted === chosen; wait_ms = Math.min(2 * wait_ms, MAX_AGAIN_MS)) {
    if (await speaks(chosen)) return;
    // Other words are better than none.
    for (const other of /** @type {Language[]} */ (Object.keys(languageNames))) if (!hasWords.get())
      await speaks(other);
    await new Promise((resolve) => { setTimeout(resolve, wait_ms); });
  }
}

/** @param {Language} chosen */
async function speaks(chosen) {
  try {
    await useLanguage(chosen);
  } catch {
    return false;
  }
  document.documentElement.lang = chosen;
  return true;
}

/** @param {Theme} chosen */
export function setTheme(chosen) {
  theme.set(chosen);
  if (chosen === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  storage.set('navi.theme', chosen === 'auto' ? null : chosen);
}

export function toggleFolded() {
  folded.set(!folded.get());
  storage.set('navi.sidebar', folded.get() ? 'folded' : null);
}
