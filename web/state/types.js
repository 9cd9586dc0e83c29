// What the page keeps of a session, as types. No page loads this file.

/** @import { Approval } from './approvals.js' */
/** @import { ActiveRun, AttachedFile, CallDecision, ConsentMode, Envelope, Fork, MessageState } from './wire.js' */
/** @import { PersonRef, Phrase, Plan, QueuedMessage } from './wire.js' */
/** @import { TodoItem, ToolOutcome, UnknownCall, WaitReason } from './wire.js' */

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
 * @typedef {{ kind: 'user', id: string, content: string, images: string[], files: AttachedFile[],
 *  client_id: string | null, author?: PersonRef | null, steered: boolean, created_at: string }}
 *  UserEntry
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

/**
 * @typedef {{ kind: 'notice', id: string, code: string, message: string, phrase: Phrase |
 *  undefined, tone: 'notice' | 'error', created_at: string }} NoticeEntry
 */

/**
 * From here on another profile answers. The name is empty where only a snapshot told of it.
 * @typedef {{ kind: 'switch', id: string, profile_id: string, profile_name: string, created_at: string }} SwitchEntry
 */

/** @typedef {UserEntry | AssistantEntry | NoticeEntry | SwitchEntry} Entry */

/** @typedef {{ reason: WaitReason, detail: string, phrase: Phrase | undefined, since: string }} Waiting */

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

/** What went wrong, as the service tells it. @typedef {{ code: string, message: string, phrase?: Phrase }} Problem */

/**
 * How the last run ended, where that is worth a card.
 * @typedef {(
 *   | { kind: 'failed', code: string, message: string, phrase: Phrase | undefined }
 *   | { kind: 'interrupted', reason: string, phrase: Phrase | undefined }
 *   | { kind: 'limited' }
 *   | { kind: 'stopped' }
 * ) & { held?: true }} Ending with `held` where Stop holds back what waits
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
 * @property {number} earlier how many messages stand before `entries`, which the service has
 * @property {CompressionMark | null} compression
 * @property {Fork[]} forks
 * @property {ConsentMode} mode
 * @property {boolean} outside whether text from outside was read: what goes out is asked about since
 * @property {Approval[]} approvals what a person is asked, and was while this page watched
 * @property {UnknownCall[]} unknown calls of which a person has to say what became of them
 * @property {Record<string, Child>} children by run id
 * @property {Record<string, History>} histories by run id
 * @property {{ run_id: string, frames: Envelope[] } | null} held what subagents do while the past
 *  of those of the run that goes is read
 * @property {Omit<ActiveRun, 'waiting'> | null} run
 * @property {string | null} model of the newest run
 * @property {string | null} chosen_model the one that its runs ask for, from the next on; null
 *  where that is its profile's
 * @property {Ending | null} ending
 * @property {boolean} can_continue
 * @property {number} context_tokens
 * @property {number} max_context_tokens
 * @property {number} last_seq
 * @property {number} epoch
 */

export {};
