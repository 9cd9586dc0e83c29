// What happens while nobody looks is told by the system, where a person wants that.

/** @import { SessionSummary } from '../state/wire.js' */

import { t } from '../i18n/index.js';
import { signal } from '../lit.js';
import { newsOf } from '../state/sessions.js';
import { storage } from './prefs.js';

const PLACE = 'navi.notify';

/** Whether a browser can, and was asked to. */
export const notifies = signal(false);
export const canNotify = () => 'Notification' in globalThis;

export function loadNotify() {
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
export function tell(before, after) {
  const news = newsOf(before, after);
  if (news === null || !notifies.get() || document.visibilityState === 'visible') return;
  const note = new Notification(after.title || t('sidebar.untitled'), { body: t(`notify.${news}`), tag: after.id });
  note.onclick = () => {
    focus();
    location.hash = `#/s/${encodeURIComponent(after.id)}`;
    note.close();
  };
}
