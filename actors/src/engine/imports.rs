//! What a door asks of files that hold conversations.

use chrono::{DateTime, Utc};

use super::Engine;
use crate::domain::import::{self, Conversation};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{SessionId, UserId};
use crate::protocol::import::{Imported, ImportedSession};
use crate::protocol::phrase::PhraseCode;
use crate::services::now;
use crate::store::NewSession;

impl Engine {
    /// Makes a session of a conversation from a file, or nothing. None of it runs.
    ///
    /// # Errors
    /// What is wrong with the file, and what the store says.
    pub async fn import_session(
        &self,
        user: UserId,
        file: ImportedSession,
    ) -> Result<Imported, NaviError> {
        self.refuse_when_closed()?;
        self.check_sessions(user).await?;
        let profiles = &self.services.profiles;
        let named = file.profile_id.as_deref();
        let profile = match named.and_then(|id| profiles.find(id).ok()) {
            Some(profile) => profile,
            None => profiles.find(profiles.default_id())?,
        };
        let at = now();
        let talk = self.read_conversation(file, at).await?;
        let (messages, left_out) = (talk.messages.len() as u64, talk.left_out);
        let new = NewSession {
            id: SessionId::new(),
            user_id: user,
            title: talk.title.clone(),
            profile_id: profile.id.clone(),
            model: None,
            mode: self.services.consent.mode,
            ephemeral: false,
            created_at: talk.created_at,
        };
        let owner = self.services.owner.clone();
        let session = self
            .stored(async move |store| store.import_session(new, talk, &owner, at).await)
            .await?;
        self.services.hub.session_changed(session.clone());
        Ok(Imported {
            session,
            messages,
            left_out,
        })
    }

    /// The conversation of a file that came at `at`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) async fn read_conversation(
        &self,
        file: ImportedSession,
        at: DateTime<Utc>,
    ) -> Result<Conversation, NaviError> {
        // Its images are decoded: that is work, and not the caller's thread's.
        let reading = self
            .runtime
            .spawn_blocking(move || import::conversation(file, at));
        reading.await.map_err(|error| {
            tracing::error!(%error, "the reading of a conversation went down");
            NaviError::said(ErrorCode::Internal, PhraseCode::SomethingFailed)
        })?
    }
}
