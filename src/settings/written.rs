//! The settings file on the disk: read whole, put in place whole or not at all, with the version
//! before it beside it. Blocks.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use hex::encode;
use sha2::{Digest as _, Sha256};

use crate::whole_file;

/// Larger than any settings; keeps a wrong file from being read into memory.
const MAX_BYTES: u64 = 1024 * 1024;

/// Why a text was not put in the file's place.
#[derive(Debug)]
pub(super) enum Unwritten {
    /// The file is another one by now.
    Moved,
    Failed(io::Error),
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// What stands there; nothing where there is no file.
pub(super) fn read(file: &Path) -> io::Result<String> {
    let opened = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        opened => opened?,
    };
    let mut text = String::new();
    let read = opened.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match u64::try_from(read) {
        Ok(read) if read <= MAX_BYTES => Ok(text),
        _ => Err(io::Error::other(format!(
            "it is larger than {MAX_BYTES} bytes"
        ))),
    }
}

/// By what a text is told from another one.
pub(super) fn version(text: &str) -> String {
    encode(Sha256::digest(text))
}

/// What is kept beside the file, and the next version of each while that is written.
pub(super) fn beside(file: &Path) -> [PathBuf; 3] {
    let before = before(file);
    [whole_file::aside(file), whole_file::aside(&before), before]
}

/// Puts `next` in the place of `now`, which is kept.
pub(super) fn put(file: &Path, now: &str, next: &str) -> Result<(), Unwritten> {
    if read(file)? != now {
        return Err(Unwritten::Moved);
    }
    whole_file::replace_like(&before(file), now, file)?;
    whole_file::replace(file, next)?;
    Ok(())
}

fn before(file: &Path) -> PathBuf {
    whole_file::beside(file, ".before")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_written_keeps_the_version_before_and_takes_no_others_place() {
        let house = tempfile::tempdir().unwrap();
        let file = house.path().join("data").join("navi.toml");
        assert_eq!(read(&file).unwrap(), "");
        put(&file, "", "a = 1\n").unwrap();
        put(&file, "a = 1\n", "a = 2\n").unwrap();
        assert_eq!(read(&file).unwrap(), "a = 2\n");
        let before = house.path().join("data").join("navi.toml.before");
        assert_eq!(read(&before).unwrap(), "a = 1\n");
        assert!(beside(&file).contains(&fs::canonicalize(before).unwrap()));

        // By hand, since it was read.
        fs::write(&file, "a = 3\n").unwrap();
        let moved = put(&file, "a = 2\n", "a = 4\n");
        assert!(matches!(moved, Err(Unwritten::Moved)), "{moved:?}");
        assert_eq!(read(&file).unwrap(), "a = 3\n");
        assert_ne!(version("a = 1\n"), version("a = 2\n"));
    }
}
