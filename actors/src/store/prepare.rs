//! A commit as rows, before the database is asked anything. What is wrong with a commit by
//! itself is found here.

use std::sync::Arc;

use chrono::Utc;
use sea_orm::ActiveValue;
use sea_orm::sea_query::{Expr, IntoIden};
use sea_orm::{DynIden, Value};

use super::StoreError;
use super::batch::{BranchChange, QueueChange, Rows, RunChange};
use super::consent::{approval_to_row, entry_to_row, resolved, rule_to_row};
use super::entities::{event, run, session};
use super::held_text;
use super::model_calls::{call_to_row, part_to_row};
use super::rows::{
    branch_to_row, chunk_to_row, event_to_row, message_to_row, queued_to_row, run_to_row,
};
use super::types::Commit;
use super::values::{DbText, db_time, name_of, option_to_json, to_db, to_json};
use crate::domain::history::Branch;
use crate::domain::session::write::Write;
use crate::protocol::ids::{OwnerId, SessionId};
use crate::protocol::message::Message;

/// A commit that makes sense by itself.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) session_id: SessionId,
    pub(super) owner: OwnerId,
    pub(super) epoch: i64,
    /// What changes on the session's own row.
    pub(super) session_values: Vec<(DynIden, Expr)>,
    /// The first and the last event.
    pub(super) seqs: Option<(i64, i64)>,
    /// The event that the session must have reached for the chunks to stand after it;
    /// none where this commit brings that event itself.
    pub(super) chunks_after: Option<i64>,
    /// Only taking back a deletion finds a deleted session.
    pub(super) may_be_deleted: bool,
    /// The branch that this commit shows from its last [`Write::Fork`] or
    /// [`Write::ShowBranch`] on; none where it leaves that as it is.
    pub(super) shows: Option<u32>,
    pub(super) rows: Rows,
    /// What the rows of messages are made of.
    pub(super) messages: Vec<Arc<Message>>,
}

impl Prepared {
    pub(super) fn new(commit: Commit) -> Result<Self, StoreError> {
        let mut prepared = Self {
            session_id: commit.session_id,
            owner: commit.owner,
            epoch: commit.epoch,
            session_values: Vec::new(),
            seqs: None,
            chunks_after: None,
            may_be_deleted: false,
            shows: None,
            rows: Rows::default(),
            messages: Vec::new(),
        };
        for write in commit.writes {
            prepared.add(write)?;
        }
        for event in &mut prepared.rows.events {
            held_text::refer(event, &prepared.rows.messages);
        }
        if let Some((first, last)) = prepared.seqs
            && let Some(after) = prepared.chunks_after
        {
            if after > last {
                return Err(StoreError::Corrupt(format!(
                    "text is told after event {after}, but the last event is {last}"
                )));
            }
            prepared.chunks_after = (after < first).then_some(after);
        }
        Ok(prepared)
    }

    #[expect(
        clippy::cast_possible_wrap,
        reason = "no list in memory is longer than i64::MAX"
    )]
    pub(super) fn message_count(&self) -> i64 {
        self.rows.messages.len() as i64
    }

    /// Whether the session's row is another one after it.
    pub(super) fn moves_session(&self) -> bool {
        self.seqs.is_some()
            || self.shows.is_some()
            || !self.session_values.is_empty()
            || !self.rows.messages.is_empty()
    }

    /// Whether the log holds exactly this commit's events.
    pub(super) fn has_events(&self, told: &[event::Model]) -> bool {
        self.rows.events.len() == told.len()
            && self.rows.events.iter().all(|ours| {
                told.iter().any(|theirs| {
                    ours.seq == ActiveValue::Set(theirs.seq)
                        && ours.json == ActiveValue::Set(theirs.json.clone())
                        && ours.message_id == ActiveValue::Set(theirs.message_id)
                })
            })
    }

    fn add(&mut self, write: Write) -> Result<(), StoreError> {
        let session_id = self.session_id;
        match write {
            Write::Event(row) => {
                let seq = to_db(row.seq)?;
                self.seqs = match self.seqs {
                    None if seq > 0 => Some((seq, seq)),
                    Some((first, last)) if seq == last + 1 => Some((first, seq)),
                    None => return Err(StoreError::Corrupt("events count from 1".to_owned())),
                    Some((_, last)) => {
                        return Err(StoreError::Corrupt(format!(
                            "event {seq} cannot follow event {last}"
                        )));
                    }
                };
                self.rows.events.push(event_to_row(session_id, row)?);
            }
            Write::Chunk(row) => {
                self.chunks_after = self.chunks_after.max(Some(to_db(row.after_seq)?));
                self.rows.chunks.push(chunk_to_row(session_id, row)?);
            }
            Write::Closed(closed) => self.rows.closed.push(closed),
            Write::Message(message) => {
                let row = message_to_row(session_id, Message::clone(&message), self.shows)?;
                self.rows.messages.push(row);
                self.messages.push(message);
            }
            Write::RunStarted(row) => {
                if row.parent_run_id.is_none() {
                    self.set(session::Column::LastRunId, row.run_id.0);
                }
                self.rows.runs.push(run_to_row(session_id, row)?);
            }
            Write::RunModel {
                run_id,
                backend,
                model,
            } => self.rows.run_changes.push(RunChange {
                session_id,
                run_id,
                values: run::ActiveModel {
                    backend: ActiveValue::Set(backend.into()),
                    model: ActiveValue::Set(model.into()),
                    ..Default::default()
                },
            }),
            Write::RunEnded {
                run_id,
                state,
                reason,
                iterations,
                prompt_tokens,
                completion_tokens,
                cached_tokens,
                leaked_calls,
                at,
            } => self.rows.run_changes.push(RunChange {
                session_id,
                run_id,
                values: run::ActiveModel {
                    state: ActiveValue::Set(name_of(&state)?),
                    reason_phrase: ActiveValue::Set(option_to_json(
                        reason.as_ref().and_then(|reason| reason.phrase.as_ref()),
                    )?),
                    reason: ActiveValue::Set(reason.map(|reason| reason.text.into())),
                    iterations: ActiveValue::Set(iterations.into()),
                    prompt_tokens: ActiveValue::Set(to_db(prompt_tokens)?),
                    completion_tokens: ActiveValue::Set(to_db(completion_tokens)?),
                    cached_tokens: ActiveValue::Set(to_db(cached_tokens)?),
                    leaked_calls: ActiveValue::Set(leaked_calls.into()),
                    loop_state: ActiveValue::Set(None),
                    ended_at: ActiveValue::Set(Some(db_time(at))),
                    ..Default::default()
                },
            }),
            Write::Enqueue(message) => {
                let row = queued_to_row(session_id, message)?;
                self.rows
                    .queue
                    .push((session_id, QueueChange::Add(Box::new(row))));
            }
            Write::Dequeue(message_id) => {
                let change = QueueChange::Remove(message_id);
                self.rows.queue.push((session_id, change));
            }
            Write::EditQueued {
                message_id,
                content,
                author,
            } => {
                let change = QueueChange::Edit(message_id, content.into(), author);
                self.rows.queue.push((session_id, change));
            }
            Write::Title(title) => self.set(session::Column::Title, DbText::from(title)),
            Write::Pinned(pinned) => self.set(session::Column::Pinned, pinned),
            Write::Archived(archived) => self.set(session::Column::Archived, archived),
            Write::Held(held) => self.set(session::Column::Held, held),
            Write::Tags(tags) => self.set(session::Column::Tags, to_json(&tags)?),
            Write::Profile(id) => self.set(session::Column::ProfileId, DbText::from(id)),
            Write::Model(model) => {
                self.set(session::Column::Model, model.map(DbText::from));
            }
            Write::ContextTokens(count) => {
                self.set(session::Column::ContextTokenCount, i64::from(count));
            }
            Write::Plan(plan) => {
                let json = plan.as_ref().map(to_json).transpose()?;
                self.set(session::Column::Plan, json);
            }
            Write::Context { branch_id, context } => {
                let change = BranchChange::Context(branch_id, to_json(&context)?);
                self.rows.branches.push((session_id, change));
            }
            Write::Fork(branch) => self.fork(&branch)?,
            Write::ShowBranch(id) => {
                self.shows = Some(id);
                self.rows
                    .branches
                    .push((session_id, BranchChange::Show(id)));
            }
            Write::Todo(items) => self.set(session::Column::Todo, to_json(&items)?),
            Write::Scratchpad(notes) => self.set(session::Column::Scratchpad, to_json(&notes)?),
            Write::Mode(mode) => {
                let name = name_of(&mode)?;
                self.set(session::Column::ConsentMode, name);
            }
            Write::Shared { since, .. } => {
                if let Some(since) = since {
                    self.set(session::Column::SharedAt, db_time(since));
                }
            }
            Write::Tainted(at) => self.set(session::Column::TaintedAt, db_time(at)),
            Write::RunLoop { run_id, json } => self.rows.run_changes.push(RunChange {
                session_id,
                run_id,
                values: run::ActiveModel {
                    loop_state: ActiveValue::Set(Some(json.into())),
                    ..Default::default()
                },
            }),
            Write::ModelCall { run_id, mut call } => {
                let parts = std::mem::take(&mut call.prompt.parts).into_iter();
                self.rows
                    .prompt_parts
                    .extend(parts.map(|part| part_to_row(session_id, part)));
                self.rows
                    .model_calls
                    .push(call_to_row(session_id, run_id, *call)?);
            }
            Write::ApprovalRequested(approval) => {
                self.rows
                    .approvals
                    .push(approval_to_row(session_id, approval)?);
            }
            Write::ApprovalResolved {
                approval_id,
                resolution,
                at,
            } => {
                let answer = resolved(resolution, at)?;
                self.rows.answers.push((session_id, approval_id, answer));
            }
            Write::ConsentRule(rule) => self.rows.rules.push(rule_to_row(rule)?),
            Write::Consented(row) => self.rows.consented.push(entry_to_row(row)?),
            Write::Active(at) => self.set(session::Column::LastActive, db_time(at)),
            Write::Deleted(at) => {
                self.may_be_deleted |= at.is_none();
                self.set(session::Column::DeletedAt, at.map(db_time));
            }
        }
        Ok(())
    }

    fn fork(&mut self, branch: &Branch) -> Result<(), StoreError> {
        if branch.parent_id.is_none_or(|parent| parent >= branch.id) {
            return Err(StoreError::Corrupt(format!(
                "branch {} forks from {:?}, which is no older branch",
                branch.id, branch.parent_id
            )));
        }
        self.shows = Some(branch.id);
        let row = branch_to_row(self.session_id, branch, Utc::now())?;
        let change = BranchChange::Add(Box::new(row));
        self.rows.branches.push((self.session_id, change));
        Ok(())
    }

    /// The last value of a column wins: SQL allows only one.
    fn set(&mut self, column: session::Column, value: impl Into<Value>) {
        let column = column.into_iden();
        self.session_values.retain(|(set, _)| *set != column);
        self.session_values.push((column, Expr::value(value)));
    }
}
