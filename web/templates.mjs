// Templates are laid out to be read; the browser needs none of that. Where there is a line's end,
// there is one space: HTML takes both for the same, within a tag as between words, but not where
// text stands as it was laid out: a template with a line's end there is refused.

import { readFile } from 'node:fs/promises';
import { parse } from 'acorn';

/** The tags of templates that are HTML. */
const TAGS = new Set(['html', 'svg']);

/** @typedef {import('acorn').AnyNode} AnyNode */

/** @param {unknown} value @returns {AnyNode[]} the templates in it */
function templatesIn(value) {
  if (Array.isArray(value)) return value.flatMap(templatesIn);
  if (value === null || typeof value !== 'object' || !('type' in value)) return [];
  const node = /** @type {AnyNode} */ (value);
  const within = Object.values(node).flatMap(templatesIn);
  return node.type === 'TaggedTemplateExpression' && node.tag.type === 'Identifier' && TAGS.has(node.tag.name) ? [node, ...within] : within;
}

/** What keeps its lines begins and ends, and a line does. */
const LINES = /<(?:pre|textarea)\b|<\/(?:pre|textarea)>|>|\n/g;

/** Throws where a line ends within what keeps its lines. @param {AnyNode} node a template */
function refuseLines(node) {
  if (node.type !== 'TaggedTemplateExpression') return;
  const { quasis, expressions } = node.quasi;
  const refuse = () => { throw new Error(`a line ends in a <pre> or <textarea>: ${quasis.map(({ value }) => value.raw).join('…')}`); };
  /** @type {'outside' | 'tag' | 'within'} */
  let place = 'outside';
  for (const [i, { value }] of quasis.entries()) {
    for (const [part] of value.raw.matchAll(LINES)) {
      if (part === '\n' && place === 'within') refuse();
      else if (part.startsWith('</')) place = 'outside';
      else if (part.startsWith('<')) place = 'tag';
      else if (part === '>' && place === 'tag') place = 'within';
    }
    const inner = place === 'within' && i < expressions.length ? templatesIn(expressions[i]) : [];
    if (inner.some((part) => part.type === 'TaggedTemplateExpression' && part.quasi.quasis.some(({ value }) => value.raw.includes('\n')))) refuse();
  }
}

/**
 * Text of a template, or of a part of one, in one line. A value without quotes takes in what
 * follows it, but for a tag's end.
 * @param {string} text
 */
const inOneLine = (text) => text.replace(/\s*\n\s*(\/?>)?/g, (_all, end, at) => {
  if (end === undefined) return ' ';
  return end === '/>' && !/["']$/.test(text.slice(0, at)) ? ' />' : end;
});

/**
 * A module with its templates in few lines.
 * @param {string} source
 */
export function closeUp(source) {
  const found = templatesIn(parse(source, { ecmaVersion: 'latest', sourceType: 'module' }));
  found.forEach(refuseLines);
  const parts = found.flatMap((node) => (node.type === 'TaggedTemplateExpression' ? node.quasi.quasis : []))
    .sort((a, b) => b.start - a.start);
  return parts.reduce((text, { start, end }) => text.slice(0, start) + inOneLine(text.slice(start, end)) + text.slice(end), source);
}

/** @type {import('esbuild').Plugin} */
export const templates = {
  name: 'templates',
  setup(build) {
    build.onLoad({ filter: /[\\/]ui[\\/][^\\/]+\.js$/ }, async ({ path }) => ({ contents: closeUp(await readFile(path, 'utf8')) }));
  },
};
