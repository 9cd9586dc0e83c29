// Templates are laid out to be read; the browser needs none of that. Where there is a line's end,
// there is one space: HTML takes both for the same, within a tag as between words.

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

/**
 * A module with its templates in few lines.
 * @param {string} source
 */
export function closeUp(source) {
  const parts = templatesIn(parse(source, { ecmaVersion: 'latest', sourceType: 'module' }))
    .flatMap((node) => (node.type === 'TaggedTemplateExpression' ? node.quasi.quasis : []))
    .sort((a, b) => b.start - a.start);
  return parts.reduce((text, { start, end }) => text.slice(0, start)
    + text.slice(start, end).replace(/\s*\n\s*(\/?>)?/g, (_all, end = ' ') => end)
    + text.slice(end), source);
}

/** @type {import('esbuild').Plugin} */
export const templates = {
  name: 'templates',
  setup(build) {
    build.onLoad({ filter: /[\\/]ui[\\/][^\\/]+\.js$/ }, async ({ path }) => ({ contents: closeUp(await readFile(path, 'utf8')) }));
  },
};
