//! The places of the file system where a change of what was read from them shows.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::warn;

/// Folders may appear and go while they are being armed; then it is tried again.
const TRIES: u32 = 3;

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
    armed: Option<(Vec<WatchedFolder>, RecommendedWatcher)>,
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
    /// watched folder may have gone, a missing one may have come. Blocks.
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

    fn watch(&self, places: &[WatchedFolder]) -> notify::Result<RecommendedWatcher> {
        let (targets, changed) = (Arc::clone(&self.targets), Arc::clone(&self.changed));
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // After an error nobody knows what was missed.
            if event.map_or(true, |event| matters(&event, &targets)) {
                changed.notify_one();
            }
        })?;
        for place in places {
            watcher.watch(&place.path, RecursiveMode::NonRecursive)?;
        }
        Ok(watcher)
    }
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

/// Whether an event may have to do with a target. Reading tells events too, our own as well:
/// heeding them would never end. The folder above may be a busy one.
fn matters(event: &Event, targets: &[PathBuf]) -> bool {
    let only_read = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => true,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => false,
    };
    let near = |path: &PathBuf| {
        targets
            .iter()
            .any(|target| path.starts_with(target) || target.starts_with(path))
    };
    event.need_rescan() || (!only_read && event.paths.iter().any(near))
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, Flag};

    use super::*;

    #[test]
    fn only_events_of_the_targets_matter_and_reading_never_does() {
        let targets = ["/data/profiles".into(), "/etc/persona.txt".into()];
        let created = EventKind::Create(CreateKind::File);
        let written = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let read = EventKind::Access(AccessKind::Close(AccessMode::Read));
        for (kind, path, expected) in [
            (created, "/data/profiles/own.toml", true),
            (written, "/etc/persona.txt", true),
            (created, "/data/profiles", true),
            (created, "/data", true),
            (created, "/data/navi.db-wal", false),
            (created, "/data/profiles2", false),
            (read, "/data/profiles/own.toml", false),
            (
                EventKind::Access(AccessKind::Any),
                "/etc/persona.txt",
                false,
            ),
        ] {
            let event = Event::new(kind).add_path(path.into());
            assert_eq!(matters(&event, &targets), expected, "{kind:?} {path}");
        }
        let lost = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert!(matters(&lost, &targets));
    }
}
