//! The machine: directory, disk, port, clock, kernel.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use navi_actors::protocol::phrase::{CheckName, Phrase, PhraseCode, Trouble};
use navi_actors::tools::sandbox::Sandbox;
use navi_actors::tools::terminal::Allowed;
use rustix::fs::{Access, access};

use super::{Check, Level};
use crate::instance;
use crate::settings::Settings;

const LITTLE_DISK_BYTES: u64 = 1024 * 1024 * 1024;
const NO_DISK_BYTES: u64 = 64 * 1024 * 1024;
/// 2025-01-01: a clock before that was never set.
const OLDEST_SENSIBLE_TIME: Duration = Duration::from_secs(1_735_689_600);
const TOLERATED_SKEW: Duration = Duration::from_secs(60);

/// Whether the data directory can be written, and by its owner alone; where there is none, whether
/// it can be made.
pub(crate) fn data_directory(dir: &Path) -> Check {
    const NAME: CheckName = CheckName::Data;
    let shown = dir.display().to_string();
    let of = |code| Phrase::new(code, [("place", shown.clone())]);
    let is_there = dir.exists();
    let tried = if is_there {
        write_probe(dir).map(|_| ())
    } else {
        can_be_made(dir)
    };
    if let Err(error) = tried {
        return Check::broken(
            NAME,
            of(PhraseCode::NotWritable).with("error", Phrase::plain(error.to_string())),
            PhraseCode::CorrectPermissions,
        );
    }
    if !is_there {
        return Check::fine(NAME, of(PhraseCode::MadeAtStart));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(dir).map_or(0, |metadata| metadata.permissions().mode());
        if mode & 0o077 != 0 {
            let mode = format!("{:03o}", mode & 0o777);
            return Check::warning(
                NAME,
                of(PhraseCode::OpenToOthers).with("mode", Phrase::plain(mode)),
                of(PhraseCode::UseMode),
            );
        }
    }
    Check::fine(NAME, Phrase::plain(shown))
}

/// Whether there is room to write.
pub(crate) fn disk_space(dir: &Path) -> Check {
    const NAME: CheckName = CheckName::Disk;
    let free = existing(dir).and_then(free_bytes);
    let remedy = PhraseCode::MakeRoom;
    match free {
        None => Check::fine(NAME, PhraseCode::DiskUnknown),
        Some(free) => {
            let megabytes = (free / 1_000_000).to_string();
            let detail = Phrase::new(PhraseCode::DiskFree, [("megabytes", megabytes)]);
            if free < NO_DISK_BYTES {
                Check::broken(NAME, detail, remedy)
            } else if free < LITTLE_DISK_BYTES {
                Check::warning(NAME, detail, remedy)
            } else {
                Check::fine(NAME, detail)
            }
        }
    }
}

/// Whether the address is free, or this very Navi has it.
pub(crate) fn port(address: SocketAddr, data_dir: &Path) -> Check {
    const NAME: CheckName = CheckName::Port;
    if let Some(running) = instance::running(data_dir) {
        let params = [("address", running.url()), ("id", running.pid.to_string())];
        return Check::fine(NAME, Phrase::new(PhraseCode::PortOwn, params));
    }
    let of = |code| Phrase::new(code, [("address", address.to_string())]);
    match TcpListener::bind(address) {
        Ok(_) => Check::fine(NAME, of(PhraseCode::PortFree)),
        Err(error) => Check::broken(
            NAME,
            of(PhraseCode::PortTaken).with("error", Phrase::plain(error.to_string())),
            PhraseCode::AnotherPort,
        ),
    }
}

/// Whether the clock is plausible, and the disk's agrees with it.
pub(crate) fn clock(dir: &Path) -> Check {
    const NAME: CheckName = CheckName::Clock;
    let now = SystemTime::now();
    let since_epoch = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    if since_epoch < OLDEST_SENSIBLE_TIME {
        return Check::broken(NAME, PhraseCode::ClockBefore, PhraseCode::SetClock);
    }
    let skew = write_probe(dir)
        .ok()
        .and_then(|written| {
            let ahead = written.duration_since(now).ok();
            ahead.or_else(|| now.duration_since(written).ok())
        })
        .unwrap_or_default();
    if skew > TOLERATED_SKEW {
        return Check::warning(
            NAME,
            Phrase::new(
                PhraseCode::DiskClock,
                [("seconds", skew.as_secs().to_string())],
            ),
            PhraseCode::SetDiskClock,
        );
    }
    Check::fine(NAME, PhraseCode::ClockPlausible)
}

/// What holds tools inside their session's directory.
pub(crate) fn sandbox(settings: &Settings) -> Check {
    const NAME: CheckName = CheckName::Sandbox;
    let terminal = &settings.terminal;
    if terminal.allowed == Allowed::Everything {
        return Check::warning(NAME, PhraseCode::FenceWide, PhraseCode::NarrowFence);
    }
    let sandbox = Sandbox::new(terminal.sandbox.clone());
    match sandbox.available() {
        Ok(()) => {
            let holds = [("holds", sandbox.to_string())];
            let mut detail = vec![Phrase::new(PhraseCode::CommandsHeld, holds)];
            detail.extend(settings.people.accounts.then(|| apart(&sandbox)));
            Check::new(NAME, Level::Fine, detail, None)
        }
        Err(Trouble { problem, remedy }) => Check::warning(
            NAME,
            Phrase::from(PhraseCode::AskedEach).with("reason", problem.clone()),
            remedy.clone(),
        ),
    }
}

/// What is between the commands of different people.
fn apart(sandbox: &Sandbox) -> Phrase {
    match (&sandbox.uids, &sandbox.user) {
        (Some(uids), _) => Phrase::new(PhraseCode::ApartByUids, [("uids", uids.to_string())]),
        (None, Some(user)) => Phrase::new(PhraseCode::ApartByUser, [("name", user.name.clone())]),
        (None, None) => PhraseCode::ApartByNamespaces.into(),
    }
}

/// What is there of a path.
fn existing(path: &Path) -> Option<&Path> {
    path.ancestors().find(|place| place.exists())
}

/// Whether what is there of a path takes a new directory. Makes none.
fn can_be_made(dir: &Path) -> io::Result<()> {
    // With the dot a file in the way is no directory, whatever it allows.
    let above = existing(dir).unwrap_or(dir).join(".");
    Ok(access(&above, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Writes and removes a file; when the disk says that it was written.
fn write_probe(dir: &Path) -> io::Result<SystemTime> {
    let path: PathBuf = dir.join(format!(".probe-{}", std::process::id()));
    let written = fs::write(&path, b"navi")
        .and_then(|()| fs::metadata(&path))
        .and_then(|metadata| metadata.modified());
    let removed = fs::remove_file(&path);
    let written = written?;
    removed?;
    Ok(written)
}

#[cfg(unix)]
fn free_bytes(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_port_is_broken_and_a_free_one_is_fine() {
        let dir = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(port(address, dir.path()).level, Level::Broken);
        drop(listener);
        assert_eq!(port(address, dir.path()).level, Level::Fine);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_broken() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("in the way");
        fs::write(&file, "").unwrap();
        let below = file.join("data");
        assert_eq!(data_directory(&below.join("more")).level, Level::Broken);
        assert_eq!(data_directory(&below).level, Level::Broken);
        fs::remove_file(&file).unwrap();
        assert_eq!(data_directory(&below).level, Level::Fine);
        assert!(!file.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_others_can_read_is_warned_of() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let set = |mode| fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        set(0o755);
        assert_eq!(data_directory(dir.path()).level, Level::Warning);
        set(0o700);
        assert_eq!(data_directory(dir.path()).level, Level::Fine);
        assert_eq!(data_directory(&dir.path().join("new")).level, Level::Fine);
        assert_eq!(clock(dir.path()).level, Level::Fine);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
