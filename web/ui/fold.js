import { toggleFolded } from '../app/prefs.js';
import { focusWanted } from '../app/signals.js';

/**
 * Folds the list of conversations, or unfolds it. The button that was pressed is gone then: the
 * keyboard goes to the one that undoes it.
 * @param {'sidebar-fold' | 'sidebar-unfold'} other that button
 */
export function fold(other) {
  toggleFolded();
  focusWanted.set(other);
}

/**
 * Takes the keyboard to such a button, once it is in sight.
 * @param {'sidebar-fold' | 'sidebar-unfold'} name
 * @param {Element} host
 */
export function focusFold(name, host) {
  if (focusWanted.get() !== name) return;
  focusWanted.set(null);
  requestAnimationFrame(() => /** @type {HTMLElement | null} */ (host.querySelector(`.${name}`))?.focus());
}
