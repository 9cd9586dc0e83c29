//! The workspace as an open directory, and the ways in which files of it are opened.

use std::io::{self, Read as _};
use std::path::Path;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use tokio_util::sync::CancellationToken;

use super::fault::fault;
use super::path::WorkspacePath;
use super::walk::{Kind, Rules, Walk};
use crate::tools::ToolError;
use crate::tools::arguments::nearest;
use crate::tools::output::{human_size, visible};

/// As many names of a directory as an error for a missing file shows.
const SUGGESTED_NAMES: usize = 10;
/// As many names of a directory as an error for a missing file looks at.
const COMPARED_NAMES: usize = 1_000;

/// What a workspace may hold, and what one call may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Of a file that is written or edited.
    pub(super) write_bytes: u64,
    /// Of a file that is read or searched.
    pub(super) read_bytes: u64,
    /// Of all files together. Counted before a call that adds to them.
    pub(super) workspace_bytes: u64,
    /// Of files and directories. Counted before a call that adds one.
    pub(super) workspace_entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            write_bytes: 4 << 20,
            read_bytes: 16 << 20,
            workspace_bytes: 1 << 30,
            workspace_entries: 20_000,
        }
    }
}

/// The session's directory, as one call has it open.
#[derive(Debug)]
pub(super) struct Workspace {
    pub(super) root: Dir,
    pub(super) limits: Limits,
    pub(super) stop: CancellationToken,
}

/// Where a file is to be written: its directory, its name, and what stands there now.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) directory: Dir,
    pub(super) name: String,
    /// A regular file, always.
    pub(super) existing: Option<Metadata>,
}

impl Workspace {
    pub(super) fn open(
        path: &Path,
        limits: Limits,
        stop: CancellationToken,
    ) -> Result<Self, ToolError> {
        let root = Dir::open_ambient_dir(path, ambient_authority()).map_err(|error| {
            tracing::error!(%error, "a session's workspace cannot be opened");
            ToolError("the workspace cannot be opened; tell the user".to_owned())
        })?;
        Ok(Self { root, limits, stop })
    }

    /// Ends the work when nobody waits for it any longer.
    pub(super) fn check_stop(&self) -> Result<(), ToolError> {
        if self.stop.is_cancelled() {
            return Err(ToolError("stopped before anything was written".to_owned()));
        }
        Ok(())
    }

    pub(super) fn open_directory(&self, path: &WorkspacePath) -> Result<Dir, ToolError> {
        self.root
            .open_dir(path.as_path())
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => self.missing(path),
                _ => fault(&path.shown(), &error),
            })
    }

    /// Whether the path is a directory, links inside of the workspace followed.
    pub(super) fn is_directory(&self, path: &WorkspacePath) -> Result<bool, ToolError> {
        match self.root.metadata(path.as_path()) {
            Ok(metadata) => Ok(metadata.is_dir()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.missing(path)),
            Err(error) => Err(fault(&path.shown(), &error)),
        }
    }

    /// A file's bytes; links inside of the workspace are followed.
    pub(super) fn read_file(&self, path: &WorkspacePath) -> Result<Vec<u8>, ToolError> {
        let shown = path.shown();
        self.check_names_file(path)?;
        let file = match open_nonblocking(&self.root, path.as_path(), FollowSymlinks::Yes) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.missing(path));
            }
            Err(error) => return Err(fault(&shown, &error)),
        };
        read_whole(file, &shown, self.limits.read_bytes)
    }

    /// Where the path would be written. Its directory must exist. A link is no target: what is
    /// written goes where the path says, or nowhere.
    pub(super) fn target(&self, path: &WorkspacePath) -> Result<Target, ToolError> {
        let shown = path.shown();
        self.check_names_file(path)?;
        let Some(name) = path.prefix().file_name() else {
            return Err(is_directory(&shown));
        };
        let directory = match path.prefix().parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.root.open_dir(parent),
            _ => self.root.try_clone(),
        };
        let directory = directory.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.missing(path),
            _ => fault(&shown, &error),
        })?;
        let existing = match directory.symlink_metadata(name) {
            Ok(metadata) if metadata.is_symlink() => {
                return Err(ToolError(format!(
                    "`{shown}` is a link; write to the file that it points to, or choose another path"
                )));
            }
            Ok(metadata) if metadata.is_dir() => return Err(is_directory(&shown)),
            Ok(metadata) if !metadata.is_file() => return Err(is_special(&shown)),
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fault(&shown, &error)),
        };
        Ok(Target {
            directory,
            name: name.to_string_lossy().into_owned(),
            existing,
        })
    }

    /// Refuses the workspace itself, and a path with a slash at its end.
    pub(super) fn check_names_file(&self, path: &WorkspacePath) -> Result<(), ToolError> {
        let shown = path.shown();
        if !path.names_directory() {
            Ok(())
        } else if self.root.is_dir(path.as_path()) {
            Err(is_directory(&shown))
        } else {
            Err(ToolError(format!(
                "`{shown}/` ends with a slash, as only directories do; leave the slash out"
            )))
        }
    }

    /// Refuses a change that would make the workspace larger than it may be.
    pub(super) fn check_room(
        &self,
        added_bytes: u64,
        added_entries: usize,
    ) -> Result<(), ToolError> {
        if added_bytes == 0 && added_entries == 0 {
            return Ok(());
        }
        let mut bytes = added_bytes;
        let mut entries = added_entries;
        let walk = Walk::new(self, Rules::Everything);
        walk.run(&WorkspacePath::root(), |entry| {
            entries += 1;
            if entry.kind == Kind::File {
                bytes = bytes.saturating_add(entry.size());
            }
            Ok(())
        })?;
        let Limits {
            workspace_bytes,
            workspace_entries,
            ..
        } = self.limits;
        if bytes > workspace_bytes {
            return Err(ToolError(format!(
                "the workspace would have {}, and {} is the limit; make files smaller, or tell the user",
                human_size(bytes),
                human_size(workspace_bytes)
            )));
        }
        if entries > workspace_entries {
            return Err(ToolError(format!(
                "the workspace would have more than {workspace_entries} files and directories, which is the limit; put more into one file, or tell the user"
            )));
        }
        Ok(())
    }

    /// The error for a path that does not exist, with what is near it.
    pub(super) fn missing(&self, path: &WorkspacePath) -> ToolError {
        let mut directory = Path::new("").to_owned();
        let mut absent = None;
        for name in path.prefix() {
            let next = directory.join(name);
            // A link that leads nowhere is there, and yet is not.
            if self.root.metadata(&next).is_err() {
                absent = Some(name.to_string_lossy().into_owned());
                break;
            }
            directory = next;
        }
        let shown = path.shown();
        let mut text = format!("`{shown}` does not exist");
        let Some(absent) = absent else {
            return ToolError(text);
        };
        let names = self.names(&directory);
        let place = if directory.as_os_str().is_empty() {
            "the workspace".to_owned()
        } else {
            format!("`{}`", directory.display())
        };
        if let Some(near) = nearest(&absent, names.iter().map(String::as_str)) {
            let near = directory.join(near);
            text.push_str(&format!(
                "; did you mean `{}`?",
                visible(&near.display().to_string())
            ));
        } else if names.is_empty() {
            text.push_str(&format!("; {place} is empty"));
        } else {
            let more = if names.len() > SUGGESTED_NAMES {
                ", …"
            } else {
                ""
            };
            let first: Vec<String> = names
                .iter()
                .take(SUGGESTED_NAMES)
                .map(|name| visible(name))
                .collect();
            text.push_str(&format!("; {place} has {}{more}", first.join(", ")));
        }
        ToolError(text)
    }

    fn names(&self, directory: &Path) -> Vec<String> {
        let path = if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            directory
        };
        let Ok(entries) = self.root.read_dir(path) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .take(COMPARED_NAMES)
            .filter_map(Result::ok)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Opens for reading without waiting for anything: a named pipe would keep the thread for ever.
pub(super) fn open_nonblocking(
    directory: &Dir,
    path: &Path,
    follow: FollowSymlinks,
) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).follow(follow).nonblock(true);
    directory.open_with(path, &options)
}

/// The bytes of an open file: of a regular one, and of no more than `limit` bytes, however it
/// grows meanwhile.
pub(super) fn read_whole(file: File, shown: &str, limit: u64) -> Result<Vec<u8>, ToolError> {
    let metadata = file.metadata().map_err(|error| fault(shown, &error))?;
    if metadata.is_dir() {
        return Err(is_directory(shown));
    }
    if !metadata.is_file() {
        return Err(is_special(shown));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| fault(shown, &error))?;
    if bytes.len() as u64 > limit {
        return Err(ToolError(format!(
            "`{shown}` has {}, and files of at most {} can be opened here",
            human_size(metadata.len().max(bytes.len() as u64)),
            human_size(limit)
        )));
    }
    Ok(bytes)
}

fn is_directory(shown: &str) -> ToolError {
    ToolError(format!(
        "`{shown}` is a directory; name a file, or use list"
    ))
}

fn is_special(shown: &str) -> ToolError {
    ToolError(format!(
        "`{shown}` is no regular file (a pipe, a socket or a device); choose another path"
    ))
}
