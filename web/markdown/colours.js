// The colours of code. A file of its own in `dist/`: its grammars are as large as half of all the
// rest.

/** @import { RootContent } from 'hast' */

import { common, createLowlight } from 'lowlight';

/**
 * @typedef {'comment' | 'string' | 'number' | 'keyword' | 'name' | 'type' | 'attribute' | 'added' |
 *  'removed' | ''} Kind
 */
/** @typedef {{ kind: Kind, text: string }} Piece */

/** Longer code is shown plainly. */
const MAX_CHARS = 100_000;

/**
 * What highlight.js calls them:
 * <https://highlightjs.readthedocs.io/en/stable/css-classes-reference.html>.
 * @type {Record<string, Kind>}
 */
const KINDS = {
  addition: 'added', attr: 'attribute', attribute: 'attribute', built_in: 'type', bullet: 'keyword',
  class: 'type', comment: 'comment', deletion: 'removed',
  doctag: 'comment', keyword: 'keyword', literal: 'number', meta: 'comment', name: 'keyword', number: 'number',
  property: 'attribute', quote: 'comment',
  regexp: 'string', section: 'name', 'selector-class': 'name', 'selector-id': 'name', 'selector-tag': 'keyword',
  string: 'string', symbol: 'number',
  tag: 'keyword', 'template-variable': 'attribute', title: 'name', type: 'type', variable: 'attribute',
};

const lowlight = createLowlight(common);

/**
 * @param {string} code
 * @param {string} language
 * @returns {Piece[]}
 */
export function coloured(code, language) {
  const name = language.toLowerCase();
  if (code.length > MAX_CHARS || !lowlight.registered(name)) return [{ kind: '', text: code }];
  return flat(lowlight.highlight(name, code).children, '');
}

/**
 * What stands in something that has no colour of its own has that of what it stands in.
 * @param {RootContent[]} nodes
 * @param {Kind} kind
 * @returns {Piece[]}
 */
function flat(nodes, kind) {
  return nodes.flatMap((node) => {
    if (node.type === 'text') return [{ kind, text: node.value }];
    if (node.type !== 'element') return [];
    const scope = String(/** @type {string[]} */ (node.properties.className)[0]).replace(/^hljs-/, '');
    return flat(node.children, KINDS[scope] ?? kind);
  });
}
