// A fence that is not closed takes what comes line by line, as the lexer would: a long one is not
// read again with every word.

/** How one begins: what stands before its marks, and these. */
const BEGINNING = /^( {0,3})(`{3,}|~{3,})/;

/**
 * Matches a line that closes the fence; null where the text is none.
 * @param {string} raw
 */
function closing(raw) {
  const marks = BEGINNING.exec(raw)?.[2];
  return marks === undefined ? null : new RegExp(`^ {0,3}${marks}[~\`]* *$`);
}

/** Whether a fence is not closed yet: more of the code may come. @param {string} raw */
export function isOpen(raw) {
  const closes = closing(raw);
  return closes !== null && !raw.split('\n').slice(1).some((line) => closes.test(line));
}

export class OpenFence {
  /** The code of its whole lines. */
  #code = '';
  /** The line that may go on. */
  #line = '';
  #closes;
  /** So much of what stands before a line was put there to set the fence in. */
  #inset;

  /** @param {string} raw of an open fence, its first line whole */
  constructor(raw) {
    this.#closes = /** @type {RegExp} */ (closing(raw));
    // The lexer takes it away for one of these marks alone.
    this.#inset = /^ {0,3}(?=```)/.exec(raw)?.[0].length ?? 0;
    this.grow(raw.slice(raw.indexOf('\n') + 1));
  }

  /**
   * @param {string} more of the text
   * @returns {boolean} false, and it stays as it is, where a line of that closes it
   */
  grow(more) {
    // In texts of their own: a slice would keep the whole answer, as it stood then, in memory.
    const lines = JSON.parse(JSON.stringify((this.#line + more).split('\n')));
    if (lines.some((/** @type {string} */ line) => this.#closes.test(line))) return false;
    this.#line = lines.pop();
    for (const line of lines) this.#code += `${this.#setOut(line)}\n`;
    return true;
  }

  /** As the lexer has it: without the end of its last line, where that is not empty. */
  get code() {
    if (this.#line === '' && this.#code === '') return '';
    const code = this.#line === '' ? this.#code.slice(0, -1) : this.#code + this.#setOut(this.#line);
    return code === '' || code.endsWith('\n') ? `${code}\n` : code;
  }

  /** @param {string} line */
  #setOut(line) {
    const before = /^\s*/.exec(line)?.[0].length ?? 0;
    return line.slice(Math.min(before, this.#inset));
  }
}
