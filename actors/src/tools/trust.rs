//! Which tools from outside of Navi were allowed, and as what: by the hash of what was seen; and how
//! the folders and files of such tools, and of the owner's, are read.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, DirEntry, File, Metadata};
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use super::workspace::if_there;

/// As many folders of tools, or of skills, as are looked at.
const MAX_FOLDERS: usize = 64;

/// Names of tools with the hash that each was allowed under. Cheap to clone; all clones are one.
/// What the store keeps, where calls can look at it: an allowance that was taken back holds
/// no call that was not begun.
#[derive(Clone, Debug, Default)]
// Held for a moment at a time, never across an await.
pub struct Trust(Arc<RwLock<BTreeMap<String, String>>>);

impl Trust {
    /// Whether the tool is allowed as it is: under this hash.
    pub fn holds(&self, name: &str, sha256: &str) -> bool {
        self.hash(name).is_some_and(|allowed| allowed == sha256)
    }

    /// The hash that a tool was allowed under.
    pub fn hash(&self, name: &str) -> Option<String> {
        self.0.read().get(name).cloned()
    }

    /// Allows a tool.
    pub fn allow(&self, name: String, sha256: String) {
        self.0.write().insert(name, sha256);
    }

    /// Takes an allowance back.
    pub fn forbid(&self, name: &str) {
        self.0.write().remove(name);
    }
}

/// The names of the folders in `dir`, which need not exist, in order, and what is wrong where
/// some are left out. Hidden ones are somebody else's. `setting` names `dir` to its owner,
/// where it cannot be read.
pub(super) fn folders(
    setting: &str,
    dir: &Path,
    is_folder: impl Fn(&DirEntry) -> io::Result<bool>,
) -> Result<(Vec<String>, Option<String>), String> {
    let setting = format!("{setting} {}", dir.display());
    let read = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in if_there(std::fs::read_dir(dir))?.into_iter().flatten() {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && is_folder(&entry)? {
                names.push(name);
            }
        }
        Ok(names)
    };
    let mut names = read().map_err(|error| format!("{setting}: {error}"))?;
    names.sort();
    let too_many = (names.len() > MAX_FOLDERS).then(|| {
        format!(
            "{setting}: it holds {} folders; those after the first {MAX_FOLDERS} are left out",
            names.len()
        )
    });
    names.truncate(MAX_FOLDERS);
    Ok((names, too_many))
}

/// Makes a folder where it is not there, and those above it.
pub(super) fn make_dir(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)
}

/// A regular file, open for reading. A named pipe would keep the thread for ever.
pub(super) fn open_regular(path: &Path, more: OFlags) -> io::Result<(File, Metadata)> {
    let flags = (OFlags::NONBLOCK | more).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    Ok((file, metadata))
}

/// All that a file has, where that is no more than so many bytes. Blocks.
pub(super) fn read_all(file: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than there is room for tells that there is more.
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes")));
    }
    Ok(bytes)
}

/// Takes all that a file has into a hash, a piece at a time. Blocks.
pub(super) fn hash_all(hash: &mut Sha256, content: impl Read) -> io::Result<()> {
    let mut content = BufReader::with_capacity(128 * 1024, content);
    while let piece = content.fill_buf()?
        && !piece.is_empty()
    {
        hash.update(piece);
        let length = piece.len();
        content.consume(length);
    }
    Ok(())
}

/// The SHA-256 of a text, in hexadecimal.
pub fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}
