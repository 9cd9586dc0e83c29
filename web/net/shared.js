// What a link to a conversation opens: a snapshot, and what is told from there on. Its secret goes
// in a header, never in an address.

/** @import { Envelope, SharedSession } from '../state/wire.js' */

import { ApiError } from './api.js';

/** @param {string} path @param {string} secret @param {AbortSignal} [signal] */
async function ask(path, secret, signal) {
  const response = await fetch(path,
    { headers: { 'x-navi-link': secret }, credentials: 'same-origin', signal }).catch(() => {
    throw new ApiError({ code: 'unreachable', message: '' }, 0);
  });
  if (response.ok) return response;
  const error = await response.json().catch(() => null);
  throw new ApiError({
    code: String(error?.code ?? 'internal'), message: String(error?.message ?? `HTTP ${response.status}`),
  }, response.status);
}

/** @param {string} secret @returns {Promise<SharedSession>} */
export const look = async (secret) => (await ask('api/shared', secret)).json();

/**
 * Takes what is told after an event, until that ends or one is not taken.
 * @param {string} secret
 * @param {number} after
 * @param {number} epoch
 * @param {(frame: Envelope) => boolean} take
 */
export async function follow(secret, after, epoch, take) {
  const stop = new AbortController();
  const response = await ask(`api/shared/events?after=${after}&epoch=${epoch}`, secret, stop.signal);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = `${rest}${value}`.split('\n\n');
      rest = events.pop() ?? '';
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1];
        if (event.startsWith('event: closed')) return;
        if (data !== undefined && !take(JSON.parse(data))) return;
      }
    }
  } catch {
    // The connection went.
  } finally {
    stop.abort();
  }
}
