// What the whole page shows, as signals. Components read them, `actions.js` and `session.js`
// write them; nobody else does.

/** @import { SessionState } from '../state/types.js' */
/** @import { OutboxItem } from '../state/outbox.js' */
/** @import { CallDecision, Change, Decision, ProfileInfo, SessionSummary, SystemStatus, UnknownCall } from '../state/wire.js' */
/** @import { Approval } from '../state/approvals.js' */
/** @import { Attachments } from '../state/attachments.js' */

import { signal } from '../vendor/lit.js';

/** @typedef {import('../net/socket.js').Connection} Connection */
/** @typedef {{ code: string, message: string }} PageError */
/** @typedef {{ id: number, text: string, action: { label: string, run: () => void } | null, error: boolean }} Toast */

export const sessions = signal(/** @type {{ loaded: boolean, list: SessionSummary[] }} */ ({ loaded: false, list: [] }));
export const status = signal(/** @type {SystemStatus | null} */ (null));
export const profiles = signal(/** @type {ProfileInfo[]} */ ([]));

/** The open session's id; null for the page of a new one. */
export const openId = signal(/** @type {string | null} */ (null));
export const session = signal(/** @type {SessionState | null} */ (null));
export const sessionError = signal(/** @type {PageError | null} */ (null));
/** The session's socket, and the one of the list. */
export const connection = signal(/** @type {Connection} */ ('connecting'));
export const listConnection = signal(/** @type {Connection} */ ('connecting'));
/** Since when the service says nothing, where one of them is silent. */
export const silentSince = signal(0);
/** Stop was asked and has not taken effect yet. */
export const stopping = signal(false);

/** The profile for the next new session; null for the service's default. */
export const chosenProfile = signal(/** @type {string | null} */ (null));
export const creating = signal(false);
export const createError = signal(/** @type {PageError | null} */ (null));

/** The message that a link led to: shown once its session is there. */
export const target = signal(/** @type {{ session_id: string, message_id: string } | null} */ (null));
export const memoryOpen = signal(false);
/** The panel that stands over the page. */
export const panel = signal(/** @type {'files' | 'permissions' | 'run' | null} */ (null));
/** The run that its panel shows. */
export const shownRun = signal(/** @type {string | null} */ (null));
/** What a person is asked in the open session, and was: as its state has it, and told only when it changes. */
export const approvals = signal(/** @type {Approval[]} */ ([]));
/** What this tab answered, by approval; `sending` until the service tells what came of it. */
export const answering = signal(/** @type {ReadonlyMap<string, { decision: Decision, sending: boolean }>} */ (new Map()));
/** The open session's calls of which nobody knows whether they took effect: as its state has them. */
export const unknownCalls = signal(/** @type {UnknownCall[]} */ ([]));
/** What this tab said of such calls and the service has not told yet, by call. */
export const resolving = signal(/** @type {ReadonlyMap<string, CallDecision>} */ (new Map()));
/** What the open session's tools changed and how that can be undone; null until it is read. */
export const changes = signal(/** @type {Change[] | null} */ (null));
/** Where what is written for the next new session stands, beside those of sessions by their id. */
export const NEW = '';
/** What is being written, by session. */
export const drafts = signal(/** @type {ReadonlyMap<string, string>} */ (new Map()));
/** Messages that are being written anew, by their id. */
export const edits = signal(/** @type {ReadonlyMap<string, string>} */ (new Map()));
/** What goes with a draft, by its session, or with a message under way, by its `client_id`. */
export const attachments = signal(/** @type {Attachments} */ (new Map()));
/** Messages that no service has acknowledged, by session. */
export const outbox = signal(/** @type {ReadonlyMap<string, OutboxItem[]>} */ (new Map()));
/** Why this browser keeps no copy of all that. */
export const unkept = signal(/** @type {'full' | 'forbidden' | null} */ (null));
/** What of this tab was sent into a run that goes, by `client_id`. */
export const steered = signal(/** @type {ReadonlySet<string>} */ (new Set()));

export const signedOut = signal(false);
export const toasts = signal(/** @type {Toast[]} */ ([]));
export const drawerOpen = signal(false);
/** What a screen reader is told. */
export const announcement = signal('');
/** The model whose download was asked for and has not shown up in the status yet. */
export const fetchAsked = signal(/** @type {string | null} */ (null));

/** The open session's title; the list hears of a new one first. */
export function openTitle() {
  const id = openId.get();
  return sessions.get().list.find((item) => item.id === id)?.title || session.get()?.title || '';
}
