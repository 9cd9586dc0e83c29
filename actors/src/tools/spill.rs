//! Results that are longer than the model is given: cut in the middle, and kept whole in a file of
//! the workspace that it can read.

use std::io::{self, Write as _};
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use super::output::{RESULT_LIMIT_BYTES, cut_middle};
use super::{ToolContext, ToolError};
use crate::protocol::ids::CallId;

/// The folder in the session's workspace, where a tool has none of its own.
const FOLDER: &str = "tool_output";

/// A result as the model gets it. One that is too long is cut in the middle, and kept whole in
/// the session's workspace; where that fails it is only cut. Blocks.
pub(super) fn bounded(text: String, workspace: &Path, call_id: &CallId) -> String {
    if text.len() <= RESULT_LIMIT_BYTES {
        return text;
    }
    let note = match write(workspace, FOLDER, &format!("{call_id}.txt"), &text) {
        Ok(path) => format!("\n[the whole output is in the file {path}]"),
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

/// Keeps a text in this folder of the call's workspace, for a tool that bounds its results by
/// itself. Gives back the file's path there.
pub(super) async fn keep(
    context: &ToolContext,
    folder: &'static str,
    name: String,
    text: String,
) -> io::Result<String> {
    let workspace = context.workspace.clone();
    tokio::task::spawn_blocking(move || write(&workspace, folder, &name, &text)).await?
}

/// Opened from the workspace down, so that no link that a command made leads out; what stands in
/// the file's place, a hard link maybe, is not written to.
fn write(workspace: &Path, folder: &str, name: &str, text: &str) -> io::Result<String> {
    let workspace = Dir::open_ambient_dir(workspace, ambient_authority())?;
    workspace.create_dir_all(folder)?;
    let path = format!("{folder}/{name}");
    // As a rule there is none.
    let _ = workspace.remove_file(&path);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = workspace.open_with(&path, &options)?;
    file.write_all(text.as_bytes())?;
    Ok(path)
}
