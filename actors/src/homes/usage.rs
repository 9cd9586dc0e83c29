//! How much each person's sessions hold on the disk, measured now and then: seldom where there is
//! much to look at, and again once something was changed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::engine::TRASH;
use crate::protocol::ids::UserId;
use crate::tools::sandbox::bytes_within;

/// After a look, this many times as long as it took before the next.
const REST: u32 = 20;
/// What was found counts for so long, if nobody said that it changed: commands go on in the
/// background.
const OLD: Duration = Duration::from_secs(60);
/// How long whoever asks waits for a look. After it, or where it would take longer, the one before
/// counts.
const PATIENCE: Duration = Duration::from_secs(2);
/// As many files and folders as a look takes. What is beyond them does not count.
const MAX_ENTRIES: usize = 2_000_000;
/// As many people are noted before those are dropped of whom nobody asks now.
const NOTED: usize = 1_024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Usage {
    people: Mutex<HashMap<UserId, Arc<Measured>>>,
    closed: CancellationToken,
}

#[derive(Debug)]
struct Measured {
    last: watch::Sender<Option<Look>>,
    /// Whether something was changed since the last look began.
    changed: AtomicBool,
    /// Whether a look is on its way.
    looking: AtomicBool,
}

/// What was found.
#[derive(Clone, Copy, Debug)]
struct Look {
    bytes: u64,
    at: Instant,
    took: Duration,
}

/// Where a person's sessions have files.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) home: PathBuf,
    /// Where each session has a directory for temporary files.
    pub(super) scratch: Option<PathBuf>,
}

impl Usage {
    /// Looks are given up with `closed`.
    pub(super) fn new(closed: CancellationToken) -> Self {
        Self {
            people: Mutex::default(),
            closed,
        }
    }

    /// In bytes. None counts where the first look takes long.
    pub(super) async fn of(&self, person: UserId, places: Places) -> u64 {
        let measured = self.measured(person);
        let mut told = measured.last.subscribe();
        let last = *told.borrow_and_update();
        let changed = measured.changed.load(Ordering::Acquire);
        if let Some(look) = last.filter(|look| !changed && look.at.elapsed() < OLD) {
            return look.bytes;
        }
        if !measured.looking.swap(true, Ordering::AcqRel) {
            let (measured, closed) = (Arc::clone(&measured), self.closed.clone());
            let look = async move { measured.look(last, places).await };
            tokio::spawn(async move { closed.run_until_cancelled(look).await });
        }
        if last.is_none_or(|look| look.took * REST < PATIENCE) {
            // What is not there in time counts the next time.
            let _ = timeout(PATIENCE, told.changed()).await;
        }
        measured.last.borrow().map_or(0, |look| look.bytes)
    }

    /// Something of theirs was changed.
    pub(super) fn changed(&self, person: UserId) {
        let measured = self.people.lock().get(&person).cloned();
        if let Some(measured) = measured {
            measured.changed.store(true, Ordering::Release);
        }
    }

    fn measured(&self, person: UserId) -> Arc<Measured> {
        let mut people = self.people.lock();
        if people.len() >= NOTED {
            people.retain(|_, measured| Arc::strong_count(measured) > 1);
        }
        let new = || Measured {
            last: watch::Sender::new(None),
            changed: AtomicBool::new(false),
            looking: AtomicBool::new(false),
        };
        Arc::clone(people.entry(person).or_insert_with(|| Arc::new(new())))
    }
}

impl Measured {
    async fn look(&self, last: Option<Look>, places: Places) {
        if let Some(last) = last {
            sleep_until(last.at + last.took * REST).await;
        }
        self.changed.store(false, Ordering::Release);
        let began = Instant::now();
        let looked =
            tokio::task::spawn_blocking(move || bytes_within(&places.folders(), MAX_ENTRIES));
        let bytes = looked.await;
        // Before it is told: whoever hears of it may ask for the next.
        self.looking.store(false, Ordering::Release);
        match bytes {
            Ok(bytes) => {
                self.last.send_replace(Some(Look {
                    bytes,
                    at: Instant::now(),
                    took: began.elapsed(),
                }));
            }
            Err(error) => tracing::error!(%error, "what a person's files take is not known"),
        }
    }
}

impl Places {
    /// The home, and the temporary files of the sessions in it.
    fn folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.home.clone()];
        let Some(scratch) = &self.scratch else {
            return folders;
        };
        for sessions in [self.home.clone(), self.home.join(TRASH)] {
            let entries = std::fs::read_dir(sessions).into_iter().flatten().flatten();
            let temporary = entries.map(|entry| scratch.join(entry.file_name()));
            folders.extend(temporary.filter(|folder| folder.is_dir()));
        }
        folders
    }
}
