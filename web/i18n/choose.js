/** @typedef {'en' | 'uk' | 'ru'} Language */

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
