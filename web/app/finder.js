// What stands in conversations, asked for while somebody types.

/** @import { ReactiveController, ReactiveControllerHost } from 'lit' */
/** @import { SearchHit } from '../state/wire.js' */

import { api } from '../net/api.js';
import { pageError } from './actions.js';

/** So long nobody types before it is asked for. */
const TYPING_MS = 200;

/**
 * @typedef {{ state: 'loading' } | { state: 'found', hits: SearchHit[] } | { state: 'failed', code:
 *  string, message: string }} Answer
 */

/** Draws its host anew with each answer. @implements {ReactiveController} */
export class Finder {
  /** @type {Answer} */
  answer = { state: 'loading' };
  #asked = '';
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #abort = new AbortController();

  /** @param {ReactiveControllerHost} host @param {number} limit */
  constructor(host, limit) {
    this.host = host;
    this.limit = limit;
    host.addController(this);
  }

  hostDisconnected() {
    clearTimeout(this.#timer);
    this.#abort.abort();
    this.#asked = '';
  }

  /** @param {string} query */
  look(query) {
    if (query === this.#asked) return;
    this.#asked = query;
    clearTimeout(this.#timer);
    this.#abort.abort();
    if (query !== '') this.#timer = setTimeout(() => void this.again(), TYPING_MS);
  }

  async again() {
    const abort = new AbortController();
    this.#abort = abort;
    // What was found before stays until there is something better to show.
    if (this.answer.state === 'failed') this.answer = { state: 'loading' };
    /** @type {Answer} */
    let answer;
    try {
      answer = { state: 'found', hits: await api.search(this.#asked, this.limit, abort.signal) };
    } catch (error) {
      answer = { state: 'failed', ...pageError(error) };
    }
    if (abort.signal.aborted) return;
    this.answer = answer;
    this.host.requestUpdate();
  }
}
