//! Text of messages that the log tells too: it stands in the message, and the log refers to it.
//!
//! An event keeps its bytes with that text taken out, and where it was; a piece of a streamed
//! part that is over keeps its place in the text.

use std::collections::HashMap;

use sea_orm::ActiveValue::{self, Set};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::StoreError;
use super::entities::{chunk, event, message};
use super::values::{DbText, corrupt, from_db, named};
use crate::domain::session::change::Closed;
use crate::protocol::event::{PartKind, behind_utf16};

/// A reference takes about this much room itself.
const MIN_BYTES: usize = 64;

/// Which of a message's texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Content,
    Thinking,
}

/// The field of an event of this kind that says what a message says.
fn field(kind: &str) -> Option<(&'static str, Text)> {
    match kind {
        "message_accepted" | "stream_end" => Some(("content", Text::Content)),
        "plan_ready" => Some(("plan", Text::Content)),
        "tool_call" => Some(("result", Text::Content)),
        "turn_thinking" => Some(("thinking", Text::Thinking)),
        _ => None,
    }
}

/// Takes what one of these messages says out of an event. What is left is JSON still, with an
/// empty text.
pub(super) fn refer(event: &mut event::ActiveModel, messages: &[message::ActiveModel]) {
    let (ActiveValue::Set(kind), ActiveValue::Set(json)) = (&event.kind, &event.json) else {
        return;
    };
    let Some((name, text)) = field(kind) else {
        return;
    };
    let found = messages.iter().find_map(|message| {
        let said = match text {
            Text::Content => &message.content,
            Text::Thinking => &message.thinking,
        };
        let (ActiveValue::Set(Some(said)), ActiveValue::Set(id)) = (said, &message.id) else {
            return None;
        };
        let inner = Some(quoted(&said.0)).filter(|inner| inner.len() >= MIN_BYTES)?;
        let before = format!("\"{name}\":\"");
        let at = json.0.find(&format!("{before}{inner}\""))? + before.len();
        Some((*id, at, inner.len()))
    });
    let Some((id, at, bytes)) = found else {
        return;
    };
    let (Ok(text_at), Ok(text_bytes)) = (i64::try_from(at), i64::try_from(bytes)) else {
        return;
    };
    let mut rest = json.0.clone();
    rest.replace_range(at..at + bytes, "");
    event.json = Set(DbText(rest));
    event.message_id = Set(Some(id));
    event.text_at = Set(Some(text_at));
    event.text_bytes = Set(Some(text_bytes));
}

/// A text as it stands in JSON, between its quotation marks.
fn quoted(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap_or_default();
    let inner = json.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    inner.unwrap_or_default().to_owned()
}

/// What messages say.
#[derive(Debug, Default)]
pub(super) struct HeldTexts(HashMap<Uuid, (Option<DbText>, Option<DbText>)>);

impl HeldTexts {
    /// What those of these messages say of which a part is closed.
    pub(super) fn of_rows(messages: &[message::ActiveModel], closed: &[Closed]) -> Self {
        if closed.is_empty() {
            return Self::default();
        }
        let said = messages.iter().filter_map(|message| {
            let texts = (&message.id, &message.content, &message.thinking);
            let (ActiveValue::Set(id), ActiveValue::Set(content), ActiveValue::Set(thinking)) =
                texts
            else {
                return None;
            };
            let is_closed = closed
                .iter()
                .any(|it| matches!(it, Closed::Message(_, held) if held.0 == *id));
            is_closed.then(|| (*id, (content.clone(), thinking.clone())))
        });
        Self(said.collect())
    }

    /// Reads what the others of these messages say.
    pub(super) async fn read_others(
        &mut self,
        db: &impl ConnectionTrait,
        mut ids: Vec<Uuid>,
    ) -> Result<(), sea_orm::DbErr> {
        ids.retain(|id| !self.0.contains_key(id));
        self.0.extend(Self::read(db, ids).await?.0);
        Ok(())
    }

    pub(super) async fn read(
        db: &impl ConnectionTrait,
        mut ids: Vec<Uuid>,
    ) -> Result<Self, sea_orm::DbErr> {
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(Self::default());
        }
        let rows: Vec<(Uuid, Option<DbText>, Option<DbText>)> = message::Entity::find()
            .select_only()
            .columns([
                message::Column::Id,
                message::Column::Content,
                message::Column::Thinking,
            ])
            .filter(message::Column::Id.is_in(ids))
            .into_tuple()
            .all(db)
            .await?;
        let said = rows.into_iter();
        Ok(Self(
            said.map(|(id, content, thinking)| (id, (content, thinking)))
                .collect(),
        ))
    }

    /// Those that these rows of the log refer to.
    pub(super) async fn of_log(
        db: &impl ConnectionTrait,
        events: &[event::Model],
        chunks: &[chunk::Model],
    ) -> Result<Self, sea_orm::DbErr> {
        let told = events.iter().filter_map(|event| event.message_id);
        let streamed = chunks.iter().filter(|chunk| is_reference(chunk));
        let ids = told.chain(streamed.map(|chunk| chunk.message_id));
        Self::read(db, ids.collect()).await
    }

    fn of(&self, id: Uuid, text: Text) -> Option<&str> {
        let (content, thinking) = self.0.get(&id)?;
        let said = match text {
            Text::Content => content,
            Text::Thinking => thinking,
        };
        said.as_ref().map(|said| said.0.as_str())
    }

    /// The text of a part from `offset` on, in UTF-16 code units, where the message holds it.
    pub(super) fn part(&self, id: Uuid, kind: PartKind, offset: u64) -> Option<&str> {
        Some(behind_utf16(self.of(id, text_of(kind)?)?, offset))
    }

    /// Gives an event its text again.
    pub(super) fn complete_event(&self, row: &mut event::Model) -> Result<(), StoreError> {
        let (Some(id), Some(at)) = (row.message_id, row.text_at) else {
            return Ok(());
        };
        let at: usize = from_db("events.text_at", at)?;
        let missing = || corrupt("events.message_id", format!("message {id} does not say it"));
        let (_, text) = field(&row.kind).ok_or_else(missing)?;
        let said = self.of(id, text).ok_or_else(missing)?;
        if !row.json.0.is_char_boundary(at) {
            return Err(corrupt("events.text_at", at));
        }
        row.json.0.insert_str(at, &quoted(said));
        Ok(())
    }

    /// Gives a piece of a part its text again.
    pub(super) fn complete_chunk(&self, row: &mut chunk::Model) -> Result<(), StoreError> {
        if !is_reference(row) {
            return Ok(());
        }
        let bytes: usize = from_db("chunks.text_bytes", row.text_bytes.unwrap_or_default())?;
        let kind = named("chunks.kind", row.kind.clone())?;
        let offset = from_db("chunks.offset", row.offset)?;
        let said = self.part(row.message_id, kind, offset);
        let said = said.and_then(|said| said.get(..bytes));
        let id = row.message_id;
        row.text = said
            .ok_or_else(|| corrupt("chunks.message_id", format!("message {id} does not say it")))?
            .into();
        Ok(())
    }
}

fn text_of(kind: PartKind) -> Option<Text> {
    match kind {
        PartKind::Text => Some(Text::Content),
        PartKind::Thinking => Some(Text::Thinking),
        PartKind::ToolOutput => None,
    }
}

fn is_reference(chunk: &chunk::Model) -> bool {
    chunk.text_bytes.is_some_and(|bytes| bytes > 0)
}
