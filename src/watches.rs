//! The places of the file system where a change of what was read from them shows.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use inotify::{EventMask, Inotify, WatchMask};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

/// Folders may appear and go while they are being armed; then it is tried again.
const TRIES: u32 = 3;

/// How many bytes of events are read at a time; an event has the name of one file.
const EVENT_BYTES: usize = 4096;

/// When files are read again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// After a change they must be left alone for so long: editors write in several steps.
    pub(crate) quiet: Duration,
    /// But no longer than this.
    pub(crate) longest: Duration,
    /// And without any word of a change: some file systems tell none, nor do links.
    pub(crate) rescan: Duration,
}

pub(crate) const PACE: Pace = Pace {
    quiet: Duration::from_millis(200),
    longest: Duration::from_secs(2),
    rescan: Duration::from_secs(30),
};

impl Pace {
    /// Waits until files are to be read again.
    pub(crate) async fn wait(&self, changed: &Notify) {
        if timeout(self.rescan, changed.notified()).await.is_ok() {
            let last = Instant::now() + self.longest;
            while Instant::now() < last
                && timeout_at(last.min(Instant::now() + self.quiet), changed.notified())
                    .await
                    .is_ok()
            {}
        }
    }
}

/// A folder as it stood when its watch was set: another one may come to its path.
#[derive(Debug, PartialEq)]
struct WatchedFolder {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Watches on what is read again when it changes. What doesn't exist yet is watched
/// for at the nearest folder above it.
#[derive(Debug)]
pub(crate) struct Watches {
    /// A folder, or a file.
    targets: Arc<[PathBuf]>,
    changed: Arc<Notify>,
    armed: Option<(Vec<WatchedFolder>, AbortOnDropHandle<()>)>,
    /// That watches cannot be had was told.
    told: bool,
}

impl Watches {
    /// `changed` is told of each change; nothing is watched before [`Watches::arm`].
    pub(crate) fn new(targets: Vec<PathBuf>, changed: Arc<Notify>) -> Self {
        Self {
            targets: targets.into(),
            changed,
            armed: None,
            told: false,
        }
    }

    /// Other places, from the next [`Watches::arm`] on.
    pub(crate) fn aim(&mut self, targets: Vec<PathBuf>) {
        if *self.targets != *targets {
            self.targets = targets.into();
            self.armed = None;
        }
    }

    /// Sets the watches that fit what exists now. To be called again after each change: a
    /// watched folder may have gone, a missing one may have come. Blocks, on a thread of the
    /// runtime.
    pub(crate) fn arm(&mut self) {
        for _ in 0..TRIES {
            let places = self.places();
            if matches!(&self.armed, Some((armed, _)) if *armed == places) {
                return;
            }
            self.armed = None;
            match self.watch(&places) {
                Ok(watcher) => self.armed = Some((places, watcher)),
                Err(error) => {
                    if !std::mem::replace(&mut self.told, true) {
                        warn!(%error, "files cannot be watched; changes of them are seen a little later");
                    }
                    return;
                }
            }
        }
    }

    fn places(&self) -> Vec<WatchedFolder> {
        let mut places: Vec<WatchedFolder> = Vec::new();
        for target in self.targets.iter() {
            let Some(place) = target.ancestors().find_map(|path| folder(path).ok()) else {
                continue;
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    fn watch(&self, places: &[WatchedFolder]) -> io::Result<AbortOnDropHandle<()>> {
        let inotify = Inotify::init()?;
        let mut folders = HashMap::new();
        for place in places {
            let watch = inotify.watches().add(&place.path, changes())?;
            folders.insert(watch, place.path.clone());
        }
        let mut events = inotify.into_event_stream(vec![0; EVENT_BYTES])?;
        let (targets, changed) = (Arc::clone(&self.targets), Arc::clone(&self.changed));
        Ok(AbortOnDropHandle::new(tokio::spawn(async move {
            while let Some(event) = events.next().await {
                // After an error nobody knows what was missed.
                let matters = event.map_or(true, |event| {
                    event.mask.contains(EventMask::Q_OVERFLOW)
                        || folders
                            .get(&event.wd)
                            .is_none_or(|folder| is_near(folder, event.name.as_deref(), &targets))
                });
                if matters {
                    changed.notify_one();
                }
            }
        })))
    }
}

/// What is told of a folder. Not that a file in it was written to before it is closed: the
/// database stands in a folder that is watched, and each of its pages would wake us. Nor that
/// anything was read: we read ourselves, and heeding that would never end.
fn changes() -> WatchMask {
    WatchMask::CREATE
        | WatchMask::DELETE
        | WatchMask::MOVE
        | WatchMask::CLOSE_WRITE
        | WatchMask::ATTRIB
        | WatchMask::DELETE_SELF
        | WatchMask::MOVE_SELF
        | WatchMask::ONLYDIR
}

fn folder(path: &Path) -> io::Result<WatchedFolder> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(WatchedFolder {
        path: path.to_owned(),
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}

/// Whether what happened to a file of a folder, or to the folder, may have to do with a target.
/// The folder above may be a busy one.
fn is_near(folder: &Path, name: Option<&OsStr>, targets: &[PathBuf]) -> bool {
    let path = name.map_or_else(|| folder.to_owned(), |name| folder.join(name));
    let mut targets = targets.iter();
    targets.any(|target| path.starts_with(target) || target.starts_with(&path))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_what_happens_to_the_targets_matters() {
        let targets = ["/data/profiles".into(), "/etc/persona.txt".into()];
        for (folder, name, expected) in [
            ("/data/profiles", Some("own.toml"), true),
            ("/etc", Some("persona.txt"), true),
            ("/data", Some("profiles"), true),
            ("/data", None, true),
            ("/data", Some("navi.db-wal"), false),
            ("/data", Some("profiles2"), false),
        ] {
            let name = name.map(OsStr::new);
            let near = is_near(Path::new(folder), name, &targets);
            assert_eq!(near, expected, "{folder} {name:?}");
        }
    }

    /// The database writes beside the files that are watched for, page by page.
    #[tokio::test]
    async fn a_file_that_is_written_to_and_stays_open_wakes_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let persona = dir.path().join("persona.txt");
        let mut database = File::create(dir.path().join("navi.db")).unwrap();
        let mut inotify = Inotify::init().unwrap();
        inotify.watches().add(dir.path(), changes()).unwrap();
        database.write_all(b"a page").unwrap();
        let mut events = [0; EVENT_BYTES];
        let told = inotify.read_events(&mut events);
        let told = told.map(Iterator::count).map_err(|error| error.kind());
        assert_eq!(told, Err(io::ErrorKind::WouldBlock));

        let changed = Arc::new(Notify::new());
        let mut watches = Watches::new(vec![persona.clone()], Arc::clone(&changed));
        watches.arm();
        fs::write(&persona, "be brief").unwrap();
        changed.notified().await;
    }
}
