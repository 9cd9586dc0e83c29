// Conversations that are put away: a list of its own, which is read when somebody looks into it.

/** @import { SessionSummary } from '../state/wire.js' */

import { api } from '../net/api.js';
import { sorted, withoutSession, withSession } from '../state/sessions.js';
import { archived, sessions } from './signals.js';

/** Whether a row changed while the list was read: then it is read once more. */
let changed = false;

export async function readArchived() {
  changed = true;
  if (archived.get().state === 'reading') return;
  archived.set({ ...archived.get(), state: 'reading' });
  try {
    /** @type {SessionSummary[]} */
    let list = [];
    while (changed) {
      changed = false;
      list = await api.archived();
    }
    archived.set({ state: 'read', list: sorted(list) });
  } catch {
    archived.set({ ...archived.get(), state: 'failed' });
  }
}

/** Reads the list anew where it was read before. */
export function refreshArchived() {
  if (archived.get().state !== 'unread') void readArchived();
}

/** Puts a row into the list that it belongs to, and takes it out of the other. @param {SessionSummary} row */
export function place(row) {
  const { list } = sessions.get();
  const away = archived.get();
  changed = true;
  sessions.set({ loaded: true, list: row.archived ? withoutSession(list, row.id) : withSession(list, row) });
  archived.set({ ...away, list: row.archived ? withSession(away.list, row) : withoutSession(away.list, row.id) });
}

/** @param {string} id */
export function dropRow(id) {
  const away = archived.get();
  changed = true;
  sessions.set({ loaded: true, list: withoutSession(sessions.get().list, id) });
  archived.set({ ...away, list: withoutSession(away.list, id) });
}
