import { toggleFolded } from '../app/prefs.js';

/**
 * Folds the list of conversations, or unfolds it. The button that was pressed is gone then: the
 * keyboard goes to the one that undoes it.
 * @param {string} other that button's selector
 */
export function fold(other) {
  toggleFolded();
  requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector(other))?.focus());
}
