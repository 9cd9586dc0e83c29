// The open session: its link to the service, and what a person does in it.

/** @import { ConsentMode, Decision, FileRef, Frame, SendMode } from '../state/wire.js' */
/** @import { OutboxItem } from '../state/outbox.js' */

import { t } from '../i18n/index.js';
import { api, ApiError } from '../net/api.js';
import { SessionLink } from '../net/session_link.js';
import { isChild } from '../state/children.js';
import { parseOutbox, toSend, withItem, withoutConfirmed, withRefusal } from '../state/outbox.js';
import { changesBy, changesOf, forgetChanges } from './changes.js';
import { storage } from './prefs.js';
import { announcement, answering, approvals, connection, openId, outbox, resolving, session, sessionError, signedOut, steered, stopping, unknownCalls } from './signals.js';

/** @type {SessionLink | null} */
let link = null;

/** @param {string} id */
const outboxKey = (id) => `navi.outbox.${id}`;

/**
 * Shows a session; null shows the page of a new one.
 * @param {string | null} id
 */
export function openSession(id) {
  if (id !== null && id === openId.get() && link !== null) return;
  link?.close();
  link = null;
  openId.set(id);
  session.set(null);
  sessionError.set(null);
  stopping.set(false);
  outbox.set([]);
  answering.set(new Map());
  approvals.set([]);
  resolving.set(new Map());
  unknownCalls.set([]);
  forgetChanges();
  if (id === null) return;
  outbox.set(parseOutbox(storage.get(outboxKey(id)), Date.now()));
  const opened = new SessionLink(id, {
    onstate: (state) => {
      if (session.get() === null) changesOf(state);
      session.set(state);
      if (state.run === null) stopping.set(false);
      approvals.set(state.approvals);
      unknownCalls.set(state.unknown);
    },
    onconnection: (state) => connection.set(state),
    onopen: () => {
      toSend(outbox.get()).forEach(transmit);
      // Whether an answer arrived before the connection went is told by what comes now.
      unanswered();
      if (stopping.get()) link?.send({ type: 'stop' });
    },
    onconfirmed: (client_ids) => setOutbox(id, withoutConfirmed(outbox.get(), new Set(client_ids))),
    onrefused: (refused) => {
      // What came too late for this process is sent to the next one.
      if (refused.code === 'shutting_down' && refused.client_id !== null) return;
      if (outbox.get().some((item) => item.client_id === refused.client_id)) {
        setOutbox(id, withRefusal(outbox.get(), refused.client_id, refused));
      } else {
        resolving.set(new Map());
        if (refused.code === 'approval_not_found' || refused.code === 'approval_resolved') unanswered();
        else stopping.set(false);
        refusedHandler(refused);
      }
    },
    onevent: (frame) => {
      announce(frame);
      changesBy(frame);
    },
    onfatal: (error) => {
      opened.close();
      if (link === opened) link = null;
      if (error.code === 'unauthorized') signedOut.set(true);
      sessionError.set(error);
    },
  });
  link = opened;
}

/** Where a refusal goes that belongs to no message: `actions.js` shows it as a toast. */
let refusedHandler = (/** @type {{ code: string, message: string }} */ _refused) => {};

/** @param {typeof refusedHandler} handler */
export function onRefused(handler) {
  refusedHandler = handler;
}

/**
 * @param {string} id
 * @param {OutboxItem[]} items
 */
function setOutbox(id, items) {
  if (items === outbox.get()) return;
  outbox.set(items);
  storage.set(outboxKey(id), items.length === 0 ? null : JSON.stringify(items));
}

/** @param {OutboxItem} item */
function transmit(item) {
  const mode = item.mode === undefined ? {} : { mode: item.mode };
  const files = item.files === undefined || item.files.length === 0 ? {} : { files: item.files };
  link?.send({ type: 'message', client_id: item.client_id, content: item.content, images: item.images, ...files, ...mode });
}

/**
 * Keeps a message for a session before anything is sent, so that a reload loses nothing.
 * @param {string} id
 * @param {string} content
 * @param {string[]} images
 * @param {SendMode} [mode]
 * @param {FileRef[]} [files]
 */
export function postMessage(id, content, images, mode = 'queue', files = []) {
  /** @type {OutboxItem} */
  const item = {
    client_id: newId(), content, images, created_ms: Date.now(), refused: null, held: false, ...(mode === 'steer' ? { mode } : {}), ...(files.length === 0 ? {} : { files }),
  };
  if (mode === 'steer') steered.set(new Set([...steered.get(), item.client_id]));
  if (id !== openId.get()) {
    const kept = parseOutbox(storage.get(outboxKey(id)), Date.now());
    storage.set(outboxKey(id), JSON.stringify(withItem(kept, item)));
    return;
  }
  setOutbox(id, withItem(outbox.get(), item));
  transmit(item);
}

/** `crypto.randomUUID` exists on secure origins only, and a LAN address is none. */
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** @param {string} client_id */
export function resend(client_id) {
  const id = openId.get();
  if (id === null) return;
  // What was refused is a new message. What was held may have arrived after all: its id says so.
  const items = outbox.get().map((item) => (item.client_id === client_id
    ? { ...item, client_id: item.refused === null ? client_id : newId(), refused: null, held: false, created_ms: Date.now() }
    : item));
  setOutbox(id, items);
  toSend(items).forEach(transmit);
}

/** @param {string} client_id */
export function discard(client_id) {
  const id = openId.get();
  if (id !== null) setOutbox(id, withoutConfirmed(outbox.get(), new Set([client_id])));
}

export function stop() {
  if (session.get()?.run == null) return;
  stopping.set(true);
  link?.send({ type: 'stop' });
}

/**
 * Answers a question. Where another tab was first, its answer counts.
 * @param {string} approval_id
 * @param {Decision} decision
 * @returns {boolean} whether it is on its way
 */
export function approve(approval_id, decision) {
  if (link?.send({ type: 'approve', approval_id, decision }) !== true) return false;
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

/** How much the session may do without asking. Every tab hears of it by an event. @param {ConsentMode} mode */
export const setMode = (mode) => ask((id) => api.setMode(id, mode));

export const continueRun = () => link?.send({ type: 'continue' });

/** @param {string} message_id */
export const withdraw = (message_id) => link?.send({ type: 'withdraw', message_id });

/** @param {string} message_id @param {string} content */
export const editQueued = (message_id, content) => link?.send({ type: 'edit_queued', message_id, content });

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

/** How much of an answer is read out; the rest is in the page. */
const ANNOUNCED_CHARS = 400;

/** @param {Frame} frame */
function announce(frame) {
  if (frame.seq === undefined) return;
  // A subagent's question is everyone's.
  if (frame.type === 'approval_requested') announcement.set(t('announce.approval', { summary: frame.request.summary }));
  if (frame.type === 'approval_resolved') announcement.set(t(frame.decision === 'deny' ? 'announce.denied' : 'announce.allowed'));
  if (isChild(frame)) return;
  if (frame.type === 'mode_changed') announcement.set(t('announce.mode', { mode: t(`mode.${frame.mode}`) }));
  if (frame.type === 'plan_ready') announcement.set(t('announce.plan', { n: frame.steps.length }));
  if (frame.type === 'profile_switched') announcement.set(t('announce.profile', { name: frame.profile_name }));
  if (frame.type === 'stream_start') announcement.set(t('announce.started'));
  if (frame.type === 'tool_started') announcement.set(t('announce.tool', { tool: frame.tool }));
  if (frame.type === 'stream_end') announcement.set(t('announce.finished', { text: frame.content.slice(0, ANNOUNCED_CHARS) }));
  if (frame.type === 'stream_stopped') announcement.set(t('announce.stopped'));
  if (frame.type === 'error' && !frame.recoverable) announcement.set(t('announce.failed', { text: frame.message }));
}
