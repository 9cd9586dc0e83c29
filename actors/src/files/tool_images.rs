//! Images that tools give back: made our own, stored, and from then on files of the session.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::SessionFiles;
use crate::documents;
use crate::domain::files::{FileView, FileViews, path_of};
use crate::protocol::file::{AttachedFile, FileSource};
use crate::protocol::ids::{FileId, SessionId};
use crate::services::now;
use crate::store::NewFile;
use crate::tools::ToolImage;

/// The most images of one call.
const MAX_IMAGES: usize = 4;

/// What became of a call's images.
#[derive(Debug, Default)]
pub struct KeptImages {
    pub files: Vec<AttachedFile>,
    /// What the model sees of them.
    pub views: FileViews,
    /// Why there are not as many as the call gave back, for the model.
    pub problems: Vec<String>,
}

impl SessionFiles {
    /// Stores the images of a call of `tool`.
    pub async fn keep_images(
        &self,
        session: SessionId,
        tool: &str,
        images: Vec<ToolImage>,
    ) -> KeptImages {
        let mut kept = KeptImages::default();
        let given = images.len();
        if given > MAX_IMAGES {
            kept.problems.push(format!(
                "only the first {MAX_IMAGES} of {given} images are shown"
            ));
        }
        for (index, image) in images.into_iter().take(MAX_IMAGES).enumerate() {
            let name = format!("{tool} {}", index + 1);
            match self.keep_image(session, &name, image).await {
                Ok((file, view)) => {
                    kept.views.insert(file.file_id, view);
                    kept.files.push(file);
                }
                Err(problem) => kept
                    .problems
                    .push(format!("image {} is not shown: {problem}", index + 1)),
            }
        }
        kept
    }

    async fn keep_image(
        &self,
        session: SessionId,
        name: &str,
        image: ToolImage,
    ) -> Result<(AttachedFile, FileView), String> {
        let prepared = documents::image(image.bytes).await;
        let prepared = prepared.map_err(|problem| problem.to_string())?;
        let file_id = FileId::new();
        let bytes = Bytes::from(prepared.bytes);
        let file = AttachedFile {
            file_id,
            name: format!("{name}.{}", prepared.extension),
            path: path_of(file_id, prepared.extension),
            media_type: prepared.media_type.to_owned(),
            bytes: bytes.len() as u64,
            image: true,
        };
        let stored = async {
            self.shelf.make_room(session).await?;
            // The image is of our making already: it is the file and what is shown of it.
            for place in [
                self.shelf.content(session, file_id),
                self.shelf.view(session, file_id),
            ] {
                let draft = self.shelf.written(bytes.clone()).await?;
                self.shelf.place(&draft, &place).await?;
            }
            self.shelf.settle(session).await
        };
        let problem = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "an image of a tool could not be stored");
            "it could not be stored".to_owned()
        };
        stored
            .await
            .map_err(|error: std::io::Error| problem(&error))?;
        let new = NewFile {
            file: file.clone(),
            source: FileSource::Tool,
            text: None,
            text_bytes: 0,
            problem: None,
        };
        let added = self
            .store
            .add_files(session, vec![new], self.quota(), now())
            .await;
        let refused = match added {
            Ok(true) => {
                let view = FileView {
                    image: Some(STANDARD.encode(&bytes).into()),
                    ..FileView::default()
                };
                return Ok((file, view));
            }
            Ok(false) => "the session holds as many files as it may; some have to be deleted first"
                .to_owned(),
            Err(error) => problem(&error),
        };
        self.shelf.remove(session, file_id).await;
        Err(refused)
    }
}
