//! `view_image`: an image of the workspace before the model's eyes (SPEC section 11).

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::read;
use super::output::{human_size, shown};
use super::schema::spec_of;
use super::workspace::{Reach, Spot, read_whole};
use super::{Provenance, Tool, ToolContext, ToolImage, ToolOutput, ToolResult, blocking};
use crate::documents;
use crate::protocol::powers::Powers;
use crate::protocol::tool::{Effect, ToolSpec};

/// The tool's name on the wire.
pub const NAME: &str = "view_image";

const DESCRIPTION: &str = "Look at an image file of the workspace (PNG, JPEG, GIF, WebP, BMP). \
    The image itself is shown to you after the call. Files that the user attached are in \
    uploads/.";

/// The largest file.
const MAX_BYTES: u64 = 50 * 1024 * 1024;

/// Which image.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"path": "uploads/3f9a1c02.png"}))]
struct ViewArgs {
    /// The image's path in the workspace.
    path: String,
}

tool!(
    ViewImage,
    SPEC = spec_of::<ViewArgs>(NAME, DESCRIPTION, Effect::Read, 60_000)
);

#[async_trait]
impl Tool for ViewImage {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
    }

    // What is written in a picture is as little an order as what is written in a file.
    fn provenance(&self, _: &Value) -> Provenance {
        Provenance::Workspace
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let args: ViewArgs = read(args)?;
        refuse_if!(
            !context.sees_images,
            "this model cannot see images; tell the user so, and that a profile with a model that sees images can look at it"
        );
        let named = shown(&args.path);
        let workspace = context.workspace;
        let permit = documents::permit().await;
        // A regular file of the workspace, whole. Nothing leads out of it, and nothing is waited for.
        let bytes = blocking(NAME, move || {
            let Spot { root, path } = Reach::inside(&workspace).spot(args.path.trim())?;
            read_whole(root.open_file(&path)?, shown(&args.path), MAX_BYTES)
        });
        let bytes = bytes.await?;
        let size = human_size(bytes.len() as u64);
        let image = permit.image(bytes).await;
        let image = image.map_err(|problem| refusal!("`{named}` cannot be shown: {problem}"))?;
        Ok(ToolOutput {
            text: format!(
                "`{named}` ({}×{} pixels, {size}) is shown below",
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

#[cfg(test)]
#[path = "view_image_tests.rs"]
mod tests;
