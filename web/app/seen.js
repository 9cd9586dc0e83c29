// Which conversations that went wrong this person has looked at since: those are no news any more.

import { signal } from '../lit.js';
import { isTrouble } from '../state/sessions.js';
import { storage } from './prefs.js';
import { openId, rowOf } from './signals.js';

const PLACE = 'navi.seen';
/** The oldest go first. */
const MAX = 500;

/** When each of them was last active, as it was seen; by its id. */
export const seen = signal(/** @type {ReadonlyMap<string, string>} */ (new Map()));

export function loadSeen() {
  seen.set(read(storage.get(PLACE)));
  addEventListener('storage', ({ key, newValue }) => {
    if (key === PLACE) seen.set(read(newValue));
  });
  document.addEventListener('visibilitychange', lookAtOpen);
}

/** The open conversation is seen, where the page is. */
export function lookAtOpen() {
  const row = rowOf(openId.get());
  if (document.visibilityState !== 'visible' || row === undefined || !isTrouble(row)
    || seen.get().get(row.id) === row.last_active) return;
  // What another tab saw meanwhile stays.
  const all = new Map([...seen.get(), ...read(storage.get(PLACE))]);
  all.delete(row.id);
  all.set(row.id, row.last_active);
  seen.set(new Map([...all].slice(-MAX)));
  storage.set(PLACE, JSON.stringify([...seen.get()]));
}

/** Another person has this browser now, or nobody. */
export const forgetSeen = () => storage.set(PLACE, null);

/** @param {string | null} text @returns {Map<string, string>} */
function read(text) {
  try {
    return new Map(JSON.parse(text ?? '[]'));
  } catch {
    return new Map();
  }
}
