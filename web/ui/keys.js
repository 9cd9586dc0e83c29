/** Whether the key belongs to an input method, such as an Enter or an Escape that ends its composition. @param {KeyboardEvent} event */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** The key that goes with others, as it is called here. */
export const COMMAND = /Mac|iP/.test(globalThis.navigator?.platform ?? '') ? '⌘' : 'Ctrl';
