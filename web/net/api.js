// REST calls. Every failure is an `ApiError` with the service's code, or one of ours:
// `unreachable` when nobody answered.

/** @import { NaviError, ProfileInfo, SessionSnapshot, SessionSummary, SystemStatus } from '../state/wire.js' */

export class ApiError extends Error {
  /** @param {NaviError} error @param {number} status */
  constructor(error, status) {
    super(error.message);
    this.code = error.code;
    this.status = status;
  }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>}
 */
async function call(method, path, body) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: 'same-origin',
    });
  } catch {
    throw new ApiError({ code: 'unreachable', message: '' }, 0);
  }
  const text = await response.text();
  /** @type {any} */
  let json = null;
  try {
    json = text === '' ? null : JSON.parse(text);
  } catch {
    // A proxy's page, or a body cut off: the status says enough.
  }
  if (!response.ok) {
    const error = json?.error ?? json;
    const code = response.status === 401 ? 'unauthorized' : String(error?.code ?? 'internal');
    throw new ApiError({ code, message: String(error?.message ?? `HTTP ${response.status}`) }, response.status);
  }
  return json;
}

/** @param {string} id */
const session = (id) => `/sessions/${encodeURIComponent(id)}`;

export const api = {
  /** @returns {Promise<SessionSummary[]>} */
  async sessions() {
    const answer = await call('GET', '/sessions');
    return Array.isArray(answer) ? answer : answer?.sessions ?? [];
  },
  /** @param {string} id @returns {Promise<SessionSnapshot>} */
  session: (id) => call('GET', session(id)),
  /** @param {string | null} profile_id @returns {Promise<{ session_id: string, profile_id: string, created_at: string }>} */
  create: (profile_id) => call('POST', '/sessions', profile_id === null ? {} : { profile_id }),
  /** @param {string} id @param {string} title */
  rename: (id, title) => call('PATCH', session(id), { title }),
  /** @param {string} id @param {boolean} pinned */
  pin: (id, pinned) => call('PATCH', `${session(id)}/pin`, { pinned }),
  /** @param {string} id */
  remove: (id) => call('DELETE', session(id)),
  /** @param {string} id */
  restore: (id) => call('POST', `${session(id)}/restore`),
  /** @returns {Promise<SystemStatus>} */
  status: () => call('GET', '/api/status'),
  /** @param {string} name */
  fetchModel: (name) => call('POST', '/api/models/fetch', { name }),
  /** @returns {Promise<ProfileInfo[]>} */
  async profiles() {
    const answer = await call('GET', '/agents/profiles');
    return Array.isArray(answer) ? answer : answer?.profiles ?? [];
  },
};
