//! A tool's folder as it stands: its files, the hash over all of them, and the copies of allowed
//! ones that are run: of the very bytes whose hash was checked.

use std::collections::BTreeMap;
use std::fs::{self, Metadata, Permissions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;
use walkdir::WalkDir;

use crate::tools::output::{self, human_size};
use crate::tools::trust::{make_dir, open_regular};

const MAX_FILES: usize = 256;
const MAX_DEPTH: usize = 8;
const MAX_BYTES: u64 = 64 * 1024 * 1024;

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
pub(super) fn list(folder: &Path) -> Result<Listing, String> {
    let mut size = 0;
    let mut listing = Listing::new();
    for (path, _, metadata) in files(folder)? {
        size = in_room(size + metadata.len())?;
        let times = [
            (metadata.mtime(), metadata.mtime_nsec()),
            (metadata.ctime(), metadata.ctime_nsec()),
        ];
        let stamp = (metadata.len(), metadata.ino(), metadata.mode(), times);
        listing.insert(path, stamp);
    }
    Ok(listing)
}

/// Reads a folder, every byte of it once: what is hashed is what is given back. Blocks.
pub(super) fn read(folder: &Path) -> Result<Content, String> {
    let mut size = 0;
    let mut read = BTreeMap::new();
    for (path, place, metadata) in files(folder)? {
        let mut bytes = Vec::new();
        // One byte more than there is room for tells that there is more.
        open_regular(&place, OFlags::NOFOLLOW)
            .and_then(|(file, _)| file.take(MAX_BYTES - size + 1).read_to_end(&mut bytes))
            .map_err(|error| format!("{} cannot be read: {error}", shown(&path)))?;
        size = in_room(size + bytes.len() as u64)?;
        let is_executable = metadata.mode() & 0o111 != 0;
        let file = File {
            bytes,
            is_executable,
        };
        read.insert(path, file);
    }
    // Over each file's path, whether it can be run, its length and its bytes.
    let mut hash = Sha256::new();
    for (path, file) in &read {
        for part in [path.as_bytes(), &file.bytes] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update([u8::from(file.is_executable)]);
    }
    Ok(Content {
        sha256: hex::encode(hash.finalize()),
        files: read,
    })
}

fn in_room(size: u64) -> Result<u64, String> {
    if size > MAX_BYTES {
        let most = human_size(MAX_BYTES);
        refuse!("the folder holds more than {most}");
    }
    Ok(size)
}

/// The files of a folder: the path from there, the place, and what the file system tells of it.
fn files(folder: &Path) -> Result<Vec<(String, PathBuf, Metadata)>, String> {
    let mut files = Vec::new();
    for entry in WalkDir::new(folder) {
        let entry = entry.map_err(|error| format!("the folder cannot be read: {error}"))?;
        refuse_if!(
            entry.depth() == 0 && entry.path_is_symlink(),
            "it is a link; put the folder itself here"
        );
        let inside = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        let path = inside.to_string_lossy();
        let shown = shown(&path);
        refuse_if!(
            inside.to_str().is_none(),
            "{shown}: a file's name is no UTF-8"
        );
        refuse_if!(
            entry.path_is_symlink(),
            "{shown} is a link; a tool's folder must hold its files itself"
        );
        refuse_if!(
            entry.file_type().is_dir() && entry.depth() >= MAX_DEPTH,
            "{shown}: nested too deep"
        );
        if entry.file_type().is_dir() {
            continue;
        }
        let metadata = entry.metadata();
        let metadata = metadata.map_err(|error| format!("{shown}: {error}"))?;
        refuse_if!(!metadata.is_file(), "{shown} is no regular file");
        files.push((path.into_owned(), entry.into_path(), metadata));
        refuse_if!(
            files.len() > MAX_FILES,
            "the folder holds more than {MAX_FILES} files"
        );
    }
    Ok(files)
}

fn shown(path: &str) -> String {
    match path {
        "" => "the folder".to_owned(),
        path => output::shown(path),
    }
}

/// Where copies are kept. What is in it is as trusted as the database beside it.
#[derive(Clone, Debug)]
pub struct Copies(PathBuf);

impl Copies {
    /// Copies in this folder, which is emptied: nothing of an earlier process is leaned on.
    /// Blocks.
    pub fn new(dir: PathBuf) -> Self {
        // It is made anew with the first copy; what cannot be removed is told then.
        let _ = fs::remove_dir_all(&dir);
        Self(dir)
    }

    /// The folder of a copy of `source` as it is now, where that has this hash. Blocks.
    pub(super) fn of(&self, source: &Path, sha256: &str) -> Result<PathBuf, String> {
        // Read at every call: a folder that was changed must not run as what it was.
        let content = read(source)?;
        refuse_if!(
            content.sha256 != sha256,
            "its folder was changed since it was allowed"
        );
        let place = self.0.join(sha256);
        if place.is_dir() {
            return Ok(place);
        }
        let failed =
            |error: std::io::Error| format!("no copy could be made in Navi's folder: {error}");
        make_dir(&self.0, 0o755).map_err(failed)?;
        let unfinished = self.0.join(format!("new-{}", Uuid::now_v7().simple()));
        write(&content, &unfinished).map_err(failed)?;
        match fs::rename(&unfinished, &place) {
            Ok(()) => Ok(place),
            // Another call was faster, with the same bytes.
            Err(_) if place.is_dir() => {
                let _ = fs::remove_dir_all(&unfinished);
                Ok(place)
            }
            Err(error) => Err(failed(error)),
        }
    }
}

fn write(content: &Content, dir: &Path) -> std::io::Result<()> {
    make_dir(dir, 0o755)?;
    for (path, file) in &content.files {
        let path = dir.join(path);
        if let Some(parent) = path.parent() {
            make_dir(parent, 0o755)?;
        }
        let mode = if file.is_executable { 0o555 } else { 0o444 };
        fs::write(&path, &file.bytes)?;
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
    }
    Ok(())
}
