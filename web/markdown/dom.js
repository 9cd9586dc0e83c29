// Puts a tree into the page and changes it in place: a node whose content is the same stays the
// very same DOM node, so that nothing flickers and a selection above the tail survives.

/** @import { TreeNode } from './tree.js' */
/** @import { Block } from './stream.js' */

/** Blocks from this one on stand in elements of so many: what of a long text is out of sight is not laid out. */
export const CHUNK = 40;

/**
 * Brings `parent` from the blocks it shows to `next`.
 * @param {Element} parent
 * @param {Block[]} shown what `parent` shows now
 * @param {Block[]} next
 */
export function showBlocks(parent, shown, next) {
  for (const [i, block] of next.entries()) {
    const old = shown[i];
    if (old === block) continue;
    patchChild(chunkOf(parent, i), i < CHUNK ? i : i % CHUNK, old?.node, block.node);
  }
  if (shown.length <= next.length) return;
  const rest = Math.max(0, Math.ceil(next.length / CHUNK) - 1);
  trim(parent, Math.min(next.length, CHUNK) + rest);
  if (rest > 0) trim(/** @type {Element} */ (parent.lastChild), next.length - rest * CHUNK);
}

/** @param {Element} parent @param {number} index of a block; those before it are there @returns {Element} */
function chunkOf(parent, index) {
  if (index < CHUNK) return parent;
  const at = CHUNK + Math.floor(index / CHUNK) - 1;
  if (parent.childNodes[at] === undefined) {
    const chunk = document.createElement('div');
    chunk.className = 'chunk';
    parent.appendChild(chunk);
  }
  return /** @type {Element} */ (parent.childNodes[at]);
}

/**
 * @param {Node} parent
 * @param {number} index
 * @param {TreeNode | string | undefined} old
 * @param {TreeNode | string} next
 */
function patchChild(parent, index, old, next) {
  if (old === next) return;
  const child = parent.childNodes[index];
  if (child === undefined || old === undefined) {
    if (child === undefined) parent.appendChild(create(next));
    else parent.replaceChild(create(next), child);
  } else if (typeof next === 'string' && typeof old === 'string') {
    const text = /** @type {Text} */ (child);
    // Appending keeps a selection in the text that was there.
    if (next.startsWith(old)) {
      if (next.length > old.length) text.appendData(next.slice(old.length));
    } else {
      text.data = next;
    }
  } else if (typeof next !== 'string' && typeof old !== 'string' && next.tag === old.tag) {
    patchElement(/** @type {Element} */ (child), old, next);
  } else {
    parent.replaceChild(create(next), child);
  }
}

/**
 * @param {Element} element
 * @param {TreeNode} old
 * @param {TreeNode} next
 */
function patchElement(element, old, next) {
  for (const name of Object.keys(old.attrs)) {
    if (!(name in next.attrs) && !name.startsWith('.')) element.removeAttribute(name);
  }
  for (const [name, value] of Object.entries(next.attrs)) {
    // What one of our elements holds is a piece that keeps the whole answer, until the same comes in a text of its own.
    const is_held = name.startsWith('.') && next.tag.includes('-');
    if (is_held || old.attrs[name] !== value) setAttribute(element, name, value);
  }
  for (const [i, child] of next.children.entries()) patchChild(element, i, old.children[i], child);
  if (old.children.length > next.children.length) trim(element, next.children.length);
}

/**
 * @param {TreeNode | string} tree
 * @returns {Node}
 */
function create(tree) {
  if (typeof tree === 'string') return document.createTextNode(tree);
  const element = document.createElement(tree.tag);
  for (const [name, value] of Object.entries(tree.attrs)) setAttribute(element, name, value);
  for (const child of tree.children) element.appendChild(create(child));
  return element;
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {string} value
 */
function setAttribute(element, name, value) {
  if (name.startsWith('.')) Object.assign(element, { [name.slice(1)]: value });
  else element.setAttribute(name, value);
}

/**
 * @param {Node} parent
 * @param {number} length
 */
function trim(parent, length) {
  while (parent.childNodes.length > length) parent.removeChild(/** @type {Node} */ (parent.lastChild));
}
