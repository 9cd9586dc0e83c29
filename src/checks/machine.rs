//! The machine: directory, disk, port, clock, kernel.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use navi_actors::tools::sandbox::Sandbox;
use navi_actors::tools::terminal::Allowed;

use super::Check;
use crate::instance;
use crate::settings::Settings;

const LITTLE_DISK_BYTES: u64 = 1024 * 1024 * 1024;
const NO_DISK_BYTES: u64 = 64 * 1024 * 1024;
/// 2025-01-01: a clock before that was never set.
const OLDEST_SENSIBLE_TIME: Duration = Duration::from_secs(1_735_689_600);
const TOLERATED_SKEW: Duration = Duration::from_secs(60);

/// Whether the data directory can be written, and by its owner alone.
pub(crate) fn data_directory(dir: &Path) -> Check {
    const NAME: &str = "data";
    let shown = dir.display();
    if !dir.exists() {
        return Check::fine(NAME, format!("{shown} (made at the first start)"));
    }
    if let Err(error) = write_probe(dir) {
        return Check::broken(
            NAME,
            format!("{shown} cannot be written to: {error}"),
            "correct its permissions, or set NAVI_DATA_DIR to another directory",
        );
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(dir).map_or(0, |metadata| metadata.permissions().mode());
        if mode & 0o077 != 0 {
            return Check::warning(
                NAME,
                format!("{shown} is open to others (mode {:03o})", mode & 0o777),
                format!("chmod 700 {shown}"),
            );
        }
    }
    Check::fine(NAME, shown.to_string())
}

/// Whether there is room to write.
pub(crate) fn disk_space(dir: &Path) -> Check {
    const NAME: &str = "disk";
    let existing = dir.ancestors().find(|place| place.exists());
    let free = existing.and_then(free_bytes);
    let remedy = "make room, or set NAVI_DATA_DIR to a larger disk";
    match free {
        None => Check::fine(NAME, "free space is not known"),
        Some(free) => {
            let detail = format!("{} MB free", free / 1_000_000);
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
    const NAME: &str = "port";
    if let Some(running) = instance::running(data_dir) {
        return Check::fine(
            NAME,
            format!("navi runs at {} (process {})", running.url(), running.pid),
        );
    }
    match TcpListener::bind(address) {
        Ok(_) => Check::fine(NAME, format!("{address} is free")),
        Err(error) => Check::broken(
            NAME,
            format!("{address} cannot be used: {error}"),
            "stop the program that has it, or set NAVI_BIND to another port",
        ),
    }
}

/// Whether the clock is plausible, and the disk's agrees with it.
pub(crate) fn clock(dir: &Path) -> Check {
    const NAME: &str = "clock";
    let now = SystemTime::now();
    let since_epoch = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    if since_epoch < OLDEST_SENSIBLE_TIME {
        return Check::broken(NAME, "it stands before 2025", "set the machine's clock");
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
            format!("the data directory's disk is {} s off", skew.as_secs()),
            "set the clock of the machine that serves that disk",
        );
    }
    Check::fine(NAME, "plausible")
}

/// What holds tools inside their session's directory.
pub(crate) fn sandbox(settings: &Settings) -> Check {
    const NAME: &str = "sandbox";
    let terminal = &settings.terminal;
    if terminal.allowed == Allowed::Everything {
        return Check::warning(
            NAME,
            "TERMINAL_ALLOWED_COMMANDS is *: commands run outside it, with Navi's own rights, and each is asked about",
            "set TERMINAL_ALLOWED_COMMANDS to nothing, or to a list of commands",
        );
    }
    let sandbox = Sandbox::new(terminal.sandbox.clone());
    match sandbox.available() {
        Ok(()) => {
            let whose = match settings.people.accounts {
                true => apart(&sandbox),
                false => String::new(),
            };
            Check::fine(NAME, format!("commands are held by {sandbox}{whose}"))
        }
        Err(reason) => {
            let reason = reason.to_string();
            let (what, remedy) = reason.split_once("; ").unwrap_or((&reason, ""));
            Check::warning(NAME, format!("each command is asked about: {what}"), remedy)
        }
    }
}

/// What is between the commands of different people.
fn apart(sandbox: &Sandbox) -> String {
    match (&sandbox.uids, &sandbox.user) {
        (Some(uids), _) => {
            format!("; each person's run under a user id of their own instead, of {uids}")
        }
        (None, Some(user)) => format!(
            "; those of all people run as {}, each in namespaces of its own: NAVI_SANDBOX_UIDS names no user ids, and none are free",
            user.name
        ),
        (None, None) => {
            "; those of all people run as Navi's own user, each in namespaces of its own".to_owned()
        }
    }
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
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::super::Level;
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
