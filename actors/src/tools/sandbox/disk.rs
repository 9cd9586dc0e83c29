//! What a command takes of the disk: the size of the folders that it may change, and of files
//! that it deleted and still holds open.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use walkdir::WalkDir;

use super::processes;
use crate::tools::workspace::WorkspaceLimits;

/// So much less free space, or so many files more, are worth a look at once.
const WORTH_A_LOOK: Used = Used {
    bytes: 64 << 20,
    entries: 5_000,
};

/// Otherwise this long after the last one, and so many times as long as it took.
const PAUSE: Duration = Duration::from_secs(1);
const REST: u32 = 20;

/// What a command may write to one file where there was too much before it: it is to make room.
const FILE_BYTES_WHERE_FULL: u64 = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Disk {
    folders: Vec<PathBuf>,
    limits: WorkspaceLimits,
    /// As it was before the command: what was too much then is not its doing.
    first: Used,
    free: Used,
    next: Instant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    bytes: u64,
    entries: u64,
}

impl Disk {
    /// Looks at the folders for the first time: the command has not begun.
    pub(super) fn new(folders: Vec<PathBuf>, limits: WorkspaceLimits) -> Self {
        Self {
            free: free(&folders),
            first: in_folders(&folders, &mut Seen::new(), usize::MAX),
            folders,
            limits,
            next: Instant::now() + PAUSE,
        }
    }

    /// What the command may write to one file.
    pub(super) fn file_bytes(&self, most: u64) -> u64 {
        let (first, limits) = (self.first, self.limits);
        if first.bytes > limits.bytes || first.entries > limits.entries {
            most.min(FILE_BYTES_WHERE_FULL)
        } else {
            most
        }
    }

    /// What the command took too much of since the last look that was worth one.
    pub(super) fn too_much(&mut self) -> Option<String> {
        match Instant::now() >= self.next {
            true => self.look(),
            false => self.too_much_at_once(),
        }
    }

    /// The same where it took much since the last look: a command that is over takes no more.
    pub(super) fn too_much_at_once(&mut self) -> Option<String> {
        let (was, free) = (self.free, free(&self.folders));
        let took_much = was.bytes.saturating_sub(free.bytes) >= WORTH_A_LOOK.bytes
            || was.entries.saturating_sub(free.entries) >= WORTH_A_LOOK.entries;
        took_much.then(|| self.look()).flatten()
    }

    fn look(&mut self) -> Option<String> {
        let began = Instant::now();
        self.free = free(&self.folders);
        let mut seen = Seen::new();
        let mut used = in_folders(&self.folders, &mut seen, usize::MAX);
        used.bytes += deleted_bytes(&mut seen);
        self.next = Instant::now() + PAUSE.max(began.elapsed() * REST);
        let (first, most) = (self.first, self.limits);
        let most = if used.bytes > most.bytes && used.bytes > first.bytes {
            format!("{} MB", most.bytes >> 20)
        } else if used.entries > most.entries && used.entries > first.entries {
            format!("{} files and folders", most.entries)
        } else {
            return None;
        };
        Some(format!(
            "the workspace and its temporary files grew over their {most}"
        ))
    }
}

/// What can be taken, on the disk that has least of it.
fn free(folders: &[PathBuf]) -> Used {
    let disks = folders
        .iter()
        .filter_map(|folder| rustix::fs::statvfs(folder).ok());
    let free = disks.map(|disk| Used {
        bytes: disk.f_bfree.saturating_mul(disk.f_frsize),
        entries: disk.f_ffree,
    });
    free.min_by_key(|free| free.bytes).unwrap_or_default()
}

/// Files that were counted, by device and number: one with two names takes its place once.
type Seen = HashSet<(u64, u64)>;

/// What the files in these folders take, as far as they are among the first `most` entries.
pub fn bytes_within(folders: &[PathBuf], most: usize) -> u64 {
    in_folders(folders, &mut Seen::new(), most).bytes
}

fn in_folders(folders: &[PathBuf], seen: &mut Seen, most: usize) -> Used {
    let mut used = Used::default();
    // One that was closed to its owner holds what it held: its files are counted when somebody
    // opens it again.
    let walks = folders.iter().map(|it| WalkDir::new(it).min_depth(1));
    for entry in walks.flatten().take(most).flatten() {
        used.entries += 1;
        if let Ok(metadata) = entry.metadata()
            && !metadata.is_dir()
            && (metadata.nlink() < 2 || seen.insert((metadata.dev(), metadata.ino())))
        {
            used.bytes += bytes(&metadata);
        }
    }
    used
}

/// Of files that no name shows, and that one of the command's processes holds open.
fn deleted_bytes(seen: &mut Seen) -> u64 {
    let mut held = 0;
    let opened = processes::descendants();
    let opened = opened.iter().flat_map(|process| {
        let files = fs::read_dir(Path::new("/proc").join(process.pid.to_string()).join("fd"));
        files.into_iter().flatten().flatten()
    });
    for file in opened {
        // Through the link, which leads to a file that has no name any more.
        if let Ok(metadata) = fs::metadata(file.path())
            && metadata.is_file()
            && metadata.nlink() == 0
            && seen.insert((metadata.dev(), metadata.ino()))
        {
            held += bytes(&metadata);
        }
    }
    held
}

/// What it takes, which is less than its length where it has holes.
fn bytes(metadata: &Metadata) -> u64 {
    metadata.blocks().saturating_mul(512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_before_counts_and_is_not_held_against_it() {
        let place = tempfile::tempdir().unwrap();
        let folders = vec![place.path().to_owned()];
        let put = |name: &str| fs::write(place.path().join(name), vec![1; 80 << 10]).unwrap();
        put("before");
        let limits = WorkspaceLimits {
            bytes: 64 << 10,
            entries: 2,
        };
        let mut disk = Disk::new(folders, limits);
        let mut look = || {
            disk.next = Instant::now();
            disk.too_much()
        };
        assert_eq!(look(), None);
        fs::remove_file(place.path().join("before")).unwrap();
        fs::create_dir(place.path().join("folder")).unwrap();
        assert_eq!(look(), None);
        put("folder/first");
        put("folder/second");
        assert!(look().unwrap().contains("MB"));
        fs::remove_file(place.path().join("folder/second")).unwrap();
        fs::hard_link(place.path().join("folder/first"), place.path().join("a")).unwrap();
        fs::write(place.path().join("b"), "").unwrap();
        assert!(look().unwrap().contains("2 files"));
    }
}
