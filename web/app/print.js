// On paper a conversation is whole, whatever of it is drawn on the screen.

import { loadEarlier } from './session.js';
import { openId, printing, session } from './signals.js';

/** No message has it: all of them are read. */
const NONE = '';

/** Whoever prints by the browser's own menu gets all that was read by then. */
export function followPrinting() {
  addEventListener('beforeprint', () => printing.set(true));
  addEventListener('afterprint', () => printing.set(false));
}

/** Prints the open conversation, once all of it is there; where it cannot be read, that is told. */
export async function printConversation() {
  const id = openId.get();
  if ((session.get()?.earlier ?? 0) > 0) await loadEarlier(NONE);
  if (id !== openId.get() || session.get()?.earlier !== 0) return;
  printing.set(true);
  // It is drawn, and laid out.
  for (let frame = 0; frame < 2; frame += 1) await new Promise((resolve) => { requestAnimationFrame(resolve); });
  print();
}
