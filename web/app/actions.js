// What a person does outside a conversation: the session list, new sessions, models. And the
// page's start.

/** @import { PanelName, SignOnReturned } from './signals.js' */
/** @import { SessionSummary, SystemStatus } from '../state/wire.js' */

import { loadTroubles, t } from '../i18n/index.js';
import { phraseText } from '../i18n/phrases.js';
import { api, ApiError } from '../net/api.js';
import { key, onOtherKey, sharedSecret, takeInvitation, takeKey } from '../net/key.js';
import { loadPart } from '../net/part.js';
import { people } from '../net/people.js';
import { Socket } from '../net/socket.js';
import { errorGroup } from '../state/errors.js';
import { fetching } from '../state/service.js';
import { sorted } from '../state/sessions.js';
import { loadAccount } from './account.js';
import { dropRow, place, readArchived, refreshArchived } from './archive.js';
import { readChanges } from './changes.js';
import { endFirstSteps, loadFirstSteps } from './first_steps.js';
import { guardClosing } from './kept.js';
import { loadNotify, tell } from './notify.js';
import { loadPrefs } from './prefs.js';
import { followPrinting } from './print.js';
import { restoreKept } from './restore.js';
import { loadSeen } from './seen.js';
import {
  begin, giveBack, onGone, onRefused, onUnauthorized, openSession, post, sendLeft, takeBack,
} from './session.js';
import {
  chosenMode, chosenModel, chosenProfile, createError, creating, drawerOpen, fetchAsked, invitation, isKnown,
    justLinked, listConnection, NEW, openId, outdated, panel, returned, rowOf, sessions, sharedLink,
    shownFile, shownRun, shownTagsOf,
  signedOut, silentSince, status, target, toasts, wasOpen,
} from './signals.js';
import { lookAt } from './shared.js';
import { isKept, keepShell } from './shell.js';
import { takeAnswer } from './sign_on.js';
import { lookForUpdate } from './update.js';
import { followKeyboard } from './viewport.js';

const TOAST_MS = 6_000;
const UNDO_TOAST_MS = 20_000;
const FETCH_SHOWS_UP_MS = 15_000;

export function boot() {
  takeKey();
  isKnown.set(key() !== '');
  const back = takeAnswer();
  if (back?.purpose === 'sign-in') returned.set(back.answer);
  loadPrefs();
  loadFirstSteps();
  loadNotify();
  loadSeen();
  followPrinting();
  onRefused((refused) => showError(refused));
  onUnauthorized(lookAgain);
  onGone(leaveGone);
  onOtherKey(() => void loadAccount());
  const secret = sharedSecret();
  if (secret !== null) {
    sharedLink.set(secret);
    void lookAt(secret);
    addEventListener('hashchange', () => location.reload());
    return;
  }
  addEventListener('hashchange', followHash);
  followHash();
  void restoreKept();
  openList();
  if (back?.purpose === 'link') void link(back.answer);
  addEventListener('beforeunload', guardClosing);
  followKeyboard();
  addEventListener('focus', () => {
    if (signedOut.get()) void lookAround();
  });
}

/** Somebody who is signed in is who came back from the provider, too. @param {SignOnReturned} answer */
async function link(answer) {
  try {
    await people.finishLink(answer);
    await loadAccount();
    justLinked.set(true);
    await openPanel('account');
    showToast(t('account.linked'));
  } catch (error) {
    showError(pageError(error));
  }
}

/** @type {Socket | null} */
let list_socket = null;

function openList() {
  list_socket = new Socket({
    path: () => 'ws/sessions',
    onopen: () => {
      if (wasOpen.get() || isKept()) void lookForUpdate();
      if (!wasOpen.get()) void keepShell();
      wasOpen.set(true);
      isKnown.set(true);
    },
    onframe: listFrame,
    onstate: (state, silent_since_ms) => {
      listConnection.set(state);
      if (state === 'silent') {
        silentSince.set(silent_since_ms);
        isKnown.set(true);
      }
      // A socket tells nothing of why it was refused: a request does.
      if (state === 'lost') void lookAround();
    },
    onfatal: () => {
      list_socket = null;
      lookAgain();
    },
  });
}

/** Whether a socket was closed because of the login. */
let login_refused = false;

/**
 * A login that is over says so to a request, too; one that opens something else now, as after a
 * change of the role, does not.
 */
function lookAgain() {
  login_refused = true;
  void lookAround();
}

/** Fills the list and the status without the socket, and finds out whether we are signed in. */
export async function lookAround() {
  const asked_by = key();
  try {
    const [list, system] = await Promise.all([api.sessions(), api.status(), loadAccount()]);
    if (signedOut.get() || login_refused) signedIn();
    setList(list);
    setStatus(system);
  } catch (error) {
    // Who came in or left meanwhile is not who was refused.
    if (key() !== asked_by) await lookAround();
    else if (login_refused || (error instanceof ApiError && error.code === 'unauthorized')) signedOut.set(true);
  } finally {
    isKnown.set(true);
  }
}

/** Somebody signed in meanwhile, in another tab: what was refused is opened again. */
function signedIn() {
  login_refused = false;
  signedOut.set(false);
  if (list_socket === null) openList();
  followHash();
  sendLeft();
}

/** @param {any} frame */
function listFrame(frame) {
  if (frame.type === 'sessions') {
    setList(frame.sessions);
    setStatus(frame.status);
    void loadAccount();
  } else if (frame.type === 'session_changed') {
    const before = rowOf(frame.session.id);
    place(frame.session);
    void tell(before, frame.session);
  } else if (frame.type === 'session_removed') {
    removed(frame.session_id);
  } else if (frame.type === 'status') {
    // A profile that came or went, or whose file was refused, shows here first.
    setStatus(frame.status);
  }
}

/** @param {SessionSummary[]} list */
function setList(list) {
  sessions.set({ loaded: true, list: sorted(list) });
  refreshArchived();
  findOpen();
}

/** One that is open and in no list may be put away. */
function findOpen() {
  const id = openId.get();
  if (id !== null && sessions.get().loaded && !creating.get() && rowOf(id) === undefined) void readArchived();
}

/** @param {SystemStatus} next */
function setStatus(next) {
  status.set(next);
  const asked = fetchAsked.get();
  const here = next.fetchable.some((model) => model.name === asked && model.present);
  if (here || fetching(next) !== null) fetchAsked.set(null);
}

/** @param {string} id */
function forget(id) {
  dropRow(id);
  if (openId.get() === id) showNew();
}

/** One that is open still was deleted elsewhere, or taken from this person. @param {string} id */
function removed(id) {
  if (openId.get() !== id) return forget(id);
  giveBack(id);
  leaveGone(id);
}

/** @param {string} id */
function leaveGone(id) {
  const title = rowOf(id)?.title || t('sidebar.untitled');
  forget(id);
  showError({ code: 'session_not_found', message: title });
}

function followHash() {
  // A page that looks by a link is one of its own.
  if (sharedSecret() !== null) return location.reload();
  const invited = takeInvitation();
  if (invited !== null) invitation.set(invited);
  const match = /^#\/s\/([\w-]+)(?:\/m\/([\w-]+))?$/.exec(location.hash);
  drawerOpen.set(false);
  if (match?.[2] !== undefined) target.set({
    session_id: match[1], message_id: match[2], words: sought?.message_id === match[2] ? sought.words : [],
  });
  sought = null;
  openSession(match === null ? null : match[1]);
  findOpen();
}

/** @param {string} id @param {string} [message_id] */
export const sessionHref = (id, message_id) => (message_id === undefined ? `#/s/${id}` : `#/s/${id}/m/${message_id}`);

/**
 * The words that the next link to a message was found by: they are no part of its address.
 * @type {{ message_id: string, words: string[] } | null}
 */
let sought = null;

/**
 * Opens a session at one of its messages. A link to where one is already leads there again.
 * @param {string} id
 * @param {string} [message_id]
 * @param {string[]} [words] what to look for in it
 */
export function goTo(id, message_id, words = []) {
  const href = sessionHref(id, message_id);
  if (location.hash !== href) {
    sought = message_id === undefined ? null : { message_id, words };
    location.hash = href;
  } else if (message_id !== undefined) target.set({ session_id: id, message_id, words });
  drawerOpen.set(false);
}

export function showNew() {
  createError.set(null);
  drawerOpen.set(false);
  if (location.hash === '' || location.hash === '#/') openSession(null);
  else goAtOnce('#/');
}

/** Not by the event, which keys overtake: what is typed next belongs there. @param {string} href */
function goAtOnce(href) {
  location.hash = href;
  followHash();
}

/** Sends the first message of a new session. Where none can be begun it is a draft again. */
export async function startSession() {
  if (creating.get()) return;
  creating.set(true);
  createError.set(null);
  const first = post(NEW, 'queue');
  try {
    const { session_id } = await api.create(chosenProfile.get(), chosenModel.get(), chosenMode.get());
    // Freedom is given to one conversation at a time.
    chosenMode.set(null);
    begin(first, session_id);
    endFirstSteps();
    goAtOnce(sessionHref(session_id));
  } catch (error) {
    if (error instanceof ApiError && error.code === 'unauthorized') signedOut.set(true);
    takeBack(first);
    createError.set(pageError(error));
  } finally {
    creating.set(false);
  }
}

/** @param {SessionSummary} summary @param {string} title @returns {Promise<boolean>} whether that is its name now */
export async function rename(summary, title) {
  const name = title.trim();
  if (name === '' || name === summary.title) return true;
  return optimistic(summary, { ...summary, title: name }, () => api.change(summary.id, { title: name }));
}

/** @param {SessionSummary} summary */
export function togglePin(summary) {
  const pinned = !summary.pinned;
  void optimistic(summary, { ...summary, pinned }, () => api.pin(summary.id, pinned));
}

/** @param {SessionSummary} summary @param {string[]} tags */
export function setTags(summary, tags) {
  void optimistic(summary, { ...summary, tags }, () => api.change(summary.id, { tags }));
}

/**
 * Shows a change at once and takes it back where the service refuses it.
 * @param {SessionSummary} before
 * @param {SessionSummary} after
 * @param {() => Promise<unknown>} request
 * @returns {Promise<boolean>} whether the service has it
 */
async function optimistic(before, after, request) {
  place(after);
  try {
    await request();
    return true;
  } catch (error) {
    place(before);
    showError(pageError(error));
    return false;
  }
}

/** Puts a conversation away. @param {SessionSummary} summary */
export async function archive(summary) {
  const was_open = openId.get() === summary.id;
  const away = { ...summary, archived: true, pinned: false };
  place(away);
  if (was_open) showNew();
  try {
    await api.change(summary.id, { archived: true });
  } catch (error) {
    place(summary);
    showError(pageError(error));
    return;
  }
  showToast(t('session.archived', { title: summary.title || t('sidebar.untitled') }), {
    label: t('session.undo'),
    run: () => {
      // A pin brings it back, too.
      void optimistic(away, summary,
        () => (summary.pinned ? api.pin(summary.id, true) : api.change(summary.id, { archived: false })));
      if (was_open) location.hash = sessionHref(summary.id);
    },
  }, UNDO_TOAST_MS);
}

/** @param {SessionSummary} summary */
export function bringBack(summary) {
  void optimistic(summary, { ...summary, archived: false }, () => api.change(summary.id, { archived: false }));
}

/** @param {SessionSummary} summary */
export async function remove(summary) {
  const was_open = openId.get() === summary.id;
  forget(summary.id);
  try {
    await api.remove(summary.id);
  } catch (error) {
    place(summary);
    showError(pageError(error));
    return;
  }
  showToast(t('session.deleted', { title: summary.title || t('sidebar.untitled') }), {
    label: t('session.undo'),
    run: () => void restore(summary, was_open),
  }, UNDO_TOAST_MS);
}

/** @param {SessionSummary} summary @param {boolean} reopen */
async function restore(summary, reopen) {
  try {
    await api.restore(summary.id);
    place(summary);
    if (reopen) location.hash = sessionHref(summary.id);
  } catch (error) {
    showError(pageError(error));
  }
}

/** @param {string} name */
export async function fetchModel(name) {
  fetchAsked.set(name);
  // A download that never shows up in the status can be asked for again.
  setTimeout(() => fetchAsked.set(null), FETCH_SHOWS_UP_MS);
  try {
    await api.fetchModel(name);
  } catch (error) {
    fetchAsked.set(null);
    showError(pageError(error));
  }
}

/** @param {unknown} error @returns {import('../state/types.js').Problem} */
export function pageError(error) {
  return error instanceof ApiError
    ? { code: error.code, message: error.message, phrase: error.phrase }
    : { code: 'internal', message: String(error) };
}

let last_toast = 0;

/**
 * @param {string} text
 * @param {{ label: string, run: () => void } | null} [action]
 * @param {number} [ms]
 * @param {boolean} [error]
 */
export function showToast(text, action = null, ms = TOAST_MS, error = false) {
  last_toast += 1;
  const id = last_toast;
  toasts.set([...toasts.get().slice(-2), { id, text, action, error }]);
  setTimeout(() => closeToast(id), ms);
}

/** @param {number} id */
export function closeToast(id) {
  toasts.set(toasts.get().filter((toast) => toast.id !== id));
}

/** @param {import('../state/types.js').Problem} error */
export async function showError(error) {
  // Without them it is said in English.
  if (error.phrase !== undefined) await loadTroubles().catch(() => {});
  showToast(
    `${t(`error.${errorGroup(error.code)}.title`)}${error.message === ''
      ? ''
      : `: ${phraseText(error.phrase, error.message)}`}`, null, TOAST_MS, true,
  );
}

/** Those that are at hand; the others are loaded with the first look at one of them. @type {ReadonlySet<PanelName>} */
const AT_HAND = new Set(/** @type {const} */ (['image', 'keys']));

export const loadPanels = () => loadPart(new URL('./panels.js', import.meta.url));

/** Has this stand over the page. @param {PanelName} name */
export async function openPanel(name) {
  drawerOpen.set(false);
  try {
    if (!AT_HAND.has(name)) await loadPanels();
  } catch {
    await tellMissing();
    return;
  }
  panel.set(name);
}

/** Says why a part of the page cannot be had: those of yesterday's page are gone with an update. */
async function tellMissing() {
  await lookForUpdate();
  if (outdated.get()) showToast(t('banner.outdated'),
    { label: t('banner.reload'), run: () => location.reload() }, UNDO_TOAST_MS);
  else showError({ code: 'unreachable', message: '' });
}

/** A file of the open session's workspace. @param {string} path */
export function showFile(path) {
  // One that is shown is read again with the changes: a command that wrote it tells of none.
  if (panel.get() === 'file' && shownFile.get() === path) void readChanges();
  shownFile.set(path);
  void openPanel('file');
}

/** What a conversation of the list is filed under. @param {string} id */
export function showTags(id) {
  shownTagsOf.set(id);
  void openPanel('tags');
}

/** What a run did, and what its model was sent. @param {string} run_id */
export function showRun(run_id) {
  shownRun.set(run_id);
  void openPanel('run');
}
