//! What a door asks of a session's changes to files: the list, and taking one back.

use std::path::PathBuf;
use std::sync::Arc;

use super::Engine;
use crate::domain::session::command::Command;
use crate::protocol::change::Change;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{ChangeId, SessionId, UserId};
use crate::protocol::phrase::PhraseCode;
use crate::root::OpenSession;
use crate::tools::filesystem::{self, ChangeError};
use crate::tools::workspace::FileAccess;

/// The `code` of the notice that tells the tabs that a change was taken back.
const UNDONE: &str = "change_undone";

impl Engine {
    /// What the filesystem tool changed in the session, newest first.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn changes(
        &self,
        user: UserId,
        session: SessionId,
    ) -> Result<Vec<Change>, NaviError> {
        let open = OpenSession::as_participant(user, session);
        self.on_files(open, |access, workspace| {
            filesystem::changes(&access, &workspace)
        })
        .await
    }

    /// Takes a change back, where the files are still as it left them, and tells the tabs.
    /// Gives back the change that this is: it can be undone itself.
    ///
    /// # Errors
    /// `session_not_found`, `change_not_found`; `change_conflict` where it cannot be undone.
    pub async fn undo_change(
        &self,
        user: UserId,
        session: SessionId,
        change: ChangeId,
    ) -> Result<Change, NaviError> {
        self.refuse_when_closed()?;
        let open = OpenSession::as_participant(user, session);
        let undone = self
            .on_files(open, move |access, workspace| {
                filesystem::undo(&access, &workspace, change)
            })
            .await?;
        let message = match &undone.to {
            None => format!("a change of {} was undone", undone.path),
            Some(to) => format!("{} was moved back to {to}", undone.path),
        };
        let notice = Command::Notify {
            code: UNDONE.to_owned(),
            message,
        };
        // It is done, whoever hears of it.
        if let Err(error) = self.request::<()>(open, notice).await {
            tracing::warn!(%session, %error, "an undone change could not be told");
        }
        Ok(undone)
    }

    /// Runs work on a session's files, beside what else goes: it blocks.
    pub(super) async fn on_files<T: Send + 'static>(
        &self,
        open: OpenSession,
        work: impl FnOnce(Arc<FileAccess>, PathBuf) -> Result<T, ChangeError> + Send + 'static,
    ) -> Result<T, NaviError> {
        let owner = self.find(open).await?;
        let session = open.session;
        let powers = self.powers_of(owner).await?;
        let access = self.file_access.for_powers(&powers);
        let workspace = self.services.homes.workspace(owner, session);
        let work = self.runtime.spawn_blocking(move || work(access, workspace));
        match work.await {
            Ok(answer) => answer.map_err(|error| typed(&error)),
            Err(error) => {
                tracing::error!(%session, %error, "work on a session's files went down");
                Err(NaviError::said(
                    ErrorCode::Internal,
                    PhraseCode::SomethingFailed,
                ))
            }
        }
    }
}

fn typed(error: &ChangeError) -> NaviError {
    let code = match error {
        ChangeError::NotFound => ErrorCode::ChangeNotFound,
        ChangeError::Conflict(_) => ErrorCode::ChangeConflict,
        ChangeError::Unreadable => ErrorCode::Internal,
    };
    NaviError::new(code, error.to_string())
}
