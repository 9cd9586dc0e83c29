// Numbers, sizes and times as a person reads them, in the chosen language.

import { language, t } from '../i18n/index.js';

/** @param {number} bytes */
export function formatBytes(bytes) {
  const units = /** @type {const} */ (['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte']);
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return new Intl.NumberFormat(language.get(), {
    style: 'unit', unit: units[step], unitDisplay: 'short', maximumFractionDigits: step > 2 ? 1 : 0,
  }).format(bytes / 1000 ** step);
}

/** @param {number} tokens */
export function formatTokens(tokens) {
  return new Intl.NumberFormat(language.get(), { notation: 'compact', maximumFractionDigits: 1 }).format(tokens);
}

/** What is below a cent keeps two digits that say something. @param {number} amount @param {string} currency three letters */
export function formatMoney(amount, currency) {
  const small = amount > 0 && amount < 0.01;
  return new Intl.NumberFormat(language.get(), { style: 'currency', currency, ...(small ? { maximumSignificantDigits: 2 } : {}) }).format(amount);
}

/** @param {number} ms */
export function formatDuration(ms) {
  if (ms < 1000) return t('time.ms', { n: Math.round(ms) });
  const seconds = ms / 1000;
  if (seconds < 60) {
    const digits = seconds < 10 ? 1 : 0;
    return t('time.s', { n: new Intl.NumberFormat(language.get(), { maximumFractionDigits: digits }).format(seconds) });
  }
  return t('time.min_s', { m: Math.floor(seconds / 60), s: Math.round(seconds % 60) });
}

/** The time alone for today, with its date before; nothing for what is none. @param {string} iso */
export function formatTime(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '';
  const today = at.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(language.get(), today ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' }).format(at);
}

/** A text of the service, which begins small, as a sentence. @param {string} text */
export function sentence(text) {
  const begun = text.charAt(0).toLocaleUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
