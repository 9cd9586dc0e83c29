// A table of many rows: they stand in groups, and those out of sight are not laid out. For that its
// columns have widths that do not depend on all the rows: those of the first ones say how wide.
// Laid out so, its parts are no table's by themselves to every browser: they say what they are.

/** @import { TreeNode } from './tree.js' */

/** A table of more rows than this is shown in groups. */
export const LONG_ROWS = 120;
export const GROUP_ROWS = 40;
/** No column takes more of the room than one with so many characters. */
const MAX_CHARS = 48;
/** No column is narrower than its text of so many. */
const MIN_CHARS = 10;
/** Beside the text of a cell. */
const PADDING = '1.6rem';

/** @type {Record<string, string>} */
const ROLES = { table: 'table', thead: 'rowgroup', tbody: 'rowgroup', tr: 'row', th: 'columnheader', td: 'cell' };

/**
 * Rows with their roles, by those without: one that stays the same is not drawn again.
 * @type {WeakMap<TreeNode, TreeNode>}
 */
const rows_with_roles = new WeakMap();

/** @param {TreeNode} node @returns {{ table: TreeNode, head: TreeNode, rows: TreeNode[] } | null} */
function partsOf({ attrs, children: [table] }) {
  if (attrs.class !== 'table-scroll' || table === undefined || typeof table === 'string') return null;
  const [head, body] = /** @type {TreeNode[]} */ (table.children);
  return { table, head, rows: /** @type {TreeNode[]} */ (body.children) };
}

/** @param {TreeNode} node */
export const isLongTable = (node) => (partsOf(node)?.rows.length ?? 0) > LONG_ROWS;

/**
 * The same table with its rows in groups.
 * @param {TreeNode} node
 * @returns {TreeNode}
 */
export function inGroups(node) {
  const parts = partsOf(node);
  if (parts === null) return node;
  const { table, head, rows } = parts;
  const groups = Array.from({ length: Math.ceil(rows.length / GROUP_ROWS) }, (_, i) => (
    withRole({
      tag: 'tbody', attrs: { class: 'piece' },
      children: rows.slice(i * GROUP_ROWS, (i + 1) * GROUP_ROWS).map(rowWithRoles),
    })));
  const style = widths([.../** @type {TreeNode[]} */ (head.children), ...rows.slice(0, LONG_ROWS)]);
  const titles = withRole({ ...head, children: /** @type {TreeNode[]} */ (head.children).map(rowWithRoles) });
  const long = { ...table, attrs: { ...table.attrs, class: 'long', '.style': style }, children: [titles, ...groups] };
  return { ...node, children: [withRole(long)] };
}

/** @param {TreeNode} node @returns {TreeNode} */
const withRole = (node) => ({ ...node, attrs: { ...node.attrs, role: ROLES[node.tag] } });

/** @param {TreeNode} row @returns {TreeNode} */
function rowWithRoles(row) {
  const known = rows_with_roles.get(row);
  if (known !== undefined) return known;
  const told = withRole({ ...row, children: /** @type {TreeNode[]} */ (row.children).map(withRole) });
  rows_with_roles.set(row, told);
  return told;
}

/** How wide the columns are, by the longest text that these rows have in each. @param {TreeNode[]} rows */
function widths(rows) {
  /** @type {number[]} */
  const longest = [];
  /** Numbers stay in one line. @type {number[]} */
  const numbers = [];
  for (const row of rows) {
    for (const [i, cell] of row.children.entries()) {
      longest[i] = Math.max(longest[i] ?? 1, charsOf(cell));
      if (typeof cell !== 'string'
        && cell.attrs.class?.split(' ').includes('number')) numbers[i] = Math.max(numbers[i] ?? 0, charsOf(cell));
    }
  }
  const least = longest.map((chars, i) => Math.max(Math.min(chars, MIN_CHARS), numbers[i] ?? 0));
  const columns = longest.map((chars,
    i) => `minmax(calc(${least[i]}ch + ${PADDING}), ${Math.min(chars, MAX_CHARS) + 4}fr)`);
  const all = least.reduce((sum, chars) => sum + chars, 0);
  return `--columns: ${columns.join(' ')}; --least: calc(${all}ch + ${least.length} * ${PADDING})`;
}

/** @param {TreeNode | string} node @returns {number} */
const charsOf = (node) => (typeof node === 'string'
  ? node.length
  : node.children.reduce((sum, child) => sum + charsOf(child), 0));
