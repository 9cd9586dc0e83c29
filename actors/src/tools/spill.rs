//! Results that are longer than the model is given: kept whole in a file that it can read.

use std::io::Write as _;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::output::{RESULT_LIMIT_BYTES, cut_middle};
use super::{ToolContext, ToolError};
use crate::protocol::ids::CallId;

/// The folder in the session's workspace.
const FOLDER: &str = "tool_output";

/// A result as the model gets it. One that is too long is cut in the middle, and kept whole in
/// the session's workspace; where that fails it is only cut. Blocks.
pub(super) fn bounded(text: String, workspace: &Path, call_id: &CallId) -> String {
    if text.len() <= RESULT_LIMIT_BYTES {
        return text;
    }
    let name = format!("{FOLDER}/{call_id}.txt");
    let note = match keep(&text, workspace, &name) {
        Ok(()) => format!("\n[the whole output is in the file {name}]"),
        Err(error) => {
            tracing::warn!(%error, "a long result could not be kept");
            String::new()
        }
    };
    let mut cut = cut_middle(&text, RESULT_LIMIT_BYTES - note.len());
    cut.push_str(&note);
    cut
}

/// The same, for a call that has these surroundings.
pub(super) async fn bounded_for(text: String, context: &ToolContext) -> Result<String, ToolError> {
    if text.len() <= RESULT_LIMIT_BYTES {
        return Ok(text);
    }
    let (workspace, call_id) = (context.workspace.clone(), context.call_id.clone());
    tokio::task::spawn_blocking(move || bounded(text, &workspace, &call_id))
        .await
        .map_err(|_| ToolError("the result was lost; call the tool again".to_owned()))
}

fn keep(text: &str, workspace: &Path, name: &str) -> std::io::Result<()> {
    // A link in the workspace leads nowhere outside of it.
    let dir = Dir::open_ambient_dir(workspace, ambient_authority())?;
    dir.create_dir_all(FOLDER)?;
    dir.create(name)?.write_all(text.as_bytes())
}
