//! A way to a folder for a user who may not pass the folders above it.
//!
//! A service that is root keeps its data where only root may look, `/root` as a rule. For the
//! command alone, in a mount namespace of its own, the first such folder is covered by an empty
//! one, and what the command may have is put back in its place. Paths stay what they are.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::thread::UnshareFlags;

use super::user::SandboxUser;

/// See the module.
///
/// # Errors
/// Where it takes a mount, and this process may not mount.
pub(super) fn make_reachable(paths: &[PathBuf], user: &SandboxUser) -> Result<(), String> {
    let hidden: Vec<(PathBuf, PathBuf)> = paths
        .iter()
        .filter_map(|path| Some((path.clone(), barrier(path, user)?)))
        .collect();
    let Some((path, barrier)) = hidden.first() else {
        return Ok(());
    };
    cover(&hidden).map_err(|error| {
        format!(
            "the user {} cannot reach {}, because of {} ({error}); let others pass it with chmod o+x, or move it, such as with NAVI_DATA_DIR",
            user.name,
            path.display(),
            barrier.display()
        )
    })
}

/// The first folder on the way to a path that the user may not pass.
fn barrier(path: &Path, user: &SandboxUser) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let mut above: Vec<&Path> = real.ancestors().skip(1).collect();
    above.reverse();
    let blocked = above.into_iter().find(|folder| {
        let Ok(metadata) = fs::metadata(folder) else {
            return true;
        };
        let bit = if metadata.uid() == user.uid {
            0o100
        } else if metadata.gid() == user.gid {
            0o010
        } else {
            0o001
        };
        metadata.mode() & bit == 0
    })?;
    Some(blocked.to_owned())
}

fn cover(hidden: &[(PathBuf, PathBuf)]) -> Result<(), std::io::Error> {
    separate()?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    // Held open, since the paths lead nowhere once they are covered. Of this namespace: one
    // mounts nothing from another.
    let open: Vec<(PathBuf, OwnedFd, bool)> = hidden
        .iter()
        .map(|(path, _)| {
            let real = path.canonicalize()?;
            let is_dir = real.is_dir();
            let open = openat(CWD, &real, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            Ok((real, open, is_dir))
        })
        .collect::<std::io::Result<_>>()?;
    let barriers: BTreeSet<&PathBuf> = hidden.iter().map(|(_, barrier)| barrier).collect();
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    for barrier in barriers {
        mount("tmpfs", barrier, "tmpfs", flags, c"size=1m,mode=755")?;
    }
    for (path, open, is_dir) in open {
        let above = if is_dir {
            Some(path.as_path())
        } else {
            path.parent()
        };
        if let Some(above) = above {
            DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(above)?;
        }
        if !is_dir {
            File::create(&path)?;
        }
        mount_bind(format!("/proc/self/fd/{}", open.as_raw_fd()), &path)?;
    }
    Ok(())
}

#[expect(
    deprecated,
    reason = "unsafe only where file descriptors are unshared, which they are not"
)]
fn separate() -> Result<(), std::io::Error> {
    Ok(rustix::thread::unshare(UnshareFlags::NEWNS)?)
}
