//! The changes themselves, each written down before it is made. One session's changes are made
//! one at a time, its subagents' too.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use cap_std::fs::{Dir, Metadata, Permissions, PermissionsExt as _};
use chrono::{SubsecRound as _, Utc};
use tokio_util::sync::CancellationToken;

use super::super::fault::fault;
use super::super::place::{RootId, Spot};
use super::super::write::{Before, put};
use super::changes_dir;
use super::fingerprint::{Measure, fingerprint, fingerprint_of_content, measure};
use super::kept::Kept;
use super::moving::{End, move_entry};
use super::record::{Inverse, Record, RootedPath};
use crate::protocol::change::ChangeAction;
use crate::protocol::ids::{CallId, ChangeId, RunId};
use crate::tools::ToolError;
use crate::tools::output::human_size;

/// As many bytes as are kept for a session's changes.
const MAX_KEPT_BYTES: u64 = 512 << 20;
/// How often a call that waits for another one's change looks again.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// One for all sessions whose ids come to the same number: a list that never grows.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// Who makes a change.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Origin<'a> {
    pub(in super::super) run_id: Option<RunId>,
    pub(in super::super) call_id: Option<&'a CallId>,
    /// The change that is taken back.
    pub(in super::super) undoes: Option<ChangeId>,
}

/// A session's changes, held by one call until it is done.
#[derive(Debug)]
pub(in super::super) struct ChangeLog {
    directory: PathBuf,
    max_bytes: u64,
    _held: MutexGuard<'static, ()>,
}

/// A change that is about to be made.
struct Draft<'a> {
    action: ChangeAction,
    place: RootedPath,
    to: Option<RootedPath>,
    inverse: Inverse,
    kept_bytes: u64,
    origin: &'a Origin<'a>,
}

impl ChangeLog {
    /// Waits for the changes of this session that are being made.
    pub(in super::super) fn open(
        workspace: &Path,
        stop: &CancellationToken,
    ) -> Result<Self, ToolError> {
        let directory = changes_dir(workspace);
        let mut hasher = DefaultHasher::new();
        directory.hash(&mut hasher);
        let lock = &LOCKS[(hasher.finish() % LOCKS.len() as u64) as usize];
        let held = loop {
            match lock.try_lock() {
                Ok(held) => break held,
                // Nothing is guarded but the order.
                Err(TryLockError::Poisoned(held)) => break held.into_inner(),
                Err(TryLockError::WouldBlock) if stop.is_cancelled() => {
                    return Err(ToolError("stopped before anything was written".to_owned()));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_EVERY),
            }
        };
        Ok(Self {
            directory,
            max_bytes: MAX_KEPT_BYTES,
            _held: held,
        })
    }

    /// With less room, for tests.
    #[cfg(test)]
    pub(super) fn with_room(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Writes a file's new content in the place of `before`.
    pub(in super::super) fn write(
        &self,
        action: ChangeAction,
        spot: &Spot,
        before: &Before,
        after: &[u8],
        origin: &Origin<'_>,
    ) -> Result<(), ToolError> {
        self.write_with(action, spot, (before, after), None, origin)
            .map(|_| ())
    }

    /// As [`ChangeLog::write`], with the permissions that the file is to have.
    pub(super) fn write_with(
        &self,
        action: ChangeAction,
        spot: &Spot,
        (before, after): (&Before, &[u8]),
        permissions: Option<&Permissions>,
        origin: &Origin<'_>,
    ) -> Result<ChangeId, ToolError> {
        let Spot { root, path } = spot;
        let shown = path.shown();
        let made = root.create_parents(path)?;
        let written = || {
            let target = root.target(path)?;
            let expects = fingerprint_of_content(after);
            let (inverse, copy) = match before {
                Before::Absent => (
                    Inverse::Remove {
                        expects,
                        made: made.clone(),
                    },
                    None,
                ),
                Before::Content(bytes) => (
                    Inverse::Restore {
                        expects,
                        mode: mode_of(target.existing.as_ref()),
                    },
                    Some(bytes.as_slice()),
                ),
                Before::Large(size) => (
                    Inverse::Nothing {
                        why: format!(
                            "what stood there before had {}, too much to keep a copy of",
                            human_size(*size)
                        ),
                    },
                    None,
                ),
            };
            let draft = Draft {
                action,
                place: place_of(spot),
                to: None,
                inverse,
                kept_bytes: copy.map_or(0, |bytes| bytes.len() as u64),
                origin,
            };
            self.make(draft, |kept, id| {
                if let Some(bytes) = copy {
                    kept.put(id, bytes).map_err(|error| not_kept(&error))?;
                }
                put(root, &shown, &target, before, after, permissions.cloned())
            })
        };
        written().inspect_err(|_| remove_made(spot, &made))
    }

    /// Takes away what stands at a path, whatever it is, and keeps it.
    pub(in super::super) fn take_away(
        &self,
        action: ChangeAction,
        spot: &Spot,
        origin: &Origin<'_>,
    ) -> Result<Measure, ToolError> {
        let shown = spot.path.shown();
        let (directory, name, _) = standing(spot)?;
        let size = measure(&directory, &name).map_err(|error| fault(&shown, &error))?;
        if size.bytes > self.max_bytes {
            return Err(ToolError(format!(
                "`{shown}` has {}, and no more than {} can be kept so that it can be undone; delete parts of it, or ask the user to delete it",
                human_size(size.bytes),
                human_size(self.max_bytes)
            )));
        }
        let draft = Draft {
            action,
            place: place_of(spot),
            to: None,
            inverse: Inverse::PutBack,
            kept_bytes: size.bytes.max(1),
            origin,
        };
        self.make(draft, |kept, id| {
            let (keep, kept_name) = kept.place(id);
            let from = End {
                directory: &directory,
                name: &name,
            };
            let to = End {
                directory: keep,
                name: &kept_name,
            };
            spot.root.check_stop()?;
            move_entry(from, to).map_err(|error| fault(&shown, &error))
        })?;
        Ok(size)
    }

    /// Puts what is kept for another change where it was.
    pub(super) fn put_back(
        &self,
        spot: &Spot,
        from: ChangeId,
        origin: &Origin<'_>,
    ) -> Result<ChangeId, ToolError> {
        let shown = spot.path.shown();
        let made = spot.root.create_parents(&spot.path)?;
        let put = || {
            let (directory, name) = free(spot)?;
            let kept = Kept::open(&self.directory).map_err(|error| not_kept(&error))?;
            let (keep, kept_name) = kept.place(from);
            let expects = fingerprint(keep, &kept_name).map_err(|error| fault(&shown, &error))?;
            let size = measure(keep, &kept_name).map_err(|error| fault(&shown, &error))?;
            spot.root.check_room(size.bytes, size.entries)?;
            let draft = Draft {
                action: ChangeAction::Undo,
                place: place_of(spot),
                to: None,
                inverse: Inverse::Remove {
                    expects,
                    made: made.clone(),
                },
                kept_bytes: 0,
                origin,
            };
            self.make(draft, |_, _| {
                let from = End {
                    directory: keep,
                    name: &kept_name,
                };
                let to = End {
                    directory: &directory,
                    name: &name,
                };
                move_entry(from, to).map_err(|error| taken(&shown, &error))
            })
        };
        put().inspect_err(|_| remove_made(spot, &made))
    }

    /// Moves what stands at one path to another, which must be free.
    pub(in super::super) fn relocate(
        &self,
        action: ChangeAction,
        from: &Spot,
        to: &Spot,
        origin: &Origin<'_>,
    ) -> Result<ChangeId, ToolError> {
        let (shown, shown_to) = (from.path.shown(), to.path.shown());
        let (directory, name, _) = standing(from)?;
        let size = measure(&directory, &name).map_err(|error| fault(&shown, &error))?;
        let stop = &from.root;
        if place_of(from).root != place_of(to).root {
            to.root.check_room(size.bytes, size.entries)?;
        }
        let expects = fingerprint(&directory, &name).map_err(|error| fault(&shown, &error))?;
        let made = to.root.create_parents(&to.path)?;
        let moved = || {
            let (to_directory, to_name) = free(to)?;
            let draft = Draft {
                action,
                place: place_of(from),
                to: Some(place_of(to)),
                inverse: Inverse::MoveBack {
                    expects,
                    made: made.clone(),
                },
                kept_bytes: 0,
                origin,
            };
            self.make(draft, |_, _| {
                let from = End {
                    directory: &directory,
                    name: &name,
                };
                let to = End {
                    directory: &to_directory,
                    name: &to_name,
                };
                stop.check_stop()?;
                move_entry(from, to).map_err(|error| taken(&shown_to, &error))
            })
        };
        moved().inspect_err(|_| remove_made(to, &made))
    }

    /// Writes a change down, makes it, and strikes it out again where that failed.
    fn make(
        &self,
        draft: Draft<'_>,
        change: impl FnOnce(&Kept, ChangeId) -> Result<(), ToolError>,
    ) -> Result<ChangeId, ToolError> {
        let kept = Kept::open(&self.directory).map_err(|error| not_kept(&error))?;
        let mut records = kept.load().map_err(|error| not_kept(&error))?;
        let id = ChangeId::new();
        records.all.push(Record {
            id,
            action: draft.action,
            place: draft.place,
            to: draft.to,
            at: Utc::now().trunc_subsecs(6),
            run_id: draft.origin.run_id,
            call_id: draft.origin.call_id.cloned(),
            undoes: draft.origin.undoes,
            undone_by: None,
            inverse: draft.inverse,
            kept_bytes: draft.kept_bytes,
        });
        kept.store(&records).map_err(|error| not_kept(&error))?;
        if let Err(error) = change(&kept, id) {
            records.all.retain(|record| record.id != id);
            kept.store(&records).map_err(|error| not_kept(&error))?;
            kept.drop_copy(id);
            return Err(error);
        }
        if let Some(undone) = draft.origin.undoes {
            for record in &mut records.all {
                if record.id == undone {
                    record.undone_by = Some(id);
                }
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
        Ok(id)
    }
}

/// The directory of what stands at a path, its name there and what it is. A link is itself.
pub(in super::super) fn standing(
    spot: &Spot,
) -> Result<(Dir, std::ffi::OsString, Metadata), ToolError> {
    let Spot { root, path } = spot;
    let shown = path.shown();
    root.check_stop()?;
    let Some(name) = path.prefix().file_name() else {
        return Err(ToolError(format!(
            "{} itself is not moved or deleted; name something in it",
            root.words()
        )));
    };
    let Some(directory) = root.parent(path)? else {
        return Err(root.missing(path));
    };
    let metadata = match directory.symlink_metadata(name) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(root.missing(path)),
        Err(error) => return Err(fault(&shown, &error)),
    };
    if path.names_directory() && !metadata.is_dir() {
        return Err(ToolError(format!(
            "`{shown}/` ends with a slash, as only directories do; leave the slash out"
        )));
    }
    root.check_whole(&shown, &directory, Path::new(name), &metadata)?;
    Ok((directory, name.to_owned(), metadata))
}

/// The directory of a path at which nothing stands, and its name there.
fn free(spot: &Spot) -> Result<(Dir, std::ffi::OsString), ToolError> {
    let Spot { root, path } = spot;
    let shown = path.shown();
    let Some(name) = path.prefix().file_name() else {
        return Err(in_the_way(&shown));
    };
    let Some(directory) = root.parent(path)? else {
        return Err(root.missing(path));
    };
    match directory.symlink_metadata(name) {
        Ok(_) => Err(in_the_way(&shown)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((directory, name.to_owned())),
        Err(error) => Err(fault(&shown, &error)),
    }
}

fn in_the_way(shown: &str) -> ToolError {
    ToolError(format!(
        "`{shown}` exists already; delete or move it first, or choose another path"
    ))
}

fn taken(shown: &str, error: &io::Error) -> ToolError {
    if error.kind() == io::ErrorKind::AlreadyExists {
        in_the_way(shown)
    } else {
        fault(shown, error)
    }
}

/// Removes directories that were made for something that did not come, the deepest first. One
/// that has got something else in it stays.
pub(super) fn remove_made(spot: &Spot, made: &[PathBuf]) {
    for directory in made.iter().rev() {
        let inner = spot.path.at(directory);
        if let (Ok(Some(parent)), Some(name)) = (spot.root.parent(&inner), directory.file_name()) {
            let _ = parent.remove_dir(name);
        }
    }
}

fn place_of(spot: &Spot) -> RootedPath {
    RootedPath {
        root: match &spot.root.outside {
            None => RootId::Workspace,
            Some(root) => RootId::Outside(root.clone()),
        },
        path: spot.path.prefix().to_owned(),
    }
}

fn mode_of(metadata: Option<&Metadata>) -> u32 {
    metadata.map_or(0o644, |metadata| metadata.permissions().mode() & 0o7777)
}

fn not_kept(error: &io::Error) -> ToolError {
    tracing::error!(%error, "what it takes to undo a change cannot be kept");
    ToolError(format!(
        "nothing was changed: what it takes to undo it could not be kept ({}); tell the user",
        error.kind()
    ))
}
