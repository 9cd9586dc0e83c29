// The open session: its link to the service, and what a person does in it.

/** @import { ConsentMode, Decision, PlanEdit, SendMode } from '../state/wire.js' */
/** @import { OutboxItem } from '../state/outbox.js' */
/** @import { SessionState } from '../state/types.js' */

import { api, ApiError } from '../net/api.js';
import { SessionLink } from '../net/session_link.js';
import { images, isReady, refs } from '../state/attachments.js';
import { isUnderWay, toSend, withChange, withOldHeld, withoutConfirmed } from '../state/outbox.js';
import { announceEvent, announceOpened } from './announce.js';
import { attachmentsOf, clear, move, moveToNew, onSettled, retry, workOn } from './attachments.js';
import { changesBy, changesOf, forgetChanges } from './changes.js';
import { draftOf, putBack, setDraft, setEdit } from './drafts.js';
import { keep } from './kept.js';
import {
  answering, connection, continuing, edits, isGuest, NEW, openId, outbox, resolving, session, sessionError,
  showSession, silentSince, steered, stopping,
} from './signals.js';

/** @type {SessionLink | null} */
let link = null;
/** Those of sessions that are not shown and have a message under way. @type {Map<string, SessionLink>} */
const left = new Map();

/**
 * Shows a session; null shows the page of a new one.
 * @param {string | null} id
 */
export function openSession(id) {
  if (id !== null && id === openId.get() && link !== null) return;
  leave();
  openId.set(id);
  showSession(null);
  sessionError.set(null);
  stopping.set(null);
  continuing.set(false);
  answering.set(new Map());
  resolving.set(new Map());
  forgetChanges();
  if (id === null) return;
  left.get(id)?.close();
  left.delete(id);
  link = connect(id);
  workOn();
}

/** What is under way goes on without being shown. */
function leave() {
  if (link !== null && outboxOf(link.id).some(isUnderWay)) left.set(link.id, link);
  else link?.close();
  link = null;
}

/** @param {string} id */
const linkOf = (id) => (link?.id === id ? link : left.get(id) ?? null);

/** @param {string} id @returns {SessionLink} */
function connect(id) {
  const shown = () => openId.get() === id;
  return new SessionLink(id, {
    onstate: (state) => {
      if (!shown()) return;
      const before = session.get();
      if (before === null) {
        announceOpened(state.title);
        changesOf(state);
      } else {
        settleEdits(before, state);
      }
      showSession(state);
      if (state.run?.run_id !== stopping.get()) stopping.set(null);
      if (state.run !== null) continuing.set(false);
    },
    onconnection: (state, silent_since_ms) => {
      if (!shown()) return;
      connection.set(state);
      if (state === 'silent') silentSince.set(silent_since_ms);
    },
    onopen: () => {
      setOutbox(id, withOldHeld(outboxOf(id), Date.now()));
      toSend(outboxOf(id)).forEach((item) => transmit(id, item));
      closeIfDone(id);
      if (!shown()) return;
      // Whether an answer arrived before the connection went is told by what comes now.
      unanswered();
      continuing.set(false);
      // Its run may have ended meanwhile: one that goes now is another.
      const run_id = stopping.get();
      if (run_id !== null) linkOf(id)?.send({ ...STOP, run_id });
    },
    onconfirmed: (client_ids) => {
      setOutbox(id, withoutConfirmed(outboxOf(id), new Set(client_ids)));
      closeIfDone(id);
    },
    onrefused: (refused) => {
      // What came too late for this process is sent to the next one.
      if (refused.code === 'shutting_down' && refused.client_id !== null) return;
      if (outboxOf(id).some((item) => item.client_id === refused.client_id)) {
        setOutbox(id, withChange(outboxOf(id), refused.client_id, { refused }));
        closeIfDone(id);
      } else if (shown()) {
        resolving.set(new Map());
        continuing.set(false);
        if (refused.code === 'approval_not_found' || refused.code === 'approval_resolved') unanswered();
        else stopping.set(null);
        refusedHandler(refused);
      }
    },
    onevent: (frame) => {
      if (!shown()) return;
      announceEvent(frame);
      changesBy(frame);
    },
    onfatal: (error) => {
      linkOf(id)?.close();
      left.delete(id);
      if (shown()) link = null;
      if (error.code === 'unauthorized') unauthorizedHandler();
      else if (error.code === 'session_not_found' && giveBack(id)) goneHandler(id);
      else if (shown()) sessionError.set(error);
    },
  });
}

/** @param {string} id */
function closeIfDone(id) {
  if (outboxOf(id).some(isUnderWay)) return;
  left.get(id)?.close();
  left.delete(id);
}

/** Opens the session once more that could not be opened. */
export function openAgain() {
  openSession(openId.get());
}

/**
 * What became of waiting messages that are being written anew. Where a run took one, its new words
 * go on in the conversation; where another tab withdrew it, they go back to where one writes.
 * @param {SessionState} before
 * @param {SessionState} after
 */
function settleEdits(before, after) {
  for (const { message_id, content } of before.queue) {
    const text = edits.get().get(message_id);
    const now = after.queue.find((item) => item.message_id === message_id);
    if (text === undefined || now?.content === content) continue;
    const taken = now === undefined && after.entries.some(({ id }) => id === message_id);
    if (text === (now?.content ?? content)) setEdit(message_id, undefined);
    else if (now === undefined && !taken) {
      setEdit(message_id, undefined);
      putBack(after.id, text);
    }
  }
}

/** Where a refusal goes that belongs to no message: `actions.js` shows it as a toast. */
let refusedHandler = (/** @type {import('../state/types.js').Problem} */ _refused) => {};

/** @param {typeof refusedHandler} handler */
export function onRefused(handler) {
  refusedHandler = handler;
}

/** @param {string} id @returns {OutboxItem[]} */
export const outboxOf = (id) => outbox.get().get(id) ?? [];

/**
 * @param {string} id
 * @param {OutboxItem[]} items
 */
function setOutbox(id, items) {
  const before = outboxOf(id);
  if (items === before) return;
  const next = new Map(outbox.get());
  if (items.length === 0) next.delete(id);
  else next.set(id, items);
  outbox.set(next);
  for (const item of before) if (!items.some(({ client_id }) => client_id === item.client_id)) keep('message',
    item.client_id, undefined);
  for (const item of items) if (!before.includes(item)) keep('message', item.client_id, { ...item, session_id: id });
}

/** @param {string} id @param {OutboxItem} item */
function transmit(id, { client_id, content, images, files, mode }) {
  linkOf(id)?.send({ type: 'message', client_id, content, images, files, mode });
}

/**
 * Makes a message of a draft and of what goes with it, and keeps it until the service has it.
 * @param {string} id the session, or `NEW`
 * @param {SendMode} mode
 * @returns {OutboxItem}
 */
export function post(id, mode) {
  const list = attachmentsOf(id);
  /** @type {OutboxItem} */
  const item = {
    client_id: newId(), content: draftOf(id), images: [], files: [], incomplete: list.length > 0, mode,
    created_ms: Date.now(), refused: null, held: false,
  };
  if (mode === 'steer') steered.set(new Set([...steered.get(), item.client_id]));
  setOutbox(id, [...outboxOf(id), item]);
  setDraft(id, '');
  move(id, item.client_id);
  if (item.incomplete) complete(item.client_id);
  else transmit(id, item);
  workOn();
  return item;
}

/** A message goes once all that goes with it is there. @param {string} client_id */
function complete(client_id) {
  const list = attachmentsOf(client_id);
  for (const [id, items] of outbox.get()) {
    const item = items.find((known) => known.client_id === client_id);
    // A session that is not there yet is waited for.
    if (id === NEW || item === undefined || !item.incomplete || !isReady(list)) continue;
    const whole = { ...item, images: images(list), files: refs(list), incomplete: false };
    setOutbox(id, items.map((known) => (known === item ? whole : known)));
    clear(client_id);
    if (isUnderWay(whole)) transmit(id, whole);
  }
}
onSettled(complete);

/**
 * The message that began a session goes there, with what was written meanwhile.
 * @param {OutboxItem} item
 * @param {string} id
 */
export function begin({ client_id }, id) {
  const item = outboxOf(NEW).find((known) => known.client_id === client_id);
  setOutbox(NEW, withoutConfirmed(outboxOf(NEW), new Set([client_id])));
  if (item !== undefined) setOutbox(id, [...outboxOf(id), item]);
  setDraft(id, draftOf(NEW));
  setDraft(NEW, '');
  move(NEW, id);
  complete(client_id);
  workOn();
}

/** What an earlier page left: a session that is not shown is connected until it has its messages. */
export function sendLeft() {
  for (const [id, items] of outbox.get()) {
    const due = toSend(items);
    if (id === NEW || due.length === 0) continue;
    if (linkOf(id) === null && id !== openId.get()) left.set(id, connect(id));
    else for (const item of due) transmit(id, item);
  }
}

/** A message that began no session is a draft again. @param {OutboxItem} item */
export function takeBack({ client_id }) {
  const item = outboxOf(NEW).find((known) => known.client_id === client_id);
  if (item === undefined) return;
  setOutbox(NEW, withoutConfirmed(outboxOf(NEW), new Set([client_id])));
  putBack(NEW, item.content);
  move(client_id, NEW);
  workOn();
}

/**
 * What was written in a session that is gone is a new one's draft.
 * @param {string} id
 * @returns {boolean} whether there was any
 */
export function giveBack(id) {
  const items = outboxOf(id);
  const texts = [...items.map(({ content }) => content), draftOf(id)].filter((text) => text !== '');
  if (texts.length === 0 && attachmentsOf(id).length === 0) return false;
  setOutbox(id, []);
  setDraft(id, '');
  if (texts.length > 0) putBack(NEW, texts.join('\n\n'));
  for (const { client_id, images } of items) moveToNew(client_id, images);
  moveToNew(id, []);
  workOn();
  return true;
}

/** `crypto.randomUUID` exists on secure origins only, and a LAN address is none. */
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** @param {string} client_id */
export function resend(client_id) {
  const id = openId.get();
  const item = id === null ? undefined : outboxOf(id).find((known) => known.client_id === client_id);
  if (id === null || item === undefined) return;
  // What was refused is a new message. What was held may have arrived after all: its id says so.
  const again = {
    ...item, client_id: item.refused === null ? client_id : newId(), refused: null, held: false, created_ms: Date.now(),
  };
  setOutbox(id, outboxOf(id).map((known) => (known === item ? again : known)));
  if (!again.incomplete) transmit(id, again);
  complete(client_id);
  for (const { id, state } of attachmentsOf(client_id)) if (state === 'failed') retry(id);
  workOn();
}

/** @param {string} client_id */
export function discard(client_id) {
  const id = openId.get();
  if (id === null) return;
  setOutbox(id, withoutConfirmed(outboxOf(id), new Set([client_id])));
  clear(client_id);
}

/** What waits is the next to be answered only where one says so. */
const STOP = Object.freeze({ type: 'stop', hold: true });

export function stop() {
  const run = session.get()?.run;
  if (isGuest.get() || run == null) return;
  stopping.set(run.run_id);
  link?.send(STOP);
}

/**
 * Answers a question. Where another tab was first, its answer counts.
 * @param {string} approval_id
 * @param {Decision} decision
 * @param {string} note why not, where one says so
 * @returns {boolean} whether it is on its way
 */
export function approve(approval_id, decision, note) {
  if (!send({ type: 'approve', approval_id, decision, ...(note === '' ? {} : { note }) })) return false;
  answering.set(new Map([...answering.get(), [approval_id, { decision, sending: true }]]));
  return true;
}

/** What was sent and not taken can be answered again. */
function unanswered() {
  resolving.set(new Map());
  answering.set(new Map([...answering.get()].map(([id, { decision }]) => [id, { decision, sending: false }])));
}

/** @param {unknown} frame @returns {boolean} whether it is on its way */
export const send = (frame) => link?.send(frame) === true;

/**
 * How much the session may do without asking. Every tab hears of it by an event, as of the others.
 * @param {ConsentMode} mode
 */
export const setMode = (mode) => ask((id) => api.setMode(id, mode));

/** Changes the list of steps. Every tab hears of it by an event. @param {PlanEdit} edit */
export const editPlan = (edit) => ask((id) => api.editPlan(id, edit));

/** @param {string} profile_id */
export const setProfile = (profile_id) => ask((id) => api.change(id, { profile_id }));

/** The model that answers from the next message on; null for the profile's own. @param {string | null} model */
export const setModel = (model) => ask((id) => api.change(id, { model }));

/** @param {object} frame */
function goOn(frame) {
  if (send(frame)) continuing.set(true);
}

export const continueRun = () => goOn({ type: 'continue' });

/** Begins what Stop held back, whatever the run before it left. */
export const sendHeld = () => goOn({ type: 'continue', queue: true });

/** @param {string} message_id */
export const withdraw = (message_id) => link?.send({ type: 'withdraw', message_id });

/**
 * The form closes when the service has it.
 * @param {string} message_id
 * @param {string} content
 * @returns {boolean} whether it is on its way
 */
export const editQueued = (message_id, content) => send({ type: 'edit_queued', message_id, content });

/** What is done where something was written in a session that is gone. */
let goneHandler = (/** @type {string} */ _id) => {};

/** @param {typeof goneHandler} handler */
export function onGone(handler) {
  goneHandler = handler;
}

/** What is done where the service knows the login no more. */
let unauthorizedHandler = () => {};

/** @param {() => void} handler */
export function onUnauthorized(handler) {
  unauthorizedHandler = handler;
}

/**
 * Reads more of what was said before; with a message's id, until that is there. Says why it cannot.
 * @param {string | null} [message_id]
 */
export async function loadEarlier(message_id = null) {
  try {
    await link?.loadEarlier(message_id);
  } catch (error) {
    refusedHandler(error instanceof ApiError ? error : { code: 'internal', message: String(error) });
  }
}

/** Shows the subagents of a run that this page did not watch. @param {string} run_id */
export const loadRun = (run_id) => link?.loadRun(run_id);

/**
 * A request about the open session; a refusal is shown as a toast.
 * @param {(id: string) => Promise<unknown>} request
 * @returns {Promise<boolean>} whether the service took it
 */
async function ask(request) {
  const id = openId.get();
  if (id === null) return false;
  try {
    await request(id);
    return true;
  } catch (error) {
    refusedHandler(error instanceof ApiError ? error : { code: 'internal', message: String(error) });
    return false;
  }
}

/** Sends a message in other words, on a branch of its own. @param {string} message_id @param {string} content */
export const editMessage = (message_id, content) => ask((id) => api.branch(id, message_id, content));

/** Has a message answered once more, on a branch of its own. @param {string} message_id */
export const regenerate = (message_id) => ask((id) => api.branch(id, message_id, null));

/** @param {number} branch_id */
export const showBranch = (branch_id) => ask((id) => api.showBranch(id, branch_id));

/** @param {string} run_id */
export const stopChild = (run_id) => ask((id) => api.stopChild(id, run_id));
