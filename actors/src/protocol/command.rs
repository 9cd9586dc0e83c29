//! What a client sends on a session's socket (SPEC section 12), and asks of sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::approval::ConsentMode;
use super::file::AttachedFile;
use super::ids::{ApprovalId, CallId, MessageId, RunId};
use super::people::PersonRef;

/// A frame from a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientFrame {
    Message(UserInput),
    Stop {
        /// What waits in the queue is not begun by it, but by a message or by `continue`.
        #[serde(default)]
        hold: bool,
        /// Only this run is stopped, and none that came after it; whichever goes where absent.
        #[serde(default)]
        run_id: Option<RunId>,
    },
    /// Goes on from an interrupted, limited or failed run, or else with what a stop held back.
    Continue {
        /// Only with what a stop held back, whatever the last run left.
        #[serde(default)]
        queue: bool,
    },
    Withdraw {
        message_id: MessageId,
    },
    EditQueued {
        message_id: MessageId,
        content: String,
    },
    Approve {
        approval_id: ApprovalId,
        decision: Decision,
        /// Why not, in the person's words, for the model: with a denial, at most 500 characters
        /// on one line.
        #[serde(default)]
        note: Option<String>,
    },
    /// What became of a call whose outcome a crash left unknown.
    ResolveCall {
        call_id: CallId,
        decision: CallDecision,
    },
    /// Changes the list of steps; the model is told before its next call.
    EditPlan(PlanEdit),
    /// Is anybody there? Scripts in a browser can neither send nor see the pings of WebSocket.
    Ping {},
}

/// What a person changes of the list of steps, over either door. `before` is the step that it
/// comes to stand before: at the end where there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "edit", rename_all = "snake_case")]
pub enum PlanEdit {
    /// It is left out.
    Skip {
        id: u32,
    },
    /// One that was skipped, or failed, is to be done after all.
    Restore {
        id: u32,
    },
    Add {
        /// One line of 1 to 500 characters.
        text: String,
        #[serde(default)]
        before: Option<u32>,
    },
    Move {
        id: u32,
        #[serde(default)]
        before: Option<u32>,
    },
    Rewrite {
        id: u32,
        /// One line of 1 to 500 characters.
        text: String,
    },
    /// It is not begun before it is released.
    Hold {
        id: u32,
    },
    Release {
        id: u32,
    },
}

/// What a person says of a call whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallDecision {
    /// It took effect.
    Done,
    /// It is to be made again when the run goes on.
    Retry,
    /// It is to be left as it is.
    Skip,
}

/// A person's answer to a request for approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Once,
    /// This call, and such calls from then on.
    Always,
    Deny,
    /// Neither this call, nor such calls from then on.
    Never,
}

/// A message as a person sends it, over either door.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserInput {
    pub content: String,
    /// Base64; a `data:` prefix is stripped.
    #[serde(default)]
    pub images: Vec<String>,
    #[serde(default)]
    pub files: Vec<FileRef>,
    /// What `files` came to when the engine looked them up. Never from outside.
    #[serde(skip)]
    pub attached: Vec<AttachedFile>,
    /// Who sends it, where there are accounts. Never from outside.
    #[serde(skip)]
    pub author: Option<PersonRef>,
    /// The sender's own id: the same one twice is one message.
    #[serde(default)]
    pub client_id: Option<String>,
    #[serde(default)]
    pub mode: SendMode,
}

/// A file that was uploaded before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileRef {
    /// What the upload returned counts; this is for who reads the frame.
    #[serde(default)]
    pub name: String,
    /// As the upload returned it.
    pub path: String,
}

/// What becomes of a message that comes while a run goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SendMode {
    /// It waits for the run's end.
    #[default]
    Queue,
    /// It is handed to the run before its next model call.
    Steer,
}

/// A message for a plain run, which has nobody to ask.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlainInput {
    #[serde(flatten)]
    pub message: UserInput,
    /// What becomes of calls that a person would be asked about.
    #[serde(default)]
    pub consent: PlainConsent,
}

/// What becomes of calls that a person would be asked about, in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlainConsent {
    /// They are denied, and the model is told.
    #[default]
    Deny,
    /// They wait for an answer from a tab or over REST, as in a streamed run.
    Ask,
    /// They are made, as in the mode `auto`; what asks even there is denied.
    Allow,
}

/// What a new session may be given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSessionRequest {
    /// The default profile where absent.
    #[serde(default)]
    pub profile_id: Option<String>,
    /// One that `GET /api/status` lists: another one is refused, unless a model server that may have
    /// it is away. The profile's where absent.
    #[serde(default)]
    pub model: Option<String>,
    /// How much it may do without asking; as the settings have it where absent.
    #[serde(default)]
    pub mode: Option<ConsentMode>,
}

/// What can be changed of a session: at least one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionChange {
    /// 1 to 200 characters.
    #[serde(default)]
    pub title: Option<String>,
    /// A run that goes has it from its next iteration on.
    #[serde(default)]
    pub profile_id: Option<String>,
    /// One that `GET /api/status` lists, from the next run on: another one is refused, unless a model
    /// server that may have it is away. Null: the profile's own. A subagent whose profile names a
    /// model has that one all the same.
    #[serde(default, deserialize_with = "even_null")]
    pub model: Option<Option<String>>,
    /// In place of those that it has: at most 10, of 1 to 40 characters.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Puts the session away, which unpins it, or brings it back.
    #[serde(default)]
    pub archived: Option<bool>,
}

/// A field that is there, be it null.
fn even_null<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(value).map(Some)
}
