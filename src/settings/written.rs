//! The settings file on the disk: read whole, put in place whole or not at all, with the version
//! before it beside it. Blocks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use hex::encode;
use sha2::{Digest as _, Sha256};

use crate::access::links::make_private_dir;

/// Larger than any settings; keeps a wrong file from being read into memory.
const MAX_BYTES: u64 = 1024 * 1024;
/// It holds keys.
const PRIVATE: u32 = 0o600;

/// What stands there; nothing where there is no file.
pub(super) fn read(file: &Path) -> io::Result<String> {
    Ok(read_if_there(file)?.unwrap_or_default())
}

/// The version before the last one that was written from here.
pub(super) fn read_before(file: &Path) -> io::Result<Option<String>> {
    read_if_there(&before(&real(file)))
}

/// By what a text is told from another one.
pub(super) fn version(text: &str) -> String {
    encode(Sha256::digest(text))
}

/// What is kept beside the file, and its next version while that is written.
pub(super) fn beside(file: &Path) -> [PathBuf; 2] {
    let file = real(file);
    [before(&file), aside(&file)]
}

/// A link to it stays one.
fn real(file: &Path) -> PathBuf {
    fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())
}

/// Puts `text` in the file's place, and keeps what stood there.
pub(super) fn put(file: &Path, text: &str) -> io::Result<()> {
    let file = real(file);
    let dir = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make_private_dir(dir)?;
    let old = read_if_there(&file)?.unwrap_or_default();
    let mode = fs::metadata(&file).map_or(PRIVATE, |it| it.permissions().mode() & 0o777);
    write_aside(&file, &old, mode)?.become_file(&before(&file))?;
    write_aside(&file, text, mode)?.become_file(&file)?;
    // The names of a directory are its own to lose.
    File::open(dir)?.sync_all()
}

/// A text that is on the disk, and nobody's yet.
struct Aside(PathBuf);

impl Aside {
    fn become_file(&self, file: &Path) -> io::Result<()> {
        fs::rename(&self.0, file)
    }
}

fn write_aside(file: &Path, text: &str, mode: u32) -> io::Result<Aside> {
    let aside = aside(file);
    // Of one that ended in mid-write.
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(PRIVATE);
    let mut written = options.open(&aside)?;
    written.write_all(text.as_bytes())?;
    written.set_permissions(fs::Permissions::from_mode(mode))?;
    written.sync_all()?;
    Ok(Aside(aside))
}

fn read_if_there(file: &Path) -> io::Result<Option<String>> {
    let opened = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut text = String::new();
    let read = opened.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match u64::try_from(read) {
        Ok(read) if read <= MAX_BYTES => Ok(Some(text)),
        _ => Err(io::Error::other(format!(
            "it is larger than {MAX_BYTES} bytes"
        ))),
    }
}

fn before(file: &Path) -> PathBuf {
    named_after(file, "", ".before")
}

fn aside(file: &Path) -> PathBuf {
    named_after(file, ".", ".new")
}

fn named_after(file: &Path, begin: &str, end: &str) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{begin}{name}{end}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says so by failing")]
    use super::*;

    #[test]
    fn an_end_between_write_and_rename_leaves_the_old_file_whole() {
        let house = tempfile::tempdir().unwrap();
        let file = house.path().join("data").join("navi.toml");
        put(&file, "a = 1\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;

        // As far as it came.
        let aside = write_aside(&file, "a = 2\n", 0o640).unwrap();
        assert_eq!(read(&file).unwrap(), "a = 1\n");
        assert!(aside.0.exists());
        put(&file, "a = 3\n").unwrap();
        assert_eq!(read(&file).unwrap(), "a = 3\n");
        assert_eq!(read_before(&file).unwrap().as_deref(), Some("a = 1\n"));
        assert!(!aside.0.exists());
        assert_eq!((mode(&file), mode(&before(&file))), (0o640, 0o640));
    }

    #[test]
    fn a_new_file_is_private_and_a_link_stays_one() {
        let house = tempfile::tempdir().unwrap();
        let file = house.path().join("navi.toml");
        assert_eq!(read(&file).unwrap(), "");
        put(&file, "a = 1\n").unwrap();
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, PRIVATE);
        let link = house.path().join("link.toml");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        put(&link, "a = 2\n").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(read(&file).unwrap(), "a = 2\n");
        assert_ne!(version("a = 1\n"), version("a = 2\n"));
    }
}
