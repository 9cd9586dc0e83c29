// Diagrams are drawn one after the other in a frame that reaches neither the page nor the network
// (`frame/diagram.js`). It is there while there is something to draw, and some time after; one that
// takes too long over a source is thrown away, and the next source gets another.

/** @import { Answer, Drawn, Problem } from '../state/diagrams.js' */

import { MAX_IMAGE_CHARS, MAX_SOURCE_CHARS, problemOf } from '../state/diagrams.js';

/** As many seconds a frame has for a source, and to be there: half a megabyte comes by the network. */
export const DRAW_SECONDS = 8;
const START_SECONDS = 30;
const IDLE_SECONDS = 60;

export class DiagramError extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super(problem.why);
    this.problem = problem;
  }
}

/**
 * @typedef {{ source: string, dark: boolean, done: (drawn: Drawn) => void, failed: (error:
 *  DiagramError) => void }} Wish
 */
/**
 * What a frame does: it is sent something, and is gone.
 * @typedef {{ send: (message: unknown) => void, remove: () => void }} Frame
 */

export class Diagrams {
  /** Who waits, in order: one at a time is drawn. @type {Wish[]} */
  #waiting = [];
  /** @type {Wish | null} */
  #current = null;
  /** @type {Frame | null} */
  #frame = null;
  #ready = false;
  /** Answers to what was asked before count for nothing. */
  #id = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {(heard: (message: any) => void) => Frame} open */
  constructor(open) {
    this.open = open;
  }

  /**
   * @param {string} source
   * @param {boolean} dark
   * @param {AbortSignal} signal where nobody wants it any more
   * @returns {Promise<Drawn>} a `DiagramError` says why there is none
   */
  draw(source, dark, signal) {
    return new Promise((done, failed) => {
      if (source.length > MAX_SOURCE_CHARS) {
        failed(new DiagramError({ why: 'size' }));
        return;
      }
      const wish = { source, dark, done, failed };
      signal.addEventListener('abort',
        () => { this.#waiting = this.#waiting.filter((other) => other !== wish); }, { once: true });
      this.#waiting.push(wish);
      this.#next();
    });
  }

  #next() {
    if (this.#current !== null) return;
    this.#current = this.#waiting.shift() ?? null;
    clearTimeout(this.#timer);
    if (this.#current === null) {
      this.#timer = setTimeout(() => this.#close(), IDLE_SECONDS * 1_000);
      return;
    }
    if (this.#ready) {
      this.#ask(this.#current);
      return;
    }
    const frame = this.open((message) => { if (frame === this.#frame) this.#heard(message); });
    this.#frame = frame;
    this.#limit(START_SECONDS, 'load');
  }

  /** @param {Wish} wish */
  #ask({ source, dark }) {
    this.#id += 1;
    this.#limit(DRAW_SECONDS, 'time');
    this.#frame?.send({ id: this.#id, source, dark });
  }

  /** @param {number} seconds @param {'load' | 'time'} why */
  #limit(seconds, why) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#close();
      this.#end((wish) => wish.failed(new DiagramError({ why })));
    }, seconds * 1_000);
  }

  /** @param {{ ready: true } | Answer} message */
  #heard(message) {
    if ('ready' in message) {
      this.#ready = true;
      if (this.#current !== null) this.#ask(this.#current);
    } else if (message.id === this.#id) {
      this.#end((wish) => answered(wish, message));
    }
  }

  /** @param {(wish: Wish) => void} tell */
  #end(tell) {
    const wish = this.#current;
    this.#current = null;
    if (wish !== null) tell(wish);
    this.#next();
  }

  #close() {
    this.#frame?.remove();
    this.#frame = null;
    this.#ready = false;
  }
}

/** @param {Wish} wish @param {Answer} answer */
function answered({ source, done, failed }, answer) {
  if ('error' in answer) failed(new DiagramError(problemOf(String(answer.error), source)));
  else if (typeof answer.svg !== 'string'
    || answer.svg.length > MAX_IMAGE_CHARS) failed(new DiagramError({ why: 'large' }));
  else done(answer);
}

/** @param {(message: any) => void} heard @returns {Frame} */
function openFrame(heard) {
  const frame = document.createElement('iframe');
  // Scripts, and nothing else: without an origin it has no cookie, no storage, and no way to the page.
  frame.sandbox.value = 'allow-scripts';
  frame.className = 'diagram-frame';
  frame.tabIndex = -1;
  frame.ariaHidden = 'true';
  frame.src = new URL('./diagram.html', import.meta.url).href;
  const listen = (/** @type {MessageEvent} */ event) => {
    if (event.source === frame.contentWindow) heard(event.data);
  };
  addEventListener('message', listen);
  document.body.append(frame);
  return {
    send: (message) => frame.contentWindow?.postMessage(message, '*'),
    remove: () => {
      removeEventListener('message', listen);
      frame.remove();
    },
  };
}

export const diagrams = new Diagrams(openFrame);
