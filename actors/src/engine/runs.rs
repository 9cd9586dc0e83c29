//! What a door asks of runs that were: which there are, what was told of them, what was sent.

use std::sync::Arc;

use super::Engine;
use crate::domain::permissions::Memory;
use crate::inspect::{Inspector, RunEvents};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{RunId, SessionId, UserId};
use crate::protocol::inspect::{CallDetails, RunDetails, RunList};
use crate::root::OpenSession;
use crate::store::{LogCursor, Store, StoreError};

impl Engine {
    /// The session's own runs, newest first, a page of them: those before `before`.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn session_runs(
        &self,
        user: UserId,
        session: SessionId,
        before: Option<RunId>,
    ) -> Result<RunList, NaviError> {
        let open = OpenSession::as_participant(user, session);
        let owner = self.find(open).await?;
        self.inspected(async move |store, inspector| {
            let mut runs = store.session_runs(owner, session, before).await?;
            inspector.add_costs(session, &mut runs).await?;
            let spent = inspector.session_spending(session).await?;
            // What its owner spent that day is theirs.
            let today = if owner == user {
                Some(inspector.spending_today(owner).await?)
            } else {
                None
            };
            Ok(RunList { runs, spent, today })
        })
        .await
    }

    /// A run with its model calls, and the runs that it started.
    ///
    /// # Errors
    /// `not_found` where the user has no such run.
    pub async fn run(&self, user: UserId, run_id: RunId) -> Result<RunDetails, NaviError> {
        let find = self.find_run(user, run_id, OpenSession::as_participant);
        let owner = find.await?;
        let details = self.stored(async move |store| store.run_details(owner, run_id).await);
        details.await?.ok_or_else(no_run)
    }

    /// The same, with what was spent around it, and what each of its calls kept of the one before:
    /// for those who look into it.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_inspected(
        &self,
        user: UserId,
        run_id: RunId,
    ) -> Result<RunDetails, NaviError> {
        let find = self.find_run(user, run_id, OpenSession::as_participant);
        let owner = find.await?;
        let details = self.inspected(async move |_, inspector| inspector.run(owner, run_id).await);
        let mut details = details.await?.ok_or_else(no_run)?;
        if owner != user {
            // What its owner spent that day is theirs.
            details.spent = None;
        }
        Ok(details)
    }

    /// Refuses a run that is not of this user's own sessions.
    ///
    /// # Errors
    /// `not_found` where there is no such run; `forbidden` where its session is shared with them.
    pub async fn own_run(&self, user: UserId, run_id: RunId) -> Result<(), NaviError> {
        let found = self.find_run(user, run_id, OpenSession::as_owner);
        found.await.map(drop)
    }

    /// Whose a run is, for somebody who reaches its session so far.
    async fn find_run(
        &self,
        user: UserId,
        run_id: RunId,
        open: fn(UserId, SessionId) -> OpenSession,
    ) -> Result<UserId, NaviError> {
        let session = self.stored(async move |store| store.session_of_run(run_id).await);
        let session = session.await?.ok_or_else(no_run)?;
        self.find(open(user, session))
            .await
            .map_err(|error| match error.code {
                ErrorCode::SessionNotFound => no_run(),
                _ => error,
            })
    }

    /// What the model was sent at a call of a run, and what it said: its owner's alone, since what
    /// is remembered of them may stand in it.
    ///
    /// # Errors
    /// `not_found` where the user has no such run, or the run no such call; `forbidden` where it
    /// is of another's session.
    pub async fn run_call(
        &self,
        user: UserId,
        run_id: RunId,
        n: u32,
        memory: Memory,
    ) -> Result<CallDetails, NaviError> {
        self.own_run(user, run_id).await?;
        let call =
            self.inspected(async move |_, inspector| inspector.call(user, run_id, n, memory).await);
        call.await?
            .ok_or_else(|| NaviError::new(ErrorCode::NotFound, "there is no such model call"))
    }

    /// What was told of a run and of all runs under it, a page of it.
    ///
    /// # Errors
    /// `session_not_found`; `not_found` where the session has no such run.
    pub async fn run_events(
        &self,
        user: UserId,
        session: SessionId,
        run_id: RunId,
        from: LogCursor,
    ) -> Result<RunEvents, NaviError> {
        self.find(OpenSession::as_participant(user, session))
            .await?;
        let page =
            self.inspected(async move |_, inspector| inspector.events(session, run_id, from).await);
        page.await?
            .ok_or_else(|| NaviError::new(ErrorCode::NotFound, "this session has no such run"))
    }

    /// Has the store asked, by itself or through one who looks into runs.
    ///
    /// # Errors
    /// What the store says.
    async fn inspected<T, F>(
        &self,
        ask: impl FnOnce(Store, Inspector) -> F + Send + 'static,
    ) -> Result<T, NaviError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let files = self.services.files.clone();
        let prices = Arc::clone(&self.services.prices);
        self.stored(move |store| {
            let inspector = Inspector::new(store.clone(), files, prices);
            ask(store, inspector)
        })
        .await
    }
}

fn no_run() -> NaviError {
    NaviError::new(ErrorCode::NotFound, "there is no such run")
}
