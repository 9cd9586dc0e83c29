// Markdown that grows: finished blocks are frozen, only the tail is read again.
//
// A block may still change while only the start of what follows it is there ("- a", blank line,
// "-" is a list and a paragraph until the next character makes it one list). So a block is
// frozen once a whole line of a later block has come. What freezing got wrong all the same
// (a link reference defined at the very end) is put right when the text is complete.

/** @import { Token, TokensList } from '../vendor/marked.js' */
/** @import { TreeNode } from './tree.js' */

import { Lexer } from '../vendor/marked.js';
import { blockOf } from './tree.js';

/** @typedef {{ raw: string, node: TreeNode }} Block */

/** Text over this is shown as it is: laying out megabytes of Markdown would freeze the page. */
export const MAX_MARKDOWN_CHARS = 400_000;

/** Between its marks a backslash escapes nothing and a star stresses nothing: it stays as it was written. */
const MATHEMATICS = /** @type {any} */ ({
  inline: [(/** @type {string} */ source) => {
    const raw = /^(?:\\\([^]+?\\\)|\\\[[^]+?\\\]|\$\$[^]+?\$\$)/.exec(source)?.[0];
    return raw === undefined ? undefined : { type: 'mathematics', raw };
  }],
  startInline: [(/** @type {string} */ source) => source.indexOf('$$')],
});

export class MarkdownStream {
  #text = '';
  /** Length of the text that the frozen blocks cover. */
  #frozen_chars = 0;
  /** @type {Block[]} */
  #frozen = [];
  /** @type {Block[]} */
  #blocks = [];
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
    this.#links = {};
  }

  /** @param {string} text */
  #grown(text) {
    const tail = text.slice(this.#frozen_chars);
    const tokens = this.#lex(tail);
    let keep_from = 0;
    let offset = 0;
    for (const [index, token] of tokens.entries()) {
      // Where the lexer does not give the source back to the letter, nothing is frozen.
      if (!tail.startsWith(token.raw, offset)) return [...this.#frozen, ...blocks(tokens)];
      if (token.type !== 'space' && tail.includes('\n', offset)) keep_from = index;
      offset += token.raw.length;
    }
    const done = tokens.slice(0, keep_from);
    this.#frozen = [...this.#frozen, ...blocks(done)];
    this.#frozen_chars += done.reduce((sum, token) => sum + token.raw.length, 0);
    return [...this.#frozen, ...blocks(tokens.slice(keep_from))];
  }

  /** @param {string} text */
  #whole(text) {
    this.#links = {};
    const old = this.#blocks;
    return blocks(this.#lex(text)).map((block, i) => {
      const known = old[i];
      return known !== undefined && JSON.stringify(known.node) === JSON.stringify(block.node) ? known : block;
    });
  }

  /** @param {string} text */
  #lex(text) {
    const lexer = new Lexer({ gfm: true, breaks: false, extensions: MATHEMATICS });
    Object.assign(lexer.tokens.links, this.#links);
    const tokens = lexer.lex(text);
    this.#links = tokens.links;
    return tokens;
  }
}

/**
 * @param {string} text
 * @returns {Block[]}
 */
function plainly(text) {
  return [{ raw: text, node: { tag: 'pre', attrs: {}, children: [text] } }];
}

/**
 * @param {Token[]} tokens
 * @returns {Block[]}
 */
function blocks(tokens) {
  return tokens.flatMap((token) => {
    const node = blockOf(token);
    return node === null ? [] : [{ raw: token.raw, node }];
  });
}
