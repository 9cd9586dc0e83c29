//! Moving things between directories: never onto something else, and by copying where they are
//! on different disks.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use cap_fs_ext::{DirExt as _, FollowSymlinks};
use cap_std::fs::{Dir, OpenOptions};
use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::super::root::open_nonblocking;

/// As deep as a tree is copied: each level holds open directories.
const MAX_DEPTH: usize = 64;

/// One end of a move: a name in a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct End<'a> {
    pub(super) directory: &'a Dir,
    pub(super) name: &'a OsStr,
}

impl End<'_> {
    fn is_free(&self) -> io::Result<bool> {
        match self.directory.symlink_metadata(self.name) {
            Ok(_) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }
}

/// Moves what stands at one end to the other, which must be free.
pub(super) fn move_entry(from: End<'_>, to: End<'_>) -> io::Result<()> {
    let moved = rustix::fs::renameat_with(
        from.directory,
        from.name,
        to.directory,
        to.name,
        RenameFlags::NOREPLACE,
    );
    match moved {
        Ok(()) => Ok(()),
        Err(Errno::XDEV) => copy_and_remove(from, to),
        // Some file systems know no such flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            if !to.is_free()? {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            from.directory.rename(from.name, to.directory, to.name)
        }
        Err(error) => Err(error.into()),
    }
}

fn copy_and_remove(from: End<'_>, to: End<'_>) -> io::Result<()> {
    if !to.is_free()? {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    if let Err(error) = copy(from, to, 0) {
        // What was copied so far is nobody's.
        let _ = remove(to);
        return Err(error);
    }
    remove(from)
}

fn copy(from: End<'_>, to: End<'_>, depth: usize) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::other("it has too many levels of directories"));
    }
    let metadata = from.directory.symlink_metadata(from.name)?;
    if metadata.is_symlink() {
        let target = from.directory.read_link_contents(from.name)?;
        return to.directory.symlink_contents(target, to.name);
    }
    if metadata.is_dir() {
        to.directory.create_dir(to.name)?;
        let source = from.directory.open_dir_nofollow(from.name)?;
        let target = to.directory.open_dir_nofollow(to.name)?;
        for entry in source.entries()? {
            let name = entry?.file_name();
            let inner = |directory| End {
                directory,
                name: &name,
            };
            copy(inner(&source), inner(&target), depth + 1)?;
        }
        return to
            .directory
            .set_permissions(to.name, metadata.permissions());
    }
    if !metadata.is_file() {
        return Err(io::Error::other(
            "it is no regular file (a pipe, a socket or a device), and cannot go to another disk",
        ));
    }
    let mut source = open_nonblocking(from.directory, Path::new(from.name), FollowSymlinks::No)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut target = to.directory.open_with(to.name, &options)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(metadata.permissions())?;
    target.sync_all()
}

/// Removes what stands at an end, for good.
pub(super) fn remove(end: End<'_>) -> io::Result<()> {
    let metadata = end.directory.symlink_metadata(end.name)?;
    if metadata.is_dir() {
        end.directory.remove_dir_all(end.name)
    } else {
        end.directory.remove_file(end.name)
    }
}
