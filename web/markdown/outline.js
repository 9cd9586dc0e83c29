// The levels of a text's headings, for those who go from one to the next by ear: none is left out,
// however many signs it was written with. How large they look, those signs say.

/** @import { TreeNode } from './tree.js' */

import { isOwn } from './own.js';

/** The page's own heading is above those of an answer. */
const FIRST = 2;
const LAST = 6;
/** What blocks stand in. */
const AROUND = new Set(['blockquote', 'ul', 'ol', 'li', 'dl', 'dd', 'footnote']);

export class Outline {
  /** The headings that one is below, as they were written. @type {number[]} */
  #open = [];
  #first;

  /** @param {number} [first] */
  constructor(first = FIRST) {
    this.#first = first;
  }

  copy() {
    const copy = new Outline(this.#first);
    copy.#open = [...this.#open];
    return copy;
  }

  /** Gives each heading its level. @param {(TreeNode | string | null)[]} nodes */
  read(nodes) {
    for (const node of nodes) {
      if (node === null || typeof node === 'string' || isOwn(node)) continue;
      if (/^h[3-6]$/.test(node.tag)) this.#heading(node, Number(node.tag[1]));
      else if (AROUND.has(node.tag)) this.#inner().read(node.children);
    }
  }

  /** Those in a quote or a list are below all that the text around has open. */
  #inner() {
    return new Outline(this.#first + this.#open.length);
  }

  /** @param {TreeNode} node @param {number} written */
  #heading(node, written) {
    this.#open = [...this.#open.filter((other) => other < written), written];
    const level = Math.min(LAST, this.#first + this.#open.length - 1);
    if (level === written) delete node.attrs['aria-level'];
    else node.attrs['aria-level'] = String(level);
  }
}
