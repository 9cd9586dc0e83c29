import { showBlocks } from '../markdown/dom.js';
import { MarkdownStream } from '../markdown/stream.js';
import { notDrawn } from './element.js';

/** @import { Block } from '../markdown/stream.js' */

const FRAME_MS = 16;
const REST_TO_COST = 3;
const MAX_REST_MS = 600;

/** Markdown that may still grow. It owns its children; Lit never touches them. */
export class NaviMarkdown extends HTMLElement {
  #stream = new MarkdownStream();
  /** @type {Block[]} */
  #shown = [];
  #text = '';
  #complete = true;
  #planned = false;
  #cost_ms = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {string} value */
  set text(value) {
    this.#text = value;
    this.#plan();
  }

  get text() {
    return this.#text;
  }

  /** @param {boolean} value whether no more comes */
  set complete(value) {
    this.#complete = value;
    this.#plan();
  }

  get complete() {
    return this.#complete;
  }

  /**
   * Both properties change together: the page is brought up to date once. A tail that takes long
   * to lay out is laid out less often, so that the page always has time for its reader.
   */
  #plan() {
    if (this.#planned && !(this.#complete && this.#timer !== undefined)) return;
    this.#planned = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const rest_ms = this.#complete ? 0 : Math.min(MAX_REST_MS, this.#cost_ms * REST_TO_COST);
    if (rest_ms < FRAME_MS) queueMicrotask(() => this.#show());
    else this.#timer = setTimeout(() => this.#show(), rest_ms);
  }

  #show() {
    this.#planned = false;
    this.#timer = undefined;
    const begun = performance.now();
    try {
      const next = this.#stream.update(this.#text, this.#complete);
      showBlocks(this, this.#shown, next);
      this.#shown = next;
    } catch (error) {
      this.#stream = new MarkdownStream();
      this.#shown = [];
      this.replaceChildren(notDrawn(this, error));
    }
    this.#cost_ms = performance.now() - begun;
  }
}

customElements.define('navi-markdown', NaviMarkdown);
