// Runs before the first paint: a chosen appearance does not flash the other one, and the words of the
// chosen language come beside the page's own script.

import { chooseLanguage } from './i18n/choose.js';

/** @param {string} key */
const kept = (key) => {
  try {
    return localStorage.getItem(key);
  } catch {
    // Storage is forbidden: the system's appearance and language serve.
    return null;
  }
};

const theme = kept('navi.theme');
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;

const { src } = /** @type {HTMLScriptElement} */ (document.currentScript);
const words = document.createElement('link');
words.rel = 'modulepreload';
words.href = new URL(`${chooseLanguage([kept('navi.language'), ...navigator.languages])}.js`, src).href;
document.head.append(words);
