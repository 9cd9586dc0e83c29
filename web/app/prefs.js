// What this browser remembers of its user: language, appearance. What they wrote is in `kept.js`.
// Storage may be full or forbidden: then the page works without a memory.

import { chooseLanguage, language, useLanguage } from '../i18n/index.js';
import { signal } from '../vendor/lit.js';

/** @typedef {'auto' | 'light' | 'dark'} Theme */

export const theme = signal(/** @type {Theme} */ ('auto'));

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
  const kept = storage.get('navi.theme');
  setTheme(kept === 'light' || kept === 'dark' ? kept : 'auto');
}

/**
 * @param {import('../i18n/index.js').Language} chosen
 * @param {boolean} [keep]
 */
export async function setLanguage(chosen, keep = true) {
  if (keep) storage.set('navi.language', chosen);
  try {
    await useLanguage(chosen);
  } catch {
    // The service is away: the next load tries again.
    return;
  }
  document.documentElement.lang = language.get();
}

/** @param {Theme} chosen */
export function setTheme(chosen) {
  theme.set(chosen);
  if (chosen === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  storage.set('navi.theme', chosen === 'auto' ? null : chosen);
}
