//! What goes into the store and comes out of it, in no database's terms. What a session writes
//! and is read as stands in `domain/session`.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::domain::model_calls::Recipe;
use crate::domain::session::write::{ChunkRow, EventRow, Write};
use crate::protocol::approval::ConsentMode;
use crate::protocol::ids::{OwnerId, SessionId, UserId};
use crate::protocol::inspect::{CallInfo, CallReply};

/// One step of a session's history: written whole, or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    pub session_id: SessionId,
    /// Both must be the session's, or the commit is [`StoreError::Fenced`](super::StoreError::Fenced).
    pub owner: OwnerId,
    pub epoch: i64,
    pub writes: Vec<Write>,
}

/// A model call as the store has it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCall {
    pub info: CallInfo,
    pub recipe: Recipe,
    /// The request's [`seal`](crate::domain::model_calls::seal).
    pub sha256: String,
    /// The reply; of what was said before a call failed or was cut off, what was kept.
    pub reply: CallReply,
}

/// A new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    pub id: SessionId,
    pub user_id: UserId,
    pub title: String,
    pub profile_id: String,
    /// None: its profile's.
    pub model: Option<String>,
    pub mode: ConsentMode,
    /// It is there for one answer: no list has it, nobody reads it for facts, and it goes by itself.
    pub ephemeral: bool,
    pub created_at: DateTime<Utc>,
}

/// Which of a user's sessions a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Those that are not put away.
    Current,
    Archived,
}

/// One item of the log, as a tab that catches up reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogItem {
    Event(EventRow),
    Chunk(ChunkRow),
}

/// Where a page of the log ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    pub items: Vec<LogItem>,
    /// Where the next page starts; none where this was the last.
    pub next: Option<LogCursor>,
}

/// A place in the log: everything up to event `seq` was read, and of the chunks that
/// follow it those up to `chunk` (a row id; 0 for none).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogCursor {
    pub seq: u64,
    pub chunk: i64,
}

/// What part of a session's log to read: what stands after `from`, up to and including
/// event `to_seq`. Text that was streamed after that event is not part of it: its parts may
/// still be open, and then the session's actor has them whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRange {
    pub from: LogCursor,
    pub to_seq: u64,
}

/// How much one page of the log may hold. A page has at least one item, however large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    pub items: usize,
    pub bytes: usize,
}

/// What a user may do (SPEC section 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserRole {
    Admin,
    User,
}

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub name: String,
    pub role: UserRole,
    pub created_at: DateTime<Utc>,
}

/// SHA-256 of an API token or of a cookie's secret. The secret itself is never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretHash(pub [u8; 32]);

/// An API token as its owner sees it in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    pub id: Uuid,
    pub user_id: UserId,
    pub name: String,
    pub created_at: DateTime<Utc>,
    /// To the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// Whether who holds it may answer requests for consent that a program passes on.
    pub may_consent: bool,
}

/// An API token that is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    pub user_id: UserId,
    pub name: String,
    pub hash: SecretHash,
    pub may_consent: bool,
}

/// A browser that may come in without a password until `expires_at`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebLogin {
    pub hash: SecretHash,
    pub user_id: UserId,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}
