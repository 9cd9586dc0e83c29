//! What goes into the store and comes out of it, in no database's terms. What a session writes
//! and is read as stands in `domain/session`.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::domain::model_calls::Recipe;
use crate::domain::session::write::{ChunkRow, EventRow, Write};
use crate::domain::sharing::Reach;
use crate::protocol::approval::ConsentMode;
use crate::protocol::ids::{LinkId, OwnerId, SessionId, UserId};
use crate::protocol::inspect::{CallInfo, CallReply};
use crate::protocol::people::{Recorded, Scopes, UserRole};

/// One step of a session's history: written whole, or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    pub session_id: SessionId,
    /// Both must be the session's, or the commit is [`StoreError::Fenced`](super::StoreError::Fenced).
    pub owner: OwnerId,
    pub epoch: i64,
    pub writes: Vec<Write>,
}

impl Commit {
    /// Whether it only logs streamed text: that comes five times a second, and nobody waits for it.
    #[must_use]
    pub fn is_text(&self) -> bool {
        let mut writes = self.writes.iter();
        writes.all(|write| matches!(write, Write::Chunk(_)))
    }
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

/// A session that somebody reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whose it is.
    pub owner: UserId,
    pub reach: Reach,
}

/// A link by which a session is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRow {
    pub id: LinkId,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
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

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub name: String,
    pub role: UserRole,
    pub created_at: DateTime<Utc>,
}

/// A person with what an admin sees of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub user: User,
    /// Whether they can sign in by one.
    pub has_password: bool,
    /// How many they have.
    pub passkeys: u64,
    /// When a browser or a token of theirs was last seen.
    pub last_seen_at: Option<DateTime<Utc>>,
}

/// What a key opens the door to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyOwner {
    pub user: UserId,
    pub role: UserRole,
    pub scopes: Scopes,
    /// A login that a proxy in front made: it is good only beside the proxy's word.
    pub by_proxy: bool,
}

/// SHA-256 of an API token or of a cookie's secret. The secret itself is never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    pub scopes: Scopes,
    /// It opens nothing any more from then on.
    pub expires_at: Option<DateTime<Utc>>,
}

/// An API token that is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    pub user_id: UserId,
    pub name: String,
    pub hash: SecretHash,
    pub scopes: Scopes,
    pub expires_at: Option<DateTime<Utc>>,
}

/// A browser that may come in without a password until `expires_at`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebLogin {
    pub hash: SecretHash,
    pub user_id: UserId,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// What it says that it is.
    pub agent: Option<String>,
    /// From where it came.
    pub address: Option<String>,
    /// To the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// By whose word, where a provider or a proxy made it.
    pub sign_on: Option<SignOn>,
}

/// By what somebody signed in elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignOn {
    pub key: IdentityKey,
    /// The provider's own session.
    pub sid: Option<String>,
    /// What the provider said, by which it knows whom to sign out.
    pub id_token: Option<String>,
}

/// Who says who somebody is, and what they call them. Never an address of mail, which may be
/// another's tomorrow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdentityKey {
    pub iss: String,
    pub sub: String,
}

impl IdentityKey {
    /// What stands in the place of an issuer, which is a URL, where a proxy in front says who
    /// somebody is.
    pub const PROXY: &str = "proxy";

    /// Whether a proxy in front says so.
    pub fn is_by_proxy(&self) -> bool {
        self.iss == Self::PROXY
    }
}

/// Who a person is to somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub id: Uuid,
    pub user_id: UserId,
    pub key: IdentityKey,
    /// Of mail, as the provider verified it when they came in last.
    pub address: Option<String>,
    pub created_at: DateTime<Utc>,
    pub last_used_at: Option<DateTime<Utc>>,
}

/// A link that lets somebody choose a name and a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    pub id: Uuid,
    pub role: UserRole,
    /// Whose password is to be chosen anew; none: somebody who is not here yet.
    pub user_id: Option<UserId>,
    /// The admin with whom it goes; none: it was made on the machine itself.
    pub made_by: Option<UserId>,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

/// One line of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRow {
    pub id: i64,
    pub at: DateTime<Utc>,
    pub entry: RecordEntry,
}

/// What the record says: never what was said in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordEntry {
    pub what: Recorded,
    /// Who did it, where that is known.
    pub user_id: Option<UserId>,
    /// The name that they had, or gave.
    pub name: Option<String>,
    /// Whom or what it concerns.
    pub about: Option<String>,
    pub address: Option<String>,
}
