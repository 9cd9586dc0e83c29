//! Whether a file or a directory is what it was, and how much there is of it.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::path::Path;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, MetadataExt as _};
use sha2::{Digest as _, Sha256};

use crate::tools::trust::hash_all;
use crate::tools::workspace::{Location, MAX_DEPTH, open_nonblocking};

/// As many bytes of content as are compared. Of files beyond that, size and time are.
const MAX_CONTENT_BYTES: u64 = 64 << 20;
/// As many entries as are looked at.
const MAX_ENTRIES: usize = 50_000;

/// How much there is under a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) bytes: u64,
    /// Files, links and directories, the first one too.
    pub(crate) entries: usize,
}

/// What a file's content comes to, by the same rules as [`fingerprint`].
pub(crate) fn fingerprint_of_content(bytes: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(b"file");
    hash.update((bytes.len() as u64).to_le_bytes());
    if bytes.len() as u64 <= MAX_CONTENT_BYTES {
        hash.update(bytes);
    }
    hex::encode(hash.finalize())
}

/// What stands at a place comes to: the same for the same names and contents, wherever it is.
pub(crate) fn fingerprint(at: &Location) -> io::Result<String> {
    let look = Look::of(at, true)?;
    Ok(hex::encode(look.hash.finalize()))
}

/// How much stands at a place.
pub(crate) fn measure(at: &Location) -> io::Result<Measure> {
    Ok(Look::of(at, false)?.measure)
}

struct Look {
    hash: Sha256,
    /// Bytes of content that may still be read.
    room: u64,
    measure: Measure,
    hashes: bool,
}

impl Look {
    fn of(at: &Location, hashes: bool) -> io::Result<Self> {
        let mut look = Self {
            hash: Sha256::new(),
            room: MAX_CONTENT_BYTES,
            measure: Measure::default(),
            hashes,
        };
        look.at(&at.directory, &at.name, 0)?;
        Ok(look)
    }

    fn at(&mut self, directory: &Dir, name: &OsStr, depth: usize) -> io::Result<()> {
        self.measure.entries += 1;
        if self.measure.entries > MAX_ENTRIES || depth > MAX_DEPTH {
            return Err(io::Error::other("there is too much in it"));
        }
        let metadata = directory.symlink_metadata(name)?;
        if metadata.is_symlink() {
            self.hash.update(b"link");
            let target = directory.read_link_contents(name)?;
            self.hash.update(target.as_os_str().as_encoded_bytes());
            self.hash.update([0]);
        } else if metadata.is_dir() {
            self.hash.update(b"directory");
            let inner = directory.open_dir_nofollow(name)?;
            // One too many is refused when it is looked at.
            let entries = inner.entries()?.take(MAX_ENTRIES + 1);
            let names = entries.map(|entry| Ok(entry?.file_name()));
            let mut names = names.collect::<io::Result<Vec<_>>>()?;
            names.sort();
            for name in names {
                self.hash.update(name.as_encoded_bytes());
                self.hash.update([0]);
                self.at(&inner, &name, depth + 1)?;
            }
            self.hash.update(b"end");
        } else if metadata.is_file() {
            self.measure.bytes = self.measure.bytes.saturating_add(metadata.len());
            self.hash.update(b"file");
            self.hash.update(metadata.len().to_le_bytes());
            if !self.hashes {
                return Ok(());
            }
            if metadata.len() > self.room {
                self.hash.update(metadata.mtime().to_le_bytes());
                self.hash.update(metadata.mtime_nsec().to_le_bytes());
                return Ok(());
            }
            self.room -= metadata.len();
            let file = open_nonblocking(directory, Path::new(name))?;
            hash_all(&mut self.hash, file.take(metadata.len()))?;
        } else {
            self.hash.update(b"special");
        }
        Ok(())
    }
}
