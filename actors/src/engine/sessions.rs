//! What a door asks of sessions: to go on, its runs, its branches, its row.

use super::{Engine, move_dir};
use crate::domain::input;
use crate::domain::session::command::{Command, SessionChange};
use crate::domain::session::transition::{Accepted, Branched, PlainAnswer};
use crate::domain::sharing::By;
use crate::domain::tags;
use crate::feed::{self, Feed};
use crate::protocol::approval::ConsentMode;
use crate::protocol::command::{CallDecision, PlainConsent, PlainInput, PlanEdit, UserInput};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{CallId, MessageId, RunId, SessionId, UserId};
use crate::protocol::people::UserRole;
use crate::protocol::search::SearchHit;
use crate::protocol::session::SessionSummary;
use crate::protocol::todo::TodoItem;
use crate::root::OpenSession;
use crate::services::now;
use crate::session::messages::{
    Ask, Attach, RunPlain, Send as SendMessage, SendWatched, StartBranch,
};
use crate::session::replies::NoReply;
use crate::store::{Listed, NewSession};

/// The most characters of a title.
pub const TITLE_CHARS: usize = 200;

/// What a door asks of a new session; what is none is as the settings have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSessionWish {
    pub profile_id: Option<String>,
    /// None: its profile's.
    pub model: Option<String>,
    /// How much it may do without asking.
    pub mode: Option<ConsentMode>,
}

/// What a door asks to be changed of a session; what is none stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionWish {
    pub title: Option<String>,
    pub profile_id: Option<String>,
    /// None inside: the profile's own.
    pub model: Option<Option<String>>,
    pub archived: Option<bool>,
    pub tags: Option<Vec<String>>,
}

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
        wish: NewSessionWish,
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
        wish: NewSessionWish,
    ) -> Result<NewSession, NaviError> {
        let NewSessionWish {
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

    /// Sends a message. Answered when it is committed; its run has begun or waits.
    ///
    /// # Errors
    /// What is wrong with the input; `queue_full`; what the store says. Nothing is stored then.
    pub async fn send(
        &self,
        user: UserId,
        session: SessionId,
        input: UserInput,
    ) -> Result<Accepted, NaviError> {
        let input = self.with_files(user, session, input).await?;
        let open = OpenSession::as_participant(user, session);
        let sent = self.tell(open, SendMessage(input)).await?;
        sent.map_err(NoReply::into_error)
    }

    /// The same, with the session's events from right before the message on.
    ///
    /// # Errors
    /// As [`Engine::send`].
    pub async fn send_watched(
        &self,
        user: UserId,
        session: SessionId,
        input: UserInput,
    ) -> Result<(Accepted, Feed), NaviError> {
        let input = self.with_files(user, session, input).await?;
        let open = OpenSession::as_participant(user, session);
        let sent = self.tell(open, SendWatched(input)).await?;
        let (accepted, attached) = sent.map_err(NoReply::into_error)?;
        let watched = feed::Watched {
            engine: self.clone(),
            by: user.into(),
            session,
            newest: Some(1),
        };
        Ok((accepted, feed::watched_from(watched, attached).await?))
    }

    /// Sends a message and waits for the end of its run.
    ///
    /// # Errors
    /// As [`Engine::send`]; `session_busy` while another run goes; what made the run fail;
    /// `forbidden` where what would be asked about is to be done, and the session is another's.
    pub async fn run_plain(
        &self,
        user: UserId,
        session: SessionId,
        input: PlainInput,
    ) -> Result<PlainAnswer, NaviError> {
        let open = match input.consent {
            PlainConsent::Allow => OpenSession::as_owner(user, session),
            PlainConsent::Ask | PlainConsent::Deny => OpenSession::as_participant(user, session),
        };
        let message = self.with_files(user, session, input.message).await?;
        let input = PlainInput { message, ..input };
        let ran = self.tell(open, RunPlain(input)).await?;
        // It may have taken long.
        self.open(open).await?;
        ran.map_err(NoReply::into_error)
    }

    /// Asks the session's run to stop; what waits comes next. Says whether there was one.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn stop(&self, user: UserId, session: SessionId) -> Result<bool, NaviError> {
        self.stop_run(user, session, false).await
    }

    /// The same; with `hold`, what waits is held back until a message comes or one goes on.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn stop_run(
        &self,
        user: UserId,
        session: SessionId,
        hold: bool,
    ) -> Result<bool, NaviError> {
        let stop = || Ask::new(Command::Stop { hold });
        let open = OpenSession::as_participant(user, session);
        let found = self.ask(open, stop).await?;
        found.map_err(NoReply::into_error)
    }

    /// Goes on from an interrupted, limited or failed run.
    ///
    /// # Errors
    /// `nothing_to_continue`.
    pub async fn continue_run(&self, user: UserId, session: SessionId) -> Result<RunId, NaviError> {
        let open = OpenSession::as_participant(user, session);
        self.request(open, Command::Continue).await
    }

    /// Says what became of a call whose outcome a crash left unknown.
    ///
    /// # Errors
    /// `not_found` where no such call waits for that (any more).
    pub async fn resolve_call(
        &self,
        user: UserId,
        session: SessionId,
        call_id: CallId,
        decision: CallDecision,
    ) -> Result<(), NaviError> {
        let resolve = Command::ResolveCall { call_id, decision };
        let open = OpenSession::as_participant(user, session);
        self.request(open, resolve).await
    }

    /// Takes back a message that waits.
    ///
    /// # Errors
    /// `message_not_found` where it does not wait (any more).
    pub async fn withdraw(
        &self,
        user: UserId,
        session: SessionId,
        message_id: MessageId,
    ) -> Result<(), NaviError> {
        let open = OpenSession::as_participant(user, session);
        self.request(open, Command::Withdraw(message_id)).await
    }

    /// Starts a branch of the conversation: with another text in place of a message of the
    /// user's, or, without one, with another answer to it. Answered when that is committed.
    ///
    /// # Errors
    /// What is wrong with the text; `message_not_found`; `session_busy` while a run goes.
    pub async fn start_branch(
        &self,
        user: UserId,
        session: SessionId,
        message_id: MessageId,
        content: Option<String>,
    ) -> Result<Branched, NaviError> {
        if let Some(content) = &content {
            input::validate_content(content)?;
        }
        let start = StartBranch {
            message_id,
            content,
            author: self.author(user).await?,
        };
        let open = OpenSession::as_participant(user, session);
        let branched = self.tell(open, start).await?;
        branched.map_err(NoReply::into_error)
    }

    /// Shows another branch of the conversation.
    ///
    /// # Errors
    /// `not_found` where there is no such branch; `session_busy` while a run goes.
    pub async fn show_branch(
        &self,
        user: UserId,
        session: SessionId,
        branch_id: u32,
    ) -> Result<(), NaviError> {
        let open = OpenSession::as_participant(user, session);
        self.request(open, Command::ShowBranch(branch_id)).await
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

    /// Asks one child run to stop. Says whether there was one.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn stop_subagent(
        &self,
        user: UserId,
        session: SessionId,
        run_id: RunId,
    ) -> Result<bool, NaviError> {
        let stop = || Ask::new(Command::StopChild(run_id));
        let open = OpenSession::as_participant(user, session);
        let found = self.ask(open, stop).await?;
        found.map_err(NoReply::into_error)
    }

    /// Changes a message that waits.
    ///
    /// # Errors
    /// What is wrong with the text; `message_not_found`.
    pub async fn edit_queued(
        &self,
        user: UserId,
        session: SessionId,
        message_id: MessageId,
        content: String,
    ) -> Result<(), NaviError> {
        let input = input::validate(UserInput {
            content,
            ..UserInput::default()
        })?;
        let edit = Command::EditQueued {
            message_id,
            content: input.content,
            author: self.author(user).await?,
        };
        let open = OpenSession::as_participant(user, session);
        self.request(open, edit).await
    }

    /// Changes the list of steps. Gives back the list as it stands then.
    ///
    /// # Errors
    /// `invalid_field` for a text that is none, `not_found` for a step that there is not, and
    /// `change_conflict` where the step, or the list, does not stand so that this can be done.
    pub async fn edit_plan(
        &self,
        user: UserId,
        session: SessionId,
        edit: PlanEdit,
    ) -> Result<Vec<TodoItem>, NaviError> {
        let open = OpenSession::as_participant(user, session);
        self.request(open, Command::EditPlan(edit)).await
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
        wish: SessionWish,
    ) -> Result<SessionSummary, NaviError> {
        if wish == SessionWish::default() {
            return Err(NaviError::new(
                ErrorCode::InvalidField,
                "nothing to change; name at least one of title, profile_id, model, tags and archived",
            ));
        }
        if let Some(Some(model)) = &wish.model {
            input::validate_model(model)?;
        }
        let profile = wish.profile_id.as_deref();
        let change = SessionChange {
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
        let summary = self
            .stored(async move |store| store.restore(user, session).await)
            .await?;
        move_dir(&from, &to).await?;
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
