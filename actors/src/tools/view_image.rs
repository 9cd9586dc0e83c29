//! `view_image`: an image of the workspace before the model's eyes (SPEC section 11).

use std::io::Read as _;
use std::path::{Component, Path};

use async_trait::async_trait;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::read;
use super::output::{counted, human_size, shortened, visible};
use super::schema::schema_of;
use super::{Provenance, Tool, ToolContext, ToolError, ToolImage, ToolOutput, ToolResult};
use crate::documents;
use crate::domain::files::FILES_DIR;
use crate::protocol::tool::{Effect, ToolSpec};

/// The tool's name on the wire.
pub const NAME: &str = "view_image";

const DESCRIPTION: &str = "Look at an image file of the workspace (PNG, JPEG, GIF, WebP, BMP). \
    The image itself is shown to you after the call. Files that the user attached are in \
    uploads/.";

/// The largest file.
const MAX_BYTES: u64 = 50 * 1024 * 1024;
/// As much of a wrong path as an error shows.
const SHOWN_BYTES: usize = 120;
/// As many names of the uploads as an error shows.
const SHOWN_NAMES: usize = 20;

/// Which image.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"path": "uploads/3f9a1c02.png"}))]
struct ViewArgs {
    /// The image's path in the workspace.
    path: String,
}

/// The tool.
#[derive(Debug)]
pub struct ViewImage {
    spec: ToolSpec,
}

impl ViewImage {
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "a tool is never a default value"
    )]
    pub fn new() -> Self {
        Self {
            spec: ToolSpec {
                name: NAME.to_owned(),
                description: DESCRIPTION.to_owned(),
                parameters: schema_of::<ViewArgs>(),
                effect: Effect::Read,
                time_limit_ms: 60_000,
            },
        }
    }
}

#[async_trait]
impl Tool for ViewImage {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Read
    }

    // What is written in a picture is as little an order as what is written in a file.
    fn provenance(&self, _: &Value) -> Provenance {
        Provenance::Workspace
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let args: ViewArgs = read(args)?;
        if !context.sees_images {
            return Err(ToolError(
                "this model cannot see images; tell the user so, and that a profile with a model that sees images can look at it"
                    .to_owned(),
            ));
        }
        let shown = shortened(&args.path, SHOWN_BYTES);
        let workspace = context.workspace;
        let permit = documents::permit().await;
        let bytes = tokio::task::spawn_blocking(move || bytes_of(&workspace, &args.path)).await;
        let bytes = bytes.map_err(|error| {
            tracing::error!(%error, "an image could not be read");
            ToolError("the image could not be read; tell the user".to_owned())
        })??;
        let size = human_size(bytes.len() as u64);
        let image = permit.image(bytes).await;
        let image =
            image.map_err(|problem| ToolError(format!("`{shown}` cannot be shown: {problem}")))?;
        Ok(ToolOutput {
            text: format!(
                "`{shown}` ({}×{} pixels, {size}) is shown below",
                image.width, image.height
            ),
            images: vec![ToolImage {
                media_type: image.media_type.to_owned(),
                bytes: image.bytes,
            }],
            ..ToolOutput::default()
        })
    }
}

/// A regular file of the workspace, whole. Nothing leads out of it, and nothing is waited for.
fn bytes_of(workspace: &Path, path: &str) -> Result<Vec<u8>, ToolError> {
    let shown = shortened(path, SHOWN_BYTES);
    let root = Dir::open_ambient_dir(workspace, ambient_authority()).map_err(|error| {
        tracing::error!(%error, "a session's workspace cannot be opened");
        ToolError("the workspace cannot be opened; tell the user".to_owned())
    })?;
    let relative = path.trim().trim_start_matches("./");
    let inside = !relative.is_empty()
        && !relative.contains('\0')
        && Path::new(relative)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside {
        return Err(ToolError(format!(
            "`{shown}` is no path inside the workspace; give one like uploads/photo.png"
        )));
    }
    let mut options = OpenOptions::new();
    options
        .read(true)
        .follow(FollowSymlinks::Yes)
        .nonblock(true);
    let file = match root.open_with(relative, &options) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(missing(&root, &shown));
        }
        Err(error) => {
            return Err(ToolError(format!("`{shown}` cannot be opened: {error}")));
        }
    };
    let metadata = file.metadata();
    if !metadata.is_ok_and(|metadata| metadata.is_file()) {
        return Err(ToolError(format!(
            "`{shown}` is no file; name an image file"
        )));
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| ToolError(format!("`{shown}` cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ToolError(format!(
            "`{shown}` has more than {}, the most that can be shown; make it smaller",
            human_size(MAX_BYTES)
        )));
    }
    Ok(bytes)
}

fn missing(root: &Dir, shown: &str) -> ToolError {
    let mut names: Vec<String> = root
        .read_dir(FILES_DIR)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .take(1_000)
        .map(|entry| visible(&entry.file_name().to_string_lossy()))
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    let there = if names.is_empty() {
        format!("{FILES_DIR}/ is empty")
    } else {
        let count = counted(names.len(), "file");
        names.truncate(SHOWN_NAMES);
        format!("{FILES_DIR}/ has {count}: {}", names.join(", "))
    };
    ToolError(format!("`{shown}` does not exist; {there}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#[path = "view_image_tests.rs"]
mod tests;
