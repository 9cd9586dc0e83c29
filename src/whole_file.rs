//! Files that people edit as well: written whole, or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::access::links::make_private_dir;

/// Puts `text` in the place of what the file holds. Its permissions and its owner stay, and so does
/// a link to it; a new one is its owner's alone, as there may be secrets in it. Blocks.
///
/// # Errors
/// Those of the file system, and a link that leads to no file: then the file is as it was.
pub(crate) fn replace(file: &Path, text: &str) -> io::Result<()> {
    replace_like(file, text, file)
}

/// The same, with the permissions and the owner of another file.
///
/// # Errors
/// As [`replace`].
pub(crate) fn replace_like(file: &Path, text: &str, like: &Path) -> io::Result<()> {
    let file = real(file)?;
    let dir = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make_private_dir(dir)?;
    let aside = aside(&file);
    let written = write(&aside, text, like).and_then(|()| fs::rename(&aside, &file));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
        return written;
    }
    // The names of a directory are its own to lose. It is in its place, whatever comes of this.
    let _ = File::open(dir).and_then(|dir| dir.sync_all());
    Ok(())
}

/// A file beside the one to which `file` leads, with this at the end of its name.
pub(crate) fn beside(file: &Path, end: &str) -> PathBuf {
    named_after(file, "", end)
}

/// Where a file's next text is while that is written; a crash may leave one there.
pub(crate) fn aside(file: &Path) -> PathBuf {
    named_after(file, ".", ".new")
}

fn named_after(file: &Path, begin: &str, end: &str) -> PathBuf {
    let file = real(file).unwrap_or_else(|_| file.to_owned());
    let mut name = OsString::from(begin);
    name.push(file.file_name().unwrap_or_default());
    name.push(end);
    file.with_file_name(name)
}

/// What is written in its place; a link to it stays one.
fn real(file: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(file) {
        Err(_) if file.is_symlink() => Err(io::Error::other(
            "it is a link that leads to no file; make that file, or take the link away",
        )),
        Err(_) => Ok(file.to_owned()),
        real => real,
    }
}

/// Has a text on the disk under a name that nobody reads.
fn write(aside: &Path, text: &str, like: &Path) -> io::Result<()> {
    // One that a crash left.
    match fs::remove_file(aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut written = options.open(aside)?;
    written.write_all(text.as_bytes())?;
    if let Ok(like) = fs::metadata(like) {
        #[cfg(unix)]
        give(&written, &like);
        written.set_permissions(like.permissions())?;
    }
    written.sync_all()
}

/// Gives a file to another one's owner and group, as far as this user may.
#[cfg(unix)]
fn give(file: &File, like: &fs::Metadata) {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let _ = fchown(file, None, Some(like.gid()));
    let _ = fchown(file, Some(like.uid()), None);
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

    use super::*;

    fn read(file: &Path) -> String {
        fs::read_to_string(file).unwrap()
    }

    #[test]
    fn a_file_keeps_its_permissions_and_its_links_and_a_new_one_is_private() {
        let house = tempfile::tempdir().unwrap();
        let (file, link) = (house.path().join("a/file"), house.path().join("link"));
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
        replace(&file, "one").unwrap();
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        replace(&link, "two").unwrap();
        assert!(link.is_symlink());
        assert_eq!((mode(&file), read(&file)), (0o640, "two".to_owned()));
        replace_like(&beside(&link, ".before"), "one", &file).unwrap();
        let before = house.path().join("a/file.before");
        assert_eq!((mode(&before), read(&before)), (0o640, "one".to_owned()));
    }

    #[test]
    fn an_end_between_write_and_rename_leaves_the_old_file_whole() {
        let house = tempfile::tempdir().unwrap();
        let file = house.path().join("file");
        replace(&file, "one").unwrap();
        write(&aside(&file), "two", &file).unwrap();
        assert_eq!(read(&file), "one");
        assert!(house.path().join(".file.new").exists());
        replace(&file, "three").unwrap();
        assert_eq!(read(&file), "three");
        assert_eq!(fs::read_dir(house.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_put_in_its_place_leaves_nothing_behind() {
        let house = tempfile::tempdir().unwrap();
        let folder = house.path().join("folder");
        fs::create_dir(&folder).unwrap();
        assert!(replace(&folder, "one").is_err());
        assert_eq!(fs::read_dir(house.path()).unwrap().count(), 1);
        let link = house.path().join("link");
        symlink(house.path().join("gone"), &link).unwrap();
        let refused = replace(&link, "one").unwrap_err().to_string();
        assert!(refused.contains("leads to no file"), "{refused}");
        assert!(link.is_symlink());
    }

    #[test]
    fn a_file_of_another_user_stays_theirs() {
        let house = tempfile::tempdir().unwrap();
        let file = house.path().join("file");
        replace(&file, "one").unwrap();
        // Only root gives files away.
        if chown(&file, Some(65_534), Some(65_534)).is_err() {
            return;
        }
        replace(&file, "two").unwrap();
        let there = fs::metadata(&file).unwrap();
        assert_eq!((there.uid(), there.gid()), (65_534, 65_534));
    }
}
