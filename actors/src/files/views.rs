//! What the model reads of files.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::SessionFiles;
use crate::domain::files::{FileView, FileViews, MAX_IMAGES_SHOWN};
use crate::protocol::file::AttachedFile;
use crate::protocol::ids::{FileId, SessionId};
use crate::protocol::message::Message;
use crate::services::now;

impl SessionFiles {
    /// What the model reads of the files of these messages, which is a use of them. Where the
    /// store or the disk fails, the conversation goes on without: each file is named at least.
    pub async fn views<'a>(
        &self,
        session: SessionId,
        messages: impl IntoIterator<Item = &'a Message>,
    ) -> FileViews {
        let files = files_of(messages);
        let ids: Vec<FileId> = files.iter().map(|file| file.file_id).collect();
        if !ids.is_empty()
            && let Err(error) = self.store.use_files(session, &ids, now()).await
        {
            tracing::warn!(%error, "the use of files could not be noted");
        }
        self.read_views(session, &files).await
    }

    /// The same for one who looks into what a model was sent: that is no use of a file, and
    /// keeps none.
    pub async fn views_again<'a>(
        &self,
        session: SessionId,
        messages: impl IntoIterator<Item = &'a Message>,
    ) -> FileViews {
        self.read_views(session, &files_of(messages)).await
    }

    async fn read_views(&self, session: SessionId, files: &[&AttachedFile]) -> FileViews {
        if files.is_empty() {
            return FileViews::new();
        }
        let ids: Vec<FileId> = files.iter().map(|file| file.file_id).collect();
        let texts = self.store.file_texts(session, &ids).await;
        let texts = texts.unwrap_or_else(|error| {
            tracing::error!(%error, "files of a conversation cannot be read");
            Vec::new()
        });
        let mut views: FileViews = texts
            .into_iter()
            .map(|known| {
                let view = FileView {
                    text: known.text.map(Arc::from),
                    text_bytes: known.text_bytes,
                    image: None,
                    problem: known.problem.map(|problem| problem.to_string()),
                    gone: known.gone,
                };
                (known.file_id, view)
            })
            .collect();
        let mut shown = 0;
        for file in files.iter().rev().filter(|file| file.image) {
            let Some(view) = views.get_mut(&file.file_id) else {
                continue;
            };
            if view.gone || view.image.is_some() || shown == MAX_IMAGES_SHOWN {
                continue;
            }
            match self.view(session, file.file_id).await {
                Ok(bytes) => {
                    view.image = Some(STANDARD.encode(bytes).into());
                    shown += 1;
                }
                // It was logged where it happened.
                Err(error) => view.problem = Some(error.message),
            }
        }
        views
    }
}

fn files_of<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<&'a AttachedFile> {
    let messages = messages.into_iter();
    messages.flat_map(|message| &message.files).collect()
}
