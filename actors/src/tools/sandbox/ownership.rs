//! A workspace as the property of the user that commands run as.
//!
//! The service is root there and reads and writes everything anyway. What it made, a command
//! has to be able to change: it becomes the user's before each command.

use std::io;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chownat, fchown, openat, statat};
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
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let mut seen = 0;
    fchown(&root, Some(uid), Some(gid))?;
    let mut open: Vec<(OwnedFd, usize)> = vec![(root, 0)];
    while let Some((directory, level)) = open.pop() {
        let Ok(entries) = Dir::read_from(&directory) else {
            continue;
        };
        for entry in entries {
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            seen += 1;
            if seen > MAX_ENTRIES {
                return Ok(());
            }
            // What vanished meanwhile needs no owner.
            let Ok(stat) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            let is_directory = kind == FileType::Directory;
            if stat.st_uid == 0 && (is_directory || stat.st_nlink == 1) {
                let no_link = AtFlags::SYMLINK_NOFOLLOW;
                let _ = chownat(&directory, name, Some(uid), Some(gid), no_link);
            }
            if is_directory
                && level < MAX_LEVELS
                && let Ok(inner) = openat(&directory, name, flags, Mode::empty())
            {
                open.push((inner, level + 1));
            }
        }
    }
    Ok(())
}
