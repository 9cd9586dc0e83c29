//! A root as an open directory, and the ways in which files of it are opened: the session's
//! workspace, or a directory that is allowed beside it.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, MetadataExt as _, OpenOptions};
use tokio_util::sync::CancellationToken;

use super::closed::{Closed, Identity};
use super::fault::fault;
use super::limits::Limits;
use super::path::InnerPath;
use super::walk::{Kind, Rules, Walk};
use crate::tools::ToolError;
use crate::tools::output::human_size;

/// A root, as one call has it open.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) dir: Dir,
    pub(super) limits: Limits,
    pub(super) stop: CancellationToken,
    /// Its path, beyond the workspace.
    pub(super) outside: Option<PathBuf>,
    /// What stays closed in it. Nothing in the workspace does, and no way leads out of that.
    closed: Option<Closed>,
    /// How many names each file with several has in the workspace.
    names: OnceCell<HashMap<Identity, u64>>,
}

/// Where a file is to be written: its directory, its name, and what stands there now.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) directory: Dir,
    pub(super) name: OsString,
    /// A regular file, always.
    pub(super) existing: Option<Metadata>,
}

impl Root {
    /// The session's workspace.
    pub(super) fn open(
        path: &Path,
        limits: Limits,
        stop: CancellationToken,
    ) -> Result<Self, ToolError> {
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(|error| {
            tracing::error!(%error, "a session's workspace cannot be opened");
            ToolError("the workspace cannot be opened; tell the user".to_owned())
        })?;
        Ok(Self {
            dir,
            limits,
            stop,
            outside: None,
            closed: None,
            names: OnceCell::new(),
        })
    }

    /// A directory that is allowed beside the workspace. The closed places in it stay closed.
    pub(super) fn outside(
        path: &Path,
        closed: &[PathBuf],
        limits: Limits,
        stop: CancellationToken,
    ) -> Result<Self, ToolError> {
        let shown = path.display().to_string();
        let dir = Dir::open_ambient_dir(path, ambient_authority())
            .map_err(|error| fault(&shown, &error))?;
        let closed = Closed::of(closed).but(path, closed);
        closed.check_directory(&shown, &dir)?;
        Ok(Self {
            dir,
            limits,
            stop,
            outside: Some(path.to_owned()),
            closed: Some(closed),
            names: OnceCell::new(),
        })
    }

    /// What messages call the root.
    pub(super) fn words(&self) -> String {
        match &self.outside {
            None => "the workspace".to_owned(),
            Some(path) => format!("`{}`", path.display()),
        }
    }

    /// What messages call a directory in it.
    pub(super) fn place(&self, path: &InnerPath) -> String {
        if path.is_root() {
            self.words()
        } else {
            format!("`{}`", path.shown())
        }
    }

    /// How messages show a path in it.
    pub(super) fn shown(&self, path: &Path) -> String {
        match &self.outside {
            None => path.display().to_string(),
            Some(root) => root.join(path).display().to_string(),
        }
    }

    /// Ends the work when nobody waits for it any longer.
    pub(super) fn check_stop(&self) -> Result<(), ToolError> {
        if self.stop.is_cancelled() {
            return Err(ToolError("stopped before anything was written".to_owned()));
        }
        Ok(())
    }

    /// Refuses a directory that was opened, where it is a closed place or lies in one.
    pub(super) fn check_directory(&self, shown: &str, directory: &Dir) -> Result<(), ToolError> {
        match &self.closed {
            None => Ok(()),
            Some(closed) => closed.check_directory(shown, directory),
        }
    }

    /// Whether a walk passes an entry by because it is closed.
    pub(super) fn is_closed(&self, directory: &Dir, name: &Path) -> bool {
        let Some(closed) = &self.closed else {
            return false;
        };
        closed.check_name("", directory, name.as_os_str()).is_err()
            || directory
                .symlink_metadata(name)
                .is_ok_and(|metadata| closed.check_metadata("", &metadata).is_err())
    }

    /// Refuses to take away something that is closed, or has something closed in it.
    pub(super) fn check_whole(
        &self,
        shown: &str,
        directory: &Dir,
        name: &Path,
        metadata: &Metadata,
    ) -> Result<(), ToolError> {
        match &self.closed {
            None => Ok(()),
            Some(closed) => {
                closed.check_name(shown, directory, name.as_os_str())?;
                closed.check_whole(shown, metadata)
            }
        }
    }

    /// The path with its links resolved where the whole machine is the root: links there are
    /// absolute as often as not, and none of them leads out.
    pub(super) fn real(&self, path: &Path) -> PathBuf {
        let Some(root) = &self.outside else {
            return path.to_owned();
        };
        if root != Path::new("/") {
            return path.to_owned();
        }
        root.join(path)
            .canonicalize()
            .ok()
            .and_then(|real| real.strip_prefix("/").map(Path::to_owned).ok())
            .filter(|real| !real.as_os_str().is_empty())
            .unwrap_or_else(|| path.to_owned())
    }

    pub(super) fn open_directory(&self, path: &InnerPath) -> Result<Dir, ToolError> {
        let shown = path.shown();
        let directory =
            self.dir
                .open_dir(self.real(path.as_path()))
                .map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => self.missing(path),
                    _ => fault(&shown, &error),
                })?;
        self.check_directory(&shown, &directory)?;
        Ok(directory)
    }

    /// The directory that holds what the path names, links inside of the root followed; none
    /// where it is not there.
    pub(super) fn parent(&self, path: &InnerPath) -> Result<Option<Dir>, ToolError> {
        let directory = match path.prefix().parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.dir.open_dir(self.real(parent)),
            _ => self.dir.try_clone(),
        };
        let shown = path.shown();
        match directory {
            Ok(directory) => {
                self.check_directory(&shown, &directory)?;
                if let (Some(closed), Some(name)) = (&self.closed, path.prefix().file_name()) {
                    closed.check_name(&shown, &directory, name)?;
                }
                Ok(Some(directory))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fault(&shown, &error)),
        }
    }

    /// Whether the path is a directory, links inside of the root followed.
    pub(super) fn is_directory(&self, path: &InnerPath) -> Result<bool, ToolError> {
        match self.dir.metadata(self.real(path.as_path())) {
            Ok(metadata) => Ok(metadata.is_dir()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.missing(path)),
            Err(error) => Err(fault(&path.shown(), &error)),
        }
    }

    /// A regular file, open for reading; links inside of the root are followed.
    pub(super) fn open_file(&self, path: &InnerPath) -> Result<File, ToolError> {
        let shown = path.shown();
        self.check_names_file(path)?;
        let opened = match &self.closed {
            None => open_nonblocking(&self.dir, path.as_path(), FollowSymlinks::Yes),
            Some(closed) => self.open_guarded(closed, path)?,
        };
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.missing(path));
            }
            Err(error) => return Err(fault(&shown, &error)),
        };
        let metadata = file.metadata().map_err(|error| fault(&shown, &error))?;
        self.check_readable(&shown, &metadata)?;
        Ok(file)
    }

    /// Where some files are closed, links are resolved first, so that the last step follows
    /// none: what was checked is what is opened.
    fn open_guarded(
        &self,
        closed: &Closed,
        path: &InnerPath,
    ) -> Result<io::Result<File>, ToolError> {
        let shown = path.shown();
        let real = match self.dir.canonicalize(self.real(path.as_path())) {
            Ok(real) => real,
            Err(error) => return Ok(Err(error)),
        };
        let Some(name) = real.file_name() else {
            return Err(is_directory(&shown));
        };
        let directory = match real.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.dir.open_dir(parent),
            _ => self.dir.try_clone(),
        };
        let directory = match directory {
            Ok(directory) => directory,
            Err(error) => return Ok(Err(error)),
        };
        closed.check_directory(&shown, &directory)?;
        closed.check_name(&shown, &directory, name)?;
        Ok(open_nonblocking(
            &directory,
            Path::new(name),
            FollowSymlinks::No,
        ))
    }

    /// Refuses what is no regular file, what is closed, and a name in the workspace of a file
    /// that has other names elsewhere.
    pub(super) fn check_readable(&self, shown: &str, metadata: &Metadata) -> Result<(), ToolError> {
        if metadata.is_dir() {
            return Err(is_directory(shown));
        }
        if !metadata.is_file() {
            return Err(is_special(shown));
        }
        match &self.closed {
            Some(closed) => closed.check_metadata(shown, metadata),
            None => self.check_names(shown, metadata),
        }
    }

    /// A hard link is a way out that no path shows. Links that stay in the workspace, as build
    /// tools make them, are none: every name of the file is found there.
    fn check_names(&self, shown: &str, metadata: &Metadata) -> Result<(), ToolError> {
        if self.outside.is_some() || metadata.nlink() <= 1 {
            return Ok(());
        }
        let inside = self.names.get_or_init(|| {
            let mut names = HashMap::new();
            let walk = Walk::new(self, Rules::Everything).run(&InnerPath::root(), |entry| {
                if entry.kind == Kind::File
                    && let Some(metadata) = entry.metadata()
                    && metadata.nlink() > 1
                {
                    *names.entry(Identity::of(&metadata)).or_default() += 1;
                }
                Ok(())
            });
            // What could not be counted is outside.
            walk.map(|_| names).unwrap_or_default()
        });
        let inside = inside.get(&Identity::of(metadata)).copied().unwrap_or(0);
        if inside < metadata.nlink() {
            return Err(ToolError(format!(
                "`{shown}` is a hard link: the same file has a name outside of the workspace, so it is neither read nor changed here; ask the user for a copy"
            )));
        }
        Ok(())
    }

    /// Where the path would be written; none where its directory is not there. A link is no
    /// target: what is written goes where the path says, or nowhere.
    pub(super) fn find_target(&self, path: &InnerPath) -> Result<Option<Target>, ToolError> {
        let shown = path.shown();
        self.check_names_file(path)?;
        let Some(name) = path.prefix().file_name() else {
            return Err(is_directory(&shown));
        };
        let Some(directory) = self.parent(path)? else {
            return Ok(None);
        };
        let existing = match directory.symlink_metadata(name) {
            Ok(metadata) if metadata.is_symlink() => {
                return Err(ToolError(format!(
                    "`{shown}` is a link; write to the file that it points to, or choose another path"
                )));
            }
            Ok(metadata) => {
                self.check_readable(&shown, &metadata)?;
                Some(metadata)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fault(&shown, &error)),
        };
        Ok(Some(Target {
            directory,
            name: name.to_owned(),
            existing,
        }))
    }

    /// As [`Root::find_target`], where the directory has to be there.
    pub(super) fn target(&self, path: &InnerPath) -> Result<Target, ToolError> {
        self.find_target(path)?.ok_or_else(|| self.missing(path))
    }

    /// Makes the directories that lead to a path, one by one, so that each is checked. Gives
    /// back those that were not there.
    pub(super) fn create_parents(&self, path: &InnerPath) -> Result<Vec<PathBuf>, ToolError> {
        let mut made = Vec::new();
        if self.parent(path)?.is_some() {
            return Ok(made);
        }
        let parent = path.prefix().parent().unwrap_or(Path::new(""));
        self.check_room(0, parent.components().count())?;
        let parents: Vec<&Path> = parent.ancestors().collect();
        for directory in parents.into_iter().rev() {
            if directory.as_os_str().is_empty() {
                continue;
            }
            let inner = path.at(directory);
            let shown = self.shown(directory);
            let (Some(above), Some(name)) = (self.parent(&inner)?, directory.file_name()) else {
                return Err(self.missing(&inner));
            };
            match above.create_dir(name) {
                Ok(()) => made.push(directory.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(fault(&shown, &error)),
            }
        }
        Ok(made)
    }

    /// Refuses the root itself, and a path with a slash at its end.
    pub(super) fn check_names_file(&self, path: &InnerPath) -> Result<(), ToolError> {
        let shown = path.shown();
        if !path.names_directory() {
            Ok(())
        } else if self.dir.is_dir(self.real(path.as_path())) {
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
        // The machine's other directories are their owner's to fill.
        if (added_bytes == 0 && added_entries == 0) || self.outside.is_some() {
            return Ok(());
        }
        let mut bytes = added_bytes;
        let mut entries = added_entries as u64;
        let walk = Walk::new(self, Rules::Everything);
        walk.run(&InnerPath::root(), |entry| {
            entries += 1;
            if entry.kind == Kind::File {
                bytes = bytes.saturating_add(entry.size());
            }
            Ok(())
        })?;
        let most = self.limits.workspace;
        if bytes > most.bytes {
            return Err(ToolError(format!(
                "the workspace would have {}, and {} is the limit; make files smaller, or tell the user",
                human_size(bytes),
                human_size(most.bytes)
            )));
        }
        if entries > most.entries {
            return Err(ToolError(format!(
                "the workspace would have more than {} files and directories, which is the limit; put more into one file, or tell the user",
                most.entries
            )));
        }
        Ok(())
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
pub(in crate::tools) fn read_whole(
    file: File,
    shown: &str,
    limit: u64,
) -> Result<Vec<u8>, ToolError> {
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
