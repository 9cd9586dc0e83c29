//! What the header of a file that was chosen by its path says, for a probe to tell.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::architecture::Architecture;
use super::chat_model::MAX_WINDOW;
use super::error::ModelError;
use super::gguf::GgufFile;

/// Reads headers, and remembers the last: probes come often, and a header has megabytes.
#[derive(Debug, Default)]
pub(super) struct Inspector {
    /// Held for a moment only, never across an await.
    last: Mutex<Option<Inspected>>,
}

/// The header of one state of a file.
#[derive(Clone, Debug)]
struct Inspected {
    path: PathBuf,
    length: u64,
    window: Result<u32, ModelError>,
}

impl Inspector {
    /// The window that the model in this file has here, or why it cannot be used.
    pub(super) async fn window(&self, path: &Path) -> Result<u32, ModelError> {
        let length = tokio::fs::metadata(path)
            .await
            .map_err(|error| ModelError::Unreadable {
                path: path.display().to_string(),
                reason: error.to_string(),
            })?
            .len();
        let last = self.last.lock().clone();
        if let Some(last) = last.filter(|last| last.path == path && last.length == length) {
            return last.window;
        }
        let owned = path.to_owned();
        let read = tokio::task::spawn_blocking(move || {
            let architecture = Architecture::of(&GgufFile::open(&owned)?)?;
            Ok(u32::try_from(architecture.context.min(MAX_WINDOW)).unwrap_or(u32::MAX))
        });
        let window = match read.await {
            Ok(window) => window,
            Err(error) => Err(ModelError::Compute(error.to_string())),
        };
        *self.last.lock() = Some(Inspected {
            path: path.to_owned(),
            length,
            window: window.clone(),
        });
        window
    }
}
