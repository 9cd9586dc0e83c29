// The shapes that cross the wire, as `actors/src/protocol` defines them. Types only.

/** @typedef {'idle' | 'running' | 'interrupted' | 'failed'} RunPhase */
/** @typedef {'complete' | 'stopped' | 'interrupted' | 'failed'} MessageState */
/** @typedef {'success' | 'failed' | 'stopped' | 'outcome_unknown'} ToolOutcome */
/** @typedef {'pending' | 'in_progress' | 'done' | 'failed' | 'skipped'} TodoStatus */
/** @typedef {'lane' | 'prefill' | 'approval' | 'retry'} WaitReason */

/**
 * @typedef {object} SessionSummary
 * @property {string} id
 * @property {string} user_id
 * @property {string} title
 * @property {string} profile_id
 * @property {boolean} pinned
 * @property {number} context_token_count
 * @property {RunPhase} state
 * @property {string} created_at
 * @property {string} last_active
 */

/**
 * @typedef {object} WireToolCall
 * @property {string} id
 * @property {string} name
 * @property {unknown} arguments
 */

/**
 * @typedef {object} WireMessage
 * @property {string} id
 * @property {string} run_id
 * @property {'system' | 'user' | 'assistant' | 'tool'} role
 * @property {string | null} content
 * @property {string[]} [images]
 * @property {WireToolCall[]} [tool_calls]
 * @property {string} [tool_call_id]
 * @property {string} [name]
 * @property {ToolOutcome} [outcome]
 * @property {number} [duration_ms]
 * @property {string} [thinking]
 * @property {MessageState} [state]
 * @property {boolean} [is_summary]
 * @property {boolean} [is_plan]
 * @property {string} [client_id]
 * @property {string} created_at
 */

/**
 * @typedef {object} TodoItem
 * @property {number} id
 * @property {string} text
 * @property {TodoStatus} status
 * @property {string} [note]
 */

/**
 * @typedef {object} QueuedMessage
 * @property {string} message_id
 * @property {string} [run_id]
 * @property {string} content
 * @property {string[]} [images]
 * @property {string} [client_id]
 * @property {string} created_at
 */

/**
 * @typedef {object} ActiveRun
 * @property {string} run_id
 * @property {string} message_id
 * @property {string} model
 * @property {string} started_at
 */

/**
 * @typedef {SessionSummary & {
 *   messages: WireMessage[], todo: TodoItem[], queue: QueuedMessage[], run: ActiveRun | null,
 *   can_continue: boolean, max_context_tokens: number, last_seq: number, epoch: number,
 * }} SessionSnapshot
 */

/**
 * @typedef {object} EnvelopeHead
 * @property {number} [seq]
 * @property {string} [run_id]
 * @property {string} [parent_run_id]
 * @property {string} at
 */

/** @typedef {{ part_id: string, offset: number, delta: string, is_subagent?: boolean }} Delta */

/**
 * @typedef {(
 *   | { type: 'message_accepted', client_id?: string, message_id: string, queued: boolean, content: string, images?: string[] }
 *   | { type: 'queue_changed', message_id: string, content: string | null }
 *   | { type: 'stream_start', message_id: string, model: string, profile_id: string }
 *   | { type: 'run_waiting', reason: WaitReason, detail: string }
 *   | ({ type: 'thinking_delta' } & Delta)
 *   | { type: 'thinking_end', is_subagent?: boolean }
 *   | { type: 'turn_thinking', thinking: string, is_subagent: boolean }
 *   | ({ type: 'stream_delta' } & Delta)
 *   | { type: 'tool_started', tool: string, args: unknown, is_subagent: boolean, call_id: string, message_id: string }
 *   | ({ type: 'tool_output', call_id: string } & Delta)
 *   | { type: 'tool_call', tool: string, args: unknown, result: string, success: boolean, outcome?: ToolOutcome, is_subagent: boolean, call_id: string, duration_ms: number }
 *   | { type: 'todo_updated', items: TodoItem[] }
 *   | { type: 'stream_end', content: string, message_id: string, context_tokens: number, max_context_tokens: number, completed: boolean }
 *   | { type: 'stream_stopped' }
 *   | { type: 'run_interrupted', reason: string, can_continue: boolean }
 *   | { type: 'notice', code: string, message: string }
 *   | { type: 'error', message: string, recoverable: boolean, code: string, client_id?: string }
 *   | { type: 'resync', reason: 'cursor_ahead' | 'epoch_changed', session: SessionSnapshot }
 * )} WireEvent
 */

/** @typedef {EnvelopeHead & WireEvent} Frame */

/**
 * @typedef {object} ModelInfo
 * @property {string} name
 * @property {boolean} [tools]
 * @property {boolean} [vision]
 * @property {boolean} [thinking]
 * @property {number} [context_window]
 * @property {boolean} [demo]
 */

/**
 * @typedef {(
 *   | { state: 'unknown' }
 *   | { state: 'ready' }
 *   | { state: 'loading', detail: string }
 *   | { state: 'fetching', model: string, received: number, total: number }
 *   | { state: 'down', problem: string, remedy: string }
 * )} BackendState
 */

/**
 * @typedef {{ kind: 'ollama' | 'openai' | 'starter', address: string, version?: string,
 *   models: ModelInfo[], default_model?: string } & BackendState} BackendStatus
 */

/**
 * @typedef {object} FetchableModel
 * @property {string} name
 * @property {string} title
 * @property {number} size
 * @property {number} memory
 * @property {boolean} demo
 * @property {boolean} present
 * @property {number} [received]
 * @property {string} [problem]
 */

/**
 * @typedef {object} SystemStatus
 * @property {string} version
 * @property {'ollama' | 'openai' | 'starter' | null} active
 * @property {BackendStatus[]} backends
 * @property {string[]} warnings
 * @property {FetchableModel[]} fetchable
 */

/** @typedef {{ id: string, name: string, description: string, model?: string | null }} ProfileInfo */

/** @typedef {{ code: string, message: string }} NaviError */

export {};
