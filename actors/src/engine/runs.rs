//! What a door asks of runs that were: which there are, what was told of them, what was sent.

use super::Engine;
use crate::inspect::{Inspector, RunEvents};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{RunId, SessionId, UserId};
use crate::protocol::inspect::{CallDetails, RunDetails, RunList};
use crate::store::LogCursor;

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
        let runs = self.stored(async move |store| store.session_runs(user, session, before).await);
        runs.await.map(|runs| RunList { runs })
    }

    /// A run with its model calls, and the runs that it started.
    ///
    /// # Errors
    /// `not_found` where the user has no such run.
    pub async fn run(&self, user: UserId, run_id: RunId) -> Result<RunDetails, NaviError> {
        self.stored(async move |store| store.run_details(user, run_id).await)
            .await?
            .ok_or_else(|| NaviError::new(ErrorCode::NotFound, "there is no such run"))
    }

    /// What the model was sent at a call of a run, and what it said.
    ///
    /// # Errors
    /// `not_found` where the user has no such run, or the run no such call.
    pub async fn run_call(
        &self,
        user: UserId,
        run_id: RunId,
        n: u32,
    ) -> Result<CallDetails, NaviError> {
        let files = self.services.files.clone();
        let call = self.stored(async move |store| {
            let inspector = Inspector::new(store, files);
            inspector.call(user, run_id, n).await
        });
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
        let files = self.services.files.clone();
        let page = self.stored(async move |store| {
            store.find_session(user, session).await?;
            let inspector = Inspector::new(store, files);
            inspector.events(session, run_id, from).await
        });
        page.await?
            .ok_or_else(|| NaviError::new(ErrorCode::NotFound, "this session has no such run"))
    }
}
