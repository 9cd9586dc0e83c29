//! One service per data directory, and how the command line finds it.
//!
//! The lock is the operating system's: it goes with the process, however that ends. The
//! note beside it says where the service listens; it means nothing without the lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::settings::Settings;
use crate::tls::Wire;

/// A service that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) pid: u32,
    pub(crate) address: SocketAddr,
    /// Of the program that runs.
    #[serde(default)]
    pub(crate) version: String,
    /// When it began to listen, in milliseconds since 1970: another one after an upgrade.
    #[serde(default)]
    pub(crate) since_ms: i64,
    /// The certificates that may be met there, by their fingerprints. None: it speaks plain HTTP.
    #[serde(default)]
    pub(crate) certificates: Vec<String>,
    /// None: an older one, which does not say.
    #[serde(default)]
    reach: Option<Reach>,
}

/// Who comes in, and from where, as a service was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reach {
    pub(crate) accounts: bool,
    /// Where it is for those outside, with a slash at its end.
    pub(crate) public: Option<String>,
}

impl Reach {
    pub(crate) fn of(settings: &Settings) -> Self {
        let public = settings.people.public.as_ref();
        Self {
            accounts: settings.people.accounts,
            public: public.map(|public| public.url.to_string()),
        }
    }

    /// What belongs beside an address that leads here from this machine alone, though the service
    /// listens everywhere.
    pub(crate) fn hint(&self, address: SocketAddr) -> Option<&'static str> {
        let is_lacking = self.public.is_none() && address.ip().is_unspecified();
        is_lacking.then_some(
            "From elsewhere it is reached by this machine's own address, or by its name once NAVI_PUBLIC_URL has that.",
        )
    }
}

/// Nothing runs on a data directory.
#[derive(Debug, thiserror::Error)]
#[error(
    "navi does not run on {}; start it with `navi`, or name the directory that it runs on with --data-dir or NAVI_DATA_DIR", .0.display()
)]
pub(crate) struct NotRunning(PathBuf);

impl Running {
    /// Its own word counts: a command may have other settings than the service was started with.
    pub(crate) fn reach(&self, settings: &Settings) -> Reach {
        let told = self.reach.clone();
        told.unwrap_or_else(|| Reach::of(settings))
    }

    /// Where it is on this machine, without a slash at the end.
    pub(crate) fn url(&self) -> String {
        self.wire().url(self.address)
    }

    pub(crate) fn wire(&self) -> Wire {
        if self.certificates.is_empty() {
            Wire::Plain
        } else {
            Wire::Tls
        }
    }
}

/// This process's claim on a data directory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Instance {
    note: PathBuf,
    _lock: File,
}

/// Why a data directory could not be claimed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    #[error("navi already runs on {dir}{}; stop it, or set NAVI_DATA_DIR to another directory", .running.as_ref().map_or_else(String::new, |running| format!(" (process {}, {})", running.pid, running.url())))]
    Taken {
        dir: String,
        running: Option<Box<Running>>,
    },
    #[error(
        "the data directory {dir} cannot be written to: {error}; correct its permissions, or set NAVI_DATA_DIR to another directory"
    )]
    Unwritable { dir: String, error: io::Error },
}

impl Instance {
    /// Claims the data directory, which exists.
    ///
    /// # Errors
    /// Another service has it, or it cannot be written to.
    pub(crate) fn claim(data_dir: &Path) -> Result<Self, ClaimError> {
        let dir = data_dir.display().to_string();
        let lock = match open_lock(data_dir) {
            Ok(lock) => lock,
            Err(error) => return Err(ClaimError::Unwritable { dir, error }),
        };
        // A command that looks whether a service runs holds the lock for an instant.
        for attempt in 0..10 {
            match lock.try_lock() {
                Ok(()) => {
                    return Ok(Self {
                        note: note_path(data_dir),
                        _lock: lock,
                    });
                }
                Err(TryLockError::WouldBlock) if attempt < 9 => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(TryLockError::WouldBlock) => break,
                Err(TryLockError::Error(error)) => {
                    return Err(ClaimError::Unwritable { dir, error });
                }
            }
        }
        let running = read_note(data_dir).map(Box::new);
        Err(ClaimError::Taken { dir, running })
    }

    /// Tells other commands where the service listens.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn announce(
        &self,
        address: SocketAddr,
        certificates: Vec<String>,
        reach: Reach,
    ) -> io::Result<()> {
        let running = Running {
            pid: std::process::id(),
            address,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since_ms: chrono::Utc::now().timestamp_millis(),
            certificates,
            reach: Some(reach),
        };
        write_note(&self.note, &running)
    }

    /// What tells other commands of other certificates, from then on.
    pub(crate) fn note(&self) -> Note {
        Note(self.note.clone())
    }
}

/// Where the service's note is.
#[derive(Clone, Debug)]
pub(crate) struct Note(PathBuf);

impl Note {
    /// Tells which certificates may be met.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn tell(&self, certificates: Vec<String>) -> io::Result<()> {
        let running: Running = serde_json::from_slice(&fs::read(&self.0)?)?;
        write_note(
            &self.0,
            &Running {
                certificates,
                ..running
            },
        )
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.note);
    }
}

/// The service that runs on a data directory, if one does and has said where.
pub(crate) fn running(data_dir: &Path) -> Option<Running> {
    let lock = File::open(lock_path(data_dir)).ok()?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => read_note(data_dir),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// The same, for what can do nothing without it.
///
/// # Errors
/// None runs there.
pub(crate) fn expect_running(data_dir: &Path) -> Result<Running, NotRunning> {
    running(data_dir).ok_or_else(|| NotRunning(data_dir.to_owned()))
}

fn open_lock(data_dir: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(lock_path(data_dir))
}

fn lock_path(data_dir: &Path) -> PathBuf {
    data_dir.join("navi.lock")
}

fn note_path(data_dir: &Path) -> PathBuf {
    data_dir.join("server.json")
}

fn write_note(path: &Path, running: &Running) -> io::Result<()> {
    let draft = path.with_extension("new");
    fs::write(&draft, serde_json::to_vec(running)?)?;
    fs::rename(draft, path)
}

fn read_note(data_dir: &Path) -> Option<Running> {
    let text = fs::read(note_path(data_dir)).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_service_a_directory_and_others_can_find_it() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(running(dir.path()), None);
        let instance = Instance::claim(dir.path()).unwrap();
        assert_eq!(
            running(dir.path()),
            None,
            "it has not said where it listens"
        );
        let address: SocketAddr = "127.0.0.1:8123".parse().unwrap();
        instance
            .announce(address, Vec::new(), Reach::default())
            .unwrap();
        assert_eq!(running(dir.path()).unwrap().address, address);
        let error = Instance::claim(dir.path()).unwrap_err().to_string();
        assert!(error.contains("http://127.0.0.1:8123"), "{error}");

        drop(instance);
        assert_eq!(running(dir.path()), None);
        Instance::claim(dir.path()).unwrap();
    }

    #[test]
    fn a_note_that_a_crash_left_behind_means_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            note_path(dir.path()),
            r#"{"pid":1,"address":"127.0.0.1:1"}"#,
        )
        .unwrap();
        open_lock(dir.path()).unwrap();
        assert_eq!(running(dir.path()), None);
        // One of an older service can be read all the same.
        assert!(read_note(dir.path()).is_some_and(|note| note.reach.is_none()));
    }
}
