//! A root as an open directory, and the ways in which files of it are opened: the session's
//! workspace, or a directory that is allowed beside it.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, MetadataExt as _, OpenOptions};
use tokio_util::sync::CancellationToken;

use super::WorkspaceLimits;
use super::closed::{Closed, Identity, identity};
use super::fault::{OrFault as _, check_open, ends_with_slash, fault, if_there, is_directory};
use super::path::InnerPath;
use super::reach::{Limits, Reach};
use super::walk::{MAX_DEPTH, Rules};
use crate::tools::ToolResult;
use crate::tools::output::human_size;

/// A root, as one call has it open.
#[derive(Debug)]
pub(crate) struct Root {
    pub(super) dir: Dir,
    pub(crate) limits: Limits,
    pub(crate) stop: CancellationToken,
    /// Its path, beyond the workspace.
    outside: Option<PathBuf>,
    /// What stays closed in it. Nothing in the workspace does, and no way leads out of that.
    closed: Closed,
    /// How many names each file with several has in the workspace.
    names: OnceCell<HashMap<Identity, u64>>,
}

/// A name in a directory that is open.
#[derive(Debug)]
pub(crate) struct Location {
    pub(crate) directory: Dir,
    pub(crate) name: OsString,
}

impl Location {
    /// What stands there, where something does. A link is itself.
    pub(crate) fn metadata(&self) -> io::Result<Option<Metadata>> {
        if_there(self.directory.symlink_metadata(&self.name))
    }

    /// The file that stands there, open for reading. A link is not followed.
    pub(crate) fn open(&self) -> io::Result<File> {
        open_nonblocking(&self.directory, Path::new(&self.name))
    }
}

impl Root {
    /// The session's workspace, or a directory that is allowed beside it. The closed places in that
    /// stay closed.
    pub(super) fn open(reach: &Reach, outside: Option<&Path>) -> ToolResult<Self> {
        let mut closed = Closed::default();
        let dir = if let Some(path) = outside {
            let dir = Dir::open_ambient_dir(path, ambient_authority()).or_fault(path.display())?;
            closed = Closed::of(&reach.access.closed, path);
            check_open(path.display(), closed.allows_directory(&dir))?;
            dir
        } else {
            open(&reach.workspace).map_err(|error| {
                tracing::error!(%error, "a session's workspace cannot be opened");
                refusal!("the workspace cannot be opened; tell the user")
            })?
        };
        Ok(Self {
            dir,
            limits: reach.limits,
            stop: reach.stop.clone(),
            outside: outside.map(Path::to_owned),
            closed,
            names: OnceCell::new(),
        })
    }

    /// Ends the work when nobody waits for it any longer.
    pub(crate) fn check_stop(&self) -> ToolResult<()> {
        refuse_if!(
            self.stop.is_cancelled(),
            "stopped before anything was written"
        );
        Ok(())
    }

    /// Whether a walk passes an entry by because it is closed.
    pub(super) fn is_closed(&self, directory: &Dir, name: &Path) -> bool {
        self.outside.is_some()
            && (!self.closed.allows_name(directory, name.as_os_str())
                || directory
                    .symlink_metadata(name)
                    .is_ok_and(|metadata| !self.closed.allows(&metadata)))
    }

    /// The path with its links resolved where the whole machine is the root: links there are
    /// absolute as often as not, and none of them leads out.
    pub(super) fn real(&self, path: &Path) -> PathBuf {
        if self.outside.as_deref() != Some(Path::new("/")) {
            return path.to_owned();
        }
        Path::new("/")
            .join(path)
            .canonicalize()
            .ok()
            .and_then(|real| real.strip_prefix("/").map(Path::to_owned).ok())
            .filter(|real| !real.as_os_str().is_empty())
            .unwrap_or_else(|| path.to_owned())
    }

    /// A directory that is not closed, links inside of the root followed; none where it is not
    /// there. Errors name the path that it is opened for.
    pub(super) fn directory(
        &self,
        path: &Path,
        on_behalf_of: &InnerPath,
    ) -> ToolResult<Option<Dir>> {
        let path = on_behalf_of.at(path);
        let opened = if_there(self.dir.open_dir(self.real(path.as_path())));
        let opened = opened.or_fault(on_behalf_of)?;
        if let Some(directory) = &opened {
            check_open(on_behalf_of, self.closed.allows_directory(directory))?;
        }
        Ok(opened)
    }

    /// The directory that holds what the path names, and the name there; none where the
    /// directory is not there, and for the root itself.
    pub(crate) fn location(&self, path: &InnerPath) -> ToolResult<Option<Location>> {
        self.location_of(path.prefix(), path)
    }

    /// The same for another path, with the errors of the one that it is looked at for.
    fn location_of(&self, path: &Path, on_behalf_of: &InnerPath) -> ToolResult<Option<Location>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let Some(directory) = self.directory(parent, on_behalf_of)? else {
            return Ok(None);
        };
        check_open(on_behalf_of, self.closed.allows_name(&directory, name))?;
        Ok(Some(Location {
            directory,
            name: name.to_owned(),
        }))
    }

    /// The same where the directory has to be there.
    pub(crate) fn place(&self, path: &InnerPath) -> ToolResult<Location> {
        self.location(path)?.ok_or_else(|| self.missing(path))
    }

    /// Whether the path is a directory, links inside of the root followed.
    pub(crate) fn is_directory(&self, path: &InnerPath) -> ToolResult<bool> {
        match self.dir.metadata(self.real(path.as_path())) {
            Ok(metadata) => Ok(metadata.is_dir()),
            Err(error) => Err(self.told(path, &error)),
        }
    }

    /// A regular file, open for reading; links inside of the root are followed. They are resolved
    /// first, so that the last step follows none: what was checked is what is opened.
    pub(crate) fn open_file(&self, path: &InnerPath) -> ToolResult<File> {
        self.check_names_file(path)?;
        let told = |error: io::Error| self.told(path, &error);
        let real = self.dir.canonicalize(self.real(path.as_path()));
        let at = self.location_of(&real.map_err(told)?, path)?;
        let file = at.ok_or_else(|| is_directory(path))?.open().map_err(told)?;
        self.check_readable(path, &file.metadata().or_fault(path)?)?;
        Ok(file)
    }

    /// Refuses what is no regular file, what is closed, and a name in the workspace of a file
    /// that has other names elsewhere.
    pub(crate) fn check_readable(&self, path: impl Display, metadata: &Metadata) -> ToolResult<()> {
        check_regular(&path, metadata)?;
        check_open(&path, self.closed.allows(metadata))?;
        self.check_names(&path, metadata)
    }

    /// A hard link is a way out that no path shows. Links that stay in the workspace, as build
    /// tools make them, are none: every name of the file is found there.
    fn check_names(&self, path: impl Display, metadata: &Metadata) -> ToolResult<()> {
        if self.outside.is_some() || metadata.nlink() <= 1 {
            return Ok(());
        }
        let inside = self.names.get_or_init(|| {
            let mut names = HashMap::new();
            let start = InnerPath::workspace();
            let walked = self.walk(&start, Rules::Everything, MAX_DEPTH, |entry| {
                if entry.file_type.is_file()
                    && let Some(metadata) = entry.metadata()
                    && metadata.nlink() > 1
                {
                    *names.entry(identity(&metadata)).or_default() += 1;
                }
            });
            // What could not be counted is outside.
            walked.map(|_| names).unwrap_or_default()
        });
        refuse_if!(
            inside.get(&identity(metadata)).copied().unwrap_or(0) < metadata.nlink(),
            "`{path}` is a hard link: the same file has a name outside of the workspace, so it is neither read nor changed here; ask the user for a copy"
        );
        Ok(())
    }

    /// Where the path would be written; none where its directory is not there. A link is no
    /// target: what is written goes where the path says, or nowhere.
    pub(crate) fn target(&self, path: &InnerPath) -> ToolResult<Option<Location>> {
        self.check_names_file(path)?;
        let Some(at) = self.location(path)? else {
            return Ok(None);
        };
        if let Some(existing) = at.metadata().or_fault(path)? {
            refuse_if!(
                existing.is_symlink(),
                "`{path}` is a link; write to the file that it points to, or choose another path"
            );
            self.check_readable(path, &existing)?;
        }
        Ok(Some(at))
    }

    /// What stands at a path, whatever it is, so that it can be taken away. A link is itself.
    pub(crate) fn standing(&self, path: &InnerPath) -> ToolResult<(Location, Metadata)> {
        self.check_stop()?;
        refuse_if!(
            path.is_root(),
            "{} itself is not moved or deleted; name something in it",
            path.place()
        );
        let at = self.place(path)?;
        let metadata = at.metadata().or_fault(path)?;
        let metadata = metadata.ok_or_else(|| self.missing(path))?;
        if path.names_directory() && !metadata.is_dir() {
            return Err(ends_with_slash(path));
        }
        check_open(path, self.closed.allows_whole(&metadata))?;
        Ok((at, metadata))
    }

    /// Makes the directories that lead to a path, one by one, so that each is checked. Gives
    /// back those that were not there.
    pub(crate) fn create_parents(&self, path: &InnerPath) -> ToolResult<Vec<PathBuf>> {
        let mut made = Vec::new();
        let parent = path.prefix().parent().unwrap_or(Path::new(""));
        if self.directory(parent, path)?.is_some() {
            return Ok(made);
        }
        self.check_room(0, parent.components().count())?;
        let mut directory = PathBuf::new();
        for name in parent {
            directory.push(name);
            let inner = path.at(&directory);
            let at = self.place(&inner)?;
            match at.directory.create_dir(&at.name) {
                Ok(()) => made.push(directory.clone()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(fault(&inner, &error)),
            }
        }
        Ok(made)
    }

    /// Refuses the root itself, and a path with a slash at its end.
    fn check_names_file(&self, path: &InnerPath) -> ToolResult<()> {
        if !path.names_directory() {
            Ok(())
        } else if self.dir.is_dir(self.real(path.as_path())) {
            Err(is_directory(path))
        } else {
            Err(ends_with_slash(path))
        }
    }

    /// Refuses a change that would make the workspace larger than it may be.
    pub(crate) fn check_room(&self, added_bytes: u64, added_entries: usize) -> ToolResult<()> {
        let most = self.limits.workspace;
        // The machine's other directories are their owner's to fill.
        if (added_bytes == 0 && added_entries == 0)
            || self.outside.is_some()
            || most == WorkspaceLimits::NONE
        {
            return Ok(());
        }
        let mut bytes = added_bytes;
        let mut entries = added_entries as u64;
        let start = InnerPath::workspace();
        // One more than may be there tells that there are too many.
        let room = usize::try_from(most.entries).map_or(usize::MAX, |most| most.saturating_add(1));
        self.walk_at_most(room, &start, Rules::Everything, MAX_DEPTH, |entry| {
            entries += 1;
            if entry.file_type.is_file() {
                bytes = bytes.saturating_add(entry.size());
            }
        })?;
        refuse_if!(
            bytes > most.bytes,
            "the workspace would have {}, and {} is the limit; make files smaller, or tell the user",
            human_size(bytes),
            human_size(most.bytes)
        );
        refuse_if!(
            entries > most.entries,
            "the workspace would have more than {} files and directories, which is the limit; put more into one file, or tell the user",
            most.entries
        );
        Ok(())
    }
}

/// A session's workspace as a directory that no path leads out of, for Navi's own files in it.
pub(crate) fn open(workspace: &Path) -> io::Result<Dir> {
    Dir::open_ambient_dir(workspace, ambient_authority())
}

/// Opens for reading without waiting for anything: a named pipe would keep the thread for ever.
/// No link is followed at the name itself.
pub(crate) fn open_nonblocking(directory: &Dir, name: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    directory.open_with(name, &options)
}

/// The bytes of an open file: of a regular one, and of no more than `limit` bytes, however it
/// grows meanwhile.
pub(crate) fn read_whole(file: File, path: impl Display, limit: u64) -> ToolResult<Vec<u8>> {
    let metadata = file.metadata().or_fault(&path)?;
    check_regular(&path, &metadata)?;
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .or_fault(&path)?;
    refuse_if!(
        bytes.len() as u64 > limit,
        "`{path}` has {}, and files of at most {} can be opened here",
        human_size(metadata.len().max(bytes.len() as u64)),
        human_size(limit)
    );
    Ok(bytes)
}

fn check_regular(path: impl Display, metadata: &Metadata) -> ToolResult<()> {
    if metadata.is_dir() {
        return Err(is_directory(path));
    }
    refuse_if!(
        !metadata.is_file(),
        "`{path}` is no regular file (a pipe, a socket or a device); choose another path"
    );
    Ok(())
}
