// What happens while nobody looks is told by the system, where a person wants that.

/** @import { SessionSummary } from '../state/wire.js' */

import { t } from '../i18n/index.js';
import { signal } from '../lit.js';
import { newsOf } from '../state/sessions.js';
import { storage } from './prefs.js';

const PLACE = 'navi.notify';
/** The lock that each page holds while it is looked at. */
const LOOKS = 'navi.looks';

/** Whether a browser can, and was asked to. */
export const notifies = signal(false);
export const canNotify = () => 'Notification' in globalThis;

export function loadNotify() {
  followNotes();
  followLooks();
  notifies.set(canNotify() && Notification.permission === 'granted' && storage.get(PLACE) === 'on');
}

/** @returns {Promise<boolean>} whether it is as it was wanted: a browser may refuse */
export async function toggleNotify() {
  const wanted = !notifies.get();
  const granted = wanted && (await Notification.requestPermission()) === 'granted';
  storage.set(PLACE, granted ? 'on' : null);
  notifies.set(granted);
  return granted === wanted;
}

/**
 * A conversation that is done, or waits for an answer.
 * @param {SessionSummary | undefined} before
 * @param {SessionSummary} after
 */
export async function tell(before, after) {
  const news = newsOf(before, after);
  if (news === null || !notifies.get() || document.visibilityState === 'visible' || await isLookedAt()) return;
  const title = after.title || t('sidebar.untitled');
  const place = `#/s/${encodeURIComponent(after.id)}`;
  const said = { body: t(`notify.${news}`), tag: after.id, data: place };
  if (!await byWorker(title, said)) byPage(title, said);
}

/**
 * On phones the page's worker alone may tell; it also leads here (`sw.js`).
 * @param {string} title
 * @param {NotificationOptions} said
 */
async function byWorker(title, said) {
  try {
    const registration = await navigator.serviceWorker?.getRegistration();
    if (registration?.active == null) return false;
    await registration.showNotification(title, said);
    return true;
  } catch {
    return false;
  }
}

/** @param {string} title @param {NotificationOptions} said */
function byPage(title, said) {
  try {
    const note = new Notification(title, said);
    note.onclick = () => {
      focus();
      location.hash = said.data;
      note.close();
    };
  } catch {
    // A phone's browser without the worker tells nothing.
  }
}

/** Other pages of this browser learn from the lock whether somebody looks at one. */
function followLooks() {
  let leave = () => {};
  const look = () => {
    leave();
    if (document.visibilityState !== 'visible') return;
    const left = new Promise((resolve) => { leave = () => resolve(undefined); });
    navigator.locks?.request(LOOKS, { mode: 'shared' }, () => left).catch(() => {});
  };
  look();
  document.addEventListener('visibilitychange', look);
}

/** Whether any page of this browser is. Browsers have locks on secure origins only: elsewhere nobody knows. */
async function isLookedAt() {
  try {
    const { held = [] } = await navigator.locks.query();
    return held.some(({ name }) => name === LOOKS);
  } catch {
    return false;
  }
}

/** Follows a note of the worker's that was pressed. */
function followNotes() {
  navigator.serviceWorker?.addEventListener('message', ({ data }) => {
    if (typeof data?.open === 'string' && data.open.startsWith('#/s/')) location.hash = data.open;
  });
}
