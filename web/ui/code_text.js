// The text of code that may still grow, as elements of so many lines each: what is added at the end
// lays out none of those before it (20 ms a frame at 5,000 lines, and 0.3 so), and a selection in it
// stays.

const LINES = 200;

export class CodeText {
  /** @type {HTMLElement[]} */
  #elements = [];
  #text = '';
  /** How many lines the last element has; it is full at first, as there is none. */
  #lines = LINES;

  /** Its elements, once they show the text. @param {string} text */
  show(text) {
    if (!text.startsWith(this.#text)) this.#clear();
    for (const line of text.slice(this.#text.length).match(/[^\n]*\n|[^\n]+/g) ?? []) this.#add(line);
    this.#text = text;
    return this.#elements;
  }

  #clear() {
    this.#elements = [];
    this.#text = '';
    this.#lines = LINES;
  }

  /** @param {string} line or a part of one */
  #add(line) {
    if (this.#lines === LINES) {
      const element = document.createElement('span');
      element.className = 'code-lines';
      element.append('');
      this.#elements.push(element);
      this.#lines = 0;
    }
    /** @type {Text} */ (this.#elements.at(-1)?.firstChild).appendData(line);
    if (line.endsWith('\n')) this.#lines += 1;
  }
}
