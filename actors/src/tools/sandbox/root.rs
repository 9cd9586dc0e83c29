//! The file system as a command sees it: what it may read, mounted for reading alone, its own
//! folders, and nothing else. Paths stay what they are.
//!
//! Landlock holds what is read and written; modes, times, watches and the mere existence of a
//! file it does not hold. What is not mounted has none of these.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, StatVfsMountFlags, openat, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use rustix::process::{chdir, pivot_root};

use super::Job;
use super::policy::DEVICES;
use crate::tools::trust::make_dir;

/// Memory that programs share by name.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// What the kernel tells of itself and of the command's own processes.
pub(super) const PROC: &str = "/proc";

/// Folders that every machine has.
const PLACES: [&str; 4] = ["/tmp", "/var", "/home", "/sys"];

/// Who has an account here, and which groups there are.
const ACCOUNTS: [&str; 2] = ["/etc/passwd", "/etc/group"];

/// As much of either is copied: what a command sees of its own lies in little memory.
const MAX_ACCOUNTS_BYTES: usize = 256 << 10;

/// The links that every `/dev` has.
const STREAMS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// What is to be seen, by its path.
#[derive(Debug, Default)]
struct View {
    mounts: BTreeMap<PathBuf, Mounted>,
    /// On the way to them.
    links: BTreeMap<PathBuf, PathBuf>,
}

/// A folder or file that is put in its place. Held open, since its path leads nowhere once the
/// new root is mounted.
#[derive(Debug)]
struct Mounted {
    open: OwnedFd,
    is_dir: bool,
    is_writable: bool,
}

/// Makes the new root and moves there.
pub(super) fn enter(job: &Job) -> io::Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    let view = View::of(job)?;
    let root = view.place()?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    mount("tmpfs", root, "tmpfs", flags, c"size=1m,mode=755")?;
    for (path, mounted) in &view.mounts {
        let is_seen = path.parent().is_some_and(|above| view.shows(above));
        if mounted.is_writable || !is_seen {
            mounted.put(&below(root, path))?;
        }
    }
    for (path, target) in view.links.iter().filter(|(path, _)| !view.shows(path)) {
        let path = below(root, path);
        make_folders(path.parent())?;
        symlink(target, path)?;
    }
    fill_dev(root)?;
    fill_proc(root, job)?;
    fill_accounts(root, job, &view)?;
    let mut seen = view.mounts.keys().chain(view.links.keys());
    let scratch = Some(&job.order.scratch).filter(|it| !it.as_os_str().is_empty());
    if let Some(scratch) = scratch
        && !seen.any(|path| path.starts_with("/tmp"))
    {
        symlink(scratch, below(root, Path::new("/tmp")))?;
    }
    close(root, &view)?;
    chdir(root)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

/// A path of the command's as it is reached from here.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn make_folders(path: Option<&Path>) -> io::Result<()> {
    path.map_or(Ok(()), |path| make_dir(path, 0o755))
}

impl View {
    fn of(job: &Job) -> io::Result<Self> {
        let mut view = Self::default();
        for path in &job.writable() {
            view.add(path, true)?;
        }
        let devices = DEVICES.split(' ').map(Path::new);
        let read = job.order.read.iter().map(PathBuf::as_path);
        // Of these, a machine has some and not others.
        let is_made = |path: &Path| {
            let mut made = ACCOUNTS.iter().map(Path::new);
            job.order.uid.is_some() && made.any(|made| made == path)
        };
        let there = |path: &&Path| !path.starts_with(PROC) && !is_made(path) && path.exists();
        for path in read.chain(devices).filter(there) {
            view.add(path, false)?;
        }
        Ok(view)
    }

    /// Under its real path, with the links on the way there from the one that was asked for.
    fn add(&mut self, path: &Path, is_writable: bool) -> io::Result<()> {
        if let Entry::Vacant(place) = self.mounts.entry(path.canonicalize()?) {
            let mounted = Mounted::open(place.key(), is_writable)?;
            place.insert(mounted);
        }
        let mut way = path.to_owned();
        // The first link of the way, below which the rest of it is elsewhere.
        let links = |way: &Path| {
            let links = way.ancestors();
            let links = links.filter_map(|at| Some((at.to_owned(), at.read_link().ok()?)));
            links.last()
        };
        while let Some((link, target)) = links(&way) {
            let folder = link.parent().unwrap_or(Path::new("/")).canonicalize()?;
            let rest = way.strip_prefix(&link).unwrap_or(Path::new(""));
            // Without a slash at its end, by which a link there would be followed.
            way = folder.join(&target).join(rest).components().collect();
            let name = link.file_name().unwrap_or_default();
            self.links.insert(folder.join(name), target);
        }
        Ok(())
    }

    /// A folder to mount the new root on, where nobody else sees it: none that is shown itself,
    /// which would show what is mounted there, too.
    fn place(&self) -> io::Result<&'static Path> {
        let mut places = PLACES.iter().map(Path::new);
        // By its real path, since the table of mounts has that.
        let is_free = |path: &&Path| path.is_dir() && !path.is_symlink() && !self.shows(path);
        places
            .find(is_free)
            .ok_or_else(|| io::Error::other(format!("commands may read all of {PLACES:?}")))
    }

    /// Whether a path is there with what is mounted.
    fn shows(&self, path: &Path) -> bool {
        path.ancestors().any(|at| self.mounts.contains_key(at))
    }

    fn is_writable(&self, path: &Path) -> bool {
        let mounted = path.ancestors().find_map(|above| self.mounts.get(above));
        mounted.is_some_and(|mounted| mounted.is_writable)
    }
}

impl Mounted {
    fn open(path: &Path, is_writable: bool) -> io::Result<Self> {
        Ok(Self {
            open: openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?,
            is_dir: path.is_dir(),
            is_writable,
        })
    }

    fn put(&self, at: &Path) -> io::Result<()> {
        if self.is_dir {
            make_folders(Some(at))?;
        } else {
            make_folders(at.parent())?;
            if !at.exists() {
                File::create(at)?;
            }
        }
        let source = format!("/proc/self/fd/{}", self.open.as_raw_fd());
        Ok(mount_bind_recursive(source, at)?)
    }
}

fn fill_dev(root: &Path) -> io::Result<()> {
    let dev = root.join("dev");
    let shared = below(root, Path::new(SHARED_MEMORY));
    make_folders(Some(&shared))?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    mount("tmpfs", &shared, "tmpfs", flags, c"size=64m,mode=1777")?;
    let mut streams = STREAMS.iter();
    streams.try_for_each(|(name, target)| symlink(target, dev.join(name)))
}

/// The processes of the command's own namespace. Where the kernel refuses that, as in a
/// container that hides parts of its own, there are those files that name no process.
fn fill_proc(root: &Path, job: &Job) -> io::Result<()> {
    let proc = below(root, Path::new(PROC));
    make_folders(Some(&proc))?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
    if mount("proc", &proc, "proc", flags, None).is_ok() {
        return Ok(());
    }
    let named = job.order.read.iter().filter(|path| path.starts_with(PROC));
    for path in named.filter(|path| path.exists()) {
        Mounted::open(path, false)?.put(&below(root, path))?;
    }
    Ok(())
}

/// The machine's accounts and groups, and among them the one by whose id one person's commands
/// run: some programs do not go on without a name for their user.
fn fill_accounts(root: &Path, job: &Job, view: &View) -> io::Result<()> {
    let Some(user) = job.user.as_ref().filter(|_| job.order.uid.is_some()) else {
        return Ok(());
    };
    let (name, home) = (&user.name, job.order.workspace.display());
    let own = [
        format!("{name}:x:{}:{}::{home}:/bin/sh\n", user.uid, user.gid),
        format!("{name}:x:{}:\n", user.gid),
    ];
    for (path, own) in ACCOUNTS.iter().map(Path::new).zip(own) {
        if view.shows(path) {
            continue;
        }
        let all = fs::read_to_string(path).unwrap_or_default();
        let others = Some(all).filter(|all| all.len() <= MAX_ACCOUNTS_BYTES);
        let path = below(root, path);
        make_folders(path.parent())?;
        fs::write(path, own + &others.unwrap_or_default())?;
    }
    Ok(())
}

/// Makes everything read-only that is not the command's, with what is mounted inside of it.
fn close(root: &Path, view: &View) -> io::Result<()> {
    let own = [Path::new(PROC), Path::new(SHARED_MEMORY)];
    let table = fs::read("/proc/self/mountinfo")?;
    let mounts = table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(unescaped);
    for mounted in mounts.filter(|path| path.starts_with(root)) {
        let path = Path::new("/").join(mounted.strip_prefix(root).unwrap_or(&mounted));
        if view.is_writable(&path) || own.contains(&path.as_path()) {
            continue;
        }
        let kept = kept_flags(&mounted)?;
        mount_remount(&mounted, MountFlags::BIND | MountFlags::RDONLY | kept, c"")?;
    }
    Ok(())
}

/// What a mount has already: in a user namespace none of it may be given up. How it keeps times of
/// access stays as it is where nothing is said of that (mount(2)).
fn kept_flags(mounted: &Path) -> io::Result<MountFlags> {
    let has = statvfs(mounted)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
    ];
    let kept = pairs.into_iter().filter(|(flag, _)| has.contains(*flag));
    Ok(kept.map(|(_, flag)| flag).collect())
}

/// The table writes blanks and backslashes as three octal digits.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *byte == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(*byte));
        rest = code.map_or(after, |_| &after[3..]);
    }
    PathBuf::from(std::ffi::OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_mount_table_is_read_as_it_is() {
        assert_eq!(unescaped(br"/a\040b\134c"), Path::new(r"/a b\c"));
        assert_eq!(unescaped(br"/plain"), Path::new("/plain"));
        assert_eq!(unescaped(br"/cut\04"), Path::new(r"/cut\04"));
    }
}
