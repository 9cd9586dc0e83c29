//! What the operating system refused, in words that tell the model what to do next.

use std::io;

use crate::tools::ToolError;
use crate::tools::output::visible;

/// The error of a call on `shown`, a path as messages show it.
pub(super) fn fault(shown: &str, error: &io::Error) -> ToolError {
    let shown = visible(shown);
    // The directory handle reports a way out of the workspace as a refusal of its own making,
    // so it carries no number of the operating system's.
    if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        return ToolError(format!(
            "`{shown}` leads out of the workspace by a link; only files inside of it can be used"
        ));
    }
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "does not exist; list shows what there is".to_owned(),
        io::ErrorKind::PermissionDenied => "may not be used: its permissions forbid it".to_owned(),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "cannot be reached: a part of the path is a file, no directory; choose another path"
                .to_owned()
        }
        io::ErrorKind::IsADirectory => "is a directory; name a file in it".to_owned(),
        io::ErrorKind::InvalidFilename => "is too long a name; use a shorter one".to_owned(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "cannot be written: the disk is full; tell the user".to_owned()
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "cannot be written: the disk is read-only; tell the user".to_owned()
        }
        _ => format!("cannot be used: {error}"),
    };
    ToolError(format!("`{shown}` {reason}"))
}
