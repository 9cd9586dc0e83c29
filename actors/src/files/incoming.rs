//! Files on their way in: streamed to disk, bounded, and nothing of them left unless all of
//! the upload came.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::shelf::Draft;
use super::{SessionFiles, not_stored};
use crate::background::on_files;
use crate::documents::{self, Examined};
use crate::domain::files::{MAX_INLINE_BYTES, label, path_of};
use crate::people::Turn;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::file::{AttachedFile, FileSource, SessionFile};
use crate::protocol::ids::{FileId, SessionId};
use crate::root::store_error;
use crate::services::now;
use crate::store::{FileQuota, NewFile, StoreError, StoredFile};

/// One file of an upload.
#[derive(Debug)]
struct Part {
    name: String,
    draft: Draft,
    file: Arc<File>,
    bytes: u64,
}

/// What comes in small pieces is written in large ones, and the disk has each before more is taken:
/// behind much that is written at a stroke wait everybody else's writes.
const PIECE_BYTES: usize = 1024 * 1024;

/// What is written of a file beside itself.
#[derive(Debug)]
struct Made {
    new: NewFile,
    drafts: Vec<(Draft, PathBuf)>,
}

/// An upload on its way. Dropping it leaves nothing.
#[derive(Debug)]
pub struct Upload {
    files: SessionFiles,
    session: SessionId,
    /// What the session has room for.
    room: FileQuota,
    /// What all sessions of its owner have room for.
    owner_room: u64,
    parts: Vec<Part>,
    /// What came of the last of them and is not written yet.
    gathered: Vec<u8>,
    turn: Turn,
    _permit: OwnedSemaphorePermit,
}

/// What there is for an upload.
#[derive(Debug)]
pub struct Whose {
    /// The turn of who uploads.
    pub turn: Turn,
    /// How many bytes of files the session's owner has room for, in all their sessions.
    pub room: u64,
}

impl Whose {
    /// Of one who shares with nobody.
    #[cfg(test)]
    pub(super) fn alone() -> Self {
        Self {
            turn: Turn::free(),
            room: u64::MAX,
        }
    }
}

impl SessionFiles {
    /// Begins an upload of about `announced` bytes, where that is known.
    ///
    /// # Errors
    /// `rate_limited` while many others are on their way; `file_too_large` and `too_many_files`
    /// where the session has no room; what the store says.
    pub async fn begin(
        &self,
        session: SessionId,
        announced: Option<u64>,
        whose: Whose,
    ) -> Result<Upload, NaviError> {
        let permit = self.uploads.clone().try_acquire_owned().map_err(|_| {
            NaviError::new(
                ErrorCode::RateLimited,
                "many uploads are on their way already; try again when one is done",
            )
        })?;
        let room = self.room(session).await?;
        let room = FileQuota {
            bytes: room.bytes.min(whose.room),
            ..room
        };
        let owner_room = whose.room;
        let upload = Upload {
            files: self.clone(),
            session,
            room,
            owner_room,
            parts: Vec::new(),
            gathered: Vec::new(),
            turn: whose.turn,
            _permit: permit,
        };
        // What stands around the files is small; without room for the rest there is no use.
        if announced.is_some_and(|bytes| bytes > room.bytes.saturating_add(1 << 20)) {
            return Err(upload.session_full(1));
        }
        Ok(upload)
    }

    /// What the session has room for, now.
    async fn room(&self, session: SessionId) -> Result<FileQuota, NaviError> {
        let held = self.store.files_held(session).await;
        let held = held.map_err(|error| store_error(&error))?;
        let quota = self.quota();
        Ok(FileQuota {
            files: quota.files.saturating_sub(held.files),
            bytes: quota.bytes.saturating_sub(held.bytes),
        })
    }
}

impl Upload {
    /// The next file begins, under its sender's name for it.
    ///
    /// # Errors
    /// `too_many_files`; what the disk says.
    pub async fn file(&mut self, name: &str) -> Result<(), NaviError> {
        let limit = self.files.limits.upload_files;
        if self.parts.len() >= limit {
            return Err(NaviError::new(
                ErrorCode::TooManyFiles,
                format!("an upload has at most {limit} files; send the others in another one"),
            ));
        }
        if self.parts.len() as u64 >= self.room.files {
            return Err(self.session_full(self.parts.len() + 1));
        }
        self.write_gathered().await?;
        let opened = self.files.shelf.draft().await;
        let (draft, file) = opened.map_err(|error| not_stored(&error))?;
        self.parts.push(Part {
            name: label(name),
            draft,
            file: Arc::new(file),
            bytes: 0,
        });
        Ok(())
    }

    /// More of the file that began last.
    ///
    /// # Errors
    /// `file_too_large`; what the disk says.
    pub async fn write(&mut self, bytes: &Bytes) -> Result<(), NaviError> {
        let limit = self.files.limits.file_bytes;
        let total: u64 = self.parts.iter().map(|part| part.bytes).sum();
        if total.saturating_add(bytes.len() as u64) > self.room.bytes {
            return Err(self.session_full(self.parts.len()));
        }
        let Some(part) = self.parts.last_mut() else {
            return Err(NaviError::new(
                ErrorCode::InvalidUpload,
                "the upload's content comes before its file",
            ));
        };
        part.bytes += bytes.len() as u64;
        if part.bytes > limit {
            return Err(NaviError::new(
                ErrorCode::FileTooLarge,
                format!(
                    "{:?} has more than {} MB, which is the limit (SESSION_FILES_MAX_SIZE_MB)",
                    part.name,
                    limit / (1024 * 1024)
                ),
            ));
        }
        if self.gathered.len() + bytes.len() > PIECE_BYTES {
            self.write_gathered().await?;
        }
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    async fn write_gathered(&mut self) -> Result<(), NaviError> {
        let Some(part) = self.parts.last().filter(|_| !self.gathered.is_empty()) else {
            return Ok(());
        };
        let (file, mut gathered) = (Arc::clone(&part.file), std::mem::take(&mut self.gathered));
        let written = on_files(move || {
            (&*file).write_all(&gathered)?;
            file.sync_all()?;
            gathered.clear();
            Ok(gathered)
        });
        let written = self.turn.heavy(written).await;
        self.gathered = written.map_err(|error| not_stored(&error))?;
        Ok(())
    }

    /// Everything came: the files are looked at, moved to their places and entered, all or none,
    /// and put where the session's tools find them.
    ///
    /// # Errors
    /// `invalid_upload` where there is no file, or an empty one; `too_many_files` and
    /// `file_too_large` where another upload was faster; what the disk and the store say.
    pub async fn finish(mut self) -> Result<Vec<SessionFile>, NaviError> {
        if self.parts.is_empty() {
            return Err(NaviError::new(
                ErrorCode::InvalidUpload,
                "the upload has no file; send each as a part with a filename",
            ));
        }
        if let Some(empty) = self.parts.iter().find(|part| part.bytes == 0) {
            return Err(NaviError::new(
                ErrorCode::InvalidUpload,
                format!(
                    "{:?} is empty; choose a file with something in it",
                    empty.name
                ),
            ));
        }
        self.write_gathered().await?;
        let mut made = Vec::new();
        for part in std::mem::take(&mut self.parts) {
            made.push(self.examined(part).await?);
        }
        self.enter(made).await
    }

    async fn examined(&self, part: Part) -> Result<Made, NaviError> {
        let Part {
            name, draft, bytes, ..
        } = part;
        // Closed only with the service.
        let _turn = self.files.readers.acquire().await;
        let examined = documents::examine(draft.path(), &name).await;
        let examined = examined.map_err(|error| not_stored(&error))?;
        let file_id = FileId::new();
        let shelf = &self.files.shelf;
        let session = self.session;
        let mut drafts = Vec::new();
        let file = AttachedFile {
            file_id,
            name,
            path: path_of(file_id, &examined.extension),
            media_type: examined.media_type.clone(),
            bytes,
            image: examined.image.is_some(),
        };
        let new = new_file(file, &examined);
        drafts.push((draft, shelf.content(session, file_id)));
        let beside = [
            (
                examined.converted_text.map(String::into_bytes),
                shelf.text(session, file_id),
            ),
            (
                examined.image.map(|image| image.bytes),
                shelf.view(session, file_id),
            ),
        ];
        for (bytes, place) in beside {
            let Some(bytes) = bytes else { continue };
            let written = shelf.written(bytes.into()).await;
            let draft = written.map_err(|error| not_stored(&error))?;
            drafts.push((draft, place));
        }
        Ok(Made { new, drafts })
    }

    async fn enter(mut self, made: Vec<Made>) -> Result<Vec<SessionFile>, NaviError> {
        let (files, session) = (self.files.clone(), self.session);
        let now = now();
        let mut entered = Vec::new();
        let moved = async {
            files.shelf.make_room(session).await?;
            for made in &made {
                for (draft, place) in &made.drafts {
                    files.shelf.place(draft, place).await?;
                }
            }
            files.shelf.settle(session).await
        };
        let moved = moved.await.map_err(|error| not_stored(&error));
        let added = match moved {
            Ok(()) => {
                let rows: Vec<NewFile> = made.iter().map(|made| made.new.clone()).collect();
                for new in &rows {
                    entered.push(files.shown(StoredFile {
                        file: new.file.clone(),
                        source: new.source,
                        has_text: new.text_bytes > 0,
                        problem: new.problem.clone(),
                        created_at: now,
                        last_used_at: now,
                    }));
                }
                let added = files.store.add_files(session, rows, files.quota(), now);
                match added.await {
                    Ok(true) => {
                        for file in made.iter().map(|made| &made.new.file) {
                            let lent = files.lend(session, file.file_id, &file.path);
                            if let Err(error) = self.turn.heavy(lent).await {
                                // Attaching it to a message tries again.
                                tracing::warn!(%error, "an upload is not in the workspace");
                            }
                        }
                        return Ok(entered);
                    }
                    // Another upload took the room meanwhile.
                    Ok(false) => Err(match files.room(session).await {
                        Ok(room) => {
                            self.room = room;
                            self.session_full(made.len())
                        }
                        Err(error) => error,
                    }),
                    Err(error @ StoreError::Unavailable(_)) => {
                        // Nobody knows what the database did: the janitor looks again later.
                        return Err(store_error(&error));
                    }
                    Err(error) => Err(store_error(&error)),
                }
            }
            Err(error) => Err(error),
        };
        for made in &made {
            files.shelf.remove(session, made.new.file.file_id).await;
        }
        added
    }

    /// Why it takes no `files` files more.
    fn session_full(&self, files: usize) -> NaviError {
        let limits = &self.files.limits;
        if files as u64 > self.room.files {
            return NaviError::new(
                ErrorCode::TooManyFiles,
                format!(
                    "a session holds at most {} files (NAVI_SESSION_FILES_MAX_COUNT); delete some, or begin another session",
                    limits.session_files
                ),
            );
        }
        if self.room.bytes >= self.owner_room {
            return NaviError::new(
                ErrorCode::FileTooLarge,
                format!(
                    "there is room for {} MB more in all conversations of this one's owner (NAVI_PERSON_FILES_MB); delete files or conversations, whose files go ten minutes later, or ask an admin for more",
                    self.owner_room / (1024 * 1024)
                ),
            );
        }
        NaviError::new(
            ErrorCode::FileTooLarge,
            format!(
                "a session's files have at most {} MB together (NAVI_SESSION_FILES_MAX_TOTAL_MB); delete some, or begin another session",
                limits.session_bytes / (1024 * 1024)
            ),
        )
    }
}

fn new_file(file: AttachedFile, examined: &Examined) -> NewFile {
    let text = examined.text.as_ref().map(|text| {
        let end = text.floor_char_boundary(MAX_INLINE_BYTES);
        text[..end].to_owned()
    });
    NewFile {
        file,
        source: FileSource::Upload,
        text,
        text_bytes: examined.text_bytes,
        problem: examined.problem.clone(),
    }
}
