//! The changes themselves, each written down before it is made. One session's changes are made
//! one at a time, its subagents' too.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{SubsecRound as _, Utc};
use parking_lot::{Mutex, MutexGuard};

use super::super::write::{Before, Rewrite, put};
use super::changes_dir;
use super::entries::{Measure, fingerprint, fingerprint_of_content, measure, move_entry, remove};
use super::kept::{Inverse, Kept, Origin, Record};
use crate::protocol::change::ChangeAction;
use crate::protocol::ids::ChangeId;
use crate::tools::output::human_size;
use crate::tools::workspace::{InnerPath, Location, OrFault as _, Reach, Spot, fault};
use crate::tools::{ToolError, ToolResult};

/// As many bytes as are kept for a session's changes.
const MAX_KEPT_BYTES: u64 = 512 << 20;
/// How often a call that waits for another one's change looks again.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// One for all sessions whose ids come to the same number: a list that never grows.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// A session's changes, held by one call until it is done.
#[derive(Debug)]
pub(crate) struct ChangeLog {
    pub(super) kept: Kept,
    action: ChangeAction,
    origin: Origin,
    pub(super) max_bytes: u64,
    _held: MutexGuard<'static, ()>,
}

impl ChangeLog {
    /// Waits for the changes of this session that are being made.
    pub(crate) fn open(reach: &Reach, action: ChangeAction, origin: Origin) -> ToolResult<Self> {
        let directory = changes_dir(&reach.workspace);
        let mut hasher = DefaultHasher::new();
        directory.hash(&mut hasher);
        let lock = &LOCKS[(hasher.finish() % LOCKS.len() as u64) as usize];
        let held = loop {
            if let Some(held) = lock.try_lock_for(LOOK_EVERY) {
                break held;
            }
            refuse_if!(
                reach.stop.is_cancelled(),
                "stopped before anything was written"
            );
        };
        Ok(Self {
            kept: Kept::open(&directory).map_err(not_kept)?,
            action,
            origin,
            max_bytes: MAX_KEPT_BYTES,
            _held: held,
        })
    }

    /// Writes a file's new content.
    pub(crate) fn write(&self, spot: &Spot, rewrite: &Rewrite) -> ToolResult<()> {
        making_parents(spot, |made| {
            let Spot { root, path } = spot;
            let at = root.target(path)?.ok_or_else(|| root.missing(path))?;
            let expects = fingerprint_of_content(&rewrite.after);
            let inverse = match &rewrite.before {
                Before::Absent => Inverse::Remove { expects, made },
                Before::Content(_) => Inverse::Restore { expects },
                Before::Large(size) => Inverse::Nothing {
                    why: format!(
                        "what stood there before had {}, too much to keep a copy of",
                        human_size(*size)
                    ),
                },
            };
            let mut record = self.record(path, inverse);
            record.kept_bytes = rewrite.before.bytes().len() as u64;
            self.make(record, |id| {
                if let Before::Content(bytes) = &rewrite.before {
                    let name = id.to_string();
                    self.kept.write(&name, bytes).map_err(not_kept)?;
                }
                put(spot, &at, rewrite)
            })
        })
    }

    /// Takes away what stands at a path, whatever it is, and keeps it.
    pub(crate) fn take_away(&self, Spot { root, path }: &Spot) -> ToolResult<Measure> {
        let (from, _) = root.standing(path)?;
        let size = measure(&from).or_fault(path)?;
        refuse_if!(
            size.bytes > self.max_bytes,
            "`{path}` has {}, and no more than {} can be kept so that it can be undone; delete parts of it, or ask the user to delete it",
            human_size(size.bytes),
            human_size(self.max_bytes)
        );
        let mut record = self.record(path, Inverse::PutBack);
        record.kept_bytes = size.bytes.max(1);
        self.make(record, |id| {
            let to = self.kept.place(id).map_err(not_kept)?;
            root.check_stop()?;
            move_entry(&from, &to).or_fault(path)
        })?;
        Ok(size)
    }

    /// Takes away what stands at a path for good: there is no room to keep it.
    pub(crate) fn remove(&self, Spot { root, path }: &Spot) -> ToolResult<Measure> {
        let (from, _) = root.standing(path)?;
        let size = measure(&from).or_fault(path)?;
        let why = "there was no room left to keep a copy of it".to_owned();
        let record = self.record(path, Inverse::Nothing { why });
        self.make(record, |_| {
            root.check_stop()?;
            remove(&from).or_fault(path)
        })?;
        Ok(size)
    }

    /// Puts what is kept for another change where it was.
    pub(super) fn put_back(&self, spot: &Spot, from: ChangeId) -> ToolResult<()> {
        let Spot { root, path } = spot;
        making_parents(spot, |made| {
            let to = root.place(path)?;
            let from = self.kept.place(from).map_err(not_kept)?;
            let expects = fingerprint(&from).or_fault(path)?;
            let size = measure(&from).or_fault(path)?;
            root.check_room(size.bytes, size.entries)?;
            let inverse = Inverse::Remove { expects, made };
            let record = self.record(path, inverse);
            self.make(record, |_| moved(&from, &to, path))
        })
    }

    /// Moves what stands at one path to another, which must be free.
    pub(crate) fn relocate(&self, from: &Spot, to: &Spot) -> ToolResult<()> {
        let (at, _) = from.root.standing(&from.path)?;
        let size = measure(&at).or_fault(&from.path)?;
        if from.path.root() != to.path.root() {
            to.root.check_room(size.bytes, size.entries)?;
        }
        let expects = fingerprint(&at).or_fault(&from.path)?;
        making_parents(to, |made| {
            let target = to.root.place(&to.path)?;
            let inverse = Inverse::MoveBack { expects, made };
            let mut record = self.record(&from.path, inverse);
            record.to = Some(to.path.clone());
            self.make(record, |_| {
                from.root.check_stop()?;
                moved(&at, &target, &to.path)
            })
        })
    }

    /// A change that is about to be made, of which nothing is kept.
    fn record(&self, place: &InnerPath, inverse: Inverse) -> Record {
        Record {
            id: ChangeId::new(),
            action: self.action,
            place: place.clone(),
            to: None,
            at: Utc::now().trunc_subsecs(6),
            origin: self.origin.clone(),
            undone_by: None,
            inverse,
            kept_bytes: 0,
        }
    }

    /// Writes a change down, makes it, and strikes it out again where that failed.
    fn make(
        &self,
        record: Record,
        change: impl FnOnce(ChangeId) -> ToolResult<()>,
    ) -> ToolResult<()> {
        let (id, kept) = (record.id, &self.kept);
        let mut records = kept.load().map_err(not_kept)?;
        records.all.push(record);
        kept.store(&records).map_err(not_kept)?;
        if let Err(error) = change(id) {
            records.all.retain(|record| record.id != id);
            kept.store(&records).map_err(not_kept)?;
            kept.drop_copy(id);
            return Err(error);
        }
        for record in &mut records.all {
            if Some(record.id) == self.origin.undoes {
                record.undone_by = Some(id);
            }
        }
        let gone = records.bound(self.max_bytes);
        // The change is made: what cannot be written down now is only the order kept here.
        if let Err(error) = kept.store(&records) {
            tracing::warn!(%error, "a session's list of changes could not be written");
        }
        for id in gone {
            kept.drop_copy(id);
        }
        Ok(())
    }
}

/// Does work for which the directories that lead to a path have to be there, and is told which
/// were made for it. Where it fails, those go again.
fn making_parents(
    spot: &Spot,
    work: impl FnOnce(Vec<PathBuf>) -> ToolResult<()>,
) -> ToolResult<()> {
    let made = spot.root.create_parents(&spot.path)?;
    work(made.clone()).inspect_err(|_| remove_made(spot, &made))
}

/// Moves what stands at one place to another, the place of a path, at which nothing may stand.
fn moved(from: &Location, to: &Location, path: &InnerPath) -> ToolResult<()> {
    move_entry(from, to).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            refusal!("`{path}` exists already; delete or move it first, or choose another path")
        }
        _ => fault(path, &error),
    })
}

/// Removes directories that were made for something that did not come, the deepest first. One
/// that has got something else in it stays.
pub(super) fn remove_made(spot: &Spot, made: &[PathBuf]) {
    for directory in made.iter().rev() {
        if let Ok(Some(at)) = spot.root.location(&spot.path.at(directory)) {
            let _ = at.directory.remove_dir(&at.name);
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
fn not_kept(error: io::Error) -> ToolError {
    tracing::error!(%error, "what it takes to undo a change cannot be kept");
    refusal!(
        "nothing was changed: what it takes to undo it could not be kept ({}); tell the user",
        error.kind()
    )
}
