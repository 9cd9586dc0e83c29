//! What cannot be done with a path, in words that tell the model what to do next.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;

use itertools::Itertools as _;

use super::path::InnerPath;
use super::root::Root;
use crate::tools::arguments::nearest;
use crate::tools::output::visible;
use crate::tools::{ToolError, ToolResult};

/// As many names of a directory as an error for a missing file shows.
const SUGGESTED_NAMES: usize = 10;
/// As many names of a directory as an error for a missing file looks at.
const COMPARED_NAMES: usize = 1_000;

/// What the operating system says to a call on a path.
pub(crate) trait OrFault<T> {
    /// The error as [`fault`] words it.
    fn or_fault(self, path: impl Display) -> ToolResult<T>;
}

impl<T> OrFault<T> for io::Result<T> {
    fn or_fault(self, path: impl Display) -> ToolResult<T> {
        self.map_err(|error| fault(path, &error))
    }
}

/// None where there is no such thing.
pub(crate) fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The error of a call on a path, which is given as messages show it.
pub(crate) fn fault(path: impl Display, error: &io::Error) -> ToolError {
    let shown = visible(&path.to_string());
    // The directory handle reports a way out of the workspace as a refusal of its own making,
    // so it carries no number of the operating system's.
    if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        return refusal!(
            "`{shown}` leads out of the workspace by a link; only files inside of it can be used"
        );
    }
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "does not exist; look with the filesystem tool what there is",
        io::ErrorKind::PermissionDenied => "may not be used: its permissions forbid it",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "cannot be reached: a part of the path is a file, no directory; choose another path"
        }
        io::ErrorKind::IsADirectory => "is a directory; name a file in it",
        io::ErrorKind::InvalidFilename => "is too long a name; use a shorter one",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "cannot be written: the disk is full; tell the user"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "cannot be written: the disk is read-only; tell the user"
        }
        _ => return refusal!("`{shown}` cannot be used: {error}"),
    };
    refusal!("`{shown}` {reason}")
}

pub(super) fn is_directory(path: impl Display) -> ToolError {
    refusal!("`{path}` is a directory; name a file in it")
}

/// Refuses what is closed.
pub(super) fn check_open(path: impl Display, is_open: bool) -> ToolResult<()> {
    refuse_if!(
        !is_open,
        "`{path}` is closed to this tool: Navi's own data, settings, keys and tools, other conversations' files, and /proc, /sys and /dev are never opened; choose another path"
    );
    Ok(())
}

pub(super) fn ends_with_slash(path: &InnerPath) -> ToolError {
    refusal!("`{path}/` ends with a slash, as only directories do; leave the slash out")
}

impl Root {
    /// The error of a call on a path for which it has to be there.
    pub(super) fn told(&self, path: &InnerPath, error: &io::Error) -> ToolError {
        match error.kind() {
            io::ErrorKind::NotFound => self.missing(path),
            _ => fault(path, error),
        }
    }

    /// The error for a path that does not exist, with what is near it.
    pub(crate) fn missing(&self, path: &InnerPath) -> ToolError {
        let mut directory = PathBuf::new();
        let mut names = path.prefix().iter();
        let absent = loop {
            let Some(name) = names.next() else {
                return refusal!("`{path}` does not exist");
            };
            let next = directory.join(name);
            // A link that leads nowhere is there, and yet is not.
            if self.dir.metadata(self.real(&next)).is_err() {
                break name.to_string_lossy();
            }
            directory = next;
        };
        let directory = path.at(&directory);
        let opened = self.directory(directory.prefix(), &directory);
        let entries = opened.ok().flatten().map(|opened| opened.entries());
        let entries = entries.and_then(Result::ok);
        let entries = entries.into_iter().flatten().take(COMPARED_NAMES).flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let names: Vec<String> = names.sorted().collect();
        let near = if let Some(near) = nearest(&absent, names.iter().map(String::as_str)) {
            let near = directory.shown_as(&directory.prefix().join(near));
            format!("did you mean `{}`?", visible(&near))
        } else if names.is_empty() {
            format!("{} is empty", directory.place())
        } else {
            let mut first: Vec<String> = names.iter().map(|name| visible(name)).collect();
            if first.len() > SUGGESTED_NAMES {
                first.truncate(SUGGESTED_NAMES);
                first.push("…".to_owned());
            }
            format!("{} has {}", directory.place(), first.join(", "))
        };
        refusal!("`{path}` does not exist; {near}")
    }
}
