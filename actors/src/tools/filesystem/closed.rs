//! What stays closed in the directories that are allowed beside the workspace: recognised by
//! what a handle is, not by how its path reads, so that no link and no other spelling opens it.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata, MetadataExt as _};
use rustix::fs::{Mode, OFlags};

use crate::tools::ToolError;

/// As many directories as lie between a file and the root of the machine.
const MAX_LEVELS: usize = 256;

/// As many entries of the closed places as are looked at for other names of a file.
const MAX_ENTRIES: usize = 200_000;

/// The kernel's own directories: through them a process reads its environment, which has
/// secrets in it, and every file of every other process.
const SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A file or a directory, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    fn at(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    fn of_handle(handle: impl AsFd) -> rustix::io::Result<Self> {
        let stat = rustix::fs::fstat(handle)?;
        Ok(Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
        })
    }
}

/// The closed places, as they are at the time of a call.
#[derive(Debug, Default)]
pub(super) struct Closed {
    places: HashSet<Identity>,
    /// Names in directories: what is not there yet must not be made either, and a database's
    /// file has others beside it.
    names: Vec<(Identity, OsString)>,
    /// Directories that have a closed place somewhere under them.
    above: HashSet<Identity>,
    /// A directory inside a closed place that is open all the same.
    opened: Option<Identity>,
    /// The closed places of Navi's own by their paths.
    paths: Vec<PathBuf>,
    /// Files with several names of which one lies in there. Looked for once, where a file has
    /// several; none where there was too much to look through.
    linked: OnceCell<Option<HashSet<Identity>>>,
}

impl Closed {
    pub(super) fn of(paths: &[PathBuf]) -> Self {
        let mut closed = Self {
            paths: paths.to_vec(),
            ..Self::default()
        };
        let system = SYSTEM.iter().map(Path::new);
        for path in paths.iter().map(PathBuf::as_path).chain(system) {
            closed.add(path);
            if let Ok(real) = path.canonicalize()
                && real != path
            {
                closed.add(&real);
            }
        }
        closed
    }

    /// Leaves a directory of these places open, where it lies in one by its very name: one that
    /// a link leads to stays closed, and so does each closed place in it.
    pub(super) fn but(mut self, path: &Path, closed: &[PathBuf]) -> Self {
        let lies_in = |place: &PathBuf| {
            let (Ok(rest), Ok(real)) = (path.strip_prefix(place), path.canonicalize()) else {
                return false;
            };
            place
                .canonicalize()
                .is_ok_and(|place| real == place.join(rest))
        };
        if closed.iter().any(lies_in) {
            self.opened = Identity::at(path);
        }
        self
    }

    fn add(&mut self, path: &Path) {
        self.places.extend(Identity::at(path));
        let mut name = path.file_name();
        for ancestor in path.ancestors().skip(1) {
            if let Some(identity) = Identity::at(ancestor) {
                // The first one that exists: the name in it is the way to the closed place.
                if let Some(name) = name.take() {
                    self.names.push((identity, name.to_owned()));
                }
                self.above.insert(identity);
                // Links on the way have other directories above them.
                if let Ok(real) = ancestor.canonicalize() {
                    self.above.extend(real.ancestors().filter_map(Identity::at));
                }
            } else if name.is_some() {
                name = ancestor.file_name();
            }
        }
    }

    /// Refuses a directory that is a closed place, or lies in one.
    pub(super) fn check_directory(&self, shown: &str, directory: &Dir) -> Result<(), ToolError> {
        let mut at = Identity::of_handle(directory).map_err(|_| closed_place(shown))?;
        let mut handle: Option<OwnedFd> = None;
        for _ in 0..MAX_LEVELS {
            if self.places.contains(&at) {
                return Err(closed_place(shown));
            }
            if self.opened == Some(at) {
                return Ok(());
            }
            let parent = match &handle {
                None => parent_of(directory),
                Some(handle) => parent_of(handle),
            };
            // What cannot be told is closed.
            let parent = parent.map_err(|_| closed_place(shown))?;
            let above = Identity::of_handle(&parent).map_err(|_| closed_place(shown))?;
            if above == at {
                return Ok(());
            }
            at = above;
            handle = Some(parent);
        }
        Err(closed_place(shown))
    }

    /// Refuses a name in a directory that passed [`Closed::check_directory`].
    pub(super) fn check_name(
        &self,
        shown: &str,
        directory: &Dir,
        name: &OsStr,
    ) -> Result<(), ToolError> {
        let at = Identity::of_handle(directory).map_err(|_| closed_place(shown))?;
        let is_closed = |closed: &OsStr| {
            let closed = closed.as_encoded_bytes();
            name.as_encoded_bytes()
                .strip_prefix(closed)
                // As `navi.db-wal` beside `navi.db`.
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"-"))
        };
        if self
            .names
            .iter()
            .any(|(directory, closed)| *directory == at && is_closed(closed))
        {
            return Err(closed_place(shown));
        }
        Ok(())
    }

    /// Refuses a file or directory that is a closed place itself, and a file that has another
    /// name in one.
    pub(super) fn check_metadata(&self, shown: &str, metadata: &Metadata) -> Result<(), ToolError> {
        let identity = Identity::of(metadata);
        let is_linked = || {
            let linked = self.linked.get_or_init(|| self.linked_files());
            // What cannot be told is closed.
            linked.as_ref().is_none_or(|it| it.contains(&identity))
        };
        if self.places.contains(&identity)
            || (metadata.is_file() && metadata.nlink() > 1 && is_linked())
        {
            return Err(closed_place(shown));
        }
        Ok(())
    }

    /// Every file with several names in the closed places.
    fn linked_files(&self) -> Option<HashSet<Identity>> {
        let mut linked = HashSet::new();
        let mut entries = 0;
        let mut directories = self.paths.clone();
        while let Some(directory) = directories.pop() {
            if self.opened.is_some() && self.opened == Identity::at(&directory) {
                continue;
            }
            // One that is not there, is a file, or that Navi itself may not look into.
            let Ok(inside) = std::fs::read_dir(&directory) else {
                continue;
            };
            for entry in inside.flatten() {
                use std::os::unix::fs::MetadataExt as _;
                entries += 1;
                if entries > MAX_ENTRIES {
                    return None;
                }
                // Links are not followed.
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                if metadata.is_dir() {
                    directories.push(entry.path());
                } else if metadata.nlink() > 1 {
                    linked.insert(Identity {
                        device: metadata.dev(),
                        inode: metadata.ino(),
                    });
                }
            }
        }
        Some(linked)
    }

    /// Refuses to take away a directory with a closed place somewhere in it.
    pub(super) fn check_whole(&self, shown: &str, metadata: &Metadata) -> Result<(), ToolError> {
        let identity = Identity::of(metadata);
        if self.places.contains(&identity) || self.above.contains(&identity) {
            return Err(closed_place(shown));
        }
        Ok(())
    }
}

fn parent_of(directory: impl AsFd) -> rustix::io::Result<OwnedFd> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let access = OFlags::PATH;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let access = OFlags::RDONLY;
    rustix::fs::openat(
        directory,
        "..",
        access | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

fn closed_place(shown: &str) -> ToolError {
    ToolError(format!(
        "`{shown}` is closed to this tool: Navi's own data, settings, keys and tools, other conversations' files, and /proc, /sys and /dev are never opened; choose another path"
    ))
}
