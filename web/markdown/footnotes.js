// Footnotes: they stand under the whole text, wherever they are written, in the order in which
// the text names them.

/** @import { Block } from './stream.js' */
/** @import { TreeNode } from './tree.js' */

import { isOwn, own } from './own.js';
import { node } from './tree.js';

/** @param {TreeNode} mark */
const key = (mark) => mark.attrs['.label'].toLowerCase();

export class Footnotes {
  /** @type {Map<string, TreeNode>} */
  #notes = new Map();
  /** @type {Map<string, number>} */
  #numbers = new Map();

  copy() {
    const copy = new Footnotes();
    copy.#notes = new Map(this.#notes);
    copy.#numbers = new Map(this.#numbers);
    return copy;
  }

  /**
   * Takes the notes out of blocks, and numbers the marks in them that name one. While a text grows
   * its notes are still to come: a mark that is a number is trusted to name one.
   * @param {(TreeNode | null)[]} blocks
   * @param {boolean} complete
   * @returns {TreeNode[]} the blocks that are no notes
   */
  read(blocks, complete) {
    /** @type {TreeNode[]} */
    const found = [];
    const rest = /** @type {TreeNode[]} */ (taken(blocks.filter((block) => block !== null), found));
    for (const note of found) if (!this.#notes.has(key(note))) this.#notes.set(key(note), note);
    for (const block of [...rest, ...found]) this.#number(block, complete);
    return rest;
  }

  /**
   * The same for blocks that nothing changes any more.
   * @param {(TreeNode | null)[]} blocks
   * @returns {TreeNode[]}
   */
  freeze(blocks) {
    const rest = this.read(blocks, false).map(own);
    for (const [label, note] of this.#notes) this.#notes.set(label, own(note));
    return rest;
  }

  /** What stands under the text; one that is never named comes last, without a number. @returns {Block[]} */
  list() {
    if (this.#notes.size === 0) return [];
    const number = (/** @type {string} */ label) => this.#numbers.get(label) ?? Infinity;
    const labels = [...this.#notes.keys()].sort((a, b) => (number(a) === number(b) ? 0 : number(a) - number(b)));
    const items = labels.map((label) => {
      const { attrs, children } = /** @type {TreeNode} */ (this.#notes.get(label));
      const value = this.#numbers.get(label);
      if (value === undefined) return node('li', { class: 'unnamed' }, children);
      return node('li', { value: String(value) },
        [...children, node('navi-footnote-back', { '.label': attrs['.label'], '.number': String(value) })]);
    });
    return [{ node: node('ol', { class: 'footnotes' }, items) }];
  }

  /** @param {TreeNode} block @param {boolean} complete */
  #number(block, complete) {
    if (isOwn(block)) return;
    if (block.tag === 'navi-footnote') {
      const label = key(block);
      const named = this.#notes.has(label) || (!complete && /^\d+$/.test(label));
      if (named && !this.#numbers.has(label)) this.#numbers.set(label, this.#numbers.size + 1);
      block.attrs['.number'] = named ? String(this.#numbers.get(label)) : '';
    }
    for (const child of block.children) if (typeof child !== 'string') this.#number(child, complete);
  }
}

/**
 * @param {TreeNode['children']} children
 * @param {TreeNode[]} found the notes among them and below
 */
function taken(children, found) {
  return children.filter((child) => {
    if (typeof child === 'string' || isOwn(child)) return true;
    child.children = taken(child.children, found);
    if (child.tag === 'footnote') found.push(child);
    return child.tag !== 'footnote';
  });
}
