//! Conversations from files: a session with all its messages, or nothing of it.

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::Set;

use super::batch::{FirstPlace, Rows, WriteError};
use super::entities::session;
use super::memory_reading::take_as_read;
use super::rows::message_to_row;
use super::sessions::{insert_session, session_row};
use super::types::NewSession;
use super::values::{db_time, to_db, to_json};
use super::{Store, StoreError};
use crate::domain::history::ROOT_BRANCH;
use crate::domain::import::Conversation;
use crate::protocol::ids::OwnerId;
use crate::protocol::message::Message;
use crate::protocol::session::SessionSummary;

impl Store {
    /// Creates a session that holds a conversation already. Its words are from outside since
    /// `at`: they taint the session, and nobody reads them for facts about the user.
    ///
    /// # Errors
    /// As [`Store::create_session`].
    pub async fn import_session(
        &self,
        new: NewSession,
        talk: Conversation,
        owner: &OwnerId,
        at: DateTime<Utc>,
    ) -> Result<SessionSummary, StoreError> {
        let (id, user_id) = (new.id, new.user_id);
        let count = to_db(talk.messages.len() as u64)?;
        let to_row = |message: Message| message_to_row(id, message, None);
        let messages = talk.messages.into_iter().map(to_row);
        let messages = Rows {
            messages: messages.collect::<Result<_, _>>()?,
            ..Rows::default()
        };
        let row = session::ActiveModel {
            message_count: Set(count),
            last_active: Set(db_time(talk.last_active)),
            tags: Set(to_json(&talk.tags)?),
            tainted_at: Set(Some(db_time(at))),
            ..session_row(&new, owner)?
        };
        let first = FirstPlace {
            ordinal: 0,
            branch_id: ROOT_BRANCH.into(),
        };
        let mut rows = Rows::default();
        rows.add(messages, first);
        let transaction = self.begin_write().await?;
        insert_session(&transaction, &new, row).await?;
        rows.write(&transaction)
            .await
            .map_err(|error| match error {
                WriteError::Refused(reason) => StoreError::Corrupt(reason),
                WriteError::Database(error) => error.into(),
            })?;
        take_as_read(&transaction, id, count).await?;
        transaction.commit().await?;
        self.find_session(user_id, id).await
    }
}
