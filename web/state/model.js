// What the page knows of one session, and how it comes from a snapshot.

/** @import { Approval } from './approvals.js' */
/** @import { ActiveRun, AttachedFile, CallDecision, ConsentMode, Fork, MessageState, Plan, QueuedMessage, SessionSnapshot, TodoItem, ToolOutcome, UnknownCall, WaitReason, WireMessage } from './wire.js' */

import { newApproval } from './approvals.js';

/**
 * A tool call with its result. `running` also stands for one that was asked for and waits its turn.
 * @typedef {object} Call
 * @property {string} id
 * @property {string} name
 * @property {unknown} args
 * @property {'running' | ToolOutcome} state
 * @property {string} output what it printed so far, or the end of it
 * @property {number} output_from how much of it came before that, in UTF-16 code units
 * @property {string | null} result
 * @property {boolean} outside whether the result came from outside
 * @property {AttachedFile[]} files images that it gave back
 * @property {number | null} duration_ms
 * @property {string | null} started_at
 * @property {CallDecision | null} decision what a person said of it where its outcome was unknown
 * @property {string | null} result_id the message that holds the result, where a snapshot told it
 */

/**
 * What a person said. `steered` is true where it was handed to a run that went on.
 * @typedef {{ kind: 'user', id: string, content: string, images: string[], files: AttachedFile[], client_id: string | null, steered: boolean, created_at: string }} UserEntry
 */

/**
 * One message of the model: reasoning, text and the calls it asked for, with their results.
 * @typedef {object} AssistantEntry
 * @property {'assistant'} kind
 * @property {string} id
 * @property {string | null} run_id
 * @property {string} content
 * @property {string} thinking
 * @property {string | null} thinking_started_at
 * @property {number | null} thinking_ms how long it reasoned; null where nobody watched
 * @property {boolean} thinking_open reasoning is streaming in
 * @property {boolean} open more may come
 * @property {Call[]} calls
 * @property {MessageState} state
 * @property {boolean} is_plan
 * @property {string} created_at
 */

/** @typedef {{ kind: 'notice', id: string, code: string, message: string, tone: 'notice' | 'error', created_at: string }} NoticeEntry */

/**
 * From here on another profile answers. The name is empty where only a snapshot told of it.
 * @typedef {{ kind: 'switch', id: string, profile_id: string, profile_name: string, created_at: string }} SwitchEntry
 */

/** @typedef {UserEntry | AssistantEntry | NoticeEntry | SwitchEntry} Entry */

/** @typedef {{ reason: WaitReason, detail: string, since: string }} Waiting */

/**
 * What one run says and does, in order: the session's own runs share one thread, each subagent
 * has its own.
 * @typedef {object} Thread
 * @property {Entry[]} entries
 * @property {Waiting | null} waiting
 * @property {{ run_id: string | null, thinking: string } | null} loose_thinking told before its message was known
 */

/**
 * A subagent's run. Its card is the call of `spawn_agent` that started it.
 * @typedef {Thread & {
 *   run_id: string, parent_run_id: string | null, call_id: string | null, profile_id: string, task: string,
 *   state: 'running' | 'completed' | 'limited', last_seq: number,
 * }} Child
 */

/** What is known of the past events of a run whose subagents a snapshot leaves out.
 * @typedef {{ state: 'loading' | 'ready' } | { state: 'failed', code: string, message: string }} History */

/**
 * Where the old part of the conversation was replaced by a summary for the model. The divider
 * stands before the entry `before`; where that is null, after the entry `after`.
 * @typedef {{ before: string | null, after: string | null, summary: string | null }} CompressionMark
 */

/**
 * How the last run ended, where that is worth a card.
 * @typedef {(
 *   | { kind: 'failed', code: string, message: string }
 *   | { kind: 'interrupted', reason: string }
 *   | { kind: 'limited' }
 *   | { kind: 'stopped' }
 * )} Ending
 */

/**
 * @typedef {Thread & SessionPart} SessionState
 */

/**
 * @typedef {object} SessionPart
 * @property {string} id
 * @property {string} title
 * @property {string} profile_id
 * @property {QueuedMessage[]} queue
 * @property {TodoItem[]} todo
 * @property {Plan | null} plan the newest one
 * @property {CompressionMark | null} compression
 * @property {Fork[]} forks
 * @property {ConsentMode} mode
 * @property {boolean} outside whether text from outside was read: what goes out is asked about since
 * @property {Approval[]} approvals what a person is asked, and was while this page watched
 * @property {UnknownCall[]} unknown calls of which a person has to say what became of them
 * @property {Record<string, Child>} children by run id
 * @property {Record<string, History>} histories by run id
 * @property {ActiveRun | null} run
 * @property {string | null} model of the newest run
 * @property {Ending | null} ending
 * @property {boolean} can_continue
 * @property {number} context_tokens
 * @property {number} max_context_tokens
 * @property {number} last_seq
 * @property {number} epoch
 */

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
    forks: snapshot.forks ?? [],
    mode: snapshot.mode ?? 'edits',
    outside: snapshot.tainted_at != null,
    approvals: (snapshot.approvals ?? []).map(newApproval),
    unknown: snapshot.unknown_calls ?? [],
    children: {},
    histories: {},
    run: snapshot.run ?? null,
    model: snapshot.run?.model || null,
    waiting: snapshot.run?.waiting ? { ...snapshot.run.waiting, since: snapshot.run.started_at } : null,
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
 * @param {SessionSnapshot} snapshot
 * @returns {Ending | null}
 */
function endingOf(snapshot) {
  const reason = snapshot.reason ?? '';
  if (snapshot.state === 'interrupted') return { kind: 'interrupted', reason };
  if (snapshot.state === 'failed') return { kind: 'failed', code: 'run_failed', message: reason };
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
 * @param {WireMessage[]} messages
 * @param {ActiveRun | null} run
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
        images: message.images ?? [],
        files: message.files ?? [],
        client_id: message.client_id ?? null,
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

/** @param {{ type: 'notice' | 'error', seq?: number, at: string, code: string, message: string }} told @returns {NoticeEntry} */
export function newNotice(told) {
  return { kind: 'notice', id: noticeId(told), code: told.code, message: told.message, tone: told.type, created_at: told.at };
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
  return { id, name, args, state, output: '', output_from: 0, result: null, outside: false, files: [], duration_ms: null, started_at, decision: null, result_id: null };
}
