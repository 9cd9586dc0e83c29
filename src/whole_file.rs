//! Files that people edit as well: written whole, or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use crate::access::links::make_private_dir;

/// Puts `text` in the place of what the file holds. Its permissions stay, and so does a link to
/// it; a new one is its owner's alone, as there may be secrets in it. Blocks.
///
/// # Errors
/// Those of the file system: then the file is as it was.
pub(crate) fn replace(file: &Path, text: &str) -> io::Result<()> {
    let there = fs::canonicalize(file).ok();
    let file = there.as_deref().unwrap_or(file);
    let (Some(dir), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    make_private_dir(dir)?;
    let aside = dir.join(format!(".{}.new", name.to_string_lossy()));
    let put = put(&aside, file, text);
    if put.is_err() {
        let _ = fs::remove_file(&aside);
    }
    put
}

fn put(aside: &Path, file: &Path, text: &str) -> io::Result<()> {
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
    if let Ok(before) = fs::metadata(file) {
        written.set_permissions(before.permissions())?;
    }
    written.sync_all()?;
    fs::rename(aside, file)
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_keeps_its_permissions_and_its_links_and_a_new_one_is_private() {
        let house = tempfile::tempdir().unwrap();
        let (file, link) = (house.path().join("a/file"), house.path().join("link"));
        let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        replace(&file, "one").unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        fs::write(house.path().join("a/.file.new"), "left by a crash").unwrap();
        replace(&link, "two").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            (mode(), fs::read_to_string(&file).unwrap()),
            (0o640, "two".to_owned())
        );
        assert_eq!(fs::read_dir(house.path().join("a")).unwrap().count(), 1);
    }
}
