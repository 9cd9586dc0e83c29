//! A tool's folder as it stands: its files, and the hash over all of them.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _, OpenOptions, PermissionsExt as _};
use sha2::{Digest as _, Sha256};

use crate::tools::output::{human_size, shortened};

const MAX_FILES: usize = 256;
const MAX_DEPTH: usize = 8;
const MAX_BYTES: u64 = 64 * 1024 * 1024;
const SHOWN_BYTES: usize = 120;

/// A file of a folder, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// From the folder, with `/` between.
    pub(super) path: String,
    pub(super) is_executable: bool,
    size: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Every file of a folder, in order of its path. Two that are equal were not changed in
/// between, as far as the file system tells: good enough for a list, not for a call.
pub(super) type Listing = Vec<Entry>;

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
///
/// # Errors
/// What it must not hold: links, other things than files, too much.
pub(super) fn list(path: &Path) -> Result<Listing, String> {
    let mut listing = Vec::new();
    add(&open(path)?, "", 0, &mut listing)?;
    let size: u64 = listing.iter().map(|entry| entry.size).sum();
    if size > MAX_BYTES {
        return Err(format!(
            "the folder holds {}; the most is {}",
            human_size(size),
            human_size(MAX_BYTES)
        ));
    }
    listing.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(listing)
}

/// Reads a folder, every byte of it once: what is hashed is what is given back. Blocks.
///
/// # Errors
/// As [`list`], or what cannot be read.
pub(super) fn read(path: &Path) -> Result<Content, String> {
    let listing = list(path)?;
    let root = open(path)?;
    let mut files = BTreeMap::new();
    let mut room = MAX_BYTES;
    for entry in listing {
        let bytes = content(&root, &entry.path, room)?;
        room -= bytes.len() as u64;
        let is_executable = entry.is_executable;
        files.insert(
            entry.path,
            File {
                bytes,
                is_executable,
            },
        );
    }
    Ok(Content {
        sha256: hash(&files),
        files,
    })
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
    if std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        return Err("it is a link; put the folder itself here".to_owned());
    }
    Dir::open_ambient_dir(path, ambient_authority())
        .map_err(|error| format!("the folder cannot be read: {error}"))
}

fn add(dir: &Dir, prefix: &str, depth: usize, listing: &mut Listing) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", shown(prefix));
    for entry in dir.entries().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return Err(format!("{}: a file's name is no UTF-8", shown(prefix)));
        };
        let path = format!("{prefix}{name}");
        // Of the entry itself, not of what a link leads to.
        let metadata = dir.symlink_metadata(name).map_err(failed)?;
        if metadata.is_symlink() {
            return Err(format!(
                "{} is a link; a tool's folder must hold its files itself",
                shown(&path)
            ));
        }
        if metadata.is_dir() {
            if depth + 1 >= MAX_DEPTH {
                return Err(format!("{}: nested too deep", shown(&path)));
            }
            let inner = dir.open_dir_nofollow(name).map_err(failed)?;
            add(&inner, &format!("{path}/"), depth + 1, listing)?;
            continue;
        }
        if !metadata.is_file() {
            return Err(format!("{} is no regular file", shown(&path)));
        }
        if listing.len() >= MAX_FILES {
            return Err(format!("the folder holds more than {MAX_FILES} files"));
        }
        listing.push(Entry {
            path,
            is_executable: metadata.permissions().mode() & 0o111 != 0,
            size: metadata.len(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        });
    }
    Ok(())
}

fn content(root: &Dir, path: &str, room: u64) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{} cannot be read: {error}", shown(path));
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut dir = root.try_clone().map_err(failed)?;
    for part in folder.split('/').filter(|part| !part.is_empty()) {
        dir = dir.open_dir_nofollow(part).map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    let file = dir.open_with(name, &options).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(format!("{} is no regular file", shown(path)));
    }
    let mut bytes = Vec::new();
    file.take(room + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > room {
        return Err(format!(
            "the folder holds more than {}",
            human_size(MAX_BYTES)
        ));
    }
    Ok(bytes)
}

fn shown(path: &str) -> String {
    if path.is_empty() {
        "the folder".to_owned()
    } else {
        shortened(path, SHOWN_BYTES)
    }
}
