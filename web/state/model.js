// What the page knows of one session, and how it comes from a snapshot.

/**
 * @import { AssistantEntry, Call, CompressionMark, Ending, Entry, NoticeEntry, SessionState,
 *  SwitchEntry, Waiting } from './types.js'
 */
/** @import { Message, MessagePage, Phrase, SessionSnapshot } from './wire.js' */

import { newApproval } from './approvals.js';

/**
 * @param {SessionSnapshot} snapshot
 * @returns {SessionState}
 */
export function fromSnapshot(snapshot) {
  const running = snapshot.run !== null && snapshot.run !== undefined;
  const told = (snapshot.notices ?? []).map((notice) => newNotice({ ...notice, type: 'notice' }));
  const entries = told.reduce(withNoticeInPlace, entriesOf(snapshot.messages, snapshot.run ?? null));
  return {
    id: snapshot.id,
    title: snapshot.title,
    profile_id: snapshot.profile_id,
    entries,
    queue: snapshot.queue,
    todo: snapshot.todo,
    plan: snapshot.plan ?? null,
    compression: compressionOf(snapshot, entries),
    earlier: snapshot.earlier ?? 0,
    forks: snapshot.forks ?? [],
    mode: snapshot.mode ?? 'edits',
    outside: snapshot.tainted_at != null,
    approvals: (snapshot.approvals ?? []).map(newApproval),
    unknown: snapshot.unknown_calls ?? [],
    children: {},
    histories: {},
    held: null,
    run: snapshot.run ?? null,
    model: snapshot.run?.model || null,
    chosen_model: snapshot.model ?? null,
    waiting: waitingOf(snapshot),
    ending: running ? null : endingOf(snapshot),
    can_continue: snapshot.can_continue,
    context_tokens: snapshot.context_token_count,
    max_context_tokens: snapshot.max_context_tokens,
    loose_thinking: null,
    last_seq: snapshot.last_seq,
    epoch: snapshot.epoch,
  };
}

/**
 * With a page of what was said before.
 * @param {SessionState} state
 * @param {MessagePage} page
 * @returns {SessionState}
 */
export function withEarlier(state, page) {
  const known = new Set(state.entries.map(({ id }) => id));
  const older = entriesOf(page.messages, state.run).filter(({ id }) => !known.has(id));
  const told = page.notices.map((notice) => newNotice({ ...notice, type: 'notice' }));
  const entries = told.reduce(withNoticeInPlace, [...older, ...state.entries]);
  return { ...state, entries, forks: [...page.forks, ...state.forks], earlier: page.earlier };
}

/** The first message that is there: what is earlier stands before it. @param {SessionState} state */
export const firstMessage = (state) =>
  state.entries.find(({ kind }) => kind === 'user' || kind === 'assistant')?.id ?? null;

/** How many messages are there, calls and results counted. @param {SessionState} state */
export const messageCount = (state) =>
  state.entries.reduce((n, entry) => n + 1 + (entry.kind === 'assistant' ? entry.calls.length : 0), 0);

/** @param {SessionSnapshot} snapshot @returns {Waiting | null} */
function waitingOf({ run }) {
  if (run?.waiting == null) return null;
  const { reason, detail, phrase } = run.waiting;
  return { reason, detail, phrase, since: run.started_at };
}

/**
 * @param {SessionSnapshot} snapshot
 * @returns {Ending | null}
 */
function endingOf(snapshot) {
  const ending = reasonOf(snapshot);
  // Only Stop leaves waiting what waits: where it held nothing back, every end begins it.
  return snapshot.queue.length > 0 ? withHeld(ending) : ending;
}

/** @param {Ending | null} ending @returns {Ending} */
export const withHeld = (ending) => ({ ...ending ?? { kind: 'stopped' }, held: true });

/**
 * @param {SessionSnapshot} snapshot
 * @returns {Ending | null}
 */
function reasonOf(snapshot) {
  const reason = snapshot.reason ?? '';
  const phrase = snapshot.reason_phrase;
  if (snapshot.state === 'interrupted') return { kind: 'interrupted', reason, phrase };
  if (snapshot.state === 'failed') return { kind: 'failed', code: 'run_failed', message: reason, phrase };
  return snapshot.can_continue ? { kind: 'limited' } : null;
}

/**
 * @param {SessionSnapshot} snapshot
 * @param {Entry[]} entries
 * @returns {CompressionMark | null}
 */
function compressionOf(snapshot, entries) {
  const known = snapshot.compression ?? null;
  if (known === null) return null;
  return { before: known.first_kept, after: entries[entries.length - 1]?.id ?? null, summary: known.summary };
}

/**
 * Messages as the page shows them: results folded into the calls that asked for them.
 * @param {Message[]} messages
 * @param {SessionState['run']} run
 * @returns {Entry[]}
 */
function entriesOf(messages, run) {
  /** @type {Entry[]} */
  const entries = [];
  /** @type {Map<string, Call>} */
  const calls = new Map();
  /** @type {Set<string>} */
  const begun = new Set();
  for (const message of messages) {
    if (message.role === 'user') {
      entries.push({
        kind: 'user',
        id: message.id,
        content: message.content ?? '',
        images: message.image_urls ?? message.images ?? [],
        files: message.files ?? [],
        client_id: message.client_id ?? null,
        author: message.author ?? null,
        // What a run is told after it has begun to speak was said into it.
        steered: begun.has(message.run_id),
        created_at: message.created_at,
      });
    } else if (message.role === 'assistant') {
      begun.add(message.run_id);
      const entry = newAssistant(message.id, message.run_id, message.created_at);
      entry.content = message.content ?? '';
      entry.thinking = message.thinking ?? '';
      entry.state = message.state ?? 'complete';
      entry.is_plan = message.is_plan ?? false;
      entry.open = false;
      // A call without a result is one that runs now, or one whose fate nobody knows.
      const unanswered = run?.run_id === message.run_id ? 'running' : 'outcome_unknown';
      entry.calls = (message.tool_calls ?? []).map((call) => {
        /** @type {Call} */
        const made = newCall(call.id, call.name, call.arguments, unanswered);
        calls.set(call.id, made);
        return made;
      });
      entries.push(entry);
    } else if (message.role === 'tool' && message.tool_call_id !== undefined) {
      const call = calls.get(message.tool_call_id);
      if (call === undefined) continue;
      call.result = message.content ?? '';
      call.outside = message.outside === true;
      call.state = message.outcome ?? 'success';
      call.duration_ms = message.duration_ms ?? null;
      call.result_id = message.id;
      call.decision = message.decision ?? null;
      call.files = message.files ?? [];
      if (call.name === 'switch_profile' && call.state === 'success') {
        const asked = entries.findLast((entry) => entry.kind === 'assistant' && entry.calls.includes(call));
        entries.push(newSwitch(asked?.id ?? message.id, profileOf(call.args), '', message.created_at));
      }
    }
  }
  return entries;
}

/** The same for a notice that is told and one of a snapshot. @param {{ seq?: number, at: string }} told */
export const noticeId = (told) => `notice-${told.seq ?? told.at}`;

/**
 * @param {{ type: 'notice' | 'error', seq?: number, at: string, code: string, message: string,
 *  phrase?: Phrase }} told
 * @returns {NoticeEntry}
 */
export function newNotice(told) {
  return { kind: 'notice', id: noticeId(told), code: told.code, message: told.message, phrase: told.phrase,
    tone: told.type, created_at: told.at };
}

/**
 * With a notice where it was told, for one who comes later: before what came after it.
 * @param {Entry[]} entries
 * @param {NoticeEntry} notice
 * @returns {Entry[]}
 */
export function withNoticeInPlace(entries, notice) {
  if (entries.some((entry) => entry.id === notice.id)) return entries;
  const after = entries.findIndex(({ created_at }) => Date.parse(created_at) > Date.parse(notice.created_at));
  const at = after < 0 ? entries.length : after;
  return [...entries.slice(0, at), notice, ...entries.slice(at)];
}

/**
 * @param {string} id
 * @param {string | null} run_id
 * @param {string} created_at
 * @returns {AssistantEntry}
 */
export function newAssistant(id, run_id, created_at) {
  return {
    kind: 'assistant', id, run_id, content: '', thinking: '', thinking_started_at: null, thinking_ms: null,
    thinking_open: false, open: true, calls: [], state: 'complete', is_plan: false, created_at,
  };
}

/**
 * @param {string} after the message that asked for it
 * @param {string} profile_id
 * @param {string} profile_name
 * @param {string} created_at
 * @returns {SwitchEntry}
 */
export function newSwitch(after, profile_id, profile_name, created_at) {
  return { kind: 'switch', id: `switch-${after}`, profile_id, profile_name, created_at };
}

/** The profile that a call names. @param {unknown} args @returns {string} */
export function profileOf(args) {
  const named = args !== null && typeof args === 'object' && 'profile_id' in args ? args.profile_id : '';
  return typeof named === 'string' ? named : '';
}

/**
 * @param {string} id
 * @param {string} name
 * @param {unknown} args
 * @param {Call['state']} state
 * @param {string | null} started_at
 * @returns {Call}
 */
export function newCall(id, name, args, state, started_at = null) {
  return { id, name, args, state, output: '', output_from: 0, result: null, outside: false, files: [],
    duration_ms: null, started_at, decision: null, result_id: null };
}
