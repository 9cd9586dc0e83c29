//! Moving things between directories: never onto something else, and by copying where they are
//! on different disks.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, OpenOptions};
use rustix::fs::RenameFlags;
use rustix::io::Errno;

use crate::tools::workspace::{Location, MAX_DEPTH, open_nonblocking};

/// Moves what stands at one place to the other, which must be free.
pub(super) fn move_entry(from: &Location, to: &Location) -> io::Result<()> {
    let moved = rustix::fs::renameat_with(
        &from.directory,
        &from.name,
        &to.directory,
        &to.name,
        RenameFlags::NOREPLACE,
    );
    match moved {
        Ok(()) => Ok(()),
        Err(Errno::XDEV) => {
            check_free(to)?;
            let copied = copy((&from.directory, &from.name), (&to.directory, &to.name), 0);
            copied.inspect_err(|_| {
                // What was copied so far is nobody's.
                let _ = remove(to);
            })?;
            remove(from)
        }
        // Some file systems know no such flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            check_free(to)?;
            from.directory.rename(&from.name, &to.directory, &to.name)
        }
        Err(error) => Err(error.into()),
    }
}

fn check_free(at: &Location) -> io::Result<()> {
    match at.metadata()? {
        Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
        None => Ok(()),
    }
}

/// Copies what stands under a name in a directory.
fn copy(
    (from, name): (&Dir, &OsStr),
    (to, new_name): (&Dir, &OsStr),
    depth: usize,
) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::other("it has too many levels of directories"));
    }
    let metadata = from.symlink_metadata(name)?;
    if metadata.is_symlink() {
        return to.symlink_contents(from.read_link_contents(name)?, new_name);
    }
    if metadata.is_dir() {
        to.create_dir(new_name)?;
        let source = from.open_dir_nofollow(name)?;
        let target = to.open_dir_nofollow(new_name)?;
        for entry in source.entries()? {
            let name = entry?.file_name();
            copy((&source, &name), (&target, &name), depth + 1)?;
        }
        return to.set_permissions(new_name, metadata.permissions());
    }
    if !metadata.is_file() {
        return Err(io::Error::other(
            "it is no regular file (a pipe, a socket or a device), and cannot go to another disk",
        ));
    }
    let mut source = open_nonblocking(from, Path::new(name))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut target = to.open_with(new_name, &options)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(metadata.permissions())?;
    target.sync_all()
}

/// Removes what stands at a place, for good.
pub(super) fn remove(at: &Location) -> io::Result<()> {
    let metadata = at.directory.symlink_metadata(&at.name)?;
    if metadata.is_dir() {
        at.directory.remove_dir_all(&at.name)
    } else {
        at.directory.remove_file(&at.name)
    }
}
