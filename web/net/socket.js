// One WebSocket that comes back by itself: after an error, a restart of the service, a network
// that went away, a laptop that slept. What it says after it opened is the caller's affair.

import { key } from './key.js';

/** Close codes that no reconnect would heal. */
export const UNKNOWN_SESSION = 4004;
export const NOT_LOGGED_IN = 4001;

/** The close code of a service that goes to come back: it is restarted, or replaced by a newer one. */
export const RESTARTS = 1012;

const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 8_000;
/** A service that said that it restarts is knocked at so often, and its absence is no trouble, for so long. */
const RESTART_DELAY_MS = 1_000;
const RESTART_PATIENCE_MS = 10_000;
/** A connection that stays this long was a good one: the next failure starts from the first delay. */
const GOOD_AFTER_MS = 5_000;
/** Nothing for so long while it should be open is looked into by opening it anew. */
const OPEN_TIMEOUT_MS = 10_000;

/** After so much silence the service is asked whether it is there, and has so long to answer. */
const ASK_AFTER_MS = 5_000;
const ANSWER_WITHIN_MS = 5_000;
const BEAT_MS = 1_000;

/** While nothing opens, `restarting` says that the service is away by its own word, `silent` that it
 * is there and says nothing.
 * @typedef {'connecting' | 'open' | 'lost' | 'restarting' | 'silent'} Connection */

/**
 * @typedef {object} SocketHandlers
 * @property {() => string} path where to connect, asked anew each time
 * @property {() => void} onopen
 * @property {(frame: any) => void} onframe
 * @property {() => void} [onunreadable] a frame was none, or broke `onframe`
 * @property {(state: Connection, silent_since_ms: number) => void} onstate
 * @property {(code: number) => void} onfatal
 */

export class Socket {
  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #attempt = 0;
  #closed = false;
  /** Runs while the service is away by its own word. @type {ReturnType<typeof setTimeout> | undefined} */
  #patience;
  #wake = () => this.#lookNow();
  /** @type {ReturnType<typeof setInterval>} */
  #beat;
  /** When the service was heard last, and asked since; 0 where it was not. */
  #heard_ms = 0;
  #asked_ms = 0;
  /** Since when it is silent; 0 while it is not. */
  #silent_ms = 0;
  /** @type {SocketHandlers} */
  #handlers;

  /** @param {SocketHandlers} handlers */
  constructor(handlers) {
    this.#handlers = handlers;
    globalThis.addEventListener?.('online', this.#wake);
    globalThis.document?.addEventListener('visibilitychange', this.#wake);
    this.#beat = setInterval(() => this.#listen(), BEAT_MS);
    this.#connect();
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /**
   * @param {unknown} frame
   * @returns {boolean} whether it was handed to an open connection
   */
  send(frame) {
    if (!this.isOpen) return false;
    this.#socket?.send(JSON.stringify(frame));
    return true;
  }

  /** Opens anew at once: the caller found that it missed something. */
  reconnect() {
    this.#drop();
    this.#connect();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#beat);
    this.#endPatience();
    globalThis.removeEventListener?.('online', this.#wake);
    globalThis.document?.removeEventListener('visibilitychange', this.#wake);
    this.#drop();
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = socket.onerror = null;
    socket.close();
  }

  /** The machine slept, or was in another network: what looks open may be dead. */
  #lookNow() {
    if (this.#closed || globalThis.document?.visibilityState === 'hidden') return;
    if (this.#socket === null) {
      this.#attempt = 0;
      this.#connect();
    } else if (this.isOpen && this.#asked_ms === 0) {
      this.#ask();
    }
  }

  #listen() {
    if (!this.isOpen) return;
    const now = Date.now();
    if (this.#asked_ms === 0) {
      if (now - this.#heard_ms >= ASK_AFTER_MS) this.#ask();
    } else if (now - this.#asked_ms >= ANSWER_WITHIN_MS) {
      this.#lost(this.#heard_ms);
    }
  }

  #ask() {
    this.#asked_ms = Date.now();
    this.send({ type: 'ping' });
  }

  #hear() {
    this.#heard_ms = Date.now();
    this.#asked_ms = 0;
  }

  #connect() {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#tell('connecting');
    const address = new URL(this.#handlers.path(), document.baseURI);
    address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(address, ['navi', `navi-key.${key()}`]);
    this.#socket = socket;
    const began_at = Date.now();
    this.#timer = setTimeout(() => this.#lost(this.#silent_ms || began_at), OPEN_TIMEOUT_MS);
    let opened_at = 0;
    socket.onopen = () => {
      clearTimeout(this.#timer);
      opened_at = Date.now();
      this.#hear();
      this.#silent_ms = 0;
      this.#endPatience();
      this.#tell('open');
      this.#handlers.onopen();
    };
    socket.onmessage = (event) => {
      this.#hear();
      if (typeof event.data !== 'string') return;
      try {
        const frame = JSON.parse(event.data);
        if (frame?.type !== 'pong') this.#handlers.onframe(frame);
      } catch (error) {
        console.warn('a frame could not be read', error);
        this.#handlers.onunreadable?.();
      }
    };
    socket.onclose = (event) => {
      if (opened_at > 0 && Date.now() - opened_at > GOOD_AFTER_MS) this.#attempt = 0;
      if (event.code === RESTARTS) this.#bePatient();
      if (event.code === UNKNOWN_SESSION || event.code === NOT_LOGGED_IN) {
        this.close();
        this.#handlers.onfatal(event.code);
      } else {
        this.#lost();
      }
    };
  }

  /** @param {number} [silent_ms] since when nothing is heard, where nobody hung up */
  #lost(silent_ms = 0) {
    this.#drop();
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#silent_ms = silent_ms;
    this.#tell('lost');
    const most = this.#patience === undefined ? MAX_DELAY_MS : RESTART_DELAY_MS;
    this.#timer = setTimeout(() => this.#connect(), delayMs(this.#attempt, Math.random(), most));
    this.#attempt += 1;
  }

  /** @param {'connecting' | 'open' | 'lost'} state */
  #tell(state) {
    const silent = state !== 'open' && this.#silent_ms > 0 ? 'silent' : state;
    this.#handlers.onstate(this.#patience === undefined ? silent : 'restarting', this.#silent_ms);
  }

  #bePatient() {
    clearTimeout(this.#patience);
    this.#attempt = 0;
    this.#patience = setTimeout(() => {
      this.#patience = undefined;
      this.#tell('lost');
    }, RESTART_PATIENCE_MS);
  }

  #endPatience() {
    clearTimeout(this.#patience);
    this.#patience = undefined;
  }
}

/**
 * How long to wait before the next attempt: doubling, with a spread so that many tabs do not
 * knock at the same moment.
 * @param {number} attempt from 0
 * @param {number} random in [0, 1)
 * @param {number} [most_ms]
 */
export function delayMs(attempt, random, most_ms = MAX_DELAY_MS) {
  const full = Math.min(most_ms, FIRST_DELAY_MS * 2 ** attempt);
  return Math.round(full * (0.5 + random / 2));
}
