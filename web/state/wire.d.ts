// Made by `npm run types` from `wire.json`.

/**
 * Whatever crosses it.
 */
export type Wire =
  | Health
  | ProfileList
  | ProfileText
  | NewProfileText
  | ToolList
  | NewSessionRequest
  | CreatedSession
  | SessionList
  | SessionSnapshot
  | MessagePage
  | SessionChange
  | PinRequest
  | Stopped
  | PlanEdit
  | StepList
  | Continued
  | Resolution
  | ChatRequest
  | ContextParts
  | ImportedSession
  | Imported
  | PlainInput
  | ModeChange
  | ApprovalList
  | ApprovalDecision
  | RuleList
  | ConsentLog
  | PlainAnswer
  | FileList
  | WorkspaceListing
  | Branched
  | NewBranch
  | ShownBranch
  | ChangeList
  | Change
  | FileHistory
  | SubagentStopped
  | RunList
  | RunDetails
  | CallDetails
  | SearchResult
  | MemoryOverview
  | MemoryExport
  | Fact
  | FactHistory
  | FactChange
  | ExtensionFolders
  | ExtensionToolList
  | AllowRequest
  | McpServerList
  | McpEntry
  | McpDraft
  | McpTrial
  | SkillList
  | SystemStatus
  | SettingList
  | SettingsChange
  | SettingsUndo
  | ModelServerTrial
  | ModelServerFound
  | ModelServerChoice
  | Report
  | FetchRequest
  | PullRequest
  | WaysIn
  | SignInRequest
  | SignedIn
  | InvitationRequest
  | InvitationOffer
  | AcceptRequest
  | PasskeyList
  | PasskeyInfo
  | NewPasskeyRequest
  | PasskeyOptions
  | MadePasskeyRequest
  | PasskeyChange
  | PasskeySignInOptions
  | PasskeySignInRequest
  | AccountInfo
  | AccountChangeRequest
  | ProofRequest
  | RecoveryCodes
  | DeviceList
  | SignedOut
  | LeftHere
  | SignOnRequest
  | SignOnBegun
  | SignOnAnswer
  | LogoutNotice
  | LinkedSignOn
  | SignOnList
  | Shared
  | PersonRef
  | NewSessionPerson
  | LinkList
  | NewLink
  | MadeLink
  | SharedSession
  | PersonList
  | PersonChange
  | PowersInfo
  | UsersPowers
  | InvitationList
  | NewInvitation
  | MadeInvitation
  | RecordPage
  | TokenList
  | NewTokenRequest
  | CreatedToken
  | NaviError
  | OpenaiError
  | OllamaError
  | McpError
  | Envelope
  | ClientFrame
  | HubFrame
  | ConsentMode
  | CallDecision
  | ImportedMessage
  | Role
  | ToolCall
  | CallId
  | ToolOutcome
  | MessageState
  | FileRef
  | SendMode
  | PlainConsent
  | RestDecision
  | MessageId
  | UserRole
  | Power
  | LimitsChange
  | Scope
  | UserInput
  | ApprovalId
  | Decision
  | Profile
  | ListedTool
  | Effect
  | ToolSource
  | SessionId
  | SessionSummary
  | UserId
  | SessionState
  | Message
  | RunId
  | AttachedFile
  | FileId
  | TodoItem
  | TodoStatus
  | StepEdited
  | StepEdit
  | Plan
  | PlanStep
  | Compression
  | Fork
  | QueuedMessage
  | ActiveRun
  | RunWait
  | WaitReason
  | Phrase
  | PhraseCode
  | PendingApproval
  | ApprovalRequest
  | Detail
  | Label
  | DetailKind
  | RequestPhrases
  | UnknownCall
  | RunNotice
  | ChatMessage
  | ToolSpec
  | ReplyForm
  | AnswerSchema
  | LeftOut
  | ConsentRule
  | RuleId
  | Permission
  | ConsentEntry
  | PermittedBy
  | EntryPhrases
  | SessionFile
  | FileSource
  | WorkspaceEntry
  | EntryKind
  | ChangeId
  | ChangeAction
  | FileChange
  | RunInfo
  | RunState
  | Cost
  | Spending
  | CallInfo
  | CallKind
  | CallPrefix
  | PrefixBreak
  | CallOutcome
  | RunSpending
  | CallReply
  | SearchHit
  | Snippet
  | Mark
  | FactWithHistory
  | FormerFact
  | ExtensionTool
  | ExtensionKind
  | ExtensionState
  | McpServer
  | McpServerState
  | TriedTool
  | SkillInfo
  | BackendKind
  | BackendStatus
  | Trouble
  | ModelInfo
  | ProfileModel
  | FetchableModel
  | ModelPull
  | Fence
  | ShownValue
  | FileOnly
  | PendingValue
  | Level
  | Check
  | CheckName
  | CheckPhrases
  | LimitsInfo
  | OwnLimits
  | PersonLimits
  | LimitsUse
  | Device
  | LinkInfo
  | LinkId
  | PersonInfo
  | InvitationInfo
  | RecordLine
  | Recorded
  | TokenInfo
  | ErrorCode
  | ErrorDetails
  | McpErrorDetails
  | PartId
  | Delta
  | DecidedBy
  | ResyncReason;
export type ProfileList = Profile[];
/**
 * What running a tool does to the world (DESIGN section 6), from harmless to anything.
 */
export type Effect = 'read' | 'write' | 'egress' | 'host';
/**
 * Where a tool comes from.
 */
export type ToolSource = 'builtin' | 'user' | 'mcp';
export type ToolList = ListedTool[];
/**
 * How much a session may do without asking.
 */
export type ConsentMode = 'ask' | 'edits' | 'auto';
/**
 * A conversation.
 */
export type SessionId = string;
/**
 * A person. Every session, file and event belongs to one.
 */
export type UserId = string;
/**
 * What the session's foreground run is doing, or how the last one ended.
 */
export type SessionState = ('idle' | 'running') | 'interrupted' | 'failed';
export type SessionList = SessionSummary[];
/**
 * A message of a conversation. The assistant's is known before its text streams.
 */
export type MessageId = string;
/**
 * The work on one turn.
 */
export type RunId = string;
/**
 * Who speaks. System messages are built for each call and never stored.
 */
export type Role = 'system' | 'user' | 'assistant' | 'tool';
/**
 * A file of a session.
 */
export type FileId = string;
/**
 * A tool call. Ours, never the backend's: backends reuse or leave out theirs.
 */
export type CallId = string;
/**
 * What became of a tool call, on its tool message.
 */
export type ToolOutcome = 'success' | 'failed' | 'stopped' | 'outcome_unknown' | 'interrupted';
/**
 * What a person says of a call whose outcome is unknown.
 */
export type CallDecision = 'done' | 'retry' | 'skip';
/**
 * How a message came to its end.
 */
export type MessageState = 'complete' | 'stopped' | 'interrupted' | 'failed';
/**
 * Where a step stands.
 */
export type TodoStatus = 'pending' | 'in_progress' | 'done' | 'failed' | 'skipped';
/**
 * See [`StepEdited`]. What says most about the step stays said: one that was added and then
 * moved is added.
 */
export type StepEdit = 'added' | 'rewritten' | 'moved' | 'skipped' | 'restored' | 'released';
/**
 * One step of a plan. Its status is that of the todo item with the same number.
 */
export type PlanStep = {
  /**
   * Counts from 1; the id of its todo item.
   */
  number: number;
  /**
   * What is to be done, on one line.
   */
  text: string;
  /**
   * The milestone that it stands under, where the plan has any.
   */
  milestone?: string;
} & PlanStep1;
export type PlanStep1 =
  | {
      executor: 'tool';
      tool: string;
    }
  | {
      executor: 'agent';
      profile_id: string;
    }
  | {
      executor: 'self';
    };
/**
 * What becomes of a message that comes while a run goes.
 */
export type SendMode = 'queue' | 'steer';
/**
 * Why nothing moves just now.
 */
export type WaitReason = 'lane' | 'prefill' | 'approval' | 'retry';
/**
 * What a request says beside that: what would be done, what a rule would cover, why it is
 * asked about, and what stands in details. And what notices say, what is waited for, what is
 * wrong and what to do about it.
 */
export type PhraseCode =
  | 'call'
  | 'call_home'
  | 'call_home_for'
  | 'call_mcp'
  | 'create'
  | 'delete'
  | 'download'
  | 'download_unknown'
  | 'edit'
  | 'end_command'
  | 'fetch'
  | 'forget'
  | 'look'
  | 'look_at_home'
  | 'look_at_workspace'
  | 'move'
  | 'replace'
  | 'run'
  | 'run_on'
  | 'run_on_unknown'
  | 'run_own_tool'
  | 'search'
  | 'upload'
  | 'upload_unknown'
  | 'any_call'
  | 'any_mcp_call'
  | 'any_own_call'
  | 'any_page'
  | 'any_search'
  | 'changes_here'
  | 'changes_in'
  | 'command_exactly'
  | 'command_on'
  | 'deleting_here'
  | 'deleting_in'
  | 'downloads_of'
  | 'ending_commands'
  | 'looking_here'
  | 'looking_in'
  | 'moving_between'
  | 'moving_in'
  | 'moving_out'
  | 'uploads_to'
  | 'asks_first'
  | 'changes_machine'
  | 'does_not_come_back'
  | 'nothing_holds'
  | 'read_outside'
  | 'sends_out'
  | 'at_most'
  | 'fence_lifted'
  | 'goes_binary'
  | 'goes_directory'
  | 'goes_large'
  | 'held'
  | 'held_more'
  | 'held_none'
  | 'here'
  | 'in_background'
  | 'not_held'
  | 'seconds'
  | 'trusts_key'
  | 'workspace'
  | 'backend_missing'
  | 'chosen_missing'
  | 'default_missing'
  | 'left_out'
  | 'left_out_one'
  | 'neither_model'
  | 'own_missing'
  | 'profile_missing'
  | 'prompt_cut'
  | 'reply_cut'
  | 'unfinished'
  | 'also'
  | 'and'
  | 'listed'
  | 'plain'
  | 'remedied'
  | 'asked_beside'
  | 'asks_whether'
  | 'ahead'
  | 'ahead_one'
  | 'busy_with'
  | 'busy_with_most'
  | 'goes_next'
  | 'making_ready'
  | 'reads_conversation'
  | 'read_so_far'
  | 'runs_go'
  | 'summarises'
  | 'thinks_how'
  | 'tries_again'
  | 'work_answer'
  | 'work_answers'
  | 'work_subagent'
  | 'work_subagents'
  | 'work_plan'
  | 'work_plans'
  | 'work_summary'
  | 'work_summaries'
  | 'work_unawaited'
  | 'works_unawaited'
  | 'run_shut_down'
  | 'run_went_down'
  | 'bad_model_file'
  | 'breaker_now'
  | 'breaker_open'
  | 'breaker_waits'
  | 'broke_off'
  | 'chunk_late'
  | 'comes_back'
  | 'connection_refused'
  | 'ended_early'
  | 'first_chunk_late'
  | 'is_down'
  | 'is_fetching'
  | 'is_loading'
  | 'is_ready'
  | 'is_unchecked'
  | 'key_characters'
  | 'key_refused'
  | 'malformed'
  | 'model_crashed'
  | 'model_lacking'
  | 'no_answer_within'
  | 'no_backend'
  | 'no_chat_model'
  | 'no_connection_within'
  | 'no_http_client'
  | 'no_memory'
  | 'no_model_server'
  | 'no_ollama_address'
  | 'no_openai_address'
  | 'none_answers'
  | 'none_set_up'
  | 'no_thread'
  | 'not_here'
  | 'not_here_size'
  | 'probe_late'
  | 'reply_too_long'
  | 'request_refused'
  | 'roles_refused'
  | 'server_busy'
  | 'server_empty'
  | 'server_failed'
  | 'server_silent'
  | 'starter_off'
  | 'unread_model_file'
  | 'window_overflow'
  | 'ask_server'
  | 'check_certificates'
  | 'check_ollama'
  | 'check_openai'
  | 'close_for_memory'
  | 'close_for_thread'
  | 'fetch_model'
  | 'fetch_model_again'
  | 'load_model'
  | 'pull_model'
  | 'send_again'
  | 'set_key'
  | 'set_key_alone'
  | 'set_ollama_host'
  | 'set_openai_place'
  | 'set_openai_url'
  | 'set_starter'
  | 'start_ollama'
  | 'start_server'
  | 'unset_starter'
  | 'answer_misses_form'
  | 'answer_out_of_time'
  | 'call_not_made'
  | 'conversations_full'
  | 'down_come_back'
  | 'down_send_again'
  | 'look_key'
  | 'look_no_list'
  | 'look_silent'
  | 'queue_held'
  | 'expect_key'
  | 'expect_number'
  | 'expect_one_of'
  | 'expect_seconds'
  | 'expect_switch'
  | 'expect_whole'
  | 'key_of_another'
  | 'no_server_address'
  | 'no_earlier_settings'
  | 'other_backend'
  | 'setting_file_only'
  | 'setting_in_environment'
  | 'setting_wrong'
  | 'settings_broken'
  | 'settings_moved'
  | 'settings_refused'
  | 'settings_unread'
  | 'settings_unwritten'
  | 'undo_by_hand'
  | 'unknown_setting'
  | 'look_hangs'
  | 'message_empty'
  | 'message_files'
  | 'message_images'
  | 'message_too_long'
  | 'no_ollama'
  | 'no_server_has'
  | 'no_starter'
  | 'no_such_file'
  | 'no_such_message'
  | 'no_such_rule'
  | 'no_such_session'
  | 'none_offered'
  | 'not_stored'
  | 'nothing_twice'
  | 'pictures_wait'
  | 'pull_goes'
  | 'rules_full'
  | 'run_mistaken'
  | 'session_fell'
  | 'session_taken'
  | 'signed_in_long_ago'
  | 'something_failed'
  | 'store_fails'
  | 'tokens_full'
  | 'tokens_used'
  | 'tokens_used_up'
  | 'too_many_wait'
  | 'uploads_go'
  | 'fetch_failed'
  | 'fetch_no_disk'
  | 'fetch_no_memory'
  | 'fetch_not_written'
  | 'fetch_unknown'
  | 'pull_failed'
  | 'pull_gone'
  | 'pull_no_disk'
  | 'pull_silent'
  | 'pull_unknown'
  | 'file_bomb'
  | 'file_damaged'
  | 'file_locked'
  | 'file_no_text'
  | 'file_too_costly'
  | 'file_too_large'
  | 'file_unsupported'
  | 'image_damaged'
  | 'image_elsewhere'
  | 'image_too_large'
  | 'image_too_many_pixels'
  | 'image_unsupported'
  | 'admin_sees'
  | 'allow_namespaces'
  | 'move_private'
  | 'name_other_user'
  | 'name_sandbox_user'
  | 'name_uids'
  | 'name_user'
  | 'newer_linux'
  | 'no_landlock'
  | 'no_namespaces'
  | 'no_namespaces_for'
  | 'no_sandbox_user'
  | 'no_such_user'
  | 'private_readable'
  | 'uids_given'
  | 'uids_had'
  | 'uids_of_user'
  | 'uids_taken'
  | 'uids_unmapped'
  | 'unseparated'
  | 'user_is_root'
  | 'allowed_every_file'
  | 'allowed_no_directory'
  | 'default_gone'
  | 'hangs'
  | 'hung_often'
  | 'hung_once'
  | 'left_out_commands'
  | 'mcp_problem'
  | 'no_such_setting'
  | 'no_such_tool'
  | 'no_such_tools'
  | 'oidc_plain'
  | 'persona_built_in'
  | 'persona_stays'
  | 'profile_refused'
  | 'profile_stays'
  | 'profiles_unread'
  | 'short_token'
  | 'tool_problem'
  | 'too_many_profiles'
  | 'all_valid'
  | 'another_port'
  | 'answers_demo'
  | 'answers_model'
  | 'apart_by_namespaces'
  | 'apart_by_uids'
  | 'apart_by_user'
  | 'asked_each'
  | 'backend_unasked'
  | 'better_model'
  | 'certificate_begins'
  | 'certificate_ended'
  | 'certificate_good'
  | 'certificate_other'
  | 'certificate_untold'
  | 'clock_before'
  | 'clock_plausible'
  | 'commands_held'
  | 'correct_and_look'
  | 'correct_file'
  | 'correct_permissions'
  | 'database_ahead'
  | 'database_damaged'
  | 'database_fails'
  | 'default_unknown'
  | 'disk_clock'
  | 'disk_free'
  | 'disk_unknown'
  | 'fence_wide'
  | 'get_certificate'
  | 'look_at_database'
  | 'look_at_log'
  | 'look_failed'
  | 'made_at_start'
  | 'make_room'
  | 'model_coming'
  | 'name_certificate'
  | 'narrow_fence'
  | 'not_writable'
  | 'open_to_others'
  | 'port_free'
  | 'port_own'
  | 'port_taken'
  | 'put_backup'
  | 'renew_certificate'
  | 'set_backend'
  | 'set_clock'
  | 'set_clock_or_wait'
  | 'set_default_profile'
  | 'set_disk_clock'
  | 'settings_from'
  | 'undefined_model'
  | 'use_mode';
/**
 * A request for a person's consent.
 */
export type ApprovalId = string;
/**
 * What a detail of a request is.
 */
export type Label =
  | 'address'
  | 'arguments'
  | 'changes'
  | 'command'
  | 'directory'
  | 'file'
  | 'from'
  | 'goes'
  | 'held'
  | 'host'
  | 'new_key'
  | 'path'
  | 'program'
  | 'query'
  | 'remembered'
  | 'sandbox'
  | 'server'
  | 'service'
  | 'time'
  | 'time_limit'
  | 'to'
  | 'why_it_asks';
/**
 * How a detail of a request is shown.
 */
export type DetailKind = 'text' | 'code' | 'diff';
/**
 * What a person changes of the list of steps, over either door. `before` is the step that it
 * comes to stand before: at the end where there is none.
 */
export type PlanEdit =
  | {
      edit: 'skip';
      id: number;
    }
  | {
      edit: 'restore';
      id: number;
    }
  | {
      edit: 'add';
      /**
       * One line of 1 to 500 characters.
       */
      text: string;
      before?: number;
    }
  | {
      edit: 'move';
      id: number;
      before?: number;
    }
  | {
      edit: 'rewrite';
      id: number;
      /**
       * One line of 1 to 500 characters.
       */
      text: string;
    }
  | {
      edit: 'hold';
      id: number;
    }
  | {
      edit: 'release';
      id: number;
    };
/**
 * One message as the model sees it.
 */
export type ChatMessage =
  | {
      role: 'system';
      content: string;
    }
  | {
      role: 'user';
      content: string;
      /**
       * Base64, no `data:` prefix.
       */
      images: string[];
    }
  | {
      role: 'assistant';
      content: string;
      tool_calls: ToolCall[];
    }
  | {
      role: 'tool';
      call_id: CallId;
      name: string;
      content: string;
    };
/**
 * What a reply has to be.
 */
export type ReplyForm =
  | 'call'
  | 'json'
  | {
      schema: AnswerSchema;
    };
/**
 * What becomes of calls that a person would be asked about, in a run.
 */
export type PlainConsent = 'deny' | 'ask' | 'allow';
/**
 * `allow` or `deny`; and the socket's words, of which `once` is `allow`, `always` is `allow`
 * with `always: true`, and `never` is `deny` with it.
 */
export type RestDecision = 'allow' | 'always' | 'deny' | 'never';
/**
 * A rule of consent.
 */
export type RuleId = string;
/**
 * Whether something may be done.
 */
export type Permission = 'allow' | 'deny';
/**
 * By whom or what a call was allowed or denied.
 */
export type PermittedBy = ('timeout' | 'stop') | 'user' | 'rule' | 'mode';
/**
 * Where a file came from.
 */
export type FileSource = 'upload' | 'tool';
/**
 * What an entry is. A link is not followed.
 */
export type EntryKind = ('file' | 'directory' | 'link') | 'other';
/**
 * A change to a file.
 */
export type ChangeId = string;
/**
 * What was done to a file.
 */
export type ChangeAction = ('write' | 'edit' | 'move' | 'delete') | 'undo';
/**
 * How a run stands in the store.
 */
export type RunState = ('running' | 'completed' | 'stopped' | 'failed' | 'interrupted') | 'limited';
/**
 * What a model call was for.
 */
export type CallKind = 'turn' | 'plan' | 'summary';
/**
 * What in a request differs first from the one before it.
 */
export type PrefixBreak = ('tools' | 'memory') | 'model' | 'system' | 'summary' | 'window' | 'message' | 'note' | 'server';
/**
 * How a model call ended.
 */
export type CallOutcome = ('done' | 'failed') | 'stopped' | 'interrupted' | 'time_up';
export type FactHistory = FormerFact[];
/**
 * Where a tool comes from.
 */
export type ExtensionKind = 'user' | 'mcp';
/**
 * Whether a tool may be called.
 */
export type ExtensionState = 'allowed' | 'new' | 'changed' | 'failed';
export type ExtensionToolList = ExtensionTool[];
/**
 * How an MCP server is.
 */
export type McpServerState = ('starting' | 'ready') | 'waiting' | 'failed';
export type McpServerList = McpServer[];
export type SkillList = SkillInfo[];
/**
 * The kinds of backend.
 */
export type BackendKind = 'ollama' | 'openai' | 'starter';
/**
 * One backend as it stands.
 */
export type BackendStatus = {
  kind: BackendKind;
  /**
   * Where it is: a URL, or `in process`.
   */
  address: string;
  /**
   * Since when it does not answer; none where it does, or was not asked yet.
   */
  down_since?: string;
  version?: string;
  models: ModelInfo[];
  /**
   * The model that is used where a profile names none.
   */
  default_model?: string;
} & BackendStatus1;
export type BackendStatus1 =
  | {
      state: 'unknown';
    }
  | {
      state: 'ready';
    }
  | {
      state: 'loading';
      detail: string;
    }
  | {
      state: 'fetching';
      model: string;
      /**
       * Bytes here, of bytes in all.
       */
      received: number;
      total: number;
    }
  | {
      state: 'down';
      /**
       * What is wrong, as a person reads it.
       */
      problem: string;
      /**
       * The one thing to do about it.
       */
      remedy: string;
      /**
       * Both as codes.
       */
      phrases?: Trouble;
    };
/**
 * Why a setting is changed in the file alone.
 */
export type FileOnly = 'doors' | 'programs' | 'places' | 'network' | 'record';
/**
 * How a thing stands.
 */
export type Level = 'fine' | 'warning' | 'broken';
/**
 * What `navi doctor` looks at.
 */
export type CheckName =
  'certificate' | 'clock' | 'data' | 'database' | 'disk' | 'machine' | 'model' | 'port' | 'profiles' | 'sandbox' | 'settings';
/**
 * What a person is to this installation. The later has all that the earlier has.
 */
export type UserRole = 'guest' | 'user' | 'admin';
export type PasskeyList = PasskeyInfo[];
/**
 * What a token is good for. A browser's login is good for all of it.
 */
export type Scope = 'read' | 'run' | 'consent' | 'files' | 'memory' | 'admin';
export type DeviceList = Device[];
export type SignOnList = LinkedSignOn[];
/**
 * A link by which a conversation is looked at. It opens nothing: its secret does.
 */
export type LinkId = string;
export type LinkList = LinkInfo[];
/**
 * One thing that is granted: a kind, or one of its names: `terminal`, `ssh`, `mcp:notes`.
 */
export type Power = string;
export type PersonList = PersonInfo[];
export type InvitationList = InvitationInfo[];
/**
 * What the record has lines of.
 */
export type Recorded =
  | (
      | 'signed_in'
      | 'sign_in_failed'
      | 'signed_out'
      | 'identity_unlinked'
      | 'password_changed'
      | 'recovery_codes_made'
      | 'passkey_made'
      | 'passkey_removed'
      | 'token_made'
      | 'token_removed'
      | 'invited'
      | 'invitation_removed'
      | 'role_changed'
      | 'person_removed'
      | 'tool_forbidden'
      | 'mcp_server_removed'
      | 'share_ended'
    )
  | 'signed_out_by_provider'
  | 'device_signed_out'
  | 'identity_linked'
  | 'joined'
  | 'powers_granted'
  | 'limits_changed'
  | 'role_kept'
  | 'tool_allowed'
  | 'settings_changed'
  | 'mcp_server_written'
  | 'mcp_server_tried'
  | 'shared';
export type RecordPage = RecordLine[];
export type TokenList = TokenInfo[];
/**
 * What went wrong, in a word that stays the same from release to release.
 */
export type ErrorCode =
  | 'invalid_json'
  | 'unknown_type'
  | 'invalid_field'
  | 'binary_frame'
  | 'frame_too_large'
  | 'body_too_large'
  | 'body_too_slow'
  | 'unsupported_media_type'
  | 'empty_message'
  | 'message_too_large'
  | 'too_many_images'
  | 'image_too_large'
  | 'invalid_image'
  | 'invalid_id'
  | 'file_not_found'
  | 'invalid_upload'
  | 'file_too_large'
  | 'too_many_files'
  | 'unknown_profile'
  | 'unauthorized'
  | 'forbidden_origin'
  | 'forbidden_host'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'session_not_found'
  | 'message_not_found'
  | 'approval_not_found'
  | 'approval_resolved'
  | 'rule_not_found'
  | 'too_many_rules'
  | 'fact_not_found'
  | 'person_not_found'
  | 'name_taken'
  | 'invitation_not_found'
  | 'sign_on_failed'
  | 'sign_on_refused'
  | 'sign_on_unavailable'
  | 'identity_taken'
  | 'change_not_found'
  | 'change_conflict'
  | 'memory_full'
  | 'tool_changed'
  | 'session_busy'
  | 'queue_full'
  | 'nothing_to_continue'
  | 'model_unknown'
  | 'backend_unavailable'
  | 'backend_busy'
  | 'backend_unauthorized'
  | 'backend_error'
  | 'backend_stream_broken'
  | 'model_not_found'
  | 'context_overflow'
  | 'empty_reply'
  | 'first_chunk_timeout'
  | 'chunk_timeout'
  | 'reply_too_long'
  | 'run_failed'
  | 'rate_limited'
  | 'shutting_down'
  | 'store_unavailable'
  | 'internal';
/**
 * An event with its place in the session.
 */
export type Envelope = {
  /**
   * Gapless within a session. Absent on deltas and on what goes to one tab alone.
   */
  seq?: number;
  /**
   * Absent only where no run is meant (`resync` of an idle session, refused frames).
   */
  run_id?: RunId;
  /**
   * The run that started this one; subagents only.
   */
  parent_run_id?: RunId;
  at: string;
} & Envelope1;
export type Envelope1 =
  | {
      type: 'message_accepted';
      client_id?: string;
      message_id: MessageId;
      /**
       * It waits for the run that goes now.
       */
      queued: boolean;
      /**
       * How it waits, where it does.
       */
      mode: SendMode;
      content: string;
      images?: string[];
      files?: AttachedFile[];
      /**
       * Who wrote it, where there are accounts.
       */
      author?: PersonRef;
    }
  | {
      type: 'queue_changed';
      message_id: MessageId;
      content: string | null;
      /**
       * Who changed it, where there are accounts: what it says is theirs.
       */
      author?: PersonRef;
    }
  | {
      type: 'message_steered';
      message_id: MessageId;
    }
  | {
      type: 'branch_changed';
      branch_id: number;
    }
  | {
      type: 'stream_start';
      /**
       * The user message that this run answers.
       */
      message_id: MessageId;
      model: string;
      profile_id: string;
    }
  | {
      type: 'run_waiting';
      reason: WaitReason;
      detail: string;
      /**
       * The detail as a code, where it is Navi's own words.
       */
      phrase?: Phrase;
      is_subagent?: boolean;
    }
  | (Delta & {
      type: 'thinking_delta';
    })
  | {
      type: 'thinking_end';
      is_subagent?: boolean;
    }
  | {
      type: 'plan_ready';
      /**
       * As the model wrote it.
       */
      plan: string;
      /**
       * The message that holds it (`is_plan`).
       */
      message_id: MessageId;
      steps: PlanStep[];
      is_subagent?: boolean;
    }
  | {
      type: 'subagent_started';
      /**
       * The `spawn_agent` call that it answers.
       */
      call_id: CallId;
      profile_id: string;
      task: string;
      is_subagent?: boolean;
    }
  | {
      type: 'subagent_finished';
      call_id: CallId;
      /**
       * False where the iteration limit, the time limit, a stop or a fault ended it.
       */
      completed_normally: boolean;
      is_subagent?: boolean;
    }
  | {
      type: 'profile_switched';
      profile_id: string;
      profile_name: string;
    }
  | {
      type: 'context_compressed';
      /**
       * How many messages the model saw before, and sees now.
       */
      messages_before: number;
      messages_after: number;
      /**
       * The first message that stands word for word; none where no message does.
       */
      first_kept: MessageId | null;
    }
  | {
      type: 'turn_thinking';
      thinking: string;
      is_subagent: boolean;
    }
  | (Delta & {
      type: 'stream_delta';
    })
  | {
      type: 'tool_started';
      tool: string;
      args: unknown;
      is_subagent: boolean;
      call_id: CallId;
      /**
       * The assistant message that asked for it.
       */
      message_id: MessageId;
      /**
       * Whether its tool is one that the program that asks lent, and that it calls by itself.
       */
      lent?: boolean;
    }
  | {
      type: 'tool_output';
      call_id: CallId;
      part_id: PartId;
      offset: number;
      delta: string;
      is_subagent?: boolean;
    }
  | {
      type: 'tool_call';
      tool: string;
      args: unknown;
      result: string;
      success: boolean;
      outcome: ToolOutcome;
      is_subagent: boolean;
      call_id: CallId;
      duration_ms: number;
      /**
       * Whether the result came from outside and is data, whatever it says.
       */
      outside?: boolean;
      /**
       * Images that the call gave back.
       */
      files?: AttachedFile[];
      /**
       * As its `tool_started` says.
       */
      lent?: boolean;
    }
  | {
      type: 'approval_requested';
      approval_id: ApprovalId;
      call_id: CallId;
      tool: string;
      request: ApprovalRequest;
      /**
       * When it counts as denied.
       */
      expires_at: string;
      is_subagent?: boolean;
    }
  | {
      type: 'approval_resolved';
      approval_id: ApprovalId;
      call_id: CallId;
      decision: Decision;
      by: DecidedBy;
      /**
       * Why not, in the words of the person who denied it.
       */
      note?: string;
      /**
       * Who answered, where a person did and there are accounts.
       */
      author?: PersonRef;
      is_subagent?: boolean;
    }
  | {
      type: 'call_resolved';
      call_id: CallId;
      decision: CallDecision;
    }
  | {
      type: 'mode_changed';
      mode: ConsentMode;
    }
  | {
      type: 'model_changed';
      model: string | null;
    }
  | {
      type: 'todo_updated';
      items: TodoItem[];
      is_subagent?: boolean;
    }
  | {
      type: 'stream_end';
      content: string;
      message_id: MessageId;
      context_tokens: number;
      max_context_tokens: number;
      /**
       * False where a limit ended the run.
       */
      completed: boolean;
    }
  | {
      type: 'stream_stopped';
    }
  | {
      type: 'run_interrupted';
      reason: string;
      /**
       * The reason as a code, where it is Navi's own words.
       */
      phrase?: Phrase;
      can_continue: boolean;
    }
  | {
      type: 'notice';
      code: string;
      message: string;
      /**
       * The message as a code, where it is Navi's own words.
       */
      phrase?: Phrase;
      is_subagent?: boolean;
    }
  | {
      type: 'error';
      message: string;
      /**
       * Whether the run goes on.
       */
      recoverable: boolean;
      code: ErrorCode;
      /**
       * The message as a code, where it is Navi's own words.
       */
      phrase?: Phrase;
      /**
       * That of the frame which this answers.
       */
      client_id?: string;
    }
  | {
      type: 'resync';
      reason: ResyncReason;
      session: SessionSnapshot;
    }
  | {
      type: 'pong';
    };
/**
 * A streamed part: an answer's text, its reasoning, or a tool's output.
 */
export type PartId = string;
/**
 * A person's answer to a request for approval.
 */
export type Decision = ('once' | 'deny') | 'always' | 'never';
/**
 * Who answered.
 */
export type DecidedBy = 'user' | 'timeout' | 'stop';
/**
 * Why a cursor could not be served.
 */
export type ResyncReason = 'cursor_ahead' | 'epoch_changed' | 'log_expired';
/**
 * A frame from a client.
 */
export type ClientFrame =
  | (UserInput & {
      type: 'message';
    })
  | {
      type: 'stop';
      /**
       * What waits in the queue is not begun by it, but by a message or by `continue`.
       */
      hold?: boolean;
      /**
       * Only this run is stopped, and none that came after it; whichever goes where absent.
       */
      run_id?: RunId;
    }
  | {
      type: 'continue';
      /**
       * Only with what a stop held back, whatever the last run left.
       */
      queue?: boolean;
    }
  | {
      type: 'withdraw';
      message_id: MessageId;
    }
  | {
      type: 'edit_queued';
      message_id: MessageId;
      content: string;
    }
  | {
      type: 'approve';
      approval_id: ApprovalId;
      decision: Decision;
      /**
       * Why not, in the person's words, for the model: with a denial, at most 500 characters
       * on one line.
       */
      note?: string;
    }
  | {
      type: 'resolve_call';
      call_id: CallId;
      decision: CallDecision;
    }
  | (PlanEdit & {
      type: 'edit_plan';
    })
  | {
      type: 'ping';
    };
/**
 * A frame of `/ws/sessions`.
 */
export type HubFrame =
  | {
      type: 'sessions';
      sessions: SessionSummary[];
      status: SystemStatus;
    }
  | {
      type: 'session_changed';
      session: SessionSummary;
    }
  | {
      type: 'session_removed';
      session_id: SessionId;
    }
  | {
      type: 'status';
      status: SystemStatus;
    }
  | {
      type: 'pong';
    };

/**
 * The one answer.
 */
export interface Health {
  status: string;
}
/**
 * A profile as its file gives it.
 */
export interface Profile {
  id: string;
  name: string;
  description: string;
  system_prompt: string;
  subagent_system_prompt: string;
  enabled_tools: string[];
  /**
   * `enabled_tools` where empty.
   */
  subagent_tools: string[];
  /**
   * The backend that answers, where it can. Where absent, the first that can in the order of
   * `LLM_BACKEND`, which begins with Ollama.
   */
  llm_backend: string | null;
  /**
   * As its backend calls it; Ollama where the profile names none. The default model where
   * absent.
   */
  model: string | null;
  temperature: number;
  max_iterations: number;
  scratchpad_sections: string[];
  think_enabled: boolean;
  iteration_budget_enabled: boolean;
  planning_enabled: boolean;
  planning_phase2_enabled: boolean;
  goal_anchoring_enabled: boolean;
  goal_anchoring_interval: number;
  anti_stall_enabled: boolean;
  anti_stall_threshold: number;
  step_validation_enabled: boolean;
  adaptive_replan_enabled: boolean;
  subagent_planning_enabled: boolean;
}
/**
 * What a profile is made of.
 */
export interface ProfileText {
  /**
   * Where it stands; where it is built in, where one that replaces it would.
   */
  file: string;
  built_in: boolean;
  /**
   * TOML.
   */
  text: string;
}
/**
 * What a profile's file is to be.
 */
export interface NewProfileText {
  /**
   * TOML, as the loader takes it.
   */
  text: string;
  /**
   * What stood in the file when it was read; null where there was none.
   */
  before?: string;
}
/**
 * A tool as the list of all tools shows it.
 */
export interface ListedTool {
  name: string;
  description: string;
  /**
   * JSON Schema of the arguments: an object.
   */
  parameters: {
    [k: string]: unknown;
  };
  /**
   * The most that any call of it does; one call may do less.
   */
  effect: Effect;
  time_limit_ms: number;
  source: ToolSource;
}
/**
 * What a new session may be given.
 */
export interface NewSessionRequest {
  /**
   * The default profile where absent.
   */
  profile_id?: string;
  /**
   * One that `GET /api/status` lists: another one is refused, unless a model server that may have
   * it is away. The profile's where absent.
   */
  model?: string;
  /**
   * How much it may do without asking; as the settings have it where absent.
   */
  mode?: ConsentMode;
}
/**
 * A session that was just made.
 */
export interface CreatedSession {
  session_id: SessionId;
  profile_id: string;
  created_at: string;
}
/**
 * A row of the session list.
 */
export interface SessionSummary {
  id: SessionId;
  user_id: UserId;
  title: string;
  profile_id: string;
  /**
   * The model that was chosen for it; none where its profile's answers.
   */
  model?: string;
  pinned: boolean;
  /**
   * Put away: it stands in the list of those alone, until the next message to it.
   */
  archived: boolean;
  /**
   * It is there for the one answer that a program asked for: no list has it, and it goes by
   * itself.
   */
  ephemeral?: boolean;
  /**
   * What its user files it under, in their order.
   */
  tags?: string[];
  context_token_count: number;
  state: SessionState;
  /**
   * How many requests for consent wait for an answer.
   */
  asks?: number;
  /**
   * With whom it is shared, or was: nobody may be left.
   */
  shared?: Shared;
  created_at: string;
  last_active: string;
}
/**
 * Who is in a conversation of several.
 */
export interface Shared {
  /**
   * Whose it is.
   */
  owner: PersonRef;
  /**
   * Who else takes part.
   */
  people: PersonRef[];
}
/**
 * A person, as they were called then.
 */
export interface PersonRef {
  id: UserId;
  name: string;
}
/**
 * A session with its conversation, as it stood when `last_seq` was its newest event.
 * A client that has this attaches with `?after=last_seq&epoch=epoch`.
 */
export interface SessionSnapshot {
  id: SessionId;
  user_id: UserId;
  title: string;
  profile_id: string;
  /**
   * The model that was chosen for it; none where its profile's answers.
   */
  model?: string;
  pinned: boolean;
  /**
   * Put away: it stands in the list of those alone, until the next message to it.
   */
  archived: boolean;
  /**
   * It is there for the one answer that a program asked for: no list has it, and it goes by
   * itself.
   */
  ephemeral?: boolean;
  /**
   * What its user files it under, in their order.
   */
  tags?: string[];
  context_token_count: number;
  state: SessionState;
  /**
   * How many requests for consent wait for an answer.
   */
  asks?: number;
  /**
   * With whom it is shared, or was: nobody may be left.
   */
  shared?: Shared;
  created_at: string;
  last_active: string;
  messages: Message[];
  todo: TodoItem[];
  /**
   * The newest plan; the status of its steps stands in `todo`.
   */
  plan: Plan | null;
  /**
   * What the model sees instead of the messages before `first_kept`.
   */
  compression: Compression | null;
  /**
   * How many messages stand before `messages`, where only the newest were asked for.
   */
  earlier?: number;
  /**
   * Where the conversation has other branches.
   */
  forks: Fork[];
  queue: QueuedMessage[];
  run: ActiveRun | null;
  /**
   * How much it may do without asking.
   */
  mode: ConsentMode;
  /**
   * When it first read text from outside: what goes out of this machine is asked about since.
   */
  tainted_at?: string;
  /**
   * What a person is asked just now.
   */
  approvals: PendingApproval[];
  /**
   * Calls of the last run that a person may say what became of.
   */
  unknown_calls: UnknownCall[];
  /**
   * Whether `{"type":"continue"}` would do something.
   */
  can_continue: boolean;
  /**
   * Why the last run failed or was interrupted.
   */
  reason: string | null;
  /**
   * The same as a code, where it is Navi's own words.
   */
  reason_phrase?: Phrase;
  /**
   * The newest notices of the runs that are shown, oldest first.
   */
  notices: RunNotice[];
  max_context_tokens: number;
  last_seq: number;
  epoch: number;
}
/**
 * One message of `messages` or `context`.
 */
export interface Message {
  id: MessageId;
  /**
   * The run that this message belongs to: the one that answers it, or that made it.
   */
  run_id: RunId;
  role: Role;
  content: string | null;
  /**
   * Base64, without a `data:` prefix. User and assistant only.
   */
  images?: string[];
  /**
   * Where the images are, relative to the service's own address, in place of `images` where
   * only the newest messages were asked for.
   */
  image_urls?: string[];
  /**
   * What the user attached, or images that a tool gave back. User and tool only.
   */
  files?: AttachedFile[];
  /**
   * Assistant only; each has exactly one tool message after it.
   */
  tool_calls?: ToolCall[];
  /**
   * Tool results only.
   */
  tool_call_id?: CallId;
  /**
   * The tool's name; tool results only.
   */
  name?: string;
  /**
   * Tool results only.
   */
  outcome?: ToolOutcome;
  /**
   * What the user said of a call whose outcome is unknown; in snapshots alone.
   */
  decision?: CallDecision;
  /**
   * Whether the text came from outside and is data, whatever it says; tool results only.
   */
  outside?: boolean;
  /**
   * How long the tool ran, in milliseconds; tool results only.
   */
  duration_ms?: number;
  /**
   * The model's reasoning, where it gave any.
   */
  thinking?: string;
  state: MessageState;
  is_summary: boolean;
  is_plan: boolean;
  /**
   * The sender's own id for it; the same one twice is one message.
   */
  client_id?: string;
  /**
   * Who wrote it, where there are accounts. User only.
   */
  author?: PersonRef;
  /**
   * Whether the model is told who that was: others may write here, too.
   */
  names_author?: boolean;
  created_at: string;
}
/**
 * A file as a message carries it. It outlives the file: what was sent stays in the conversation.
 */
export interface AttachedFile {
  file_id: FileId;
  /**
   * The sender's name for it: a label, never a path.
   */
  name: string;
  /**
   * Where the session's tools find it, within the workspace. Of our making.
   */
  path: string;
  /**
   * What its content is, as in `image/png`; not what its sender said.
   */
  media_type: string;
  bytes: number;
  /**
   * Whether `GET /sessions/{session_id}/files/{file_id}/image` shows it.
   */
  image: boolean;
}
/**
 * A call that the model asked for.
 */
export interface ToolCall {
  id: CallId;
  name: string;
  /**
   * The arguments as the model gave them: an object, or the raw text where it was no JSON object.
   */
  arguments: {
    [k: string]: unknown;
  };
}
/**
 * One step.
 */
export interface TodoItem {
  /**
   * Counts from 1 within the list; another step gets it only when a plan replaces the list.
   */
  id: number;
  text: string;
  status: TodoStatus;
  /**
   * What showed that the step is done, or why it failed or was skipped.
   */
  note?: string;
  /**
   * Its user wants to look first: it is not begun before they release it.
   */
  held?: boolean;
  /**
   * What its user did about it.
   */
  edited?: StepEdited;
}
/**
 * What a step's user did about it.
 */
export interface StepEdited {
  how: StepEdit;
  at: string;
}
/**
 * The newest plan of a session.
 */
export interface Plan {
  run_id: RunId;
  /**
   * The message that holds it (`is_plan`).
   */
  message_id: MessageId;
  /**
   * As the model wrote it.
   */
  text: string;
  steps: PlanStep[];
}
/**
 * What stands in `context` for the old part of `messages`.
 */
export interface Compression {
  summary: string;
  /**
   * The first message that the model still sees word for word; none where no message does.
   */
  first_kept: MessageId | null;
}
/**
 * A place where the conversation was edited or an answer made anew: the message that stands
 * there now is one of several.
 */
export interface Fork {
  /**
   * The first message of the branch that is shown, at this place.
   */
  message_id: MessageId;
  /**
   * The branches that go on from here, oldest first; the one that is shown is one of them.
   */
  branch_ids: number[];
  /**
   * The one that is shown.
   */
  shown: number;
}
/**
 * A message that waits for the run before it.
 */
export interface QueuedMessage {
  message_id: MessageId;
  /**
   * The run that will answer it.
   */
  run_id: RunId;
  content: string;
  images?: string[];
  files?: AttachedFile[];
  client_id?: string;
  /**
   * Whether the run that goes takes it in before its next model call.
   */
  mode: SendMode;
  /**
   * Who wrote it, where there are accounts.
   */
  author?: PersonRef;
  created_at: string;
}
/**
 * The run that goes now.
 */
export interface ActiveRun {
  run_id: RunId;
  message_id: MessageId;
  model: string;
  started_at: string;
  /**
   * What it was last told to wait for, if nothing moved since but streamed text.
   */
  waiting: RunWait | null;
}
/**
 * Why a run stands still.
 */
export interface RunWait {
  reason: WaitReason;
  detail: string;
  /**
   * The detail as a code, where it is Navi's own words.
   */
  phrase?: Phrase;
}
/**
 * Words of Navi's own. They are told in English as they are written out.
 */
export interface Phrase {
  code: PhraseCode;
  /**
   * What stands in it, by name.
   */
  params?: {
    [k: string]: string;
  };
  /**
   * Those of them that are Navi's own words too, by the same names.
   */
  phrases?: {
    [k: string]: Phrase;
  };
}
/**
 * A request that nobody has answered yet.
 */
export interface PendingApproval {
  approval_id: ApprovalId;
  run_id: RunId;
  call_id: CallId;
  tool: string;
  request: ApprovalRequest;
  requested_at: string;
  /**
   * When it counts as denied.
   */
  expires_at: string;
  /**
   * Whether a child of the session's run asks; it goes with its process.
   */
  is_subagent?: boolean;
}
/**
 * What a person is asked.
 */
export interface ApprovalRequest {
  /**
   * One line: what would be done, as in "run `cargo test`".
   */
  summary: string;
  effect: Effect;
  /**
   * Why it is asked about, in a sentence.
   */
  reason: string;
  details: Detail[];
  /**
   * What "always" would allow and "never" forbid from then on, in a few words; none where
   * neither can be said.
   */
  always?: string;
  /**
   * The same as codes; none in what was asked before there were any.
   */
  phrases?: RequestPhrases;
}
/**
 * A part of what would be done.
 */
export interface Detail {
  /**
   * A word or two, as in `command` or `directory`.
   */
  label: string;
  /**
   * The same as a code.
   */
  code?: Label;
  kind: DetailKind;
  text: string;
  /**
   * The text as a code, where it is Navi's own words.
   */
  phrase?: Phrase;
}
/**
 * What a request says, for a page that has words of its own for it.
 */
export interface RequestPhrases {
  summary: Phrase;
  /**
   * One after the other.
   */
  reason: Phrase[];
  always?: Phrase;
}
/**
 * A call that had started when Navi went down, and of which nobody has said yet what became.
 */
export interface UnknownCall {
  call_id: CallId;
  tool: string;
  args: unknown;
  /**
   * The assistant message that asked for it.
   */
  message_id: MessageId;
}
/**
 * Something that a run had to say to its user.
 */
export interface RunNotice {
  /**
   * Of the event that told it.
   */
  seq: number;
  at: string;
  code: string;
  message: string;
  /**
   * The message as a code, where it is Navi's own words.
   */
  phrase?: Phrase;
}
/**
 * A page of a conversation, and what stands beside its messages.
 */
export interface MessagePage {
  /**
   * In order. It begins with a turn where it can.
   */
  messages: Message[];
  /**
   * How many messages stand before these.
   */
  earlier: number;
  /**
   * Where the conversation has other branches, in this page.
   */
  forks: Fork[];
  /**
   * The newest notices of the runs in this page, oldest first.
   */
  notices: RunNotice[];
}
/**
 * What can be changed of a session: at least one of these.
 */
export interface SessionChange {
  /**
   * 1 to 200 characters.
   */
  title?: string;
  /**
   * A run that goes has it from its next iteration on.
   */
  profile_id?: string;
  /**
   * One that `GET /api/status` lists, from the next run on: another one is refused, unless a model
   * server that may have it is away. Null: the profile's own. A subagent whose profile names a
   * model has that one all the same.
   */
  model?: string;
  /**
   * In place of those that it has: at most 10, of 1 to 40 characters.
   */
  tags?: string[];
  /**
   * Puts the session away, which unpins it, or brings it back.
   */
  archived?: boolean;
}
/**
 * Whether to pin.
 */
export interface PinRequest {
  /**
   * Pins or unpins; the other of what it is now where absent.
   */
  pinned?: boolean;
}
/**
 * What a stop found.
 */
export interface Stopped {
  /**
   * Whether there was a run to stop.
   */
  stopped: boolean;
}
/**
 * The list of steps.
 */
export interface StepList {
  items: TodoItem[];
}
/**
 * The run that goes on.
 */
export interface Continued {
  run_id: RunId;
}
/**
 * What became of a call.
 */
export interface Resolution {
  decision: CallDecision;
}
/**
 * Everything a backend needs for one call.
 */
export interface ChatRequest {
  model: string;
  messages: ChatMessage[];
  /**
   * Empty where the model may not call tools.
   */
  tools: ToolSpec[];
  temperature: number;
  /**
   * Whether to ask for reasoning. A backend that cannot reason ignores it.
   */
  think: boolean;
  /**
   * The context window to ask for, in tokens.
   */
  context_window: number;
  /**
   * A limit on the answer, in tokens.
   */
  max_output_tokens: number | null;
  /**
   * Whether the answer is wanted as it comes. Otherwise the backend sends it in one piece.
   */
  streamed: boolean;
  /**
   * What the reply has to be, where it may not be whatever the model says. A backend that cannot
   * see to it ignores it.
   */
  form?: ReplyForm;
}
/**
 * A tool as the model and the profile see it.
 */
export interface ToolSpec {
  name: string;
  description: string;
  /**
   * JSON Schema of the arguments: an object.
   */
  parameters: {
    [k: string]: unknown;
  };
  /**
   * The most that any call of it does; one call may do less.
   */
  effect: Effect;
  time_limit_ms: number;
}
/**
 * What text that is JSON has to be.
 */
export interface AnswerSchema {
  /**
   * For servers that want one.
   */
  name: string;
  /**
   * JSON Schema.
   */
  schema: {
    [k: string]: unknown;
  };
  /**
   * As the program that asks has it, for servers that know it.
   */
  strict?: boolean;
}
/**
 * The next call's prompt by its parts, in tokens as Navi guesses them: backends count a prompt
 * as a whole alone, and after they have read it.
 */
export interface ContextParts {
  /**
   * Persona, the profile's prompt, and what tools and limits add to it.
   */
  system: number;
  /**
   * What is remembered about the user.
   */
  memory: number;
  /**
   * The summary of what was compressed, and a plan that stood in there.
   */
  summary: number;
  /**
   * The conversation from there on, word for word.
   */
  turns: number;
  /**
   * The tools' descriptions and schemas.
   */
  tools: number;
  /**
   * Kept free for the answer.
   */
  answer: number;
  /**
   * The model's window. What all these leave of it is free.
   */
  window: number;
  /**
   * Oldest turns that do not fit, and stay out of the call.
   */
  left_out_turns: number;
  /**
   * What the backend counted at the last call, its answer with it; 0 where none was since the
   * branch is shown.
   */
  counted: number;
}
/**
 * A conversation as its export has it. What else stands there is passed over: ids, plans, how
 * it was pinned or may act without asking.
 */
export interface ImportedSession {
  /**
   * The start of its first message where it is empty.
   */
  title?: string;
  /**
   * The default profile where there is none of this name.
   */
  profile_id?: string;
  tags?: string[];
  created_at?: string;
  last_active?: string;
  messages: ImportedMessage[];
}
/**
 * A message of it.
 */
export interface ImportedMessage {
  role: Role;
  content?: string;
  /**
   * Those of a run bear the same one. Where there is none, each message of the user's begins
   * a run.
   */
  run_id?: string;
  /**
   * Base64, with or without a `data:` prefix; user and assistant only.
   */
  images?: string[];
  /**
   * They are not in the file: they are left out, and counted.
   */
  files?: unknown[];
  /**
   * Assistant only.
   */
  tool_calls?: ToolCall[];
  /**
   * Tool results only: a call of a message before.
   */
  tool_call_id?: CallId;
  outcome?: ToolOutcome;
  duration_ms?: number;
  thinking?: string;
  state?: MessageState;
  is_plan?: boolean;
  /**
   * As the message before it where it is left out.
   */
  created_at?: string;
}
/**
 * What came of an import.
 */
export interface Imported {
  session: SessionSummary;
  /**
   * How many messages it has.
   */
  messages: number;
  left_out: LeftOut;
}
/**
 * What was in the file, or named there, and is not in the session.
 */
export interface LeftOut {
  /**
   * Images that are none, or over the limits of those that are sent.
   */
  images: number;
  /**
   * Attached files, which exports name and do not hold.
   */
  files: number;
}
/**
 * A message for a plain run, which has nobody to ask.
 */
export interface PlainInput {
  content: string;
  /**
   * Base64; a `data:` prefix is stripped.
   */
  images?: string[];
  files?: FileRef[];
  /**
   * The sender's own id: the same one twice is one message.
   */
  client_id?: string;
  mode?: SendMode;
  /**
   * What becomes of calls that a person would be asked about.
   */
  consent?: PlainConsent;
}
/**
 * A file that was uploaded before.
 */
export interface FileRef {
  /**
   * What the upload returned counts; this is for who reads the frame.
   */
  name?: string;
  /**
   * As the upload returned it.
   */
  path: string;
}
/**
 * How much a session may do without asking.
 */
export interface ModeChange {
  mode: ConsentMode;
}
/**
 * What waits for an answer.
 */
export interface ApprovalList {
  approvals: PendingApproval[];
}
/**
 * An answer to a request.
 */
export interface ApprovalDecision {
  decision: RestDecision;
  /**
   * Whether it holds for all such calls from then on.
   */
  always?: boolean;
  /**
   * Why not, for the model: with a denial, at most 500 characters on one line.
   */
  note?: string;
}
/**
 * A user's rules.
 */
export interface RuleList {
  rules: ConsentRule[];
}
/**
 * What a person allowed or forbade once and for all: calls of one tool with one key.
 */
export interface ConsentRule {
  id: RuleId;
  tool: string;
  /**
   * What it covers, for a person.
   */
  words: string;
  /**
   * The same as a code; none in a rule from before there were any.
   */
  phrase?: Phrase;
  decision: Permission;
  created_at: string;
}
/**
 * A page of what was allowed, newest first.
 */
export interface ConsentLog {
  entries: ConsentEntry[];
  /**
   * Where the next page starts; null where this was the last.
   */
  next: number | null;
}
/**
 * A line of the list of what was allowed, and by whom.
 */
export interface ConsentEntry {
  /**
   * Grows with time; a page's place in the list.
   */
  id: number;
  at: string;
  /**
   * It may have been deleted since.
   */
  session_id: SessionId;
  run_id: RunId;
  call_id: CallId;
  tool: string;
  effect: Effect;
  summary: string;
  decision: Permission;
  by: PermittedBy;
  /**
   * What the rule covers that decided, where one did; it may have been deleted since.
   */
  rule?: string;
  /**
   * The same as codes; none in lines from before there were any.
   */
  phrases?: EntryPhrases;
  /**
   * Why not, in the words of the person who denied it.
   */
  note?: string;
  /**
   * Who answered, where a person did and there are accounts.
   */
  author?: PersonRef;
}
/**
 * What a line of the list of what was allowed says, for a page that has words of its own for it.
 */
export interface EntryPhrases {
  summary: Phrase;
  rule?: Phrase;
}
/**
 * The answer of a plain run (SPEC section 3).
 */
export interface PlainAnswer {
  run_id: RunId;
  message_id: MessageId;
  content: string;
  /**
   * False where a limit ended the run.
   */
  completed: boolean;
  context_tokens: number;
}
/**
 * Files of a session, oldest first.
 */
export interface FileList {
  files: SessionFile[];
}
/**
 * A file as the list shows it.
 */
export interface SessionFile {
  file_id: FileId;
  /**
   * The sender's name for it: a label, never a path.
   */
  name: string;
  /**
   * Where the session's tools find it, within the workspace. Of our making.
   */
  path: string;
  /**
   * What its content is, as in `image/png`; not what its sender said.
   */
  media_type: string;
  bytes: number;
  /**
   * Whether `GET /sessions/{session_id}/files/{file_id}/image` shows it.
   */
  image: boolean;
  source: FileSource;
  /**
   * Whether the model gets its text.
   */
  text: boolean;
  /**
   * Why the model gets neither its text nor its image, where that may surprise; null otherwise.
   */
  problem: string | null;
  /**
   * The same as a code.
   */
  phrase?: Phrase;
  created_at: string;
  last_used_at: string;
  /**
   * When it goes, unless it is used before.
   */
  expires_at: string;
}
/**
 * A directory of a workspace.
 */
export interface WorkspaceListing {
  /**
   * By name.
   */
  entries: WorkspaceEntry[];
  /**
   * False where there are more than are listed.
   */
  complete: boolean;
}
/**
 * One name in it.
 */
export interface WorkspaceEntry {
  /**
   * From the workspace down.
   */
  path: string;
  kind: EntryKind;
  /**
   * 0 for what is no file.
   */
  bytes: number;
  /**
   * None where it cannot be told.
   */
  modified_at: string | null;
}
/**
 * A branch and its run.
 */
export interface Branched {
  branch_id: number;
  /**
   * The run that answers on it.
   */
  run_id: RunId;
  /**
   * The message that it answers.
   */
  message_id: MessageId;
}
/**
 * Where a branch starts.
 */
export interface NewBranch {
  /**
   * A message of the user's that is shown.
   */
  message_id: MessageId;
  /**
   * What stands in its place; where absent, the message is answered anew.
   */
  content?: string;
}
/**
 * The branch to show.
 */
export interface ShownBranch {
  branch_id: number;
}
/**
 * A session's changes to files.
 */
export interface ChangeList {
  /**
   * Newest first.
   */
  changes: Change[];
}
/**
 * A change to a file, made by the filesystem tool or by taking one back.
 */
export interface Change {
  id: ChangeId;
  action: ChangeAction;
  /**
   * In the workspace where it is relative.
   */
  path: string;
  /**
   * Where a move went.
   */
  to?: string;
  at: string;
  /**
   * The run that did it; none where a person took a change back.
   */
  run_id?: RunId;
  call_id?: CallId;
  /**
   * The change that this one took back.
   */
  undoes?: ChangeId;
  undoable: boolean;
  /**
   * Why it cannot be undone, in a sentence; none where it can.
   */
  why_not?: string;
}
/**
 * The changes of a file.
 */
export interface FileHistory {
  /**
   * Newest first, at most 50.
   */
  changes: FileChange[];
}
/**
 * A change of a file with what it changed in it.
 */
export interface FileChange {
  change: Change;
  /**
   * A unified difference; none where it moved the file, where one side of it is not known any
   * more or is no text, and where it is too long to be looked at.
   */
  diff?: string;
}
/**
 * What a stop found.
 */
export interface SubagentStopped {
  /**
   * Whether it still went.
   */
  stopped: boolean;
}
/**
 * Runs of a session, newest first. The next page is the one before the last of them.
 */
export interface RunList {
  runs: RunInfo[];
  /**
   * Of all runs of the session.
   */
  spent: Spending;
  /**
   * Of all of the user's runs that began today, by the service's clock; only for who owns the
   * session.
   */
  today?: Spending;
}
/**
 * A run as the store has it.
 */
export interface RunInfo {
  run_id: RunId;
  session_id: SessionId;
  /**
   * The run that started it; subagents only.
   */
  parent_run_id: RunId | null;
  /**
   * The user message that it answers.
   */
  message_id: MessageId;
  profile_id: string;
  backend: string;
  model: string;
  state: RunState;
  /**
   * Why it ended so, where that is not plain from the state.
   */
  reason: string | null;
  /**
   * The same as a code, where it is Navi's own words.
   */
  reason_phrase?: Phrase;
  started_at: string;
  ended_at: string | null;
  /**
   * This and the counts below are known when the run has ended.
   */
  iterations: number;
  prompt_tokens: number;
  completion_tokens: number;
  /**
   * What it and all runs under it cost; in lists, where a model of theirs has a price.
   */
  cost?: Cost;
}
/**
 * An amount of money.
 */
export interface Cost {
  amount: number;
  /**
   * Three letters, as in `EUR`.
   */
  currency: string;
}
/**
 * What runs that have ended used, and what that cost.
 */
export interface Spending {
  prompt_tokens: number;
  completion_tokens: number;
  /**
   * By the price table as it is now; none where no model of them has a price.
   */
  cost?: Cost;
}
/**
 * A run with its calls and the runs that it started.
 */
export interface RunDetails {
  run: RunInfo;
  calls: CallInfo[];
  children: RunId[];
  /**
   * Added where the price table is at hand.
   */
  spent?: RunSpending;
}
/**
 * A model call of a run.
 */
export interface CallInfo {
  /**
   * Counts from 1 within the run.
   */
  n: number;
  kind: CallKind;
  started_at: string;
  /**
   * From the start, with the wait for a slot and what was tried in vain; none where nothing
   * came, and where the answer was wanted whole.
   */
  first_chunk_ms: number | null;
  duration_ms: number;
  model: string;
  /**
   * As the backend counted them; for a call of the loop an estimate where it counts nothing.
   */
  prompt_tokens: number | null;
  completion_tokens: number | null;
  /**
   * Of the prompt, what the server says that it had read before; none where it says nothing.
   */
  cached_tokens?: number;
  /**
   * Added for calls of the loop that have one before them.
   */
  prefix?: CallPrefix;
  outcome: CallOutcome;
  /**
   * The session's last event before it began.
   */
  after_seq: number;
}
/**
 * What became of what a model had read with the call before: of the conversation's own calls, or
 * of a subagent's.
 */
export interface CallPrefix {
  /**
   * None where this request goes on from all of that one.
   */
  broken_by: PrefixBreak | null;
  kept_tokens: number;
  /**
   * Of what that one had, what came after the break.
   */
  read_again_tokens: number;
  /**
   * Whether the server said what it had kept. Otherwise both counts are guesses.
   */
  counted: boolean;
  /**
   * The share of the time to the first chunk.
   */
  read_again_ms?: number;
  /**
   * What these tokens cost, where the model has a price.
   */
  cost?: Cost;
}
/**
 * What was spent around a run.
 */
export interface RunSpending {
  /**
   * By the run and all runs under it.
   */
  run: Spending;
  /**
   * By all runs of its session.
   */
  session: Spending;
  /**
   * By all of the user's runs that began on its day, by the service's clock.
   */
  day: Spending;
}
/**
 * What the model was sent at a call, and what it said.
 */
export interface CallDetails {
  request: ChatRequest;
  /**
   * Whether `request` is what was sent, to the byte. It is made again from what is stored;
   * a file that has gone since, or another release, can make it differ.
   */
  exact: boolean;
  reply: CallReply;
}
/**
 * What the model said.
 */
export interface CallReply {
  content: string | null;
  thinking: string | null;
  tool_calls: ToolCall[];
}
/**
 * What was found, best first.
 */
export interface SearchResult {
  hits: SearchHit[];
}
/**
 * A message, or a session's title, that holds all the words.
 */
export interface SearchHit {
  session_id: SessionId;
  session_title: string;
  /**
   * Whether the session is put away.
   */
  session_archived: boolean;
  /**
   * None where the title was found; `branch_id` and `role` then too.
   */
  message_id?: MessageId;
  /**
   * The branch that the message was said on. It may not be the one that is shown.
   */
  branch_id?: number;
  role?: Role;
  snippet: Snippet;
  /**
   * When the message was said, or the session was last active.
   */
  at: string;
}
/**
 * A few words around what was found: plain text, never markup.
 */
export interface Snippet {
  /**
   * On one line. `…` stands where something was left out.
   */
  text: string;
  /**
   * What matched: in order, without overlap.
   */
  marks: Mark[];
}
/**
 * A stretch of a text, in UTF-16 code units, as the page's language counts.
 */
export interface Mark {
  start: number;
  end: number;
}
/**
 * All that is known of a user.
 */
export interface MemoryOverview {
  /**
   * By category and key. Those of a confidence of 0.5 or less are unconfirmed: they do not
   * stand in the summary.
   */
  facts: Fact[];
  /**
   * What every conversation begins with; null where nothing is known.
   */
  summary: string | null;
  /**
   * When the summary was written.
   */
  updated_at: string | null;
}
/**
 * A fact about the user. `category` and `key` name it.
 */
export interface Fact {
  category: string;
  key: string;
  value: string;
  /**
   * None where the user wrote it in the memory page, or the session is gone for good.
   */
  session_id?: SessionId;
  /**
   * The message in which the user said it.
   */
  message_id?: MessageId;
  /**
   * 0 to 1; 1 where the user said or wrote it in so many words.
   */
  confidence: number;
  created_at: string;
  updated_at: string;
}
/**
 * All that is known of a user and was before.
 */
export interface MemoryExport {
  exported_at: string;
  facts: FactWithHistory[];
  summary: string | null;
}
/**
 * A fact with the values that it had before, newest first.
 */
export interface FactWithHistory {
  category: string;
  key: string;
  value: string;
  /**
   * None where the user wrote it in the memory page, or the session is gone for good.
   */
  session_id?: SessionId;
  /**
   * The message in which the user said it.
   */
  message_id?: MessageId;
  /**
   * 0 to 1; 1 where the user said or wrote it in so many words.
   */
  confidence: number;
  created_at: string;
  updated_at: string;
  history: FormerFact[];
}
/**
 * A value that a fact had before.
 */
export interface FormerFact {
  value: string;
  /**
   * None where the user wrote it in the memory page, or the session is gone for good.
   */
  session_id?: SessionId;
  /**
   * The message in which the user said it.
   */
  message_id?: MessageId;
  confidence: number;
  replaced_at: string;
}
/**
 * A fact as the user wants it.
 */
export interface FactChange {
  /**
   * 1 to 500 characters.
   */
  value: string;
}
/**
 * Where they are looked for.
 */
export interface ExtensionFolders {
  tools_dir: string;
  skills_dir: string;
  mcp_config: string;
}
/**
 * A user's tool, or one of an MCP server.
 */
export interface ExtensionTool {
  name: string;
  kind: ExtensionKind;
  state: ExtensionState;
  /**
   * What is wrong with it.
   */
  problem?: string;
  /**
   * What an allowance has to name: over everything in the folder, or everything that the
   * server says of the tool. Absent where nothing could be read.
   */
  sha256?: string;
  description: string;
  /**
   * What it says that it does.
   */
  effect?: Effect;
  /**
   * The folder of a user's tool.
   */
  folder?: string;
  /**
   * The server of an MCP tool.
   */
  server?: string;
}
/**
 * What a person saw and allows.
 */
export interface AllowRequest {
  /**
   * The tool's `sha256`, as `GET /tools` told it.
   */
  sha256: string;
}
/**
 * An MCP server as it stands.
 */
export interface McpServer {
  name: string;
  /**
   * `stdio` or `http`.
   */
  transport: string;
  state: McpServerState;
  /**
   * Since when.
   */
  since: string;
  /**
   * How often it went since it was last well for a while.
   */
  failures: number;
  /**
   * What went wrong last.
   */
  last_error?: string;
  /**
   * What of it was left out, one sentence each.
   */
  problems: string[];
  /**
   * The names of its tools, as the model calls them.
   */
  tools: string[];
  /**
   * That of its entry in the file, as `GET /mcp/{name}` tells it.
   */
  version?: string;
}
/**
 * A server as it stands in the file, without its secrets.
 */
export interface McpEntry {
  name: string;
  /**
   * Where it stands.
   */
  file: string;
  /**
   * Another one after each change, and after each start of the service.
   */
  version: string;
  command: string | null;
  /**
   * What looks like a secret is `[hidden]`.
   */
  args: string[];
  /**
   * By name; null where the value is not told. Only variables that stand in its place are.
   */
  env: {
    [k: string]: string | null;
  };
  cwd: string | null;
  /**
   * What may be a key in it is `[hidden]`.
   */
  url: string | null;
  /**
   * As `env`.
   */
  headers: {
    [k: string]: string | null;
  };
  tools: string[] | null;
  timeout_seconds: number | null;
  disabled: boolean;
}
/**
 * What an MCP server is to be: a program with `command`, or an address with `url`.
 */
export interface McpDraft {
  /**
   * A program of this machine.
   */
  command?: string;
  /**
   * One that was told with `[hidden]` in it stays what it is where it comes back so.
   */
  args?: string[];
  /**
   * By name. Null: the value that stands there stays.
   */
  env?: {
    [k: string]: string | null;
  };
  /**
   * The directory that the program starts in.
   */
  cwd?: string;
  /**
   * An address of a server over streamable HTTP; it stays what it is as `args` do.
   */
  url?: string;
  /**
   * By name. Null: the value that stands there stays, as long as the address leads to the same host.
   */
  headers?: {
    [k: string]: string | null;
  };
  /**
   * Those of its tools that are wanted, by its own names; all where absent.
   */
  tools?: string[];
  /**
   * How long one call may take.
   */
  timeout_seconds?: number;
  disabled?: boolean;
  /**
   * The `version` that `GET /mcp/{name}` told; null for a new one.
   */
  before?: string;
  /**
   * Of who asks in a browser, for a program or where an address or a header stands for a variable:
   * needed by who has one, again after ten minutes.
   */
  current_password?: string;
}
/**
 * What became of trying a server.
 */
export interface McpTrial {
  /**
   * What it offers.
   */
  tools: TriedTool[];
  /**
   * What of that was left out, and why.
   */
  problems: string[];
  /**
   * Why it could not be talked to; null where it could.
   */
  error: string | null;
}
/**
 * A tool of a server that was tried.
 */
export interface TriedTool {
  /**
   * As the model would know it.
   */
  name: string;
  description: string;
  effect: Effect;
}
/**
 * A skill: instructions for a kind of work.
 */
export interface SkillInfo {
  name: string;
  description: string;
  folder: string;
}
/**
 * The service as the page shows it.
 */
export interface SystemStatus {
  version: string;
  /**
   * The backend that the next call would go to; none where none is ready.
   */
  active: BackendKind | null;
  backends: BackendStatus[];
  /**
   * What is wrong here beside the backends (a profile that was refused, …), one sentence each.
   */
  warnings: string[];
  /**
   * The same as codes, in the same order.
   */
  warning_phrases: Phrase[];
  /**
   * The model that each profile would get now.
   */
  profile_models: ProfileModel[];
  /**
   * Models that the starter can fetch, and which of them are here.
   */
  fetchable: FetchableModel[];
  /**
   * The model that Ollama pulls, or the last one that it could not.
   */
  pull?: ModelPull;
  /**
   * What keeps tools in.
   */
  fence: Fence;
  /**
   * How much a new session may do without asking, where nobody says otherwise.
   */
  mode: ConsentMode;
}
/**
 * A model that a backend offers.
 */
export interface ModelInfo {
  name: string;
  /**
   * None where the backend does not say.
   */
  tools?: boolean;
  vision?: boolean;
  thinking?: boolean;
  /**
   * The window it was made for, in tokens.
   */
  context_window?: number;
  /**
   * Of its weights, on disk.
   */
  bytes?: number;
  /**
   * A toy: it chats, and can do nothing else.
   */
  demo?: boolean;
}
/**
 * What is wrong, and the one thing to do about it.
 */
export interface Trouble {
  problem: Phrase;
  remedy: Phrase;
}
/**
 * A profile that a session can have, and who would answer for it.
 */
export interface ProfileModel {
  profile_id: string;
  name: string;
  description: string;
  /**
   * Whether it has any, which not every model can call.
   */
  has_tools: boolean;
  /**
   * Whether a session that names none gets it.
   */
  is_default: boolean;
  /**
   * None where nobody would.
   */
  backend?: BackendKind;
  model?: string;
  /**
   * The profile's own model, or the default one of the settings, which the backend lacks.
   */
  instead_of?: string;
  /**
   * The profile's own backend, which cannot take a call.
   */
  fell_back_from?: BackendKind;
}
/**
 * A model that the starter can fetch.
 */
export interface FetchableModel {
  name: string;
  title: string;
  /**
   * Bytes on disk.
   */
  size: number;
  /**
   * Bytes of memory that it needs.
   */
  memory: number;
  demo: boolean;
  present: boolean;
  /**
   * Bytes that are here while it is being fetched.
   */
  received?: number;
  /**
   * Why the last fetch of it failed, and what to do.
   */
  problem?: string;
  /**
   * The same as a code.
   */
  phrase?: Phrase;
}
/**
 * A model that Ollama was asked to pull.
 */
export interface ModelPull {
  name: string;
  /**
   * Bytes here, of bytes in all: of the parts of which Ollama has said something.
   */
  received: number;
  total: number;
  /**
   * What it does just now, in its own words.
   */
  step: string;
  /**
   * Why it ended without the model, and what to do; none while it goes on.
   */
  problem?: string;
  /**
   * The same as a code.
   */
  phrase?: Phrase;
}
/**
 * Where the fence around tools is open (DESIGN section 7): the page shows it.
 */
export interface Fence {
  /**
   * `FS_ALLOWED_PATHS` is `*`.
   */
  files_open: boolean;
  /**
   * `TERMINAL_ALLOWED_COMMANDS` is `*`.
   */
  commands_open: boolean;
  /**
   * Why commands are not held by a sandbox, and what to do; none where they are.
   */
  sandbox?: string;
  /**
   * The same as a code.
   */
  sandbox_phrase?: Phrase;
}
/**
 * What is set up, what will be, and where it is written.
 */
export interface SettingList {
  /**
   * The file that was read, or else the one that would be.
   */
  file: string;
  /**
   * Of the file as it is now: a change has to name it.
   */
  version: string;
  /**
   * Whether there is an earlier version to put back, and nobody changed the file since.
   */
  can_undo: boolean;
  /**
   * Why Navi would not start with the file as it is now; left out where she would.
   */
  problem?: Phrase;
  settings: ShownValue[];
}
/**
 * One line of `navi config`.
 */
export interface ShownValue {
  /**
   * `section.key` in a file.
   */
  key: string;
  /**
   * The environment variable that sets it too.
   */
  variable: string;
  /**
   * What it is for.
   */
  description: string;
  /**
   * Whether its value is hidden.
   */
  secret: boolean;
  /**
   * Null where unset; `[hidden]` for a secret.
   */
  value: string | null;
  /**
   * `default`, `environment`, `command line`, or a file's path.
   */
  origin: string;
  /**
   * Whether the file sets it, be it that something else wins over that; left out where not.
   */
  in_file?: boolean;
  /**
   * Why it is changed in the file alone; left out where the page may change it.
   */
  file_only?: FileOnly;
  /**
   * What it will be at the next start; left out where that is the same.
   */
  pending?: PendingValue;
}
/**
 * What a setting will be.
 */
export interface PendingValue {
  /**
   * As the setting's.
   */
  value: string | null;
  origin: string;
}
/**
 * What is to be otherwise.
 */
export interface SettingsChange {
  /**
   * Of the file, as it was told.
   */
  version: string;
  /**
   * What each setting is to be; null: its default.
   */
  changes: {
    [k: string]: string | null;
  };
}
/**
 * What the last change is taken back from.
 */
export interface SettingsUndo {
  /**
   * Of the file, as it was told.
   */
  version: string;
}
/**
 * A server to ask for its models.
 */
export interface ModelServerTrial {
  /**
   * With or without `/v1`.
   */
  base_url: string;
  /**
   * Empty: none. Null: the one that was given for this very server before, where there is one.
   */
  api_key?: string;
}
/**
 * A server that answers.
 */
export interface ModelServerFound {
  /**
   * Where its API is.
   */
  address: string;
  models: ModelInfo[];
}
/**
 * The server to use from now on.
 */
export interface ModelServerChoice {
  /**
   * Of the settings file, as `GET /api/settings` told it.
   */
  version: string;
  base_url: string;
  /**
   * As for a trial.
   */
  api_key?: string;
  /**
   * Null: the first that it lists.
   */
  model?: string;
}
/**
 * What was found.
 */
export interface Report {
  /**
   * That of the worst.
   */
  level: Level;
  checks: Check[];
}
/**
 * One thing that was looked at.
 */
export interface Check {
  name: CheckName;
  level: Level;
  /**
   * What was found.
   */
  detail: string;
  /**
   * What to do about it; none where it is well.
   */
  remedy?: string;
  /**
   * Both as codes.
   */
  phrases: CheckPhrases;
}
/**
 * What a check says, for a page that has words of its own for it.
 */
export interface CheckPhrases {
  /**
   * One after the other.
   */
  detail: Phrase[];
  remedy?: Phrase;
}
/**
 * Which model.
 */
export interface FetchRequest {
  /**
   * One of `fetchable` in the status.
   */
  name: string;
}
/**
 * Which model Ollama is to pull, or not to pull any more.
 */
export interface PullRequest {
  /**
   * As Ollama's library has it, or another registry: `qwen3:8b`, `hf.co/owner/model:Q4_K_M`.
   */
  name: string;
}
/**
 * Whether people sign in here.
 */
export interface WaysIn {
  /**
   * Without accounts there is only the link that `navi link` prints.
   */
  accounts: boolean;
  /**
   * The page's address at which passkeys work; left out where no browser offers any.
   */
  passkeys_at?: string;
  /**
   * The name of a provider that lets people in, where there is one.
   */
  provider?: string;
  /**
   * Whom a proxy in front names, where it names one.
   */
  proxy?: string;
}
/**
 * By what somebody signs in: one of the two.
 */
export interface SignInRequest {
  name: string;
  password?: string;
  /**
   * One that was written down, in the place of the password, which was lost: it works once, and
   * another password is to be chosen.
   */
  recovery_code?: string;
}
/**
 * The other half of the cookie.
 */
export interface SignedIn {
  /**
   * The page keeps it, and sends it as `X-Navi-Key`.
   */
  key: string;
}
/**
 * An invitation, by the secret of its link.
 */
export interface InvitationRequest {
  invitation: string;
}
/**
 * What an invitation is for.
 */
export interface InvitationOffer {
  role: UserRole;
  expires_at: string;
  /**
   * Who is to choose another password; null: somebody new.
   */
  name: string | null;
  /**
   * The name of a provider by which somebody new joins, where there is one.
   */
  provider: string | null;
}
/**
 * What makes an account of an invitation.
 */
export interface AcceptRequest {
  invitation: string;
  /**
   * 1 to 64 characters; nobody else's, and none that looks like one.
   */
  name: string;
  /**
   * 10 to 200 characters.
   */
  password: string;
}
/**
 * A passkey of one's own.
 */
export interface PasskeyInfo {
  id: string;
  name: string;
  /**
   * The host that it is bound to: it works nowhere else.
   */
  host: string;
  created_at: string;
  /**
   * When somebody signed in by it last.
   */
  last_used_at: string | null;
}
/**
 * A passkey that is to be made.
 */
export interface NewPasskeyRequest {
  /**
   * 1 to 64 characters.
   */
  name: string;
  /**
   * Needed where there is one. Who has none signed in a moment ago.
   */
  current_password?: string;
}
/**
 * What the browser is to ask its authenticator.
 */
export interface PasskeyOptions {
  /**
   * For `PublicKeyCredential.parseCreationOptionsFromJSON`.
   */
  options: {
    [k: string]: unknown;
  };
}
/**
 * What the authenticator answered.
 */
export interface MadePasskeyRequest {
  /**
   * As the credential's `toJSON` writes it.
   */
  credential: {
    [k: string]: unknown;
  };
}
/**
 * What it is called from now on.
 */
export interface PasskeyChange {
  /**
   * 1 to 64 characters.
   */
  name: string;
}
/**
 * What the browser is to ask, and by what it brings the answer.
 */
export interface PasskeySignInOptions {
  ceremony: string;
  /**
   * For `PublicKeyCredential.parseRequestOptionsFromJSON`.
   */
  options: {
    [k: string]: unknown;
  };
}
/**
 * The answer, within five minutes, in the browser that asked.
 */
export interface PasskeySignInRequest {
  ceremony: string;
  /**
   * As the credential's `toJSON` writes it.
   */
  credential: {
    [k: string]: unknown;
  };
}
/**
 * Who somebody is.
 */
export interface AccountInfo {
  id: UserId;
  name: string;
  role: UserRole;
  /**
   * What they came in with is good for this.
   */
  scopes: Scope[];
  /**
   * Whether people sign in here. Where they do not, there is one user, and nothing to set up.
   */
  accounts: boolean;
  /**
   * Where there is none yet, one is to be chosen.
   */
  has_password: boolean;
  recovery_codes: number;
  passkeys: number;
  /**
   * How many accounts elsewhere let them in.
   */
  sign_ons: number;
  /**
   * The name of a provider by which people sign in, where there is one.
   */
  provider: string | null;
  /**
   * How much of what all share is theirs, and what they have of it; null where there is one
   * user.
   */
  limits: LimitsInfo | null;
}
/**
 * How a person stands to what is limited.
 */
export interface LimitsInfo {
  own: OwnLimits;
  in_force: PersonLimits;
  used: LimitsUse;
}
/**
 * What of it an admin set for one person alone; null: as the settings have it for all.
 */
export interface OwnLimits {
  runs: number | null;
  uploads: number | null;
  sessions: number | null;
  files_mb: number | null;
  /**
   * 0: as many as they like.
   */
  tokens_a_day: number | null;
  tabs: number | null;
}
/**
 * What one person has at the most.
 */
export interface PersonLimits {
  /**
   * Runs that go at once. Further ones wait.
   */
  runs: number;
  /**
   * Uploads on their way at once.
   */
  uploads: number;
  /**
   * Conversations, those that are put away with them.
   */
  sessions: number;
  /**
   * Of files that were sent in or given back, in megabytes.
   */
  files_mb: number;
  /**
   * Tokens that runs used in the last 24 hours; 0: as many as they like.
   */
  tokens_a_day: number;
  /**
   * Tabs, and programs that listen as tabs do.
   */
  tabs: number;
}
/**
 * What a person has now of what is limited.
 */
export interface LimitsUse {
  runs: number;
  uploads: number;
  sessions: number;
  file_bytes: number;
  /**
   * In the last 24 hours.
   */
  tokens_a_day: number;
  tabs: number;
}
/**
 * What is to be changed; what is left out stays.
 */
export interface AccountChangeRequest {
  /**
   * 1 to 64 characters; nobody else's, and none that looks like one.
   */
  name?: string;
  /**
   * 10 to 200 characters. All other browsers are signed out.
   */
  password?: string;
  /**
   * Needed where there is one.
   */
  current_password?: string;
}
/**
 * By what somebody shows that they are there themselves.
 */
export interface ProofRequest {
  /**
   * Needed where there is one; without one they signed in less than ten minutes ago.
   */
  current_password?: string;
}
/**
 * Codes that sign in once each, in the place of the password.
 */
export interface RecoveryCodes {
  /**
   * Told only now; those from before are void.
   */
  codes: string[];
}
/**
 * A browser that is signed in.
 */
export interface Device {
  id: string;
  /**
   * What the browser said that it is.
   */
  agent: string | null;
  address: string | null;
  created_at: string;
  /**
   * To ten minutes.
   */
  last_used_at: string | null;
  /**
   * It is the one that asks.
   */
  current: boolean;
}
/**
 * How many browsers were signed out.
 */
export interface SignedOut {
  signed_out: number;
}
/**
 * Who came in by a provider leaves there, too.
 */
export interface LeftHere {
  location: string;
}
/**
 * How somebody is to come in. The body may be left out.
 */
export interface SignOnRequest {
  /**
   * The secret of an invitation's link, for somebody new: who is not here yet joins by it, and
   * it is used up.
   */
  invitation?: string;
}
/**
 * Where a browser goes to sign in.
 */
export interface SignOnBegun {
  location: string;
  /**
   * The page keeps it until the browser comes back.
   */
  key: string;
}
/**
 * What came back with a browser.
 */
export interface SignOnAnswer {
  /**
   * As it was given when the sign-in began.
   */
  key: string;
  state: string;
  code?: string;
  iss?: string;
  /**
   * Why the provider lets nobody in.
   */
  error?: string;
}
/**
 * What a provider sends when it signed somebody out.
 */
export interface LogoutNotice {
  /**
   * Signed by the provider.
   */
  logout_token: string;
}
/**
 * An account elsewhere that lets somebody in.
 */
export interface LinkedSignOn {
  id: string;
  /**
   * Who says who they are there: a provider by its address, or the proxy in front.
   */
  iss: string;
  /**
   * Of mail, as the provider verified it.
   */
  address: string | null;
  created_at: string;
  last_used_at: string | null;
}
/**
 * Whom to share with.
 */
export interface NewSessionPerson {
  /**
   * The name by which they sign in here.
   */
  name: string;
}
/**
 * A link to look at a conversation.
 */
export interface LinkInfo {
  id: LinkId;
  created_at: string;
  expires_at: string;
}
/**
 * A link that is to be made.
 */
export interface NewLink {
  /**
   * How long it is good: 1 to 90, and 7 where it is left out.
   */
  days?: number;
}
/**
 * A link that was just made.
 */
export interface MadeLink {
  id: LinkId;
  expires_at: string;
  /**
   * What follows the page's address in the link: `#/shared/…`. Told only now.
   */
  link: string;
}
/**
 * A conversation, for whoever has a link to it.
 */
export interface SharedSession {
  session: SessionSnapshot;
  /**
   * When the link ends.
   */
  expires_at: string;
}
/**
 * A person, as an admin sees them. Nothing that they said or keep is here.
 */
export interface PersonInfo {
  id: UserId;
  name: string;
  role: UserRole;
  created_at: string;
  last_seen_at: string | null;
  has_password: boolean;
  passkeys: number;
  /**
   * What they were granted beside what all users were. An admin may all.
   */
  powers: Power[];
  /**
   * How much of what all share is theirs, and what they have of it.
   */
  limits: LimitsInfo;
  /**
   * It is the one who asks.
   */
  you: boolean;
}
/**
 * What a person becomes. What is left out stays.
 */
export interface PersonChange {
  role?: UserRole;
  /**
   * In the place of what they were granted before.
   *
   * @maxItems 200
   */
  powers?: Power[];
  /**
   * For what begins from now on: what goes on is not ended.
   */
  limits?: LimitsChange;
  /**
   * Needed for the role of an admin by who asks in a browser and has one.
   */
  current_password?: string;
}
/**
 * What of a person's own limits becomes something else. What is left out stays; null: as the
 * settings have it for all.
 */
export interface LimitsChange {
  /**
   * Runs that go at once.
   */
  runs?: number;
  /**
   * Uploads on their way at once.
   */
  uploads?: number;
  /**
   * Conversations.
   */
  sessions?: number;
  /**
   * Of all files, in megabytes.
   */
  files_mb?: number;
  /**
   * Tokens that runs use in 24 hours; 0: as many as they like.
   */
  tokens_a_day?: number;
  /**
   * Tabs, and programs that listen as tabs do.
   */
  tabs?: number;
}
/**
 * What is granted, and what could be.
 */
export interface PowersInfo {
  /**
   * What all users may use.
   */
  users: Power[];
  /**
   * What there is to grant: each kind, and the names that there are now.
   */
  grantable: Power[];
}
/**
 * What all users may use.
 */
export interface UsersPowers {
  /**
   * In the place of what they were granted before.
   *
   * @maxItems 200
   */
  users: Power[];
}
/**
 * An invitation that nobody used yet.
 */
export interface InvitationInfo {
  id: string;
  role: UserRole;
  /**
   * Whose password is to be chosen anew; null: somebody new.
   */
  person: UserId | null;
  created_at: string;
  expires_at: string;
}
/**
 * Whom to invite.
 */
export interface NewInvitation {
  role: UserRole;
  /**
   * How long it is good: 1 to 30, and 7 where it is left out.
   */
  days?: number;
  /**
   * Needed for the role of an admin by who asks in a browser and has one.
   */
  current_password?: string;
}
/**
 * An invitation that was just made.
 */
export interface MadeInvitation {
  id: string;
  role: UserRole;
  expires_at: string;
  /**
   * The whole link where Navi has a public address, else what follows the page's address in it:
   * `#invitation=…`. Told only now.
   */
  link: string;
}
/**
 * One line of the record.
 */
export interface RecordLine {
  id: number;
  at: string;
  what: Recorded;
  /**
   * Who did it, where that is known.
   */
  person: UserId | null;
  name: string | null;
  /**
   * Whom or what it concerns.
   */
  about: string | null;
  address: string | null;
}
/**
 * A token, without what opens the door.
 */
export interface TokenInfo {
  id: string;
  name: string;
  created_at: string;
  last_used_at: string | null;
  scopes: Scope[];
  /**
   * It opens nothing any more from then on; null: it lasts.
   */
  expires_at: string | null;
}
/**
 * What a token is for.
 */
export interface NewTokenRequest {
  /**
   * 1 to 100 characters.
   */
  name: string;
  /**
   * What it is good for: all but `consent`, where it is left out.
   */
  scopes?: Scope[];
  /**
   * After how many days it opens nothing any more, 1 to 3650; for ever, where it is left out.
   */
  days?: number;
  /**
   * Needed for all scopes by who asks in a browser and has one.
   */
  current_password?: string;
}
/**
 * A token that was just made.
 */
export interface CreatedToken {
  id: string;
  name: string;
  created_at: string;
  scopes: Scope[];
  expires_at: string | null;
  /**
   * Told only now: `Authorization: Bearer <token>`.
   */
  token: string;
}
/**
 * An error as it crosses a boundary: a code for programs, a sentence for a person.
 * Internals are logged where they happen and never stand in `message`.
 */
export interface NaviError {
  code: ErrorCode;
  message: string;
  /**
   * The message as a code, where the page has words of its own for it.
   */
  phrase?: Phrase;
}
/**
 * The envelope that OpenAI's clients expect, whole.
 */
export interface OpenaiError {
  error: ErrorDetails;
}
export interface ErrorDetails {
  message: string;
  type: string;
  /**
   * Always null: the message says what was wrong.
   */
  param: string | null;
  code: ErrorCode;
}
/**
 * An error as Ollama's clients read it: a text, and nothing else.
 */
export interface OllamaError {
  error: string;
}
/**
 * An error of JSON-RPC, as clients read it whatever kept their request from an answer.
 */
export interface McpError {
  jsonrpc: string;
  /**
   * That of the request, where it was read.
   */
  id: {
    [k: string]: unknown;
  };
  error: McpErrorDetails;
}
export interface McpErrorDetails {
  code: number;
  message: string;
  data?: unknown;
}
/**
 * A piece of a streamed part.
 */
export interface Delta {
  part_id: PartId;
  /**
   * How much of the part came before, in UTF-16 code units.
   */
  offset: number;
  delta: string;
  is_subagent?: boolean;
}
/**
 * A message as a person sends it, over either door.
 */
export interface UserInput {
  content: string;
  /**
   * Base64; a `data:` prefix is stripped.
   */
  images?: string[];
  files?: FileRef[];
  /**
   * The sender's own id: the same one twice is one message.
   */
  client_id?: string;
  mode?: SendMode;
}
