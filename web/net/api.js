// REST calls. Every failure is an `ApiError` with the service's code, or one of ours:
// `unreachable` when nobody answered. Paths are relative to the page, which may stand behind any prefix.

/**
 * @import { CallDetails, Change, ConsentEntry, ConsentMode, ConsentRule, ContextParts, Envelope,
 * ExtensionFolders, ExtensionTool, Fact, FormerFact, McpDraft, McpEntry, McpServer, McpTrial,
 * MemoryOverview, MessagePage, PlanEdit, Profile,
 *  ProfileText, Report, RunDetails, SearchHit, SessionFile, SessionSnapshot, SessionSummary,
 *  SettingList, SkillInfo, SystemStatus, TodoItem, WorkspaceListing } from '../state/wire.js'
 */
/** @import { ImportedSession } from '../state/import.js' */

import { key } from './key.js';

export class ApiError extends Error {
  /** @param {import('../state/types.js').Problem} error @param {number} status */
  constructor(error, status) {
    super(error.message);
    this.code = error.code;
    this.phrase = error.phrase;
    this.status = status;
  }
}

/** A service that hangs answers no request either: what waits for it is given back. */
const PATIENCE_MS = 60_000;

/** What is sent may be tens of megabytes. */
const IMPORT_PATIENCE_MS = 600_000;

/** A change as short as this outlives the page that asked for it: a browser keeps 64 KiB of them in all. */
const OUTLIVES_CHARS = 2_048;

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {AbortSignal} [signal]
 */
export async function ask(method, path, body, signal) {
  const sent = body === undefined ? undefined : JSON.stringify(body);
  try {
    return await fetch(path, {
      method,
      headers: body === undefined
        ? { 'x-navi-key': key() }
        : { 'x-navi-key': key(), 'content-type': 'application/json' },
      body: sent,
      credentials: 'same-origin',
      keepalive: method !== 'GET' && (sent?.length ?? 0) <= OUTLIVES_CHARS,
      signal: signal ?? AbortSignal.timeout(PATIENCE_MS),
    });
  } catch {
    throw new ApiError({ code: 'unreachable', message: '' }, 0);
  }
}

/** What a response says, where it is no refusal. @param {Response} response @returns {Promise<any>} */
export async function read(response) {
  /** @type {string} */
  let text;
  try {
    text = await response.text();
  } catch {
    // The connection went, or the time was up, in the middle of the answer.
    throw new ApiError({ code: 'unreachable', message: '' }, 0);
  }
  /** @type {any} */
  let json = null;
  try {
    json = text === '' ? null : JSON.parse(text);
  } catch {
    // A proxy's page, or a body cut off: the status says enough.
  }
  if (!response.ok) throw refusal(response.status, json);
  return json;
}

/** What a proxy says itself, in words that are no code. @type {Record<number, string>} */
const BY_STATUS = { 413: 'body_too_large', 429: 'rate_limited', 502: 'unreachable', 503: 'unreachable',
  504: 'unreachable' };

/** @param {number} status @param {any} body null where it is no JSON */
export function refusal(status, body) {
  const error = body?.error ?? body;
  const by_status = error?.code == null ? BY_STATUS[status] : undefined;
  const code = status === 401 ? 'unauthorized' : String(error?.code ?? by_status ?? 'internal');
  const message = by_status === undefined ? String(error?.message ?? `HTTP ${status}`) : '';
  return new ApiError({ code, message, phrase: error?.phrase }, status);
}

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {AbortSignal} [signal]
 */
export const call = async (method, path, body, signal) => read(await ask(method, path, body, signal));

/** A large file takes as long as it takes, while more of it comes. @param {string} path @returns {Promise<Blob>} */
export async function download(path) {
  const silent = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silent.abort(), PATIENCE_MS);
  };
  wait();
  try {
    const response = await ask('GET', path, undefined, silent.signal);
    if (!response.ok) return await read(response);
    const heard = new TransformStream({
      transform(chunk, out) {
        wait();
        out.enqueue(chunk);
      },
    });
    return await new Response(response.body?.pipeThrough(heard)).blob();
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError({ code: 'unreachable', message: '' }, 0);
  } finally {
    clearTimeout(timer);
  }
}

/** A file larger than this is kept, and not looked at. */
const TEXT_BYTES = 1_048_576;

/** @param {string} id */
const session = (id) => `sessions/${encodeURIComponent(id)}`;
export const sessionPath = session;

/** A list, be it the whole answer or in it by its name. @param {any} answer @param {string} name @returns {any[]} */
const listOf = (answer, name) => (Array.isArray(answer) ? answer : answer?.[name] ?? []);

/** @param {string} id @param {string} file_id */
export const filePath = (id, file_id) => `${session(id)}/files/${encodeURIComponent(file_id)}`;

/**
 * A file of the workspace: to keep, as the picture that Navi makes of it, or what was changed in it.
 * @param {string} id
 * @param {'file' | 'image' | 'changes'} as
 * @param {string} path
 */
export const workspacePath = (id, as, path) => `${session(id)}/workspace/${as}?path=${encodeURIComponent(path)}`;

/** @param {Pick<Fact, 'category' | 'key'>} fact */
const factPath = ({ category, key }) => `memory/facts/${encodeURIComponent(category)}/${encodeURIComponent(key)}`;

/** A run's log has an end; a service that never says so is not followed forever. */
const MAX_LOG_PAGES = 500;

export const api = {
  /** @returns {Promise<SessionSummary[]>} */
  sessions: async () => listOf(await call('GET', 'sessions'), 'sessions'),
  /** Those that are put away. @returns {Promise<SessionSummary[]>} */
  archived: async () => listOf(await call('GET', 'sessions?archived=true'), 'sessions'),
  /**
   * The session with its newest messages.
   * @param {string} id
   * @param {number} newest
   * @returns {Promise<SessionSnapshot>}
   */
  session: (id, newest) => call('GET', `${session(id)}?messages=${newest}`),
  /** The session with its whole conversation. @param {string} id @returns {Promise<SessionSnapshot>} */
  wholeSession: async (id) => JSON.parse(await (await download(session(id))).text()),
  /** What its next call would send. @param {string} id @returns {Promise<import('../state/wire.js').ChatRequest>} */
  context: (id) => call('GET', `${session(id)}/context`),
  /** What fills its next call. @param {string} id @returns {Promise<ContextParts>} */
  contextParts: (id) => call('GET', `${session(id)}/context/parts`),
  /**
   * Those before a message.
   * @param {string} id
   * @param {string} message_id
   * @param {number} limit
   * @returns {Promise<MessagePage>}
   */
  messagesBefore: (id, message_id, limit) => call('GET',
    `${session(id)}/messages?before=${encodeURIComponent(message_id)}&limit=${limit}`),
  /**
   * @param {string | null} profile_id
   * @param {string | null} model
   * @param {ConsentMode | null} mode
   * @returns {Promise<{ session_id: string, profile_id: string, created_at: string }>}
   */
  create: (profile_id, model, mode) => call('POST', 'sessions', { profile_id, model, mode }),
  /**
   * A large one takes its time.
   * @param {ImportedSession} file
   * @returns {Promise<{ session: SessionSummary, messages: number, left_out: { images: number,
   *  files: number } }>}
   */
  importSession: (file) => call('POST', 'sessions/import', file, AbortSignal.timeout(IMPORT_PATIENCE_MS)),
  /**
   * What is left out stays; the model null is the profile's own.
   * @param {string} id
   * @param {{ title?: string, profile_id?: string, model?: string | null, tags?: string[],
   *  archived?: boolean }} changes
   */
  change: (id, changes) => call('PATCH', session(id), changes),
  /** @param {string} id @param {PlanEdit} edit @returns {Promise<{ items: TodoItem[] }>} the list as it stands then */
  editPlan: (id, edit) => call('PATCH', `${session(id)}/plan`, edit),
  /** @param {string} id @param {boolean} pinned */
  pin: (id, pinned) => call('PATCH', `${session(id)}/pin`, { pinned }),
  /** @param {string} id */
  remove: (id) => call('DELETE', session(id)),
  /** @param {string} id */
  restore: (id) => call('POST', `${session(id)}/restore`),
  /**
   * All that a run and its subagents told, pieces of a text joined.
   * @param {string} id
   * @param {string} run_id
   * @returns {Promise<Envelope[]>}
   */
  async runEvents(id, run_id) {
    /** @type {Envelope[]} */
    const frames = [];
    /** @type {string | null} */
    let cursor = null;
    for (let page = 0; page < MAX_LOG_PAGES; page += 1) {
      const { events, next } = await this.runPage(id, run_id, cursor);
      frames.push(...events);
      if (next === null) break;
      cursor = next;
    }
    return frames;
  },
  /**
   * A page of the same.
   * @param {string} id
   * @param {string} run_id
   * @param {string | null} cursor where the page before ended
   * @returns {Promise<{ events: Envelope[], next: string | null }>}
   */
  async runPage(id, run_id, cursor) {
    const path = `${session(id)}/runs/${encodeURIComponent(run_id)}/events`;
    const { events, next } = await call('GET', cursor === null ? path : `${path}?cursor=${encodeURIComponent(cursor)}`);
    return { events, next: next == null ? null : String(next) };
  },
  /**
   * The session's runs, newest first, 50 at a time: those before one where that is named.
   * @param {string} id
   * @param {string | null} before
   * @returns {Promise<import('../state/wire.js').RunList>}
   */
  runs: (id, before) => call('GET',
    `${session(id)}/runs${before === null ? '' : `?before=${encodeURIComponent(before)}`}`),
  /** A run, and each call of a model in it. @param {string} run_id @returns {Promise<RunDetails>} */
  run: (run_id) => call('GET', `runs/${encodeURIComponent(run_id)}`),
  /**
   * What the model was sent at a call, and what it replied.
   * @param {string} run_id
   * @param {number} n
   * @returns {Promise<CallDetails>}
   */
  runCall: (run_id, n) => call('GET', `runs/${encodeURIComponent(run_id)}/calls/${n}`),
  /** @param {string} id @param {string} run_id */
  stopChild: (id, run_id) => call('POST', `${session(id)}/subagents/${encodeURIComponent(run_id)}/stop`),
  /**
   * @param {string} id
   * @param {string} message_id the user's message that is edited, or answered anew
   * @param {string | null} content its new text; null to keep it
   * @returns {Promise<{ branch_id: number, run_id: string, message_id: string }>}
   */
  branch: (id, message_id, content) => call('POST', `${session(id)}/branches`,
    content === null ? { message_id } : { message_id, content }),
  /** @param {string} id @param {number} branch_id */
  showBranch: (id, branch_id) => call('PUT', `${session(id)}/branch`, { branch_id }),
  /** @param {string} query @param {number} limit @param {AbortSignal} signal @returns {Promise<SearchHit[]>} */
  async search(query, limit, signal) {
    const answer = await call('GET', `search?q=${encodeURIComponent(query)}&limit=${limit}`, undefined, signal);
    return answer?.hits ?? [];
  },
  /** @returns {Promise<MemoryOverview>} */
  async memory() {
    const answer = await call('GET', 'memory');
    return { facts: answer?.facts ?? [], summary: answer?.summary ?? null, updated_at: answer?.updated_at ?? null };
  },
  /** @param {Pick<Fact, 'category' | 'key'>} fact @param {string} value */
  saveFact: (fact, value) => call('PUT', factPath(fact), { value }),
  /** @param {Fact} fact */
  forgetFact: (fact) => call('DELETE', factPath(fact)),
  /** @param {Fact} fact @returns {Promise<FormerFact[]>} */
  async factHistory(fact) {
    const answer = await call('GET', `${factPath(fact)}/history`);
    return Array.isArray(answer) ? answer : answer?.history ?? [];
  },
  /** @param {string} id @param {ConsentMode} mode */
  setMode: (id, mode) => call('PATCH', `${session(id)}/mode`, { mode }),
  /** @param {string} id @returns {Promise<Change[]>} newest first */
  changes: async (id) => listOf(await call('GET', `${session(id)}/changes`), 'changes'),
  /**
   * @param {string} id
   * @param {string} path
   * @returns {Promise<import('../state/wire.js').FileChange[]>} newest first
   */
  fileChanges: async (id, path) => listOf(await call('GET', workspacePath(id, 'changes', path)), 'changes'),
  /** @param {string} id @param {string} change_id */
  undo: (id, change_id) => call('POST', `${session(id)}/changes/${encodeURIComponent(change_id)}/undo`),
  /** @param {string} id @returns {Promise<SessionFile[]>} */
  files: async (id) => listOf(await call('GET', `${session(id)}/files`), 'files'),
  /** @param {string} id @param {string} file_id */
  removeFile: (id, file_id) => call('DELETE', filePath(id, file_id)),
  /**
   * A directory of the workspace; '' for all of it.
   * @param {string} id
   * @param {string} path
   * @returns {Promise<WorkspaceListing>}
   */
  workspace: (id, path) => call('GET', `${session(id)}/workspace?path=${encodeURIComponent(path)}`),
  /**
   * A file of the workspace as text; null where it is none, or too long to be looked at.
   * @param {string} id
   * @param {string} path
   * @returns {Promise<string | null>}
   */
  async workspaceText(id, path) {
    const response = await ask('GET', workspacePath(id, 'file', path));
    if (!response.ok) return read(response);
    if (Number(response.headers.get('content-length')) > TEXT_BYTES) {
      await response.body?.cancel();
      return null;
    }
    try {
      const text = new TextDecoder('utf-8', { fatal: true }).decode(await response.arrayBuffer());
      return text.includes('\0') ? null : text;
    } catch {
      return null;
    }
  },
  /** @returns {Promise<ConsentRule[]>} */
  rules: async () => listOf(await call('GET', 'consent/rules'), 'rules'),
  /** @param {string} id */
  forgetRule: (id) => call('DELETE', `consent/rules/${encodeURIComponent(id)}`),
  /** @param {string | null} cursor @returns {Promise<{ entries: ConsentEntry[], next: string | null }>} */
  async decisions(cursor) {
    const answer = await call('GET',
      cursor === null ? 'consent/log' : `consent/log?before=${encodeURIComponent(cursor)}`);
    const next = answer?.next ?? null;
    return { entries: listOf(answer, 'entries'), next: next === null ? null : String(next) };
  },
  /** @returns {Promise<ExtensionTool[]>} */
  extensions: async () => listOf(await call('GET', 'tools'), 'tools'),
  /** @param {string} name @param {string} sha256 of what is allowed: what it is by now may be something else */
  allowTool: (name, sha256) => call('POST', `tools/${encodeURIComponent(name)}/allow`, { sha256 }),
  /** @param {string} name */
  forbidTool: (name) => call('DELETE', `tools/${encodeURIComponent(name)}/allow`),
  /** @returns {Promise<McpServer[]>} */
  mcp: async () => listOf(await call('GET', 'mcp'), 'servers'),
  /** @param {string} name */
  restartServer: (name) => call('POST', `mcp/${encodeURIComponent(name)}/restart`),
  /** As it stands in the file, without its secrets. @param {string} name @returns {Promise<McpEntry>} */
  mcpEntry: (name) => call('GET', `mcp/${encodeURIComponent(name)}`),
  /** @param {string} name @param {McpDraft} draft */
  writeMcp: (name, draft) => call('PUT', `mcp/${encodeURIComponent(name)}`, draft),
  /**
   * Starts it, asks what it offers, and keeps nothing.
   * @param {string} name
   * @param {McpDraft} draft
   * @param {AbortSignal} signal
   * @returns {Promise<McpTrial>}
   */
  tryMcp: (name, draft, signal) => call('POST', `mcp/${encodeURIComponent(name)}/try`, draft, signal),
  /** @param {string} name @param {string} version of the entry that is meant */
  removeMcp: (name, version) => call('DELETE',
    `mcp/${encodeURIComponent(name)}?version=${encodeURIComponent(version)}`),
  /** @param {string} name */
  restoreMcp: (name) => call('POST', `mcp/${encodeURIComponent(name)}/restore`),
  /** Where tools, skills and servers are looked for. @returns {Promise<ExtensionFolders>} */
  extensionFolders: () => call('GET', 'extensions'),
  /** @returns {Promise<SkillInfo[]>} */
  skills: async () => listOf(await call('GET', 'skills'), 'skills'),
  /** All facts, as a file holds them. @returns {Promise<unknown>} */
  exportMemory: () => call('GET', 'memory/export'),
  forgetAll: () => call('DELETE', 'memory'),
  /** @returns {Promise<SystemStatus>} */
  status: () => call('GET', 'api/status'),
  /** @param {string} id @returns {Promise<ProfileText>} */
  profileFile: (id) => call('GET', `agents/profiles/${encodeURIComponent(id)}/file`),
  /**
   * @param {string} id
   * @param {string} text
   * @param {string | null} before what stood in the file; null where there was none
   */
  writeProfileFile: (id, text, before) => call('PUT', `agents/profiles/${encodeURIComponent(id)}/file`,
    { text, before }),
  /** @param {string} name */
  fetchModel: (name) => call('POST', 'api/models/fetch', { name }),
  /** @param {string} name as Ollama's library has it */
  pullModel: (name) => call('POST', 'api/models/pull', { name }),
  /** @param {string} name */
  stopPull: (name) => call('POST', 'api/models/pull/stop', { name }),
  /** @returns {Promise<SettingList>} */
  settings: () => call('GET', 'api/settings'),
  /**
   * @param {string} version that was read
   * @param {Record<string, string | null>} changes null: the default
   * @returns {Promise<SettingList>}
   */
  changeSettings: (version, changes) => call('PATCH', 'api/settings', { version, changes }),
  /** @param {string} version that was read @returns {Promise<SettingList>} */
  undoSettings: (version) => call('POST', 'api/settings/undo', { version }),
  /**
   * @param {import('../state/wire.js').ModelServerTrial} server
   * @returns {Promise<import('../state/wire.js').ModelServerFound>}
   */
  tryModelServer: (server) => call('POST', 'api/models/try', server),
  /** @param {import('../state/wire.js').ModelServerChoice} server @returns {Promise<SettingList>} */
  useModelServer: (server) => call('PUT', 'api/models/server', server),
  /** What is wrong, looked for now. @returns {Promise<Report>} */
  diagnostics: () => call('GET', 'api/diagnostics'),
  /** @returns {Promise<Profile[]>} */
  async profiles() {
    const answer = await call('GET', 'agents/profiles');
    return Array.isArray(answer) ? answer : answer?.profiles ?? [];
  },
};
