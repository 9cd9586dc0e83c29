// What of a model's prompt was read before, what broke that and what it cost, in a sentence.

/** @import { CallInfo, CallPrefix } from '../state/wire.js' */

import { t } from '../i18n/index.js';
import { formatCount, formatDuration, formatMoney } from './format.js';

/** @param {CallPrefix} prefix */
export function prefixWords({ broken_by, kept_tokens, read_again_tokens, counted, read_again_ms, cost }) {
  const count = (/** @type {number} */ n) => ({ n, count: `${counted ? '' : '≈ '}${formatCount(n)}` });
  if (broken_by == null) return t('runs.prefix.whole', count(kept_tokens));
  const again = read_again_tokens === 0
    ? t('runs.prefix.nothing')
    : t('runs.prefix.again', count(read_again_tokens));
  const spent = [
    ...(read_again_ms == null ? [] : [formatDuration(read_again_ms)]),
    ...(cost == null ? [] : [formatMoney(cost.amount, cost.currency)]),
  ];
  return `${t(`runs.prefix.${broken_by}`)}: ${[again, ...spent].join(', ')}`;
}

/**
 * The newest call that had something read again; where none had, the newest that was compared.
 * @param {CallInfo[]} calls
 * @returns {CallPrefix | null}
 */
export function lastPrefix(calls) {
  const prefixes = calls.flatMap(({ prefix }) => (prefix == null ? [] : [prefix]));
  return prefixes.findLast(({ read_again_tokens }) => read_again_tokens > 0) ?? prefixes.at(-1) ?? null;
}
