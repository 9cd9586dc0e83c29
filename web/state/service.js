// What the service's status means for the page.

/** @import { BackendStatus, FetchableModel, ModelInfo, ProfileModel, SystemStatus } from './wire.js' */

/**
 * The backend that the next call goes to.
 * @param {SystemStatus | null} status
 * @returns {BackendStatus | null}
 */
export function activeBackend(status) {
  return status?.backends.find((backend) => backend.kind === status.active) ?? null;
}

/**
 * The backends whose models can be chosen now: what a run would find.
 * @param {SystemStatus | null} status
 */
export const readyBackends = (status) => status?.backends.filter(({ state }) => state === 'ready') ?? [];

/**
 * Whether a backend lists the model under this name: Ollama has `name:latest` for what everybody
 * calls `name`.
 * @param {ModelInfo} model
 * @param {string} name
 */
export const isCalled = (model, name) => model.name === name || model.name === `${name}:latest`;

/**
 * The backend that a session's next run goes to: that of the model which was chosen for it.
 * @param {SystemStatus | null} status
 * @param {string | null} chosen
 * @returns {BackendStatus | null}
 */
export function backendOf(status, chosen) {
  const having = chosen === null
    ? undefined
    : readyBackends(status).find(({ models }) => models.some((model) => isCalled(model, chosen)));
  return having ?? activeBackend(status);
}

/**
 * Where what a person writes goes beyond their machine; null where it does not, or nobody knows.
 * @param {SystemStatus | null} status
 * @param {ModelInfo | null} model
 * @param {BackendStatus | null} [backend]
 */
export function hostOf(status, model, backend = activeBackend(status)) {
  // Ollama passes such a model's calls on.
  if (backend?.kind === 'ollama' && /[:-]cloud$/.test(model?.name ?? '')) return 'ollama.com';
  return backend === null ? null : remoteHost(backend);
}

/**
 * Whether nothing that could answer is anywhere else.
 * @param {SystemStatus | null} status
 * @param {ModelInfo | null} model the one that answers
 */
export function staysHere(status, model) {
  return status !== null && status.backends.length > 0
    && status.backends.every((backend) => remoteHost(backend) === null) && hostOf(status, model) === null;
}

/** @param {BackendStatus} backend */
function remoteHost({ kind, address }) {
  if (kind === 'starter') return null;
  try {
    const { hostname } = new URL(address);
    return /^(localhost|127(\.\d+){3}|\[::1\]|0\.0\.0\.0)$/.test(hostname) ? null : hostname;
  } catch {
    return address;
  }
}

/**
 * The model that a session with this profile gets, as far as the page can tell before a run says it.
 * @param {SystemStatus | null} status
 * @param {Pick<ProfileModel, 'model'> | null} profile
 * @param {string | null} [chosen] the one that was chosen for it
 * @returns {ModelInfo | null}
 */
export function expectedModel(status, profile, chosen = null) {
  const backend = backendOf(status, chosen);
  if (backend === null) return null;
  for (const name of [chosen, profile?.model, backend.default_model]) {
    const model = name == null ? undefined : backend.models.find((item) => isCalled(item, name));
    if (model !== undefined) return model;
  }
  return backend.default_model === undefined ? backend.models[0] ?? null : { name: backend.default_model };
}

/**
 * The profile that a new session gets where nobody chose (SPEC section 10).
 * @template {Pick<ProfileModel, 'is_default'>} P
 * @param {P[]} profiles
 * @returns {P | null}
 */
export function defaultProfile(profiles) {
  return profiles.find(({ is_default }) => is_default) ?? null;
}

/**
 * The better model that one click away is not here yet.
 * @param {SystemStatus | null} status
 * @returns {FetchableModel | null}
 */
export function worthFetching(status) {
  const starter = status?.backends.some((backend) => backend.kind === 'starter') ?? false;
  return (starter && status?.fetchable.find((model) => !model.demo && !model.present)) || null;
}

/**
 * The fetch that goes on, if any.
 * @param {SystemStatus | null} status
 * @returns {{ model: string, received: number, total: number } | null}
 */
export function fetching(status) {
  for (const { name, received, size } of status?.fetchable ?? []) {
    if (received !== undefined) return { model: name, received, total: size };
  }
  return null;
}

/**
 * What keeps the page without a model: each backend's trouble, and whether one is on its way.
 * @param {SystemStatus | null} status
 */
export function modelTrouble(status) {
  if (status === null || status.active !== null) return null;
  /** @type {Extract<BackendStatus, { state: 'down' }>[]} */
  const problems = [];
  let loading = null;
  for (const backend of status.backends) {
    if (backend.state === 'down') problems.push(backend);
    if (backend.state === 'loading') loading = backend.detail;
  }
  return { problems, loading };
}

/**
 * Why a model does not do for a profile; null where it does, or nobody knows.
 * @param {ModelInfo} model
 * @param {Pick<ProfileModel, 'has_tools'> | null} profile
 * @returns {'demo' | 'no_tools' | null}
 */
export function misfit(model, profile) {
  if (model.demo === true) return 'demo';
  return model.tools === false && profile?.has_tools === true ? 'no_tools' : null;
}
