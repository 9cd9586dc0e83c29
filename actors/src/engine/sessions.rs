//! What a door asks of sessions: to begin one, to find it, to change its row, and to watch it. What is
//! said in one is in `turns`.

use super::{Engine, move_dir};
use crate::domain::files::FILES_DIR;
use crate::domain::input;
use crate::domain::session::command::{self, Command};
use crate::domain::sharing::By;
use crate::domain::tags;
use crate::feed::{self, Events, Feed};
use crate::protocol::command::{NewSessionRequest, SessionChange};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{SessionId, UserId};
use crate::protocol::people::UserRole;
use crate::protocol::search::SearchHit;
use crate::protocol::session::SessionSummary;
use crate::root::OpenSession;
use crate::services::now;
use crate::session::messages::Attach;
use crate::store::{Listed, NewSession};

/// The most characters of a title.
pub const TITLE_CHARS: usize = 200;

impl Engine {
    /// A new session. The default profile where none is named, its model, and the mode of the
    /// settings.
    ///
    /// # Errors
    /// `unknown_profile`; `invalid_field` where no model can have this name, `model_unknown` where none
    /// has it; or what the store says.
    pub async fn create_session(
        &self,
        user: UserId,
        wish: NewSessionRequest,
    ) -> Result<SessionSummary, NaviError> {
        let session = self.new_session(user, wish)?;
        if let Some(model) = &session.model {
            self.services.models.check_chosen(model).await?;
        }
        self.check_sessions(user).await?;
        let owner = self.services.owner.clone();
        let loaded = self
            .stored(async move |store| store.create_session(session, &owner).await)
            .await?;
        self.services.hub.session_changed(loaded.summary.clone());
        self.services.memory.read_idle(user);
        Ok(loaded.summary)
    }

    /// Whether this person may have one more.
    pub(super) async fn check_sessions(&self, user: UserId) -> Result<(), NaviError> {
        let people = self.services.people.clone();
        self.here(async move { people.check_sessions(user).await })
            .await
    }

    /// The row of a new session.
    ///
    /// # Errors
    /// As [`Engine::create_session`].
    pub(super) fn new_session(
        &self,
        user: UserId,
        wish: NewSessionRequest,
    ) -> Result<NewSession, NaviError> {
        let NewSessionRequest {
            profile_id,
            model,
            mode,
        } = wish;
        self.refuse_when_closed()?;
        model.as_deref().map_or(Ok(()), input::validate_model)?;
        let profiles = &self.services.profiles;
        let profile = profiles.find(profile_id.as_deref().unwrap_or(profiles.default_id()))?;
        Ok(NewSession {
            id: SessionId::new(),
            user_id: user,
            title: String::new(),
            profile_id: profile.id.clone(),
            model,
            mode: mode.unwrap_or(self.services.consent.mode),
            ephemeral: false,
            created_at: now(),
        })
    }

    /// The user's sessions and those shared with them, those that are put away or the others:
    /// pinned first, then the latest activity.
    ///
    /// # Errors
    /// What the store says.
    pub async fn sessions(
        &self,
        user: UserId,
        listed: Listed,
    ) -> Result<Vec<SessionSummary>, NaviError> {
        self.stored(async move |store| store.list_sessions(user, listed).await)
            .await
    }

    /// Messages and titles of the user's sessions that hold these words, best first.
    ///
    /// # Errors
    /// What the store says.
    pub async fn search(
        &self,
        user: UserId,
        query: &str,
        limit: u32,
    ) -> Result<Vec<SearchHit>, NaviError> {
        let query = query.to_owned();
        self.stored(async move |store| store.search(user, &query, limit, 0).await)
            .await
    }

    /// Changes the session: all of it, or nothing.
    ///
    /// # Errors
    /// `invalid_field` where nothing is to be changed, the title is empty or over 200
    /// characters, no model can have this name, or a tag is none; `model_unknown` where none has it;
    /// `unknown_profile`.
    pub async fn change(
        &self,
        user: UserId,
        session: SessionId,
        wish: SessionChange,
    ) -> Result<SessionSummary, NaviError> {
        if wish == SessionChange::default() {
            return Err(NaviError::new(
                ErrorCode::InvalidField,
                "nothing to change; name at least one of title, profile_id, model, tags and archived",
            ));
        }
        if let Some(Some(model)) = &wish.model {
            input::validate_model(model)?;
        }
        let profile = wish.profile_id.as_deref();
        let change = command::SessionChange {
            title: wish.title.as_deref().map(valid_title).transpose()?,
            profile: profile
                .map(|id| self.services.profiles.find(id))
                .transpose()?,
            model: wish.model,
            archived: wish.archived,
            tags: wish.tags.as_deref().map(tags::valid).transpose()?,
        };
        if let Some(Some(model)) = &change.model {
            self.services.models.check_chosen(model).await?;
        }
        let open = OpenSession::as_owner(user, session);
        self.request(open, Command::Change(change)).await
    }

    /// Pins or unpins; without a wish, the other of what it is.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn pin(
        &self,
        user: UserId,
        session: SessionId,
        pinned: Option<bool>,
    ) -> Result<SessionSummary, NaviError> {
        let change = pinned.map_or(Command::TogglePin, Command::Pin);
        self.request(OpenSession::as_owner(user, session), change)
            .await
    }

    /// Deletes the session and its files. For ten minutes [`Engine::restore`] takes that back.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn delete(&self, user: UserId, session: SessionId) -> Result<(), NaviError> {
        let open = OpenSession::as_owner(user, session);
        self.request::<SessionSummary>(open, Command::Delete)
            .await?;
        let (from, to) = self.workspace_and_trash(user, session);
        move_dir(&from, &to).await
    }

    /// Deletes all of a user's sessions, for good after ten minutes.
    ///
    /// # Errors
    /// What the store says.
    pub async fn delete_all(&self, user: UserId) -> Result<(), NaviError> {
        for listed in [Listed::Current, Listed::Archived] {
            let all = self.sessions(user, listed).await?.into_iter();
            for session in all.filter(|session| session.user_id == user) {
                match self.delete(user, session.id).await {
                    Err(error) if error.code != ErrorCode::SessionNotFound => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Takes a deletion back.
    ///
    /// # Errors
    /// `session_not_found` where it was not deleted, or is gone for good; `rate_limited` where they
    /// have as many as they may.
    pub async fn restore(
        &self,
        user: UserId,
        session: SessionId,
    ) -> Result<SessionSummary, NaviError> {
        self.refuse_when_closed()?;
        self.check_sessions(user).await?;
        let (to, from) = self.workspace_and_trash(user, session);
        // Nobody else brings it back meanwhile: its own files would be taken for those in the way.
        let _turn = self.services.sharing.take(session).await;
        if tokio::fs::try_exists(&from).await.unwrap_or_default() {
            // Copies of uploads that ended after it was deleted are not to be in the way. Where
            // they cannot be removed, the move says so.
            let _ = tokio::fs::remove_dir_all(to.join(FILES_DIR)).await;
        }
        // Its files first: where this is cut off in between, it can be asked for once more.
        move_dir(&from, &to).await?;
        let summary = self
            .stored(async move |store| store.restore(user, session).await)
            .await?;
        self.services.hub.session_changed(summary.clone());
        Ok(summary)
    }

    /// Joins the session's events. `after` is the last event that the tab has; without it the
    /// tab gets the run that goes from its start. `epoch` is the one that the tab knows. Whoever
    /// came by a link is told nothing from before that run: withdrawn messages and other branches
    /// stand there.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn attach(
        &self,
        by: impl Into<By>,
        session: SessionId,
        after: Option<u64>,
        epoch: Option<i64>,
        newest: Option<u32>,
    ) -> Result<Feed, NaviError> {
        let by = by.into();
        let watched = feed::Watched {
            engine: self.clone(),
            by,
            session,
            newest,
        };
        let attach = Attach {
            after,
            epoch,
            without_past: by.person().is_none(),
            ..Attach::default()
        };
        feed::watched(watched, attach).await
    }

    /// The same as events, for whoever reads them in this process.
    ///
    /// # Errors
    /// As [`Engine::attach`].
    pub async fn follow(
        &self,
        user: UserId,
        session: SessionId,
        after: Option<u64>,
        newest: Option<u32>,
    ) -> Result<Events, NaviError> {
        let watched = feed::Watched {
            engine: self.clone(),
            by: user.into(),
            session,
            newest,
        };
        let attach = Attach {
            after,
            ..Attach::default()
        };
        feed::followed(watched, attach).await
    }

    /// What a page that watches the session list is sent.
    #[must_use]
    pub fn watch(&self, user: UserId, role: UserRole) -> Feed {
        feed::watch_feed(self.clone(), user, role)
    }
}

fn valid_title(title: &str) -> Result<String, NaviError> {
    let sent = title;
    let title = title.trim();
    let chars = sent.chars().filter(|_| !title.is_empty()).count();
    if chars == 0 || chars > TITLE_CHARS {
        return Err(NaviError::new(
            ErrorCode::InvalidField,
            format!("title must have 1 to {TITLE_CHARS} characters; this one has {chars}"),
        ));
    }
    Ok(title.to_owned())
}
