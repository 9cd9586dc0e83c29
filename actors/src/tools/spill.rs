//! Results that are longer than the model is given: cut in the middle, and kept whole in a file of
//! the workspace that it can read.

use std::io::{self, Write as _};
use std::path::Path;

use cap_tempfile::TempFile;

use super::output::{RESULT_LIMIT_BYTES, cut_middle};
use super::{ToolContext, ToolError, blocking, workspace};
use crate::protocol::ids::CallId;

/// The folder in the session's workspace.
const FOLDER: &str = "tool_output";

/// A result as the model gets it. One that is too long is cut in the middle, and kept whole in
/// the session's workspace; where that fails it is only cut. Blocks.
pub(super) fn bounded(text: String, workspace: &Path, call_id: &CallId) -> String {
    if text.len() <= RESULT_LIMIT_BYTES {
        return text;
    }
    let note = match write(workspace, &format!("{call_id}.txt"), &text) {
        Ok(path) => format!("\n[the whole output is in the file {path}]"),
        Err(error) => {
            tracing::warn!(%error, "a long result could not be kept");
            "\n[the whole output could not be kept]".to_owned()
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
    blocking("the result", move || {
        Ok(bounded(text, &workspace, &call_id))
    })
    .await
}

/// Opened from the workspace down, so that no link that a command made leads out; what stands in
/// the file's place, a hard link maybe, is not written to. The file is there whole, or not.
fn write(workspace: &Path, name: &str, text: &str) -> io::Result<String> {
    let workspace = workspace::open(workspace)?;
    workspace.create_dir_all(FOLDER)?;
    let folder = workspace.open_dir(FOLDER)?;
    let mut file = TempFile::new(&folder)?;
    file.write_all(text.as_bytes())?;
    file.replace(name)?;
    Ok(format!("{FOLDER}/{name}"))
}
