//! A tool's folder as it stands: its files, and the hash over all of them.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, MetadataExt as _, OpenOptions, PermissionsExt as _};
use sha2::{Digest as _, Sha256};

use crate::tools::output::{human_size, shortened};

const MAX_FILES: usize = 256;
const MAX_DEPTH: usize = 8;
const MAX_BYTES: u64 = 64 * 1024 * 1024;
const SHOWN_BYTES: usize = 120;

/// Each file of a folder by its path, with `/` between, and what the file system tells of it. Two
/// listings that are equal were not changed in between, as far as that goes: good enough for a
/// list, not for a call.
pub(super) type Listing = BTreeMap<String, Stamp>;

/// Size, inode, mode, and the times of its last changes.
type Stamp = (u64, u64, u32, [(i64, i64); 2]);

/// A folder with its content.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) files: BTreeMap<String, File>,
    pub(super) sha256: String,
}

#[derive(Debug)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) is_executable: bool,
}

/// Lists a folder. Blocks.
pub(super) fn list(path: &Path) -> Result<Listing, String> {
    let mut listing = Listing::new();
    let mut size = 0;
    walk(&open(path)?, "", 0, &mut |path, _, _, metadata| {
        size = in_room(size + metadata.len())?;
        let times = [
            (metadata.mtime(), metadata.mtime_nsec()),
            (metadata.ctime(), metadata.ctime_nsec()),
        ];
        let stamp = (metadata.len(), metadata.ino(), metadata.mode(), times);
        listing.insert(path, stamp);
        in_number(listing.len())
    })?;
    Ok(listing)
}

/// Reads a folder, every byte of it once: what is hashed is what is given back. Blocks.
pub(super) fn read(path: &Path) -> Result<Content, String> {
    let mut files = BTreeMap::new();
    let mut size = 0;
    walk(&open(path)?, "", 0, &mut |path, dir, name, metadata| {
        let bytes = content(dir, name, MAX_BYTES - size)
            .map_err(|error| format!("{} cannot be read: {error}", shown(&path)))?;
        size = in_room(size + bytes.len() as u64)?;
        let is_executable = metadata.permissions().mode() & 0o111 != 0;
        files.insert(
            path,
            File {
                bytes,
                is_executable,
            },
        );
        in_number(files.len())
    })?;
    Ok(Content {
        sha256: hash(&files),
        files,
    })
}

fn in_room(size: u64) -> Result<u64, String> {
    if size > MAX_BYTES {
        let most = human_size(MAX_BYTES);
        refuse!("the folder holds more than {most}");
    }
    Ok(size)
}

fn in_number(files: usize) -> Result<(), String> {
    refuse_if!(
        files > MAX_FILES,
        "the folder holds more than {MAX_FILES} files"
    );
    Ok(())
}

/// Over each file's path, whether it can be run, its length and its bytes.
fn hash(files: &BTreeMap<String, File>) -> String {
    let mut hash = Sha256::new();
    for (path, file) in files {
        for part in [path.as_bytes(), &file.bytes] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update([u8::from(file.is_executable)]);
    }
    hex::encode(hash.finalize())
}

fn open(path: &Path) -> Result<Dir, String> {
    refuse_if!(
        std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()),
        "it is a link; put the folder itself here"
    );
    Dir::open_ambient_dir(path, ambient_authority())
        .map_err(|error| format!("the folder cannot be read: {error}"))
}

/// What is done with each file: its path, the folder that it is in, its name there, and what it
/// is.
type Visit<'a> = &'a mut dyn FnMut(String, &Dir, &str, &Metadata) -> Result<(), String>;

fn walk(dir: &Dir, prefix: &str, depth: usize, visit: Visit<'_>) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", shown(prefix));
    for entry in dir.entries().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            refuse!("{}: a file's name is no UTF-8", shown(prefix));
        };
        let path = format!("{prefix}{name}");
        // Of the entry itself, not of what a link leads to.
        let metadata = dir.symlink_metadata(name).map_err(failed)?;
        refuse_if!(
            metadata.is_symlink(),
            "{} is a link; a tool's folder must hold its files itself",
            shown(&path)
        );
        if metadata.is_dir() {
            if depth + 1 >= MAX_DEPTH {
                refuse!("{}: nested too deep", shown(&path));
            }
            let inner = dir.open_dir_nofollow(name).map_err(failed)?;
            walk(&inner, &format!("{path}/"), depth + 1, visit)?;
            continue;
        }
        refuse_if!(!metadata.is_file(), "{} is no regular file", shown(&path));
        visit(path, dir, name, &metadata)?;
    }
    Ok(())
}

/// One byte more than there is room for tells that there is more.
fn content(dir: &Dir, name: &str, room: u64) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    let file = dir.open_with(name, &options)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(room + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn shown(path: &str) -> String {
    if path.is_empty() {
        "the folder".to_owned()
    } else {
        shortened(path, SHOWN_BYTES)
    }
}
