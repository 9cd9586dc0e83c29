// A conversation that is looked at by a link: read, followed as it goes on, and nothing else.

/** @import { Envelope, SharedSession } from '../state/wire.js' */

import { ApiError } from '../net/api.js';
import { follow, look } from '../net/shared.js';
import { delayMs } from '../net/socket.js';
import { fromSnapshot } from '../state/model.js';
import { applyFrame } from '../state/session.js';
import { account, connection, openId, session, sessionError, sharedUntil, showSession } from './signals.js';

/** What ended while this page looked is no fault: another try tells. */
const PASSING = [408, 429];

/** Follows a link until it ends. @param {string} secret */
export async function lookAt(secret) {
  // Whoever looks by a link does nothing, whoever they are here.
  account.set({
    accounts: true, id: '', name: '', role: 'guest', scopes: [], has_password: false, recovery_codes: 0,
    passkeys: 0, sign_ons: 0, provider: null, limits: null,
  });
  for (let attempt = 0; ; attempt += 1) {
    try {
      await once(secret, () => { attempt = 0; });
    } catch (error) {
      const known = error instanceof ApiError ? error : null;
      if (known !== null && known.status >= 400 && known.status < 500 && !PASSING.includes(known.status)) {
        showSession(null);
        sessionError.set({ code: known.code, message: known.message });
        return;
      }
    }
    connection.set('lost');
    await new Promise((resolve) => { setTimeout(resolve, delayMs(attempt, Math.random())); });
  }
}

/** @param {string} secret @param {() => void} onopen */
async function once(secret, onopen) {
  show(await look(secret));
  const state = session.get();
  if (state === null) return;
  connection.set('open');
  onopen();
  await follow(secret, state.last_seq, state.epoch, take);
}

/** @param {SharedSession} shared */
function show({ session: snapshot, expires_at }) {
  openId.set(snapshot.id);
  sharedUntil.set(expires_at);
  // What is earlier than what was sent is not for who looks by a link.
  showSession({ ...fromSnapshot(snapshot), earlier: 0 });
}

/** @param {Envelope} frame @returns {boolean} whether the next may come: otherwise all is read anew */
function take(frame) {
  const state = session.get();
  if (state === null) return false;
  const step = applyFrame(state, frame);
  if (step.hole || step.reload) return false;
  if (step.state !== state) showSession(step.state);
  return true;
}
