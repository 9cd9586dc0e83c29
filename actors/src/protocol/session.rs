//! A session as clients see it (SPEC sections 2 and 13).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;

use super::approval::{ConsentMode, PendingApproval, leave_out_answer};
use super::command::SendMode;
use super::event::WaitReason;
use super::file::AttachedFile;
use super::ids::{CallId, MessageId, RunId, SessionId, UserId};
use super::message::{Message, Role};
use super::people::PersonRef;
use super::phrase::Phrase;
use super::plan::Plan;
use super::todo::TodoItem;

/// What the session's foreground run is doing, or how the last one ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    #[default]
    Idle,
    Running,
    /// The last run was cut off by a crash or a shutdown.
    Interrupted,
    /// The last run ended with an error.
    Failed,
}

/// How a run stands in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunState {
    Running,
    Completed,
    /// Ended by its iteration or time limit.
    Limited,
    Stopped,
    Failed,
    Interrupted,
}

/// A row of the session list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    pub id: SessionId,
    pub user_id: UserId,
    pub title: String,
    pub profile_id: String,
    /// The model that was chosen for it; none where its profile's answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub pinned: bool,
    /// Put away: it stands in the list of those alone, until the next message to it.
    #[serde(default)]
    pub archived: bool,
    /// It is there for the one answer that a program asked for: no list has it, and it goes by
    /// itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ephemeral: bool,
    /// What its user files it under, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub context_token_count: u32,
    pub state: SessionState,
    /// How many requests for consent wait for an answer.
    #[serde(default, skip_serializing_if = "is_none")]
    pub asks: u32,
    /// With whom it is shared, or was: nobody may be left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Box<Shared>>,
    pub created_at: DateTime<Utc>,
    pub last_active: DateTime<Utc>,
}

/// Who is in a conversation of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shared {
    /// Whose it is.
    pub owner: PersonRef,
    /// Who else takes part.
    pub people: Vec<PersonRef>,
}

impl SessionSummary {
    /// The same as this person sees it, or, where it is none, whoever came by a link: how its
    /// owner files it is the owner's.
    #[must_use]
    pub fn seen_by(mut self, person: Option<UserId>) -> Self {
        if person != Some(self.user_id) {
            self.pinned = false;
            self.tags.clear();
        }
        if person.is_none() {
            self.shared = None;
        }
        self
    }

    /// Those who take part and do not own it.
    pub fn others(&self) -> impl Iterator<Item = UserId> {
        let people = self.shared.iter().flat_map(|shared| &shared.people);
        people.map(|person| person.id)
    }
}

/// Left out of JSON: nearly always there is none.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(asks: &u32) -> bool {
    *asks == 0
}

/// A message that waits for the run before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedMessage {
    pub message_id: MessageId,
    /// The run that will answer it.
    pub run_id: RunId,
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<AttachedFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Whether the run that goes takes it in before its next model call.
    #[serde(default)]
    pub mode: SendMode,
    /// Who wrote it, where there are accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<PersonRef>,
    pub created_at: DateTime<Utc>,
}

/// A place where the conversation was edited or an answer made anew: the message that stands
/// there now is one of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fork {
    /// The first message of the branch that is shown, at this place.
    pub message_id: MessageId,
    /// The branches that go on from here, oldest first; the one that is shown is one of them.
    pub branch_ids: Vec<u32>,
    /// The one that is shown.
    pub shown: u32,
}

/// The run that goes now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveRun {
    pub run_id: RunId,
    pub message_id: MessageId,
    pub model: String,
    pub started_at: DateTime<Utc>,
    /// What it was last told to wait for, if nothing moved since but streamed text.
    pub waiting: Option<RunWait>,
}

/// Something that a run had to say to its user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunNotice {
    /// Of the event that told it.
    pub seq: u64,
    pub at: DateTime<Utc>,
    pub code: String,
    pub message: String,
    /// The message as a code, where it is Navi's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrase: Option<Phrase>,
}

/// Why a run stands still.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunWait {
    pub reason: WaitReason,
    pub detail: String,
    /// The detail as a code, where it is Navi's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrase: Option<Phrase>,
}

/// A session with its conversation, as it stood when `last_seq` was its newest event.
/// A client that has this attaches with `?after=last_seq&epoch=epoch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSnapshot {
    #[serde(flatten)]
    pub summary: SessionSummary,
    pub messages: Vec<Message>,
    pub todo: Vec<TodoItem>,
    /// The newest plan; the status of its steps stands in `todo`.
    pub plan: Option<Plan>,
    /// What the model sees instead of the messages before `first_kept`.
    pub compression: Option<Compression>,
    /// How many messages stand before `messages`, where only the newest were asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier: u64,
    /// Where the conversation has other branches.
    pub forks: Vec<Fork>,
    pub queue: Vec<QueuedMessage>,
    pub run: Option<ActiveRun>,
    /// How much it may do without asking.
    pub mode: ConsentMode,
    /// When it first read text from outside: what goes out of this machine is asked about since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tainted_at: Option<DateTime<Utc>>,
    /// What a person is asked just now.
    pub approvals: Vec<PendingApproval>,
    /// Calls of the last run that a person may say what became of.
    pub unknown_calls: Vec<UnknownCall>,
    /// Whether `{"type":"continue"}` would do something.
    pub can_continue: bool,
    /// Why the last run failed or was interrupted.
    pub reason: Option<String>,
    /// The same as a code, where it is Navi's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_phrase: Option<Phrase>,
    /// The newest notices of the runs that are shown, oldest first.
    #[serde(default)]
    pub notices: Vec<RunNotice>,
    pub max_context_tokens: u32,
    pub last_seq: u64,
    pub epoch: i64,
}

impl SessionSnapshot {
    /// The same as this person sees it, or, where it is none, whoever came by a link: they see
    /// what is said and done, have no files, and are not told what a person is asked and answers.
    #[must_use]
    pub fn seen_by(mut self, person: Option<UserId>) -> Self {
        self.summary = self.summary.seen_by(person);
        if person.is_none() {
            // They cannot ask for what stands before what they are sent.
            self.earlier = 0;
            self.approvals.clear();
            for message in &mut self.messages {
                message.images.clear();
                message.image_urls.clear();
            }
            let results = self.messages.iter_mut().filter(|it| it.role == Role::Tool);
            let results = results.filter_map(|it| it.content.as_mut());
            let notes = self.todo.iter_mut().filter_map(|it| it.note.as_mut());
            for told in results.chain(notes) {
                leave_out_answer(told);
            }
            for message in &mut self.queue {
                message.images.clear();
            }
            let waiting = self.run.as_mut().and_then(|run| run.waiting.as_mut());
            if let Some(wait) = waiting.filter(|wait| wait.reason == WaitReason::Approval) {
                wait.detail.clear();
                wait.phrase = None;
            }
        }
        self
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A page of a conversation, and what stands beside its messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessagePage {
    /// In order. It begins with a turn where it can.
    pub messages: Vec<Message>,
    /// How many messages stand before these.
    pub earlier: u64,
    /// Where the conversation has other branches, in this page.
    pub forks: Vec<Fork>,
    /// The newest notices of the runs in this page, oldest first.
    pub notices: Vec<RunNotice>,
}

/// What stands in `context` for the old part of `messages`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compression {
    pub summary: String,
    /// The first message that the model still sees word for word; none where no message does.
    pub first_kept: Option<MessageId>,
}

/// A call that had started when Navi went down, and of which nobody has said yet what became.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnknownCall {
    pub call_id: CallId,
    pub tool: String,
    pub args: Value,
    /// The assistant message that asked for it.
    pub message_id: MessageId,
}
