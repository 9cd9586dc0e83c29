//! Files that come with a message.

use super::{SessionFiles, not_stored};
use crate::domain::input::no_such_file;
use crate::protocol::command::FileRef;
use crate::protocol::error::NaviError;
use crate::protocol::file::AttachedFile;
use crate::protocol::ids::{FileId, SessionId};
use crate::root::store_error;
use crate::services::now;

impl SessionFiles {
    /// Looks the files of a message up and sees to it that the session's tools find them, which
    /// is a use of them. In the order of `refs`.
    ///
    /// # Errors
    /// `file_not_found` for one that is not this session's; what the disk and the store say.
    pub async fn attach(
        &self,
        session: SessionId,
        refs: &[FileRef],
    ) -> Result<Vec<AttachedFile>, NaviError> {
        if refs.is_empty() {
            return Ok(Vec::new());
        }
        let paths: Vec<String> = refs.iter().map(|file| file.path.clone()).collect();
        let known = self.store.files_at(session, &paths).await;
        let known = known.map_err(|error| store_error(&error))?;
        let mut attached = Vec::with_capacity(refs.len());
        for path in &paths {
            let found = known.iter().find(|known| known.file.path == *path);
            attached.push(found.ok_or_else(|| no_such_file(path))?.file.clone());
        }
        let ids: Vec<FileId> = attached.iter().map(|file| file.file_id).collect();
        let used = self.store.use_files(session, &ids, now()).await;
        let used = used.map_err(|error| store_error(&error))?;
        for file in &attached {
            if !used.contains(&file.file_id) {
                return Err(no_such_file(&file.path));
            }
            let lent = self.lend(session, file.file_id, &file.path).await;
            lent.map_err(|error| not_stored(&error))?;
        }
        Ok(attached)
    }
}
