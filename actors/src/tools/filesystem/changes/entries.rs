//! What stands at a place: whether it is what it was, how much there is of it, and how it is moved
//! and removed. Nothing is moved onto something else; between disks it is copied.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::path::Path;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, MetadataExt as _, OpenOptions};
use rustix::fs::RenameFlags;
use rustix::io::Errno;
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

/// Moves what stands at one place to the other, which must be free.
pub(super) fn move_entry(from: &Location, to: &Location) -> io::Result<()> {
    let moved = rustix::fs::renameat_with(
        &from.directory,
        &from.name,
        &to.directory,
        &to.name,
        RenameFlags::NOREPLACE,
    );
    match moved {
        Ok(()) => Ok(()),
        Err(Errno::XDEV) => {
            check_free(to)?;
            let copied = copy((&from.directory, &from.name), (&to.directory, &to.name), 0);
            copied.inspect_err(|_| {
                // What was copied so far is nobody's.
                let _ = remove(to);
            })?;
            remove(from)
        }
        // Some file systems know no such flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            check_free(to)?;
            from.directory.rename(&from.name, &to.directory, &to.name)
        }
        Err(error) => Err(error.into()),
    }
}

fn check_free(at: &Location) -> io::Result<()> {
    match at.metadata()? {
        Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
        None => Ok(()),
    }
}

/// Copies what stands under a name in a directory.
fn copy(
    (from, name): (&Dir, &OsStr),
    (to, new_name): (&Dir, &OsStr),
    depth: usize,
) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::other("it has too many levels of directories"));
    }
    let metadata = from.symlink_metadata(name)?;
    if metadata.is_symlink() {
        return to.symlink_contents(from.read_link_contents(name)?, new_name);
    }
    if metadata.is_dir() {
        to.create_dir(new_name)?;
        let source = from.open_dir_nofollow(name)?;
        let target = to.open_dir_nofollow(new_name)?;
        for entry in source.entries()? {
            let name = entry?.file_name();
            copy((&source, &name), (&target, &name), depth + 1)?;
        }
        return to.set_permissions(new_name, metadata.permissions());
    }
    if !metadata.is_file() {
        return Err(io::Error::other(
            "it is no regular file (a pipe, a socket or a device), and cannot go to another disk",
        ));
    }
    let mut source = open_nonblocking(from, Path::new(name))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut target = to.open_with(new_name, &options)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(metadata.permissions())?;
    target.sync_all()
}

/// Removes what stands at a place, for good.
pub(super) fn remove(at: &Location) -> io::Result<()> {
    let metadata = at.directory.symlink_metadata(&at.name)?;
    if metadata.is_dir() {
        at.directory.remove_dir_all(&at.name)
    } else {
        at.directory.remove_file(&at.name)
    }
}
