// Markdown as it is said aloud: its words without its marks, and what is no words in a few of them.

/** @import { TreeNode } from './tree.js' */

import { MarkdownStream } from './stream.js';

/** What stands for a part that cannot be read out.
 * @typedef {(part: { kind: 'table', rows: number } | { kind: 'code', language: string } | { kind:
 *  'formula' }) => string} Say
 */

const BLOCKS = new Set(['p', 'h3', 'h4', 'h5', 'h6', 'li', 'dt', 'dd', 'hr', 'pre']);
const ENDS = /[.!?…:;,]["'»”’)]*$/u;

/**
 * @param {string} source
 * @param {Say} say
 */
export function plainText(source, say) {
  /** @type {string[]} */
  const lines = [''];
  for (const { node } of new MarkdownStream().update(source, true)) read(node, say, lines);
  return lines.map((line) => line.replace(/\s+/g, ' ').trim()).filter((line) => line !== '')
    .map((line) => (ENDS.test(line) ? line : `${line}.`)).join(' ');
}

/**
 * @param {TreeNode | string} part
 * @param {Say} say
 * @param {string[]} lines
 */
function read(part, say, lines) {
  if (typeof part === 'string') {
    lines[lines.length - 1] += part;
    return;
  }
  const { tag, attrs, children } = part;
  if (attrs.class === 'footnotes') return;
  if (attrs.class === 'table-scroll') lines.push(say({ kind: 'table', rows: rowsIn(part) - 1 }), '');
  else if (tag === 'navi-code') lines.push(say({ kind: 'code', language: attrs['.lang'] }), '');
  else if (tag === 'navi-math') lines[lines.length - 1] += say({ kind: 'formula' });
  else if (tag === 'navi-remote-image') lines[lines.length - 1] += `🖼 ${attrs.alt || attrs.href}`;
  else if (tag === 'br') lines[lines.length - 1] += ' ';
  else {
    if (BLOCKS.has(tag)) lines.push('');
    for (const child of children) read(child, say, lines);
    if (BLOCKS.has(tag)) lines.push('');
  }
}

/** @param {TreeNode | string} part @returns {number} */
const rowsIn = (part) => (typeof part === 'string'
  ? 0
  : part.children.reduce((sum, child) => sum + rowsIn(child), part.tag === 'tr' ? 1 : 0));

/**
 * The beginning of a text, as far as its last whole sentence.
 * @param {string} text
 * @param {number} max_chars
 */
export function beginning(text, max_chars) {
  if (text.length <= max_chars) return text;
  const start = text.slice(0, max_chars);
  const sentences = /^[^]*[.!?…]["'»”’)]*(?=\s)/u.exec(start)?.[0];
  if (sentences !== undefined) return sentences;
  const words = start.lastIndexOf(' ');
  return `${(words > 0 ? start.slice(0, words) : start).trimEnd()}…`;
}
