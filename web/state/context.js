// The model's window, divided.

/** @import { ContextParts } from './wire.js' */

/** In the order in which the model reads them; what nobody has taken is last. */
const NAMES = /** @type {const} */ (['system', 'tools', 'memory', 'summary', 'turns', 'answer']);

/**
 * The parts that there are, and what they leave free.
 * @param {ContextParts} parts
 * @returns {{ name: typeof NAMES[number] | 'free', tokens: number }[]}
 */
export function shares(parts) {
  const taken = NAMES.map((name) => ({ name, tokens: parts[name] })).filter(({ tokens }) => tokens > 0);
  const free = parts.window - taken.reduce((sum, { tokens }) => sum + tokens, 0);
  return [...taken, { name: 'free', tokens: Math.max(0, free) }];
}
