// Where the keyboard goes on when what had it went.

/** @import { NaviElement } from './element.js' */

/**
 * To the first part that is found, once its element is drawn; nowhere where somebody took it elsewhere meanwhile.
 * @param {NaviElement} host
 * @param {string} selector
 */
export async function focusNext(host, selector) {
  await host.updateComplete;
  const at = document.activeElement;
  if (at === null || at === document.body || at instanceof HTMLDialogElement) focusOn(host, selector);
}

/** @param {Element | null} host @param {string} selector */
export const focusOn = (host, selector) =>
  /** @type {HTMLElement | null | undefined} */ (host?.querySelector(selector))?.focus();
