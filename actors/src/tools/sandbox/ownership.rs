//! A workspace as the property of the user that commands run as.
//!
//! The service is root there and reads and writes everything anyway. What it made, a command
//! has to be able to change: it becomes the user's before each command.

use std::io;
use std::path::Path;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, MetadataExt as _};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, chownat, fchown, openat};
use rustix::process::{Gid, Uid};

use super::user::SandboxUser;

/// As many entries as are looked at, and levels.
const MAX_ENTRIES: usize = 200_000;
const MAX_LEVELS: usize = 128;

/// Gives a folder and what is in it to the user, as far as it belongs to root. No link is
/// followed: a command that runs already may swap a folder for one. A file with another name
/// elsewhere is left alone, since it would change its owner there too.
pub(super) fn give(folder: &Path, user: &SandboxUser) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = openat(CWD, folder, flags, Mode::empty())?;
    let (uid, gid) = (Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)));
    fchown(&root, uid, gid)?;
    let mut seen = 0;
    let mut open = vec![(Dir::from_std_file(root.into()), 0)];
    while let Some((directory, level)) = open.pop() {
        for entry in directory.entries().into_iter().flatten().flatten() {
            let name = entry.file_name();
            seen += 1;
            if seen > MAX_ENTRIES {
                return Ok(());
            }
            // What vanished meanwhile needs no owner.
            let Ok(metadata) = directory.symlink_metadata(&name) else {
                continue;
            };
            if metadata.uid() == 0 && (metadata.is_dir() || metadata.nlink() == 1) {
                let _ = chownat(&directory, &name, uid, gid, AtFlags::SYMLINK_NOFOLLOW);
            }
            if metadata.is_dir()
                && level < MAX_LEVELS
                && let Ok(inner) = directory.open_dir_nofollow(&name)
            {
                open.push((inner, level + 1));
            }
        }
    }
    Ok(())
}
