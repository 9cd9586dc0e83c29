// One open session: loads its snapshot, attaches, applies what comes, and heals itself.
// Frames are applied once per animation frame, however many come.

/** @import { SessionState } from '../state/types.js' */
/** @import { Envelope, SessionSnapshot } from '../state/wire.js' */
/** @import { Connection } from './socket.js' */

import { hasChildren, reading, unread, withHistory } from '../state/children.js';
import { firstMessage, fromSnapshot, messageCount, withEarlier } from '../state/model.js';
import { applyFrame, withoutFrame } from '../state/session.js';
import { api, ApiError } from './api.js';
import { delayMs, NOT_LOGGED_IN, Socket, UNKNOWN_SESSION } from './socket.js';

/** After so many holes in a row the log will not heal it: the snapshot is loaded anew. */
const MAX_HOLES = 2;
const RELOAD_DELAY_MS = 2_000;
/** Answers that another try may change: too slow, too many requests. */
const PASSING = [408, 429];
const HIDDEN_FLUSH_MS = 200;
/** How many messages are read at first and how many before them at a time; the service gives no more than the most. */
const PAGE = 100;
const MAX_PAGE = 1_000;

/** Stands where a frame was that is no JSON: nothing can be made of it. */
const UNREADABLE = /** @type {Envelope} */ (/** @type {unknown} */ (null));

/**
 * @typedef {object} LinkHandlers
 * @property {(state: SessionState) => void} onstate
 * @property {(connection: Connection, silent_since_ms: number) => void} onconnection
 * @property {() => void} onopen the session is attached: what waits can be sent
 * @property {(client_ids: string[]) => void} onconfirmed
 * @property {(refused: { client_id: string | null } & import('../state/types.js').Problem) => void} onrefused
 * @property {(frame: Envelope) => void} onevent every frame once it was applied, for announcements
 * @property {(error: { code: string, message: string }) => void} onfatal
 */

export class SessionLink {
  /** @type {SessionState | null} */
  #state = null;
  /** @type {Socket | null} */
  #socket = null;
  /** @type {Envelope[]} */
  #inbox = [];
  #flush_planned = false;
  #holes = 0;
  #attempt = 0;
  /** Whether a frame was told that cannot be read: where its number is missing, the log will not heal it. */
  #unreadable = false;
  #closed = false;
  /**
   * Whether the run that goes answers a message anew, or goes on with it: where its branch begins
   * is known at its end.
   */
  #anew = false;
  /** Counts the snapshots: what was asked about one says nothing of the next. */
  #snapshots = 0;
  #reads_earlier = false;
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
    this.handlers.onconnection('connecting', 0);
    try {
      const snapshot = await api.session(this.id, this.#newest());
      if (this.#closed) return;
      this.#anew = answersAnew(snapshot);
      this.#attempt = 0;
      const state = fromSnapshot(snapshot);
      this.#show(this.#unreadable ? withoutFrame(state, null) : state);
    } catch (error) {
      if (this.#closed) return;
      if (!(error instanceof ApiError)) {
        this.handlers.onfatal({ code: 'internal', message: String(error) });
        return;
      }
      if (error.status >= 400 && error.status < 500 && !PASSING.includes(error.status)) {
        this.handlers.onfatal({ code: error.code, message: error.message });
        return;
      }
      this.handlers.onconnection('lost', 0);
      this.#timer = setTimeout(() => void this.#load(), delayMs(this.#attempt, Math.random()));
      this.#attempt += 1;
      return;
    }
    // Who only waited for what the snapshot confirmed has closed it by now.
    if (this.#closed) return;
    this.#attach();
    void this.#loadChildren();
  }

  /** How many messages a snapshot is to have: as many as are there. */
  #newest() {
    return this.#state === null ? PAGE : Math.min(MAX_PAGE, Math.max(PAGE, messageCount(this.#state)));
  }

  /**
   * Reads more of what was said before; with a message's id, until that is there.
   * @param {string | null} message_id
   */
  async loadEarlier(message_id = null) {
    if (this.#reads_earlier) return;
    this.#reads_earlier = true;
    try {
      for (;;) {
        const first = this.#state === null ? null : firstMessage(this.#state);
        if (first === null || this.#state?.earlier === 0) return;
        const snapshot = this.#snapshots;
        const page = await api.messagesBefore(this.id, first, message_id === null ? PAGE : MAX_PAGE);
        if (this.#closed || snapshot !== this.#snapshots) return;
        this.#change((state) => withEarlier(state, page));
        if (message_id === null || page.messages.some(({ id }) => id === message_id)) return;
      }
    } finally {
      this.#reads_earlier = false;
    }
  }

  /** Reads the session again and goes on from there: what was shown stays until it is here. */
  #reload() {
    this.#socket?.close();
    this.#inbox = [];
    void this.#load();
  }

  /** What of the run that goes no snapshot holds: its subagents, and that it went on by itself. */
  async #loadChildren() {
    const state = this.#state;
    if (state?.run == null || !(hasChildren(state) || this.#anew)) return;
    await this.#readLog(state.run.run_id);
  }

  /**
   * Fills in the subagents of a run that this page did not watch.
   * @param {string} run_id
   */
  async loadRun(run_id) {
    const state = this.#state;
    const known = state?.histories[run_id]?.state;
    if (state === null || known === 'loading' || known === 'ready') return;
    await this.#readLog(run_id);
  }

  /** @param {string} run_id */
  async #readLog(run_id) {
    this.#change((state) => reading(state, run_id));
    const snapshot = this.#snapshots;
    /** @type {(state: SessionState) => SessionState} */
    let read;
    try {
      const frames = await api.runEvents(this.id, run_id);
      read = (state) => withHistory(state, run_id, frames);
    } catch (error) {
      const why = error instanceof ApiError ? error : { code: 'internal', message: String(error) };
      read = (state) => unread(state, run_id, why);
    }
    if (snapshot === this.#snapshots) this.#change(read);
  }

  /** @param {(state: SessionState) => SessionState} change */
  #change(change) {
    if (this.#closed || this.#state === null) return;
    this.#state = change(this.#state);
    this.handlers.onstate(this.#state);
  }

  /** @param {SessionState} state */
  #show(state) {
    this.#snapshots += 1;
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
        return `ws/sessions/${encodeURIComponent(this.id)}?after=${last_seq}&epoch=${epoch}&messages=${this.#newest()}`;
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
      onunreadable: () => {
        this.#inbox.push(UNREADABLE);
        this.#planFlush();
      },
      onstate: (state, silent_since_ms) => {
        if (state !== 'open') this.#flush();
        this.handlers.onconnection(state, silent_since_ms);
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
      /** @type {ReturnType<typeof applyFrame>} */
      let step;
      try {
        step = applyFrame(state, frame);
      } catch (error) {
        console.warn('a frame could not be applied', error);
        this.#unreadable = true;
        state = withoutFrame(state, frame);
        continue;
      }
      if (step.hole) {
        this.#state = state;
        this.handlers.onstate(state);
        this.#heal();
        break;
      }
      if (step.state !== state) this.#holes = 0;
      state = step.state;
      if (frame.type === 'resync') {
        this.#snapshots += 1;
        confirmed.push(...clientIds(state));
      }
      if (step.confirmed !== null) confirmed.push(step.confirmed);
      if (step.refused !== null) this.handlers.onrefused(step.refused);
      this.#tell(frame);
      // A snapshot leaves out some of the run that goes.
      const branched = this.#anew && state.run === null;
      if (step.reload || branched || (frame.type === 'resync' && (hasChildren(state) || answersAnew(frame.session)))) {
        this.#state = state;
        this.#reload();
        break;
      }
    }
    if (confirmed.length > 0) this.handlers.onconfirmed(confirmed);
    if (state !== this.#state) {
      this.#state = state;
      this.handlers.onstate(state);
    }
  }

  /** @param {Envelope} frame */
  #tell(frame) {
    try {
      this.handlers.onevent(frame);
    } catch (error) {
      console.warn('a frame could not be told', error);
    }
  }

  #heal() {
    this.#holes += 1;
    if (this.#holes <= MAX_HOLES && !this.#unreadable) {
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

/**
 * Whether the run that goes answers a message that an earlier run has answered.
 * @param {SessionSnapshot} snapshot
 */
function answersAnew({ run, messages }) {
  const asked = messages.find(({ id }) => id === run?.message_id);
  return run != null && asked !== undefined && asked.run_id !== run.run_id;
}
