/**
 * Whether the key belongs to an input method, such as an Enter or an Escape that ends its
 * composition.
 * @param {KeyboardEvent} event
 */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** Where one types on the screen, Enter is a new line: there is no Shift to hold. */
export const isPhone = () => matchMedia('(hover: none) and (pointer: coarse)').matches;

/** Whether the key sends what stands in a field of many lines. @param {KeyboardEvent} event */
export const isSending = (event) => event.key === 'Enter' && !event.shiftKey
  && (!isPhone() || event.ctrlKey || event.metaKey);

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
