//! What a door asks in a session: messages and those that wait, its run, its branches, its plan.

use super::Engine;
use crate::domain::input;
use crate::domain::session::command::Command;
use crate::domain::session::transition::{Accepted, Branched, PlainAnswer};
use crate::feed::{self, Events};
use crate::protocol::command::{CallDecision, PlainConsent, PlainInput, PlanEdit, UserInput};
use crate::protocol::error::NaviError;
use crate::protocol::ids::{CallId, MessageId, RunId, SessionId, UserId};
use crate::protocol::todo::TodoItem;
use crate::root::OpenSession;
use crate::session::messages::{Ask, RunPlain, Send as SendMessage, SendWatched, StartBranch};
use crate::session::replies::NoReply;

impl Engine {
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
    ) -> Result<(Accepted, Events), NaviError> {
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
        Ok((accepted, feed::followed_from(watched, attached).await?))
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
        self.stop_run(user, session, false, None).await
    }

    /// The same; with `hold`, what waits is held back until a message comes or one goes on. With
    /// a run, only that one is stopped, and none that came after it.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn stop_run(
        &self,
        user: UserId,
        session: SessionId,
        hold: bool,
        run_id: Option<RunId>,
    ) -> Result<bool, NaviError> {
        let stop = || {
            Ask::new(match run_id {
                Some(run_id) => Command::StopOnly { run_id, hold },
                None => Command::Stop { hold },
            })
        };
        let open = OpenSession::as_participant(user, session);
        let found = self.ask(open, stop).await?;
        found.map_err(NoReply::into_error)
    }

    /// Asks this run to stop, and none that came after it; what waits comes next.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn stop_only(
        &self,
        user: UserId,
        session: SessionId,
        run_id: RunId,
    ) -> Result<bool, NaviError> {
        self.stop_run(user, session, false, Some(run_id)).await
    }

    /// Goes on from an interrupted, limited or failed run.
    ///
    /// # Errors
    /// `nothing_to_continue`.
    pub async fn continue_run(&self, user: UserId, session: SessionId) -> Result<RunId, NaviError> {
        self.continue_with(user, session, false).await
    }

    /// The same; with `queue`, only with what a stop held back.
    ///
    /// # Errors
    /// `nothing_to_continue`.
    pub async fn continue_with(
        &self,
        user: UserId,
        session: SessionId,
        queue: bool,
    ) -> Result<RunId, NaviError> {
        let open = OpenSession::as_participant(user, session);
        self.request(open, Command::Continue { queue }).await
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
}
