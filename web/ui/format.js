// Numbers, sizes and times as a person reads them, in the chosen language.

import { language, t } from '../i18n/index.js';

/**
 * Formatters are costly to make, and each message has some.
 * @type {Map<string, Intl.NumberFormat | Intl.DateTimeFormat>}
 */
const formatters = new Map();

/**
 * In the chosen language.
 * @template {Intl.NumberFormat | Intl.DateTimeFormat} F
 * @template {Intl.NumberFormatOptions | Intl.DateTimeFormatOptions} O
 * @param {new (language: string, options: O) => F} Format
 * @param {O} options
 * @returns {F}
 */
function formatter(Format, options) {
  const key = `${language.get()} ${Format.name} ${JSON.stringify(options)}`;
  const made = formatters.get(key) ?? new Format(language.get(), options);
  formatters.set(key, made);
  return /** @type {F} */ (made);
}

/** @param {number} bytes */
export function formatBytes(bytes) {
  const units = /** @type {const} */ (['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte']);
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return formatter(Intl.NumberFormat, {
    style: 'unit', unit: units[step], unitDisplay: step === 0 ? 'long' : 'short',
    maximumFractionDigits: step > 2 ? 1 : 0,
  }).format(bytes / 1000 ** step);
}

/** @param {number} count */
export function formatCount(count) {
  return formatter(Intl.NumberFormat, {}).format(count);
}

/** @param {number} tokens */
export function formatTokens(tokens) {
  return formatter(Intl.NumberFormat, { notation: 'compact', maximumFractionDigits: 1 }).format(tokens);
}

/**
 * What is below a cent keeps two digits that say something.
 * @param {number} amount
 * @param {string} currency three letters
 */
export function formatMoney(amount, currency) {
  const small = amount > 0 && amount < 0.01;
  return formatter(Intl.NumberFormat,
    { style: 'currency', currency, ...(small ? { maximumSignificantDigits: 2 } : {}) }).format(amount);
}

/** @param {number} share of one */
export const formatPercent = (share) => formatter(Intl.NumberFormat, { style: 'percent' }).format(share);

/** @param {number} ms */
export function formatDuration(ms) {
  if (ms < 1000) return t('time.ms', { n: Math.round(ms) });
  const seconds = ms / 1000;
  if (seconds < 59.5) {
    const digits = seconds < 10 ? 1 : 0;
    return t('time.s', { n: formatter(Intl.NumberFormat, { maximumFractionDigits: digits }).format(seconds) });
  }
  const whole = Math.round(seconds);
  const [m, s] = [Math.floor(whole / 60), whole % 60];
  return s === 0 ? t('time.min', { m }) : t('time.min_s', { m, s });
}

/** The time alone for today, with its date before; nothing for what is none. @param {string} iso */
export function formatTime(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '';
  const today = at.toDateString() === new Date().toDateString();
  return formatter(Intl.DateTimeFormat,
    today ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' }).format(at);
}

/** A text of the service, which begins small, as a sentence. @param {string} text */
export function sentence(text) {
  const begun = text.charAt(0).toLocaleUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

/**
 * The arguments in a few words, for the folded card.
 * @param {unknown} args
 */
export function brief(args) {
  if (args === null || typeof args !== 'object') return String(args ?? '').slice(0, 120);
  return Object.values(args)
    .filter((value) => typeof value === 'string' || typeof value === 'number')
    .map((value) => String(value).trim().slice(0, 80))
    // Whole texts are the call's freight, not its address.
    .filter((value) => value !== '' && !value.includes('\n'))
    .slice(0, 3)
    .join(' · ');
}
