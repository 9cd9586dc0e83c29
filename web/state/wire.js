// The shapes that cross the wire, as `actors/src/protocol` defines them. Types only.

/** @typedef {'idle' | 'running' | 'interrupted' | 'failed'} RunPhase */
/** @typedef {'complete' | 'stopped' | 'interrupted' | 'failed'} MessageState */
/** @typedef {'success' | 'failed' | 'stopped' | 'outcome_unknown' | 'interrupted'} ToolOutcome */
/** @typedef {'pending' | 'in_progress' | 'done' | 'failed' | 'skipped'} TodoStatus */
/** @typedef {'lane' | 'prefill' | 'approval' | 'retry'} WaitReason */
/** @typedef {'queue' | 'steer'} SendMode */
/** @typedef {'ask' | 'edits' | 'auto'} ConsentMode */
/** @typedef {'once' | 'always' | 'deny'} Decision */
/** @typedef {'user' | 'timeout' | 'stop'} DecidedBy */
/** @typedef {'read' | 'write' | 'egress' | 'host'} Effect */
/** @typedef {'done' | 'retry' | 'skip'} CallDecision what a person says of a call whose outcome is unknown */

/**
 * @typedef {object} Detail
 * @property {string} label
 * @property {'text' | 'code' | 'diff'} kind
 * @property {string} text
 */

/**
 * @typedef {object} ApprovalRequest
 * @property {string} summary
 * @property {Effect} effect
 * @property {string} reason
 * @property {Detail[]} details
 * @property {string} [always]
 */

/**
 * @typedef {object} PendingApproval
 * @property {string} approval_id
 * @property {string} run_id
 * @property {string} call_id
 * @property {string} tool
 * @property {ApprovalRequest} request
 * @property {string} requested_at
 * @property {string} expires_at
 * @property {boolean} [is_subagent]
 */

/** @typedef {{ name: string, path: string }} FileRef */

/**
 * A file as a message carries it.
 * @typedef {object} AttachedFile
 * @property {string} file_id
 * @property {string} name
 * @property {string} path
 * @property {string} media_type
 * @property {number} bytes
 * @property {boolean} [image] whether it can be shown
 */

/**
 * A file of the session.
 * @typedef {AttachedFile & {
 *   source: 'upload' | 'tool', text: boolean, problem: string | null,
 *   created_at: string, last_used_at: string, expires_at: string,
 * }} SessionFile
 */

/** @typedef {{ path: string, kind: 'file' | 'directory' | 'link' | 'other', bytes: number, modified_at: string | null }} WorkspaceEntry */
/** @typedef {{ entries: WorkspaceEntry[], complete: boolean }} WorkspaceListing */

/**
 * @typedef {object} SessionSummary
 * @property {string} id
 * @property {string} user_id
 * @property {string} title
 * @property {string} profile_id
 * @property {boolean} pinned
 * @property {number} context_token_count
 * @property {RunPhase} state
 * @property {number} [asks] how many requests for consent wait for an answer
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
 * @property {string[]} [image_urls] where they are, in place of them
 * @property {WireToolCall[]} [tool_calls]
 * @property {string} [tool_call_id]
 * @property {string} [name]
 * @property {ToolOutcome} [outcome]
 * @property {boolean} [outside] whether a result came from outside
 * @property {number} [duration_ms]
 * @property {string} [thinking]
 * @property {MessageState} [state]
 * @property {boolean} [is_summary]
 * @property {boolean} [is_plan]
 * @property {string} [client_id]
 * @property {AttachedFile[]} [files]
 * @property {CallDecision} [decision] what a person said of a result whose outcome was unknown
 * @property {string} created_at
 */

/**
 * A call that had begun when the service went down, and of which nobody has said yet what became of it.
 * @typedef {object} UnknownCall
 * @property {string} call_id
 * @property {string} tool
 * @property {unknown} args
 * @property {string} message_id
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
 * @property {AttachedFile[]} [files]
 * @property {SendMode} [mode]
 * @property {string} created_at
 */

/**
 * @typedef {({ number: number, text: string, milestone?: string } & (
 *   | { executor: 'tool', tool: string }
 *   | { executor: 'agent', profile_id: string }
 *   | { executor: 'self' }
 * ))} PlanStep
 */

/**
 * @typedef {object} Plan
 * @property {string} run_id
 * @property {string} message_id
 * @property {string} text
 * @property {PlanStep[]} steps
 */

/**
 * @typedef {object} Fork
 * @property {string} message_id
 * @property {number[]} branch_ids
 * @property {number} shown
 */

/**
 * @typedef {object} Compression
 * @property {string} summary
 * @property {string | null} first_kept
 */

/**
 * @typedef {object} ActiveRun
 * @property {string} run_id
 * @property {string} message_id
 * @property {string} model
 * @property {string} started_at
 * @property {{ reason: WaitReason, detail: string } | null} [waiting] what it stands still for
 */

/**
 * What the last run had to say to its user.
 * @typedef {object} RunNotice
 * @property {number} seq of the event that told it
 * @property {string} at
 * @property {string} code
 * @property {string} message
 */

/**
 * @typedef {SessionSummary & {
 *   messages: WireMessage[], todo: TodoItem[], plan: Plan | null, compression: Compression | null,
 *   earlier?: number, forks: Fork[], queue: QueuedMessage[], run: ActiveRun | null,
 *   mode: ConsentMode, tainted_at?: string | null, approvals: PendingApproval[], unknown_calls: UnknownCall[],
 *   can_continue: boolean, reason?: string | null, notices?: RunNotice[], max_context_tokens: number, last_seq: number, epoch: number,
 * }} SessionSnapshot
 */

/** @typedef {{ messages: WireMessage[], earlier: number, forks: Fork[], notices: RunNotice[] }} MessagePage */

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
 *   | { type: 'message_accepted', client_id?: string, message_id: string, queued: boolean, mode: 'queue' | 'steer', content: string, images?: string[], files?: AttachedFile[] }
 *   | { type: 'queue_changed', message_id: string, content: string | null }
 *   | { type: 'message_steered', message_id: string }
 *   | { type: 'branch_changed', branch_id: number }
 *   | { type: 'stream_start', message_id: string, model: string, profile_id: string }
 *   | { type: 'run_waiting', reason: WaitReason, detail: string, is_subagent?: boolean }
 *   | ({ type: 'thinking_delta' } & Delta)
 *   | { type: 'thinking_end', is_subagent?: boolean }
 *   | { type: 'plan_ready', plan: string, message_id: string, steps: PlanStep[], is_subagent?: boolean }
 *   | { type: 'subagent_started', call_id: string, profile_id: string, task: string, is_subagent?: boolean }
 *   | { type: 'subagent_finished', call_id: string, completed_normally: boolean, is_subagent?: boolean }
 *   | { type: 'profile_switched', profile_id: string, profile_name: string }
 *   | { type: 'context_compressed', messages_before: number, messages_after: number, first_kept: string | null }
 *   | { type: 'turn_thinking', thinking: string, is_subagent: boolean }
 *   | ({ type: 'stream_delta' } & Delta)
 *   | { type: 'tool_started', tool: string, args: unknown, is_subagent: boolean, call_id: string, message_id: string }
 *   | ({ type: 'tool_output', call_id: string } & Delta)
 *   | { type: 'tool_call', tool: string, args: unknown, result: string, success: boolean, outcome?: ToolOutcome, is_subagent: boolean, call_id: string, duration_ms: number, outside?: boolean, files?: AttachedFile[] }
 *   | { type: 'approval_requested', approval_id: string, call_id: string, tool: string, request: ApprovalRequest, expires_at: string, is_subagent?: boolean }
 *   | { type: 'approval_resolved', approval_id: string, call_id: string, decision: Decision, by: DecidedBy, is_subagent?: boolean }
 *   | { type: 'call_resolved', call_id: string, decision: CallDecision }
 *   | { type: 'mode_changed', mode: ConsentMode }
 *   | { type: 'todo_updated', items: TodoItem[], is_subagent?: boolean }
 *   | { type: 'stream_end', content: string, message_id: string, context_tokens: number, max_context_tokens: number, completed: boolean }
 *   | { type: 'stream_stopped' }
 *   | { type: 'run_interrupted', reason: string, can_continue: boolean }
 *   | { type: 'notice', code: string, message: string, is_subagent?: boolean }
 *   | { type: 'error', message: string, recoverable: boolean, code: string, client_id?: string }
 *   | { type: 'resync', reason: 'cursor_ahead' | 'epoch_changed' | 'log_expired', session: SessionSnapshot }
 *   | { type: 'pong' }
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
 * @property {Fence} fence
 */

/** @typedef {{ id: string, name: string, description: string, model?: string | null }} ProfileInfo */

/**
 * @typedef {object} Fact
 * @property {string} category
 * @property {string} key
 * @property {string} value
 * @property {string} [session_id]
 * @property {string} [message_id]
 * @property {number} confidence
 * @property {string} created_at
 * @property {string} updated_at
 */

/**
 * @typedef {object} FormerFact
 * @property {string} value
 * @property {string} [session_id]
 * @property {string} [message_id]
 * @property {number} confidence
 * @property {string} replaced_at
 */

/** @typedef {{ facts: Fact[], summary: string | null, updated_at: string | null }} Memory */

/** @typedef {{ text: string, marks: { start: number, end: number }[] }} Snippet marks in UTF-16 units */

/**
 * A place in a conversation where the words of a search stand.
 * @typedef {object} SearchHit
 * @property {string} session_id
 * @property {string} session_title
 * @property {string} [message_id] none where the title matches
 * @property {number} [branch_id]
 * @property {string} [role]
 * @property {Snippet} snippet
 * @property {string} at
 */

/**
 * What a tool changed in the session's files.
 * @typedef {object} Change
 * @property {string} id
 * @property {'write' | 'edit' | 'move' | 'delete' | 'undo'} action
 * @property {string} path
 * @property {string} [to]
 * @property {string} at
 * @property {string} [run_id]
 * @property {string} [call_id]
 * @property {string} [undoes]
 * @property {boolean} undoable
 * @property {string} [why_not]
 */

/**
 * What a person allowed or forbade once and for all.
 * @typedef {object} ConsentRule
 * @property {string} id
 * @property {string} tool
 * @property {string} words
 * @property {'allow' | 'deny'} decision
 * @property {string} created_at
 */

/**
 * What was allowed or denied, and by whom or what.
 * @typedef {object} ConsentEntry
 * @property {number} id
 * @property {string} at
 * @property {string} session_id
 * @property {string} run_id
 * @property {string} call_id
 * @property {string} tool
 * @property {Effect} effect
 * @property {string} summary
 * @property {'allow' | 'deny'} decision
 * @property {'user' | 'rule' | 'mode' | 'timeout' | 'stop'} by
 */

/**
 * A user's tool, or one of an MCP server.
 * @typedef {object} ExtensionTool
 * @property {string} name
 * @property {'user' | 'mcp'} kind
 * @property {'allowed' | 'new' | 'changed' | 'failed'} state
 * @property {string} [problem]
 * @property {string} [sha256] what an allowance has to name
 * @property {string} description
 * @property {Effect} [effect]
 * @property {string} [folder]
 * @property {string} [server]
 */

/**
 * @typedef {object} McpServer
 * @property {string} name
 * @property {string} transport
 * @property {'starting' | 'ready' | 'waiting' | 'failed'} state
 * @property {string} since
 * @property {number} failures
 * @property {string} [last_error]
 * @property {string[]} problems
 * @property {string[]} tools
 */

/** @typedef {{ name: string, description: string, folder: string }} SkillInfo */

/**
 * What keeps tools in, and what does not: `sandbox` says why there is none.
 * @typedef {object} Fence
 * @property {boolean} files_open
 * @property {boolean} commands_open
 * @property {string} [sandbox]
 */

/** @typedef {'running' | 'completed' | 'limited' | 'stopped' | 'failed' | 'interrupted'} RunState */

/**
 * A run as the store has it.
 * @typedef {object} RunInfo
 * @property {string} run_id
 * @property {string} session_id
 * @property {string | null} [parent_run_id]
 * @property {string | null} [message_id]
 * @property {string} profile_id
 * @property {string | null} [backend]
 * @property {string | null} [model]
 * @property {RunState} state
 * @property {string | null} [reason]
 * @property {string} started_at
 * @property {string | null} [ended_at]
 * @property {number} iterations
 * @property {number} prompt_tokens
 * @property {number} completion_tokens
 */

/**
 * One call of the model in a run.
 * @typedef {object} ModelCall
 * @property {number} n
 * @property {string} kind
 * @property {string} started_at
 * @property {number | null} [first_chunk_ms]
 * @property {number | null} [duration_ms]
 * @property {string} model
 * @property {number | null} [prompt_tokens]
 * @property {number | null} [completion_tokens]
 * @property {string} outcome
 * @property {number} after_seq the newest event when it began
 */

/**
 * An amount of money.
 * @typedef {object} Cost
 * @property {number} amount
 * @property {string} currency three letters
 */

/**
 * What runs that have ended used, and what that cost.
 * @typedef {object} Spending
 * @property {number} prompt_tokens
 * @property {number} completion_tokens
 * @property {Cost | null} [cost] none where no model of them has a price
 */

/**
 * What was spent around a run: by it and all under it, by its session, on its day.
 * @typedef {object} RunSpending
 * @property {Spending} run
 * @property {Spending} session
 * @property {Spending} day
 */

/** @typedef {{ run: RunInfo, calls: ModelCall[], children: string[], spent?: RunSpending }} RunDetails */

/**
 * A message as the model gets it.
 * @typedef {object} SentMessage
 * @property {'system' | 'user' | 'assistant' | 'tool'} role
 * @property {string} content
 * @property {string[]} [images]
 * @property {WireToolCall[]} [tool_calls]
 * @property {string} [call_id]
 * @property {string} [name]
 */

/**
 * What a model is asked.
 * @typedef {object} SentRequest
 * @property {string} model
 * @property {SentMessage[]} messages
 * @property {{ name: string, description?: string }[]} tools
 * @property {number} [temperature]
 * @property {boolean} [think]
 * @property {number} [context_window]
 * @property {number | null} [max_output_tokens]
 */

/**
 * What a model was sent, rebuilt, and what it replied.
 * @typedef {object} SentCall
 * @property {SentRequest} request
 * @property {boolean} exact whether it is byte for byte what was sent
 * @property {{ content?: string | null, thinking?: string | null, tool_calls?: { name: string, arguments: unknown }[] } | null} [reply]
 */

/** @typedef {{ code: string, message: string }} NaviError */

export {};
