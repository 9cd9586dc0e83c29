// Markdown that grows: finished blocks are frozen, only the tail is read again.
//
// A block may still change while only the start of what follows it is there ("- a", blank line,
// "-" is a list and a paragraph until the next character makes it one list). So a block is
// frozen once a whole line of a later block has come. What freezing got wrong all the same
// (a link reference defined at the very end) is put right when the text is complete.

/** @import { Token, Tokens, TokensList } from 'marked' */
/** @import { TreeNode } from './tree.js' */

import { Lexer } from 'marked';
import { EXTENSIONS } from './extensions.js';
import { isOpen, OpenFence } from './fence.js';
import { Footnotes } from './footnotes.js';
import { Outline } from './outline.js';
import { inGroups, isLongTable } from './table.js';
import { blockOf, finish } from './tree.js';

/** @typedef {{ node: TreeNode }} Block */

/**
 * The beginning of a list or table that goes on: `head` is what its rest is read with.
 * @typedef {{ type: 'list' | 'table', head: string, node: TreeNode, chars: number }} Begun
 */

/** So many items of a list, or rows of a table, are read again while it grows. */
const MIN_KEPT = 4;
const MAX_KEPT = 12;

/** A longer list is shown as several: what of it is out of sight is not laid out. */
export const MAX_ITEMS = 40;

/** Text over this is shown as it is: laying out megabytes of Markdown would freeze the page. */
export const MAX_MARKDOWN_CHARS = 400_000;

export class MarkdownStream {
  #text = '';
  /** Length of the text that the frozen blocks cover. */
  #frozen_chars = 0;
  /** @type {Block[]} */
  #frozen = [];
  /** @type {Block[]} */
  #blocks = [];
  /** Stands before the frozen place, and is no frozen block yet. @type {Begun | null} */
  #begun = null;
  /**
   * Stands last, and goes on without the lexer; `chars` of the text are read.
   * @type {{ fence: OpenFence, node: TreeNode, chars: number } | null}
   */
  #fence = null;
  /** What the frozen blocks have of notes and their marks. */
  #notes = new Footnotes();
  /** The headings of the frozen blocks. */
  #outline = new Outline();
  /** @type {TokensList['links']} */
  #links = {};
  #complete = false;

  /**
   * The text as it stands now. A frozen block is the very same object from call to call.
   * @param {string} source
   * @param {boolean} complete whether no more comes
   * @returns {Block[]}
   */
  update(source, complete) {
    const text = source.includes('\r') ? source.replace(/\r\n?/g, '\n') : source;
    if (text === this.#text && complete === this.#complete) return this.#blocks;
    if (!text.startsWith(this.#text)) this.#reset();
    this.#text = text;
    this.#complete = complete;
    this.#blocks = text.length > MAX_MARKDOWN_CHARS ? plainly(text) : this.#parsed(text, complete);
    return this.#blocks;
  }

  /**
   * @param {string} text
   * @param {boolean} complete
   */
  #parsed(text, complete) {
    try {
      return complete ? this.#whole(text) : this.#grown(text);
    } catch (error) {
      // Thousands of nested quotes are deeper than the stack. Whoever wrote them gets them back.
      if (!(error instanceof RangeError)) throw error;
      this.#reset();
      return plainly(text);
    }
  }

  #reset() {
    this.#frozen = [];
    this.#frozen_chars = 0;
    this.#begun = null;
    this.#fence = null;
    this.#notes = new Footnotes();
    this.#outline = new Outline();
    this.#links = {};
  }

  /** @param {string} text @returns {Block[]} */
  #grown(text) {
    if (this.#fence?.fence.grow(text.slice(this.#fence.chars)) === true) return this.#withFence(text, this.#fence);
    this.#fence = null;
    const head = this.#begun?.head ?? '';
    const tail = head + text.slice(this.#frozen_chars);
    const tokens = this.#lex(tail);
    if (this.#begun !== null && tokens[0]?.type !== this.#begun.type) {
      // It did not go on as it began: its end is read together with it.
      this.#frozen_chars -= this.#begun.chars;
      this.#begun = null;
      return this.#grown(text);
    }
    const nodes = tokens.map(blockOf);
    if (this.#begun !== null) nodes[0] = joined(this.#begun, /** @type {TreeNode} */ (nodes[0]));
    this.#outline.copy().read(nodes);
    const keep_from = openFrom(tokens, tail);
    if (keep_from === null) return this.#shown(nodes);
    if (keep_from > 0) {
      this.#outline.read(nodes.slice(0, keep_from));
      this.#frozen = [...this.#frozen, ...blocks(this.#notes.freeze(nodes.slice(0, keep_from)))];
      this.#frozen_chars += tokens.slice(0, keep_from).reduce((sum, token) => sum + token.raw.length, -head.length);
      this.#begun = null;
    }
    this.#begin(tokens[keep_from], nodes[keep_from], keep_from === 0);
    const last = keep_from === tokens.length - 1 ? tokens[keep_from] : undefined;
    if (last?.type === 'code' && last.raw.includes('\n') && isOpen(last.raw)) {
      const node = /** @type {TreeNode} */ (nodes[keep_from]);
      this.#fence = { fence: new OpenFence(last.raw), node, chars: text.length };
    }
    return this.#shown(nodes.slice(keep_from));
  }

  /** @param {string} text @param {{ fence: OpenFence, node: TreeNode }} begun @returns {Block[]} */
  #withFence(text, { fence, node }) {
    const grown = { ...node, attrs: { ...node.attrs, '.code': fence.code } };
    this.#fence = { fence, node: grown, chars: text.length };
    return this.#shown([grown]);
  }

  /**
   * The frozen blocks with those that are still open, and the notes of all.
   * @param {(TreeNode | null)[]} open
   * @returns {Block[]}
   */
  #shown(open) {
    const notes = this.#notes.copy();
    const rest = notes.read(open, false);
    return [...this.#frozen, ...blocks(rest), ...notes.list()];
  }

  /**
   * Freezes the beginning of a list or table that has become long.
   * @param {Token | undefined} token
   * @param {TreeNode | null | undefined} node
   * @param {boolean} goes_on whether the token is read with what was frozen of it
   */
  #begin(token, node, goes_on) {
    if (token === undefined || node === null || node === undefined) return;
    const parts = token.type === 'list' || token.type === 'table' ? partsOf(token) : null;
    if (parts === null || parts.rest.length <= MAX_KEPT) return;
    const known = goes_on ? this.#begun : null;
    const raw = parts.rest.slice(0, -MIN_KEPT).join('');
    const chars = raw.length + (known === null ? parts.head.length : 0);
    this.#frozen_chars += chars;
    const [begun] = this.#notes.freeze([withoutLast(parts.type, node, MIN_KEPT)]);
    this.#begun = { type: parts.type, head: parts.head, node: begun, chars: (known?.chars ?? 0) + chars };
  }

  /** @param {string} text */
  #whole(text) {
    this.#links = {};
    const old = this.#blocks;
    const nodes = this.#lex(text).map(blockOf);
    finish(nodes.at(-1) ?? undefined);
    new Outline().read(nodes);
    const notes = new Footnotes();
    const rest = notes.read(nodes, true);
    return [...blocks(rest), ...notes.list()].map((block, i) => {
      const known = old[i];
      return known !== undefined && JSON.stringify(known.node) === JSON.stringify(block.node) ? known : block;
    });
  }

  /** @param {string} text */
  #lex(text) {
    const lexer = new Lexer({ gfm: true, breaks: false, extensions: EXTENSIONS });
    Object.assign(lexer.tokens.links, this.#links);
    const tokens = lexer.lex(text);
    this.#links = tokens.links;
    return tokens;
  }
}

/**
 * The index of the first token that may still change; null where the lexer does not give the
 * source back to the letter, so that nothing can be frozen.
 * @param {Token[]} tokens
 * @param {string} tail
 */
function openFrom(tokens, tail) {
  let open = 0;
  let offset = 0;
  for (const [index, token] of tokens.entries()) {
    if (!tail.startsWith(token.raw, offset)) return null;
    if (token.type !== 'space' && tail.includes('\n', offset)) open = index;
    offset += token.raw.length;
  }
  return open;
}

/**
 * A list's items or a table's rows as they were written, where that is all of it.
 * @param {Token} token
 * @returns {{ type: 'list' | 'table', head: string, rest: string[] } | null}
 */
function partsOf(token) {
  const rest = token.type === 'list'
    ? /** @type {Tokens.List} */ (token).items.map(({ raw }) => raw)
    : token.raw.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const head = token.type === 'list' ? '' : rest.splice(0, 2).join('');
  const read = head + rest.join('');
  // The last item is given back without the lines' end after it.
  const is_all = token.raw.startsWith(read) && token.raw.slice(read.length).trim() === '';
  return is_all ? { type: token.type === 'list' ? 'list' : 'table', head, rest } : null;
}

/** The node that has the items or rows. @param {'list' | 'table'} type @param {TreeNode} node */
const rowsOf = (type, node) => (type === 'list'
  ? node
  : /** @type {TreeNode} */ (/** @type {TreeNode} */ (node.children[0]).children[1]));

/**
 * The same with other items or rows.
 * @param {'list' | 'table'} type
 * @param {TreeNode} node
 * @param {TreeNode['children']} rows
 * @returns {TreeNode}
 */
function withRows(type, node, rows) {
  if (type === 'list') return { ...node, children: rows };
  const table = /** @type {TreeNode} */ (node.children[0]);
  const body = /** @type {TreeNode} */ (table.children[1]);
  return { ...node, children: [{ ...table, children: [table.children[0], { ...body, children: rows }] }] };
}

/** @param {'list' | 'table'} type @param {TreeNode} node @param {number} count */
const withoutLast = (type, node, count) => withRows(type, node, rowsOf(type, node).children.slice(0, -count));

/** @param {Begun} begun @param {TreeNode} rest */
const joined = ({ type, node }, rest) => withRows(type, node,
  [...rowsOf(type, node).children, ...rowsOf(type, rest).children]);

/**
 * @param {string} text
 * @returns {Block[]}
 */
function plainly(text) {
  return [{ node: { tag: 'pre', attrs: {}, children: [text] } }];
}

/**
 * A list as lists of so many items at the most, whose numbers go on.
 * @param {TreeNode} node
 * @returns {TreeNode[]}
 */
function pieces({ tag, attrs, children }) {
  const first = Number(attrs.start ?? 1);
  return Array.from({ length: Math.ceil(children.length / MAX_ITEMS) }, (_, i) => {
    const before = i * MAX_ITEMS;
    /** @type {Record<string, string>} */
    const own = { class: before + MAX_ITEMS < children.length ? 'piece more' : 'piece' };
    if (tag === 'ol' && first + before !== 1) own.start = String(first + before);
    return { tag, attrs: own, children: children.slice(before, before + MAX_ITEMS) };
  });
}

/** @param {TreeNode} node */
const isLong = ({ tag, children }) => (tag === 'ol' || tag === 'ul') && children.length > MAX_ITEMS;

/** @param {TreeNode} node */
function shownAs(node) {
  if (isLong(node)) return pieces(node);
  return [isLongTable(node) ? inGroups(node) : node];
}

/**
 * @param {(TreeNode | null)[]} nodes
 * @returns {Block[]}
 */
const blocks = (nodes) => nodes.filter((node) => node !== null).flatMap(shownAs).map((node) => ({ node }));
