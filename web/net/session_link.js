// One open session: loads its snapshot, attaches, applies what comes, and heals itself.
// Frames are applied once per animation frame, however many come.

/** @import { SessionState, } from '../state/model.js' */
/** @import { Frame } from '../state/wire.js' */

import { fromSnapshot } from '../state/model.js';
import { applyFrame } from '../state/session.js';
import { api, ApiError } from './api.js';
import { NOT_LOGGED_IN, Socket, UNKNOWN_SESSION } from './socket.js';

/** After so many holes in a row the log will not heal it: the snapshot is loaded anew. */
const MAX_HOLES = 2;
const RELOAD_DELAY_MS = 2_000;
const HIDDEN_FLUSH_MS = 200;

/**
 * @typedef {object} LinkHandlers
 * @property {(state: SessionState) => void} onstate
 * @property {(connection: 'connecting' | 'open' | 'lost') => void} onconnection
 * @property {() => void} onopen the session is attached: what waits can be sent
 * @property {(client_ids: string[]) => void} onconfirmed
 * @property {(refused: { client_id: string | null, code: string, message: string }) => void} onrefused
 * @property {(frame: Frame) => void} onevent every frame once it was applied, for announcements
 * @property {(error: { code: string, message: string }) => void} onfatal
 */

export class SessionLink {
  /** @type {SessionState | null} */
  #state = null;
  /** @type {Socket | null} */
  #socket = null;
  /** @type {Frame[]} */
  #inbox = [];
  #flush_planned = false;
  #holes = 0;
  #closed = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {string} id
   * @param {LinkHandlers} handlers
   */
  constructor(id, handlers) {
    this.id = id;
    this.handlers = handlers;
    void this.#load();
  }

  /** @param {unknown} frame @returns {boolean} */
  send(frame) {
    return this.#socket?.send(frame) ?? false;
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  async #load() {
    this.handlers.onconnection('connecting');
    try {
      const snapshot = await api.session(this.id);
      if (this.#closed) return;
      this.#show(fromSnapshot(snapshot));
    } catch (error) {
      if (this.#closed) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) {
        this.handlers.onfatal({ code: error.code, message: error.message });
        return;
      }
      this.handlers.onconnection('lost');
      this.#timer = setTimeout(() => void this.#load(), RELOAD_DELAY_MS);
      return;
    }
    this.#attach();
  }

  /** @param {SessionState} state */
  #show(state) {
    this.#state = state;
    this.handlers.onconfirmed(clientIds(state));
    this.handlers.onstate(state);
  }

  #attach() {
    this.#socket?.close();
    this.#inbox = [];
    this.#socket = new Socket({
      path: () => {
        const { last_seq = 0, epoch = 0 } = this.#state ?? {};
        return `/ws/sessions/${encodeURIComponent(this.id)}?after=${last_seq}&epoch=${epoch}`;
      },
      onopen: () => {
        // What the old connection left unapplied is told again by the new one.
        this.#inbox = [];
        this.handlers.onopen();
      },
      onframe: (frame) => {
        this.#inbox.push(frame);
        this.#planFlush();
      },
      onstate: (state) => {
        if (state !== 'open') this.#flush();
        this.handlers.onconnection(state);
      },
      onfatal: (code) => this.handlers.onfatal({
        code: code === UNKNOWN_SESSION ? 'session_not_found' : code === NOT_LOGGED_IN ? 'unauthorized' : 'internal',
        message: '',
      }),
    });
  }

  #planFlush() {
    if (this.#flush_planned) return;
    this.#flush_planned = true;
    const flush = () => {
      if (!this.#flush_planned) return;
      this.#flush_planned = false;
      this.#flush();
    };
    // A page that is hidden, or becomes so, gets no animation frame, and still must not fall behind.
    requestAnimationFrame(flush);
    setTimeout(flush, HIDDEN_FLUSH_MS);
  }

  #flush() {
    if (this.#closed || this.#state === null || this.#inbox.length === 0) return;
    const frames = this.#inbox;
    this.#inbox = [];
    let state = this.#state;
    /** @type {string[]} */
    const confirmed = [];
    for (const frame of frames) {
      const step = applyFrame(state, frame);
      if (step.hole) {
        this.#state = state;
        this.handlers.onstate(state);
        this.#heal();
        break;
      }
      if (step.state !== state) this.#holes = 0;
      state = step.state;
      if (frame.type === 'resync') confirmed.push(...clientIds(state));
      if (step.confirmed !== null) confirmed.push(step.confirmed);
      if (step.refused !== null) this.handlers.onrefused(step.refused);
      this.handlers.onevent(frame);
    }
    if (confirmed.length > 0) this.handlers.onconfirmed(confirmed);
    if (state !== this.#state) {
      this.#state = state;
      this.handlers.onstate(state);
    }
  }

  #heal() {
    this.#holes += 1;
    if (this.#holes <= MAX_HOLES) {
      this.#socket?.reconnect();
    } else {
      this.#holes = 0;
      this.#socket?.close();
      this.#timer = setTimeout(() => void this.#load(), RELOAD_DELAY_MS);
    }
  }
}

/**
 * The `client_id`s of every message that the service has.
 * @param {SessionState} state
 */
function clientIds(state) {
  /** @type {string[]} */
  const ids = [];
  for (const entry of state.entries) {
    if (entry.kind === 'user' && entry.client_id !== null) ids.push(entry.client_id);
  }
  for (const item of state.queue) {
    if (item.client_id !== undefined) ids.push(item.client_id);
  }
  return ids;
}
