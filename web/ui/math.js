// Mathematics as MathML. What draws it is loaded with the first of it; until then, and where it
// cannot be drawn, it stands as it was written.

import { loadPart } from '../net/part.js';

/** Longer than any formula that a person reads. */
const MAX_CHARS = 20_000;
const LIMITS = { throwOnError: true, maxExpand: 1_000, maxSize: /** @type {[number, number]} */ ([20, 20]) };

/** @type {Promise<typeof import('../markdown/math.js')> | null} */
let drawing = null;

function draws() {
  drawing ??= loadPart(new URL('./math.js', import.meta.url)).catch((error) => {
    drawing = null;
    throw error;
  });
  return drawing;
}

/** A formula with its marks: `\(…\)`, `\[…\]` or `$$…$$`. It owns its children. */
export class NaviMath extends HTMLElement {
  #source = '';

  /** @param {string} value */
  set source(value) {
    this.#source = value;
    void this.#draw();
  }

  get source() {
    return this.#source;
  }

  async #draw() {
    const source = this.#source;
    this.textContent = source;
    if (source.length > MAX_CHARS) return;
    try {
      const { math } = await draws();
      if (source === this.#source) math(source.slice(2, -2), this,
        { ...LIMITS, displayMode: !source.startsWith('\\(') });
    } catch {
      this.textContent = source;
    }
  }
}

customElements.define('navi-math', NaviMath);
