// The conversation in one canonical text: what two tabs, or one before and after a reload,
// must agree on to the byte. It holds what `messages` of the service hold and nothing else
// (no notices, no durations), so that a live page and a snapshot can be compared.

/** @import { SessionState } from './types.js' */

/**
 * @param {SessionState} state
 * @returns {string}
 */
export function conversationText(state) {
  /** @type {string[]} */
  const lines = [];
  for (const entry of state.entries) {
    if (entry.kind === 'user') {
      lines.push('[user]', entry.content);
      for (const image of entry.images) lines.push(`[image ${image.length}]`);
    } else if (entry.kind === 'assistant') {
      // A message that was cut off before it said anything is nothing to see.
      if (entry.content === '' && entry.thinking === '' && entry.calls.length === 0) continue;
      lines.push('[assistant]');
      if (entry.thinking !== '') lines.push('[thinking]', entry.thinking);
      if (entry.content !== '') lines.push(entry.content);
      for (const call of entry.calls) {
        lines.push(`[call ${call.name}]`, canonicalJson(call.args));
        lines.push('[result]', call.result ?? '');
      }
    }
  }
  return lines.join('\n');
}

/**
 * JSON with sorted keys: the order in which a store gives them back means nothing.
 * @param {unknown} value
 * @returns {string}
 */
function canonicalJson(value) {
  return JSON.stringify(value, (_key, item) => (item !== null && typeof item === 'object' && !Array.isArray(item)
    ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
    : item)) ?? 'null';
}
