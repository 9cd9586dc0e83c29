//! Rows into what they mean, and back.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::DerivePartialModel;
use uuid::Uuid;

use super::StoreError;
use super::entities::{
    branch, chunk, event, invitation, message, queued_message, record_line, run, session, user,
    web_login,
};
use super::sessions::requests_waiting;
use super::types::{
    IdentityKey, Invitation, RecordEntry, RecordRow, SecretHash, SignOn, User, WebLogin,
};
use super::values::{
    DbText, corrupt, db_time, from_db, from_json, list_from_json, list_to_json, name_of, named,
    option_from_json, to_db, to_json,
};
use crate::domain::context::ContextMessage;
use crate::domain::history::Branch;
use crate::domain::run_loop::EndReason;
use crate::domain::session::stored::StoredRun;
use crate::domain::session::write::{ChunkRow, EventRow, RunRow};
use crate::protocol::ids::{CallId, MessageId, PartId, RunId, SessionId, UserId};
use crate::protocol::message::Message;
use crate::protocol::people::{PersonRef, Scopes};
use crate::protocol::session::{QueuedMessage, RunState, SessionState, SessionSummary, Shared};

/// Without its ordinal and, where it is none, its branch: the session's row gives them out.
pub(super) fn message_to_row(
    session_id: SessionId,
    message: Message,
    branch_id: Option<u32>,
) -> Result<message::ActiveModel, StoreError> {
    Ok(message::ActiveModel {
        id: Set(message.id.0),
        session_id: Set(session_id.0),
        ordinal: NotSet,
        run_id: Set(message.run_id.0),
        role: Set(name_of(&message.role)?),
        content: Set(message.content.map(Into::into)),
        images: Set(list_to_json(&message.images)?),
        files: Set(list_to_json(&message.files)?),
        tool_calls: Set(list_to_json(&message.tool_calls)?),
        tool_call_id: Set(message.tool_call_id.map(|id| id.0.into())),
        name: Set(message.name.map(Into::into)),
        outcome: Set(message.outcome.as_ref().map(name_of).transpose()?),
        duration_ms: Set(message.duration_ms.map(to_db).transpose()?),
        thinking: Set(message.thinking.map(Into::into)),
        state: Set(name_of(&message.state)?),
        is_summary: Set(message.is_summary),
        is_plan: Set(message.is_plan),
        client_id: Set(message.client_id.map(Into::into)),
        created_at: Set(db_time(message.created_at)),
        branch_id: branch_id.map_or(NotSet, |id| Set(id.into())),
        outside: Set(message.outside),
        author_id: Set(message.author.as_ref().map(|author| author.id.0)),
        author_name: Set(message.author.map(|author| author.name.into())),
        names_author: Set(message.names_author),
    })
}

/// With its ordinal.
pub(super) fn numbered_message(row: message::Model) -> Result<(u64, Message), StoreError> {
    let ordinal = from_db("messages.ordinal", row.ordinal)?;
    message_from_row(row).map(|message| (ordinal, message))
}

pub(super) fn message_from_row(row: message::Model) -> Result<Message, StoreError> {
    Ok(Message {
        id: MessageId(row.id),
        run_id: RunId(row.run_id),
        role: named("messages.role", row.role)?,
        content: row.content.map(|text| text.0),
        images: list_from_json("messages.images", row.images.as_deref())?,
        image_urls: Vec::new(),
        files: list_from_json("messages.files", row.files.as_deref())?,
        tool_calls: list_from_json("messages.tool_calls", row.tool_calls.as_deref())?,
        tool_call_id: row.tool_call_id.map(|text| CallId(text.0)),
        name: row.name.map(|text| text.0),
        outcome: row
            .outcome
            .map(|name| named("messages.outcome", name))
            .transpose()?,
        decision: None,
        outside: row.outside,
        duration_ms: row
            .duration_ms
            .map(|ms| from_db("messages.duration_ms", ms))
            .transpose()?,
        thinking: row.thinking.map(|text| text.0),
        state: named("messages.state", row.state)?,
        is_summary: row.is_summary,
        is_plan: row.is_plan,
        client_id: row.client_id.map(|text| text.0),
        author: person_ref(row.author_id, row.author_name),
        names_author: row.names_author,
        created_at: row.created_at,
    })
}

/// A message as it will be read, once it is written.
pub(super) fn as_read(message: &Arc<Message>) -> ContextMessage {
    let created_at = db_time(message.created_at);
    let is_same = message.decision.is_none()
        && message.image_urls.is_empty()
        && message.created_at == created_at;
    if is_same {
        return Arc::clone(message).into();
    }
    let as_read = Message {
        image_urls: Vec::new(),
        decision: None,
        created_at,
        ..Message::clone(message)
    };
    as_read.into()
}

/// Somebody who is named beside their id.
pub(super) fn person_ref(id: Option<Uuid>, name: Option<DbText>) -> Option<PersonRef> {
    let (id, name) = id.zip(name)?;
    Some(PersonRef {
        id: UserId(id),
        name: name.0,
    })
}

pub(super) fn queued_to_row(
    session_id: SessionId,
    message: QueuedMessage,
) -> Result<queued_message::ActiveModel, StoreError> {
    Ok(queued_message::ActiveModel {
        id: NotSet,
        session_id: Set(session_id.0),
        message_id: Set(message.message_id.0),
        run_id: Set(message.run_id.0),
        content: Set(message.content.into()),
        images: Set(list_to_json(&message.images)?),
        files: Set(list_to_json(&message.files)?),
        client_id: Set(message.client_id.map(Into::into)),
        created_at: Set(db_time(message.created_at)),
        mode: Set(name_of(&message.mode)?),
        author_id: Set(message.author.as_ref().map(|author| author.id.0)),
        author_name: Set(message.author.map(|author| author.name.into())),
    })
}

pub(super) fn queued_from_row(row: queued_message::Model) -> Result<QueuedMessage, StoreError> {
    Ok(QueuedMessage {
        message_id: MessageId(row.message_id),
        run_id: RunId(row.run_id),
        content: row.content.0,
        images: list_from_json("queued_messages.images", row.images.as_deref())?,
        files: list_from_json("queued_messages.files", row.files.as_deref())?,
        client_id: row.client_id.map(|text| text.0),
        mode: named("queued_messages.mode", row.mode)?,
        author: person_ref(row.author_id, row.author_name),
        created_at: row.created_at,
    })
}

pub(super) fn branch_to_row(
    session_id: SessionId,
    branch: &Branch,
    created_at: DateTime<Utc>,
) -> Result<branch::ActiveModel, StoreError> {
    Ok(branch::ActiveModel {
        session_id: Set(session_id.0),
        id: Set(branch.id.into()),
        parent_id: Set(branch.parent_id.map(Into::into)),
        fork_ordinal: Set(to_db(branch.fork_ordinal)?),
        context: Set(to_json(&branch.context)?),
        created_at: Set(db_time(created_at)),
    })
}

pub(super) fn branch_from_row(row: &branch::Model) -> Result<Branch, StoreError> {
    Ok(Branch {
        id: from_db("branches.id", row.id)?,
        parent_id: row
            .parent_id
            .map(|id| from_db("branches.parent_id", id))
            .transpose()?,
        fork_ordinal: from_db("branches.fork_ordinal", row.fork_ordinal)?,
        context: from_json("branches.context", &row.context)?,
    })
}

pub(super) fn run_to_row(
    session_id: SessionId,
    run: RunRow,
) -> Result<run::ActiveModel, StoreError> {
    Ok(run::ActiveModel {
        id: Set(run.run_id.0),
        session_id: Set(session_id.0),
        parent_run_id: Set(run.parent_run_id.map(|id| id.0)),
        call_id: Set(run.call_id.map(|id| id.0.into())),
        message_id: Set(run.message_id.0),
        profile_id: Set(run.profile_id.into()),
        backend: Set(run.backend.into()),
        model: Set(run.model.into()),
        state: Set(name_of(&RunState::Running)?),
        reason: Set(None),
        reason_phrase: Set(None),
        iterations: Set(0),
        prompt_tokens: Set(0),
        completion_tokens: Set(0),
        cached_tokens: Set(0),
        started_at: Set(db_time(run.started_at)),
        ended_at: Set(None),
        leaked_calls: Set(0),
        loop_state: Set(None),
    })
}

pub(super) fn run_from_row(row: run::Model) -> Result<StoredRun, StoreError> {
    Ok(StoredRun {
        row: RunRow {
            run_id: RunId(row.id),
            parent_run_id: row.parent_run_id.map(RunId),
            call_id: row.call_id.map(|id| CallId(id.0)),
            message_id: MessageId(row.message_id),
            profile_id: row.profile_id.0,
            backend: row.backend.0,
            model: row.model.0,
            started_at: row.started_at,
        },
        state: named("runs.state", row.state)?,
        reason: reason_from_row(row.reason, row.reason_phrase)?,
        loop_state: row.loop_state.map(|text| text.0),
    })
}

/// Why a run ended as it did.
pub(super) fn reason_from_row(
    text: Option<DbText>,
    phrase: Option<DbText>,
) -> Result<Option<EndReason>, StoreError> {
    let Some(text) = text else {
        return Ok(None);
    };
    Ok(Some(EndReason {
        text: text.0,
        phrase: option_from_json("runs.reason_phrase", phrase)?,
    }))
}

pub(super) fn event_to_row(
    session_id: SessionId,
    event: EventRow,
) -> Result<event::ActiveModel, StoreError> {
    Ok(event::ActiveModel {
        session_id: Set(session_id.0),
        seq: Set(to_db(event.seq)?),
        run_id: Set(event.run_id.map(|id| id.0)),
        kind: Set(event.kind),
        json: Set(event.json.into()),
        at: Set(db_time(event.at)),
        message_id: Set(None),
        text_at: Set(None),
        text_bytes: Set(None),
    })
}

pub(super) fn event_from_row(row: event::Model) -> Result<EventRow, StoreError> {
    Ok(EventRow {
        seq: from_db("events.seq", row.seq)?,
        run_id: row.run_id.map(RunId),
        kind: row.kind,
        json: row.json.0,
        at: row.at,
    })
}

pub(super) fn chunk_to_row(
    session_id: SessionId,
    chunk: ChunkRow,
) -> Result<chunk::ActiveModel, StoreError> {
    let (offset, pieces) = match chunk.goes_on {
        Some(row) => (row.offset, row.pieces + 1),
        None => (chunk.offset, 1),
    };
    Ok(chunk::ActiveModel {
        id: NotSet,
        session_id: Set(session_id.0),
        after_seq: Set(to_db(chunk.after_seq)?),
        run_id: Set(chunk.run_id.0),
        message_id: Set(chunk.message_id.0),
        part_id: Set(chunk.part_id.0.into()),
        kind: Set(name_of(&chunk.kind)?),
        offset: Set(to_db(offset)?),
        text: Set(chunk.text.into()),
        parent_run_id: Set(chunk.parent_run_id.map(|id| id.0)),
        text_bytes: Set(None),
        pieces: Set(pieces.into()),
    })
}

pub(super) fn chunk_from_row(row: chunk::Model) -> Result<ChunkRow, StoreError> {
    Ok(ChunkRow {
        after_seq: from_db("chunks.after_seq", row.after_seq)?,
        run_id: RunId(row.run_id),
        part_id: PartId(row.part_id.0),
        kind: named("chunks.kind", row.kind)?,
        message_id: MessageId(row.message_id),
        offset: from_db("chunks.offset", row.offset)?,
        text: row.text.0,
        parent_run_id: row.parent_run_id.map(RunId),
        goes_on: None,
    })
}

/// What the session list needs of a session, without its todo list and notes.
#[derive(Debug, DerivePartialModel)]
#[sea_orm(entity = "session::Entity")]
pub(super) struct SummaryRow {
    pub(super) id: Uuid,
    pub(super) user_id: Uuid,
    pub(super) title: DbText,
    pub(super) profile_id: DbText,
    pub(super) model: Option<DbText>,
    pub(super) pinned: bool,
    pub(super) archived: bool,
    pub(super) ephemeral: bool,
    pub(super) tags: String,
    pub(super) shared_at: Option<DateTime<Utc>>,
    pub(super) context_token_count: i64,
    pub(super) created_at: DateTime<Utc>,
    pub(super) last_active: DateTime<Utc>,
    /// That of the newest foreground run.
    #[sea_orm(from_expr = "run::Column::State")]
    pub(super) run_state: Option<String>,
    /// How many requests for consent wait for an answer.
    #[sea_orm(from_expr = "requests_waiting()")]
    pub(super) asks: i64,
}

pub(super) fn summary_from_row(row: SummaryRow) -> Result<SessionSummary, StoreError> {
    let last_run: Option<RunState> = row
        .run_state
        .map(|name| named("runs.state", name))
        .transpose()?;
    Ok(SessionSummary {
        id: SessionId(row.id),
        user_id: UserId(row.user_id),
        title: row.title.0,
        profile_id: row.profile_id.0,
        model: row.model.map(|model| model.0),
        pinned: row.pinned,
        archived: row.archived,
        ephemeral: row.ephemeral,
        tags: from_json("sessions.tags", &row.tags)?,
        context_token_count: from_db("sessions.context_token_count", row.context_token_count)?,
        state: session_state(last_run),
        asks: from_db("approvals", row.asks)?,
        shared: row.shared_at.map(|_| Box::new(nobody_yet(row.user_id))),
        created_at: row.created_at,
        last_active: row.last_active,
    })
}

/// Who is in it, the store reads in (`shares::fill`).
fn nobody_yet(owner: Uuid) -> Shared {
    Shared {
        owner: PersonRef {
            id: UserId(owner),
            name: String::new(),
        },
        people: Vec::new(),
    }
}

fn session_state(last_run: Option<RunState>) -> SessionState {
    match last_run {
        Some(RunState::Running) => SessionState::Running,
        Some(RunState::Interrupted) => SessionState::Interrupted,
        Some(RunState::Failed) => SessionState::Failed,
        Some(RunState::Completed | RunState::Limited | RunState::Stopped) | None => {
            SessionState::Idle
        }
    }
}

pub(super) fn hash_from(bytes: Vec<u8>) -> Result<SecretHash, StoreError> {
    let hash = bytes.try_into().map(SecretHash);
    hash.map_err(|bytes: Vec<u8>| corrupt("a hash", format!("{} bytes are none", bytes.len())))
}

pub(super) fn scopes_from(text: &str) -> Result<Scopes, StoreError> {
    text.parse()
        .map_err(|problem: String| corrupt("api_tokens.scopes", problem))
}

pub(super) fn login_from_row(row: web_login::Model) -> Result<WebLogin, StoreError> {
    Ok(WebLogin {
        hash: hash_from(row.hash)?,
        user_id: UserId(row.user_id),
        created_at: row.created_at,
        expires_at: row.expires_at,
        agent: row.agent.map(|text| text.0),
        address: row.address.map(|text| text.0),
        last_used_at: row.last_used_at,
        sign_on: row.iss.zip(row.sub).map(|(iss, sub)| SignOn {
            key: IdentityKey {
                iss: iss.0,
                sub: sub.0,
            },
            sid: row.sid.map(|text| text.0),
            id_token: row.id_token.map(|text| text.0),
        }),
    })
}

pub(super) fn invitation_from_row(row: invitation::Model) -> Result<Invitation, StoreError> {
    Ok(Invitation {
        id: row.id,
        role: named("invitations.role", row.role)?,
        user_id: row.user_id.map(UserId),
        made_by: row.made_by.map(UserId),
        created_at: row.created_at,
        expires_at: row.expires_at,
    })
}

pub(super) fn record_from_row(row: record_line::Model) -> Result<RecordRow, StoreError> {
    Ok(RecordRow {
        id: row.id,
        at: row.at,
        entry: RecordEntry {
            what: named("record.what", row.what)?,
            user_id: row.user_id.map(UserId),
            name: row.name.map(|text| text.0),
            about: row.about.map(|text| text.0),
            address: row.address.map(|text| text.0),
        },
    })
}

pub(super) fn user_from_row(row: user::Model) -> Result<User, StoreError> {
    Ok(User {
        id: UserId(row.id),
        name: row.name.0,
        role: named("users.role", row.role)?,
        created_at: row.created_at,
    })
}
