//! What a door asks of files.

use bytes::Bytes;
use tokio_util::task::AbortOnDropHandle;

use super::Engine;
use crate::domain::input;
use crate::files::{Download, InlineImage, Upload, Whose};
use crate::protocol::command::UserInput;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::file::FileList;
use crate::protocol::ids::{FileId, SessionId, UserId};
use crate::protocol::phrase::PhraseCode;
use crate::root::OpenSession;

impl Engine {
    /// Begins an upload of about `announced` bytes, where that is known.
    ///
    /// # Errors
    /// `session_not_found`; as [`SessionFiles::begin`](crate::files::SessionFiles::begin).
    pub async fn begin_upload(
        &self,
        user: UserId,
        session: SessionId,
        announced: Option<u64>,
    ) -> Result<Upload, NaviError> {
        self.refuse_when_closed()?;
        let owner = self
            .find(OpenSession::as_participant(user, session))
            .await?;
        let files = self.services.files.clone();
        let turn = self.services.people.upload(user)?;
        let means = self.services.means.clone();
        let room = self.here(async move { means.room(owner).await }).await?;
        let whose = Whose { turn, room };
        self.here(async move { files.begin(session, announced, whose).await })
            .await
    }

    /// More of the upload's last file.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn go_on(&self, upload: &mut Upload, bytes: &Bytes) -> Result<(), NaviError> {
        self.refuse_when_closed()?;
        upload.write(bytes).await
    }

    /// Ends an upload. Once begun it is done, whether who asked is still there or not: between
    /// the disk and the store nothing is to be left half.
    ///
    /// # Errors
    /// As [`Upload::finish`]; `session_not_found` where its sender was taken out of the session
    /// meanwhile.
    pub async fn finish_upload(
        &self,
        user: UserId,
        session: SessionId,
        upload: Upload,
    ) -> Result<FileList, NaviError> {
        let owner = self
            .find(OpenSession::as_participant(user, session))
            .await?;
        let finished = self.runtime.spawn(upload.finish()).await;
        let files = finished.map_err(|error| {
            tracing::error!(%error, "an upload went down");
            went_down()
        })?;
        self.services.means.changed(owner);
        Ok(FileList { files: files? })
    }

    /// The session's files, oldest first.
    ///
    /// # Errors
    /// `session_not_found`; what the store says.
    pub async fn files(&self, user: UserId, session: SessionId) -> Result<FileList, NaviError> {
        self.find(OpenSession::as_participant(user, session))
            .await?;
        let files = self.services.files.clone();
        let files = self.here(async move { files.list(session).await }).await?;
        Ok(FileList { files })
    }

    /// A file for its user to keep.
    ///
    /// # Errors
    /// `session_not_found`, `file_not_found`; what the store says.
    pub async fn download(
        &self,
        user: UserId,
        session: SessionId,
        file: FileId,
    ) -> Result<Download, NaviError> {
        self.find(OpenSession::as_participant(user, session))
            .await?;
        let files = self.services.files.clone();
        self.here(async move { files.open(session, file).await })
            .await
    }

    /// The image of our own making that stands for a file.
    ///
    /// # Errors
    /// `session_not_found`; `file_not_found`, also where the file is no image.
    pub async fn file_image(
        &self,
        user: UserId,
        session: SessionId,
        file: FileId,
    ) -> Result<InlineImage, NaviError> {
        self.find(OpenSession::as_participant(user, session))
            .await?;
        let files = self.services.files.clone();
        self.here(async move { files.image(session, file).await })
            .await
    }

    /// Deletes a file, for good.
    ///
    /// # Errors
    /// `session_not_found`, `file_not_found`; what the store says.
    pub async fn delete_file(
        &self,
        user: UserId,
        session: SessionId,
        file: FileId,
    ) -> Result<(), NaviError> {
        self.find(OpenSession::as_owner(user, session)).await?;
        let files = self.services.files.clone();
        self.here(async move { files.delete(session, file).await })
            .await
    }

    /// A message that may be sent: checked, with its files looked up and its author named.
    pub(super) async fn with_files(
        &self,
        user: UserId,
        session: SessionId,
        input: UserInput,
    ) -> Result<UserInput, NaviError> {
        let mut input = input::validate(input)?;
        if !input.files.is_empty() {
            self.refuse_when_closed()?;
            self.find(OpenSession::as_participant(user, session))
                .await?;
            let (files, refs) = (self.services.files.clone(), input.files.clone());
            let attached = self.here(async move { files.attach(session, &refs).await });
            input.attached = attached.await?;
        }
        input.author = self.author(user).await?;
        Ok(input)
    }

    /// Does it on the service's own runtime, as [`Engine::stored`].
    pub(super) async fn here<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, NaviError>> + Send + 'static,
    ) -> Result<T, NaviError> {
        let work = AbortOnDropHandle::new(self.runtime.spawn(work));
        work.await.unwrap_or_else(|error| {
            tracing::error!(%error, "work on a file went down");
            Err(went_down())
        })
    }
}

fn went_down() -> NaviError {
    NaviError::said(ErrorCode::Internal, PhraseCode::SomethingFailed)
}
