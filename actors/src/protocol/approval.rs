//! Consent: what a person is asked before a call, and what they answer (DESIGN section 6).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::Decision;
use super::ids::{ApprovalId, CallId, RuleId, RunId, SessionId};
use super::people::PersonRef;
use super::phrase::{Label, Phrase};
use super::tool::Effect;

/// How much a session may do without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsentMode {
    /// Whatever changes something is asked about.
    Ask,
    /// Changes inside the workspace are made; what leaves it or the machine is asked about.
    #[default]
    Edits,
    /// Nothing is asked about, but what a rule forbids or what outside text may have led to.
    Auto,
}

/// How a detail of a request is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DetailKind {
    /// A value, as in a directory or a host.
    Text,
    /// Exactly what would be run or sent.
    Code,
    /// A unified diff.
    Diff,
}

/// A part of what would be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Detail {
    /// A word or two, as in `command` or `directory`.
    pub label: String,
    /// The same as a code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Label>,
    pub kind: DetailKind,
    pub text: String,
    /// The text as a code, where it is Navi's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrase: Option<Phrase>,
}

impl Detail {
    /// A value.
    #[must_use]
    pub fn text(label: Label, text: impl Into<String>) -> Self {
        Self {
            label: label.english().to_owned(),
            code: Some(label),
            kind: DetailKind::Text,
            text: text.into(),
            phrase: None,
        }
    }

    /// A value in Navi's own words.
    #[must_use]
    pub fn words(label: Label, phrase: impl Into<Phrase>) -> Self {
        let phrase = phrase.into();
        Self {
            phrase: Some(phrase.clone()),
            ..Self::text(label, phrase.to_string())
        }
    }

    /// Exactly what would be run or sent.
    #[must_use]
    pub fn code(label: Label, code: impl Into<String>) -> Self {
        Self {
            kind: DetailKind::Code,
            ..Self::text(label, code)
        }
    }
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequest {
    /// One line: what would be done, as in "run `cargo test`".
    pub summary: String,
    pub effect: Effect,
    /// Why it is asked about, in a sentence.
    pub reason: String,
    pub details: Vec<Detail>,
    /// What "always" would allow and "never" forbid from then on, in a few words; none where
    /// neither can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
    /// The same as codes; none in what was asked before there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrases: Option<RequestPhrases>,
}

impl ApprovalRequest {
    /// What would be done, as it is said elsewhere.
    #[must_use]
    pub fn summary_phrase(&self) -> Phrase {
        let phrases = self.phrases.as_ref();
        phrases.map_or_else(
            || Phrase::plain(&self.summary),
            |phrases| phrases.summary.clone(),
        )
    }
}

/// What a request says, for a page that has words of its own for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestPhrases {
    pub summary: Phrase,
    /// One after the other.
    pub reason: Vec<Phrase>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<Phrase>,
}

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// A person, in any tab or over REST.
    User,
    /// Nobody, in time.
    Timeout,
    /// The run was stopped, or ended, before anyone did.
    Stop,
}

/// A request that nobody has answered yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingApproval {
    pub approval_id: ApprovalId,
    pub run_id: RunId,
    pub call_id: CallId,
    pub tool: String,
    pub request: ApprovalRequest,
    pub requested_at: DateTime<Utc>,
    /// When it counts as denied.
    pub expires_at: DateTime<Utc>,
    /// Whether a child of the session's run asks; it goes with its process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_subagent: bool,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resolution {
    pub decision: Decision,
    pub by: DecidedBy,
}

/// Whether something may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    Allow,
    Deny,
}

impl Decision {
    /// What the answer comes to for the call that it is about.
    #[must_use]
    pub fn permission(self) -> Permission {
        match self {
            Self::Once | Self::Always => Permission::Allow,
            Self::Deny | Self::Never => Permission::Deny,
        }
    }

    /// What the rule says that it makes, where it makes one.
    #[must_use]
    pub fn rule(self) -> Option<Permission> {
        matches!(self, Self::Always | Self::Never).then(|| self.permission())
    }
}

/// By whom or what a call was allowed or denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermittedBy {
    /// A person who was asked about this very call.
    User,
    /// A rule that a person made before.
    Rule,
    /// The session's mode, or that nobody could be asked.
    Mode,
    Timeout,
    Stop,
}

impl From<DecidedBy> for PermittedBy {
    fn from(by: DecidedBy) -> Self {
        match by {
            DecidedBy::User => Self::User,
            DecidedBy::Timeout => Self::Timeout,
            DecidedBy::Stop => Self::Stop,
        }
    }
}

/// What a person allowed or forbade once and for all: calls of one tool with one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConsentRule {
    pub id: RuleId,
    pub tool: String,
    /// What it covers, for a person.
    pub words: String,
    /// The same as a code; none in a rule from before there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrase: Option<Phrase>,
    pub decision: Permission,
    pub created_at: DateTime<Utc>,
}

/// What a line of the list of what was allowed says, for a page that has words of its own for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryPhrases {
    pub summary: Phrase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Phrase>,
}

/// A line of the list of what was allowed, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConsentEntry {
    /// Grows with time; a page's place in the list.
    pub id: i64,
    pub at: DateTime<Utc>,
    /// It may have been deleted since.
    pub session_id: SessionId,
    pub run_id: RunId,
    pub call_id: CallId,
    pub tool: String,
    pub effect: Effect,
    pub summary: String,
    pub decision: Permission,
    pub by: PermittedBy,
    /// What the rule covers that decided, where one did; it may have been deleted since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The same as codes; none in lines from before there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrases: Option<EntryPhrases>,
    /// Why not, in the words of the person who denied it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who answered, where a person did and there are accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<PersonRef>,
}

/// How the result begins of a call that a person did not allow. Why not may follow, in their words.
pub const NOT_ALLOWED: &str = "the user did not allow this: ";

/// Such a result for whoever is told of no answers. It begins as the others do.
const NOT_TOLD: &str = "the user did not allow this: who looks by a link is told no more";

/// Leaves out of such a result what the person said, and says whether it is one. Where somebody
/// else's words begin so, they are left out, too: nobody is told too much.
pub fn leave_out_answer(result: &mut String) -> bool {
    let is_one = result.starts_with(NOT_ALLOWED);
    if is_one {
        NOT_TOLD.clone_into(result);
    }
    is_one
}
