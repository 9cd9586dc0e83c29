// What the whole page shows, as signals. Components read them, `actions.js` and `session.js`
// write them; nobody else does.

/** @import { SessionState } from '../state/types.js' */
/** @import { OutboxItem } from '../state/outbox.js' */
/**
 * @import { AccountInfo, CallDecision, Change, ConsentMode, Decision, PersonRef,
 *  SessionSummary, SystemStatus } from '../state/wire.js'
 */
/** @import { Attachments } from '../state/attachments.js' */

import { hasWords } from '../i18n/index.js';
import { inWords } from '../i18n/phrases.js';
import { computed, signal } from '../lit.js';
import { isAtHand } from '../state/plan.js';

/** @typedef {import('../net/socket.js').Connection} Connection */
/** @typedef {import('../state/types.js').Problem} PageError */
/**
 * @typedef {'account' | 'context' | 'file' | 'files' | 'image' | 'import' | 'keys' | 'memory' |
 *  'palette' | 'people' | 'permissions' | 'run' | 'runs' | 'setup' | 'share' | 'tags'} PanelName
 */
/** @typedef {{ id: number, text: string, action: { label: string, run: () => void } | null, error: boolean }} Toast */

export const sessions = signal(/** @type {{ loaded: boolean, list: SessionSummary[] }} */ ({ loaded: false,
  list: [] }));
/** Those that are put away; before `read`, only what was heard of them. */
export const archived = signal(
  /** @type {{ state: 'unread' | 'reading' | 'read' | 'failed', list: SessionSummary[] }} */ ({ state: 'unread',
    list: [] }),
);
/** The tag whose conversations the list shows; null for all. */
export const shownTag = signal(/** @type {string | null} */ (null));
export const status = signal(/** @type {SystemStatus | null} */ (null));
/** Those that a session can have. Navi's own are told in the page's words. */
export const profiles = computed(() => {
  const list = status.get()?.profile_models ?? [];
  return hasWords.get() ? list.map((profile) => inWords(profile.profile_id, profile)) : list;
});

/** What a profile is called. @param {string} id @param {string} [otherwise] where it is gone */
export const profileName = (id, otherwise = id) =>
  profiles.get().find(({ profile_id }) => profile_id === id)?.name || otherwise;

/** The open session's id; null for the page of a new one. */
export const openId = signal(/** @type {string | null} */ (null));
/** The open session whole: who reads it is drawn with each delta. `showSession` sets it. */
export const session = signal(/** @type {SessionState | null} */ (null));
/** Those that tell a part of it when that changes, and only then. @type {Set<() => void>} */
const parts = new Set();

/**
 * @template T
 * @param {(state: SessionState | null) => T} pick gives the very same value where nothing changed
 */
function part(pick) {
  return partFor(pick).told;
}

/**
 * The same for one element, until that is gone.
 * @template T
 * @param {(state: SessionState | null) => T} pick
 */
export function partFor(pick) {
  const told = signal(pick(session.get()));
  const tell = () => told.set(pick(session.get()));
  parts.add(tell);
  return { told, end: () => parts.delete(tell) };
}

/** @type {never[]} */
const NONE = [];
const NO_RUNS = {};
export const isLoaded = part((state) => state !== null);
export const isRunning = part((state) => state !== null && state.run !== null);
/** The model of the run that goes. */
export const runModel = part((state) => state?.run?.model ?? null);
export const profileId = part((state) => state?.profile_id ?? null);
export const ownTitle = part((state) => state?.title ?? '');
export const contextTokens = part((state) => state?.context_tokens ?? 0);
export const maxContextTokens = part((state) => state?.max_context_tokens ?? 0);
export const mode = part((state) => state?.mode ?? null);
/** The model that was chosen for it. */
export const sessionModel = part((state) => state?.chosen_model ?? null);
/** Whether text from outside was read. */
export const outside = part((state) => state?.outside === true);
export const queue = part((state) => state?.queue ?? NONE);
export const plan = part((state) => state?.plan ?? null);
/** Whether the plan stands in the last answer: its list is all there is to show then. */
export const planAtHand = part((state) => state !== null && isAtHand(state.plan, state.entries));
export const todo = part((state) => state?.todo ?? NONE);
export const children = part((state) => /** @type {SessionState['children']} */ (state?.children ?? NO_RUNS));
export const histories = part((state) => /** @type {SessionState['histories']} */ (state?.histories ?? NO_RUNS));
/** What a person is asked, and was. */
export const approvals = part((state) => state?.approvals ?? NONE);
/** Calls of which nobody knows whether they took effect. */
export const unknownCalls = part((state) => state?.unknown ?? NONE);

/** @param {SessionState | null} state */
export function showSession(state) {
  session.set(state);
  for (const tell of parts) tell();
}

export const sessionError = signal(/** @type {PageError | null} */ (null));
/** The session's socket, and the one of the list. */
export const connection = signal(/** @type {Connection} */ ('connecting'));
/** Whether Navi answered since the page is open. */
export const wasOpen = signal(false);
export const listConnection = signal(/** @type {Connection} */ ('connecting'));
/** Since when the service says nothing, where one of them is silent. */
export const silentSince = signal(0);
/** The run that was asked to stop, until that has taken effect. */
export const stopping = signal(/** @type {string | null} */ (null));
/** The same of going on. */
export const continuing = signal(false);

/** The profile for the next new session; null for the service's default. */
export const chosenProfile = signal(/** @type {string | null} */ (null));
/** The model for the next new session; null for its profile's. */
export const chosenModel = signal(/** @type {string | null} */ (null));
/** How much the next new session may do without asking; null as the settings have it. */
export const chosenMode = signal(/** @type {ConsentMode | null} */ (null));
export const creating = signal(false);
export const createError = signal(/** @type {PageError | null} */ (null));

/** The message that a link led to: shown once its session is there. */
export const target = signal(/** @type {{ session_id: string, message_id: string, words: string[] } | null} */ (null));
/** Whether the service has a newer page than this one. */
export const outdated = signal(false);
/** The panel that stands over the page. */
export const panel = signal(/** @type {PanelName | null} */ (null));
/** The picture that is shown large, and where its file is. */
export const shownImage = signal(/** @type {{ src: string, alt: string, download: string | null } | null} */ (null));
/** The file of the workspace that its panel shows, by its path. */
export const shownFile = signal('');
/** The conversation whose tags their panel shows. */
export const shownTagsOf = signal(/** @type {string | null} */ (null));
/** The run that its panel shows. */
export const shownRun = signal(/** @type {string | null} */ (null));
/** What this tab answered, by approval; `sending` until the service tells what came of it. */
export const answering = signal(
  /** @type {ReadonlyMap<string, { decision: Decision, sending: boolean }>} */ (new Map()),
);
/** What this tab said of such calls and the service has not told yet, by call. */
export const resolving = signal(/** @type {ReadonlyMap<string, CallDecision>} */ (new Map()));
/** What the open session's tools changed and how that can be undone; null until it is read. */
export const changes = signal(/** @type {Change[] | null} */ (null));
/** Where what is written for the next new session stands, beside those of sessions by their id. */
export const NEW = '';
/** What is being written, by session. */
export const drafts = signal(/** @type {ReadonlyMap<string, string>} */ (new Map()));
/** Where the keyboard goes next: what draws that place takes it there. */
export const focusWanted = signal(
  /** @type {'composer' | 'continue' | 'sidebar-fold' | 'sidebar-unfold' | { unknown_call: string } | null} */ (null),
);
/** The message whose words the keyboard goes to next. */
export const editWanted = signal(/** @type {string | null} */ (null));
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

/** Whether the conversation is drawn for paper. */
export const printing = signal(false);

/** Stretches of work that a reader opened or folded, by their id. */
export const unfolded = signal(/** @type {ReadonlyMap<string, boolean>} */ (new Map()));

/** Whether it is known who looks, or a login is kept here: the page of nobody is shown to nobody. */
export const isKnown = signal(false);
export const signedOut = signal(false);
/** Who signed in; null until the service has told it. */
export const account = signal(/** @type {AccountInfo | null} */ (null));
/** Whether people sign in here. */
export const hasAccounts = computed(() => account.get()?.accounts === true);
/** Who looks and changes nothing. */
export const isGuest = computed(() => account.get()?.role === 'guest');
/** Whether the service is theirs to set up. Where nobody has told, it refuses what is not. */
export const isAdmin = computed(() => (account.get()?.role ?? 'admin') === 'admin');
/** The secret of the invitation that was opened. */
export const invitation = signal(/** @type {string | null} */ (null));
/**
 * @typedef {{ key: string, state: string, code: string | null, iss: string | null, error: string |
 *  null }} SignOnReturned
 */
/** What a provider sent back with the browser, to sign in. */
export const returned = signal(/** @type {SignOnReturned | null} */ (null));
/** Whether an account of elsewhere was just linked. */
export const justLinked = signal(false);
/** The secret of the link by which a conversation is looked at, and when it ends. */
export const sharedLink = signal(/** @type {string | null} */ (null));
export const sharedUntil = signal(/** @type {string | null} */ (null));
export const toasts = signal(/** @type {Toast[]} */ ([]));
export const drawerOpen = signal(false);
/** What a screen reader is told: `announce` adds to it. */
export const announcements = signal(/** @type {{ id: number, at: number, text: string }[]} */ ([]));
/** The model whose download was asked for and has not shown up in the status yet. */
export const fetchAsked = signal(/** @type {string | null} */ (null));

/** A session's row, in whichever list it stands. @param {string | null} id */
export function rowOf(id) {
  const is_it = (/** @type {SessionSummary} */ item) => item.id === id;
  return sessions.get().list.find(is_it) ?? archived.get().list.find(is_it);
}

/**
 * Whether a session is this person's own; one that is in no list is as good as that.
 * @param {SessionSummary | undefined} row
 */
export const owns = (row) => row === undefined || row.shared == null || row.shared.owner.id === account.get()?.id;
/** Whether it is theirs to change. @param {SessionSummary | undefined} row */
export const mayChange = (row) => !isGuest.get() && owns(row);
/** The same of the open one. */
export const mayChangeOpen = computed(() => mayChange(rowOf(openId.get())));
/** Whether they share the open one or go out of it: a guest goes out of another's alone. */
export const mayShare = computed(() => hasAccounts.get() && isLoaded.get()
  && (!isGuest.get() || !owns(rowOf(openId.get()))));

/**
 * Who wrote a message, where others take part and it was not this person.
 * @param {{ author?: PersonRef | null }} entry
 */
export function writtenBy({ author = null }) {
  const shared = rowOf(openId.get())?.shared;
  if (shared == null && sharedLink.get() === null) return null;
  // What was said before it was shared is its owner's.
  const writer = author ?? shared?.owner ?? null;
  return writer === null || writer.id === account.get()?.id ? null : writer.name;
}

/** The open session's title; the list hears of a new one first. */
export function openTitle() {
  return rowOf(openId.get())?.title || ownTitle.get();
}
