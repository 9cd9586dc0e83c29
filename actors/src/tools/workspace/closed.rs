//! What stays closed in the directories that are allowed beside the workspace: recognised by
//! what a handle is, not by how its path reads, so that no link and no other spelling opens it.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, MetadataExt as _};
use walkdir::WalkDir;

/// As many directories as lie between a file and the root of the machine.
const MAX_LEVELS: usize = 256;

/// As many entries of the closed places as are looked at for other names of a file.
const MAX_ENTRIES: usize = 200_000;

/// The kernel's own directories: through them a process reads its environment, which has
/// secrets in it, and every file of every other process.
const SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A file or a directory, whatever it is called: its device, and its number there.
pub(super) type Identity = (u64, u64);

pub(super) fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

fn identity_at(path: &Path) -> Option<Identity> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(identity(&Metadata::from_just_metadata(metadata)))
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
    /// These places in a root. One that lies in such a place by its very name is open all the
    /// same: one that a link leads to stays closed, and so does each closed place in it.
    pub(super) fn of(paths: &[PathBuf], root: &Path) -> Self {
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
        let lies_in = |place: &PathBuf| {
            let (Ok(rest), Ok(real)) = (root.strip_prefix(place), root.canonicalize()) else {
                return false;
            };
            place
                .canonicalize()
                .is_ok_and(|place| real == place.join(rest))
        };
        if paths.iter().any(lies_in) {
            closed.opened = identity_at(root);
        }
        closed
    }

    fn add(&mut self, path: &Path) {
        self.places.extend(identity_at(path));
        let mut name = path.file_name();
        for ancestor in path.ancestors().skip(1) {
            if let Some(identity) = identity_at(ancestor) {
                // The first one that exists: the name in it is the way to the closed place.
                if let Some(name) = name.take() {
                    self.names.push((identity, name.to_owned()));
                }
                self.above.insert(identity);
                // Links on the way have other directories above them.
                if let Ok(real) = ancestor.canonicalize() {
                    self.above.extend(real.ancestors().filter_map(identity_at));
                }
            } else if name.is_some() {
                name = ancestor.file_name();
            }
        }
    }

    /// Whether a directory is no closed place, and lies in none. What cannot be told is closed.
    pub(super) fn allows_directory(&self, directory: &Dir) -> bool {
        self.places.is_empty() || self.lies_open(directory).unwrap_or(false)
    }

    fn lies_open(&self, directory: &Dir) -> io::Result<bool> {
        let mut directory = directory.try_clone()?;
        let mut at = identity(&directory.dir_metadata()?);
        for _ in 0..MAX_LEVELS {
            if self.places.contains(&at) {
                return Ok(false);
            }
            if self.opened == Some(at) {
                return Ok(true);
            }
            directory = directory.open_parent_dir(ambient_authority())?;
            let above = identity(&directory.dir_metadata()?);
            if above == at {
                return Ok(true);
            }
            at = above;
        }
        Ok(false)
    }

    /// Whether a name is open in a directory that is open itself.
    pub(super) fn allows_name(&self, directory: &Dir, name: &OsStr) -> bool {
        if self.names.is_empty() {
            return true;
        }
        // What cannot be told is closed.
        let Ok(at) = directory.dir_metadata() else {
            return false;
        };
        let is_closed = |closed: &OsStr| {
            let closed = closed.as_encoded_bytes();
            name.as_encoded_bytes()
                .strip_prefix(closed)
                // As `navi.db-wal` beside `navi.db`.
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"-"))
        };
        let mut names = self.names.iter();
        !names.any(|(directory, closed)| *directory == identity(&at) && is_closed(closed))
    }

    /// Whether a file or directory is no closed place itself, and a file has no other name in
    /// one.
    pub(super) fn allows(&self, metadata: &Metadata) -> bool {
        let identity = identity(metadata);
        let is_linked = || {
            let linked = self.linked.get_or_init(|| self.linked_files());
            // What cannot be told is closed.
            linked.as_ref().is_none_or(|it| it.contains(&identity))
        };
        let is_named_inside = metadata.is_file() && metadata.nlink() > 1 && is_linked();
        !self.places.contains(&identity) && !is_named_inside
    }

    /// Whether all of a directory may be taken away: no closed place is anywhere in it.
    pub(super) fn allows_whole(&self, metadata: &Metadata) -> bool {
        let identity = identity(metadata);
        !self.places.contains(&identity) && !self.above.contains(&identity)
    }

    /// Every file with several names in the closed places.
    fn linked_files(&self) -> Option<HashSet<Identity>> {
        let is_opened = |path: &Path| self.opened.is_some() && self.opened == identity_at(path);
        // Links are not followed. What is not there has nothing in it, and neither has what Navi
        // itself may not look into.
        let inside = self.paths.iter().flat_map(|place| {
            let entries = WalkDir::new(place).into_iter();
            entries
                .filter_entry(|entry| !is_opened(entry.path()))
                .flatten()
        });
        let mut linked = HashSet::new();
        for (number, entry) in inside.enumerate() {
            if number > MAX_ENTRIES {
                return None;
            }
            let metadata = entry.metadata().map(Metadata::from_just_metadata);
            if let Ok(metadata) = metadata
                && !metadata.is_dir()
                && metadata.nlink() > 1
            {
                linked.insert(identity(&metadata));
            }
        }
        Some(linked)
    }
}
