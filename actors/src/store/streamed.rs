//! What is left in the log of a streamed part that is over.
//!
//! While it is open it stands there as it came, in rows that take in the next piece until they are
//! full (`session/log_rows`). Afterwards a row says, for each stretch between two events, where in
//! the message it stands. Text that no message holds
//! (a subagent's, a tool's output) stays, in one row a stretch. Long text stays as it came.

use std::collections::HashMap;

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, Func};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect,
    QueryTrait, UpdateMany,
};

use super::batch::WriteError;
use super::entities::chunk;
use super::held_text::HeldTexts;
use super::trip::Trip;
use super::values::named;
use crate::domain::session::change::Closed;
use crate::protocol::event::{PartKind, utf16_len};
use crate::protocol::ids::PartId;

/// How many parts are looked for at a time.
const AT_ONCE: usize = 50;

/// The longest part that is settled, in bytes: what refers to a message has all of its text read,
/// for each page of the log and each tab that reads one.
const LONG_BYTES: i64 = 256 * 1024;

/// Takes the pieces of these parts out of the log, when all that is on its way is written, and puts
/// there what is to stand for them, under the number of the last of them. `held` has what messages
/// of the same commit say.
pub(super) async fn settle(
    mut trip: Trip<'_>,
    closed: &[Closed],
    mut held: HeldTexts,
) -> Result<(), WriteError> {
    for some in closed.chunks(AT_ONCE) {
        let of_parts = some
            .iter()
            .fold(Condition::any(), |any, closed| any.add(pieces_of(closed)));
        let is_open = Condition::all()
            .add(chunk::Column::TextBytes.is_null())
            .add(of_parts);
        trip.add(&keep_long(&is_open));
        let open = chunk::Entity::find()
            .filter(is_open.clone())
            .order_by_asc(chunk::Column::Id);
        let pieces: Vec<chunk::Model> = trip.fetch(&open).await?;
        if pieces.is_empty() {
            continue;
        }
        let ids = pieces.iter().map(|piece| piece.message_id);
        held.read_others(trip.transaction(), ids.collect()).await?;
        trip.add(&chunk::Entity::delete_many().filter(is_open));
        let rows = stretches(pieces).into_iter();
        let settled = rows.map(|row| settled_row(row, &held));
        trip.insert(settled.collect(), None);
    }
    Ok(trip.go().await?)
}

/// Leaves the pieces of long parts where they are.
fn keep_long(is_open: &Condition) -> UpdateMany<chunk::Entity> {
    let bytes = Func::cust("octet_length").arg(Expr::col(chunk::Column::Text));
    let long = chunk::Entity::find()
        .select_only()
        .column(chunk::Column::PartId)
        .filter(is_open.clone())
        .group_by(chunk::Column::PartId)
        .having(Expr::from(Func::sum(bytes)).gt(LONG_BYTES))
        .into_query();
    chunk::Entity::update_many()
        .set(chunk::ActiveModel {
            text_bytes: Set(Some(0)),
            ..Default::default()
        })
        .filter(is_open.clone())
        .filter(chunk::Column::PartId.in_subquery(long))
}

fn pieces_of(closed: &Closed) -> Condition {
    let (Closed::Message(run_id, _) | Closed::Output(run_id, _) | Closed::Run(run_id)) = closed;
    let of_run = Condition::all().add(chunk::Column::RunId.eq(run_id.0));
    let parts = match closed {
        Closed::Message(_, id) => vec![PartId::text(*id), PartId::thinking(*id)],
        Closed::Output(_, call) => vec![PartId::output(call)],
        Closed::Run(_) => return of_run,
    };
    of_run.add(chunk::Column::PartId.is_in(parts.into_iter().map(|part| part.0)))
}

/// Joins the pieces of each part that follow each other between two events.
fn stretches(pieces: Vec<chunk::Model>) -> Vec<chunk::Model> {
    let mut joined: Vec<chunk::Model> = Vec::new();
    // Where the last stretch of a part stands, and where it ends.
    let mut last: HashMap<String, (usize, i64)> = HashMap::new();
    for piece in pieces {
        let units = i64::try_from(utf16_len(&piece.text.0)).unwrap_or(i64::MAX);
        let end = piece.offset.saturating_add(units);
        match last.get_mut(&piece.part_id.0) {
            Some((at, its_end))
                if *its_end == piece.offset && joined[*at].after_seq == piece.after_seq =>
            {
                joined[*at].text.0.push_str(&piece.text.0);
                // One who reads the log and has some of these is still to find the rest.
                joined[*at].id = piece.id;
                *its_end = end;
            }
            _ => {
                last.insert(piece.part_id.0.clone(), (joined.len(), end));
                joined.push(piece);
            }
        }
    }
    joined
}

fn settled_row(stretch: chunk::Model, held: &HeldTexts) -> chunk::ActiveModel {
    let kind: Option<PartKind> = named("chunks.kind", stretch.kind.clone()).ok();
    let offset = u64::try_from(stretch.offset).unwrap_or_default();
    let said = kind.and_then(|kind| held.part(stretch.message_id, kind, offset));
    let bytes = said
        .filter(|said| said.starts_with(&stretch.text.0))
        .and_then(|_| i64::try_from(stretch.text.0.len()).ok());
    let mut row = stretch.into_active_model();
    if bytes.is_some_and(|bytes| bytes > 0) {
        row.text = Set("".into());
    }
    row.text_bytes = Set(Some(bytes.unwrap_or_default()));
    row
}
