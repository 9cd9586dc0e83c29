/** Whether the key belongs to an input method, such as an Enter or an Escape that ends its composition. @param {KeyboardEvent} event */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** Whether a person has nothing in hand: the keyboard may be led to what they are asked. */
export function isKeyboardFree() {
  const at = document.activeElement;
  if (at === null || at === document.body) return true;
  const composer = /** @type {import('./composer.js').NaviComposer | null} */ (at.closest('navi-composer'));
  return composer?.untouched === true && at instanceof HTMLTextAreaElement && at.value === '';
}

/** The key that goes with others, as it is called here. */
export const COMMAND = /Mac|iP/.test(globalThis.navigator?.platform ?? '') ? '⌘' : 'Ctrl';
export const SHIFT = COMMAND === 'Ctrl' ? 'Shift' : '⇧';
