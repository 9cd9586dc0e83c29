/** @import { TreeNode } from './tree.js' */

/** Nodes whose texts are their own. @type {WeakSet<TreeNode>} */
const owned = new WeakSet();

/** Whether it is finished: nothing in it is changed any more. @param {TreeNode} node */
export const isOwn = (node) => owned.has(node);

/**
 * The same in texts of its own: a piece that the lexer cut out of a text keeps the whole of it, as
 * it stood then, in memory.
 * @param {TreeNode} node
 * @returns {TreeNode}
 */
export function own(node) {
  if (owned.has(node)) return node;
  const attrs = JSON.parse(JSON.stringify(node.attrs));
  const children = node.children.map((child) => (typeof child === 'string'
    ? JSON.parse(JSON.stringify(child))
    : own(child)));
  const copy = { ...node, attrs, children };
  owned.add(copy);
  return copy;
}
