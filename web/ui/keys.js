/** Whether the key belongs to an input method, such as an Enter or an Escape that ends its composition. @param {KeyboardEvent} event */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;
