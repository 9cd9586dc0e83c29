//! Directories in which commands did as they liked, removed.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Removes a directory with all in it, also what a command closed; none is removed already.
pub(crate) fn remove_all(dir: &Path) -> io::Result<()> {
    let removed = match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(dir);
            std::fs::remove_dir_all(dir)
        }
        done => done,
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Makes directories that a command closed our own again. Links are not followed.
fn open_up(dir: &Path) {
    let mut closed = vec![dir.to_owned()];
    while let Some(dir) = closed.pop() {
        let Ok(metadata) = std::fs::symlink_metadata(&dir) else {
            continue;
        };
        if !metadata.is_dir() {
            continue;
        }
        let mut permissions = metadata.permissions();
        permissions.set_mode(permissions.mode() | 0o700);
        // Where that fails, removing says so.
        let _ = std::fs::set_permissions(&dir, permissions);
        let inside = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        closed.extend(inside.map(|entry| entry.path()));
    }
}
