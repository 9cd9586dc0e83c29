//! What a door reads of a session: how it stands, what was said, what its model would be sent.

use super::Engine;
use crate::domain::input::no_such_message;
use crate::domain::permissions::Memory;
use crate::domain::sharing::By;
use crate::files::InlineImage;
use crate::protocol::chat::ChatRequest;
use crate::protocol::context::ContextParts;
use crate::protocol::error::NaviError;
use crate::protocol::ids::{MessageId, SessionId, UserId};
use crate::protocol::message::Message;
use crate::protocol::session::{MessagePage, SessionSnapshot};
use crate::root::OpenSession;
use crate::session::messages::{GetContext, GetSnapshot};
use crate::store::{KnownMessage, Store};

impl Engine {
    /// The session with its whole conversation.
    ///
    /// # Errors
    /// `session_not_found`; as for every call about a session, another user's is not found.
    pub async fn snapshot(
        &self,
        user: UserId,
        session: SessionId,
    ) -> Result<SessionSnapshot, NaviError> {
        self.with_newest(user, session, None).await
    }

    /// The session as it stands, without its messages and what only they can tell: for programs
    /// of its owner's, which begin and change what nobody else may.
    ///
    /// # Errors
    /// As [`Engine::snapshot`]; `forbidden` where it is another's who shares it.
    pub async fn standing(
        &self,
        user: UserId,
        session: SessionId,
    ) -> Result<SessionSnapshot, NaviError> {
        let open = OpenSession::as_owner(user, session);
        Ok(self.ask(open, || GetSnapshot).await?.session)
    }

    /// Whether the session was sent a message with this `client_id`, whatever became of it.
    ///
    /// # Errors
    /// As [`Engine::standing`].
    pub async fn knows_message(
        &self,
        user: UserId,
        session: SessionId,
        client_id: String,
    ) -> Result<bool, NaviError> {
        let open = OpenSession::as_owner(user, session);
        Ok(self.sent_as(open, client_id).await?.is_some())
    }

    /// The message that was sent with this `client_id`, as it stands; none where it was withdrawn.
    ///
    /// # Errors
    /// `session_not_found`; `forbidden` where it is another's, who lets others only look.
    pub async fn known_message(
        &self,
        user: UserId,
        session: SessionId,
        client_id: String,
    ) -> Result<Option<KnownMessage>, NaviError> {
        let open = OpenSession::as_participant(user, session);
        self.sent_as(open, client_id).await
    }

    async fn sent_as(
        &self,
        open: OpenSession,
        client_id: String,
    ) -> Result<Option<KnownMessage>, NaviError> {
        self.find(open).await?;
        let session = open.session;
        self.stored(async move |store: Store| store.message_by_client_id(session, &client_id).await)
            .await
    }

    /// The session with its newest messages; with all of them where it is not said how many.
    ///
    /// # Errors
    /// As [`Engine::snapshot`].
    pub async fn with_newest(
        &self,
        by: impl Into<By>,
        session: SessionId,
        newest: Option<u32>,
    ) -> Result<SessionSnapshot, NaviError> {
        let by = by.into();
        let open = OpenSession::as_onlooker(by, session);
        let outline = self.ask(open, || GetSnapshot).await?;
        let filled = self.stored(async move |store| outline.fill(&store, newest).await);
        Ok(filled.await?.seen_by(by.person()))
    }

    /// The newest `most` messages of those before this one.
    ///
    /// # Errors
    /// `session_not_found`, `message_not_found`.
    pub async fn messages_before(
        &self,
        user: UserId,
        session: SessionId,
        before: MessageId,
        most: u32,
    ) -> Result<MessagePage, NaviError> {
        let open = OpenSession::as_onlooker(user, session);
        let outline = self.ask(open, || GetSnapshot).await?;
        let (below, ..) = self.message(session, before).await?;
        self.stored(async move |store| outline.page(&store, below, Some(most)).await)
            .await
    }

    /// An image that a message was sent with.
    ///
    /// # Errors
    /// `session_not_found`; `message_not_found`, also where it has no such image.
    pub async fn message_image(
        &self,
        user: UserId,
        session: SessionId,
        message: MessageId,
        at: usize,
    ) -> Result<InlineImage, NaviError> {
        let open = OpenSession::as_onlooker(user, session);
        self.find(open).await?;
        let (.., message) = self.message(session, message).await?;
        let image = message.images.get(at);
        image
            .and_then(|base64| InlineImage::from_base64(base64))
            .ok_or_else(no_such_message)
    }

    async fn message(
        &self,
        session: SessionId,
        message: MessageId,
    ) -> Result<(u64, u32, Message), NaviError> {
        self.stored(async move |store| store.message_ordinal(session, message).await)
            .await?
            .ok_or_else(no_such_message)
    }

    /// What the model would be sent now.
    ///
    /// # Errors
    /// `session_not_found`, `unknown_profile`.
    pub async fn context(
        &self,
        user: UserId,
        session: SessionId,
        memory: Memory,
    ) -> Result<ChatRequest, NaviError> {
        let open = OpenSession::as_participant(user, session);
        Ok(self.ask(open, || GetContext(memory)).await??.request)
    }

    /// What fills that, part by part.
    ///
    /// # Errors
    /// As [`Engine::context`].
    pub async fn context_parts(
        &self,
        user: UserId,
        session: SessionId,
        memory: Memory,
    ) -> Result<ContextParts, NaviError> {
        let open = OpenSession::as_participant(user, session);
        Ok(self.ask(open, || GetContext(memory)).await??.parts)
    }
}
