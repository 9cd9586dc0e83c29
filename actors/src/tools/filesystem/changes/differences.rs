//! What the changes of a file changed in it, for its owner to look at.
//!
//! Before each change of its content the old one is kept. What the change left is what the next one
//! found, or what stands there now: where that has the fingerprint that the change wrote down, both
//! sides of it are known.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::super::text::whole_difference;
use super::super::write::{Before, look};
use super::kept::{Inverse, Kept, Record};
use super::{ChangeError, changes_dir, check, fingerprint_of_content};
use crate::protocol::change::FileChange;
use crate::tools::workspace::{FileAccess, InnerPath, Reach};

/// As many changes of a file are told.
const MAX_TOLD: usize = 50;
/// A difference of more bytes is not shown.
const MAX_DIFFERENCE_BYTES: usize = 128 * 1024;

/// The changes of a file of the workspace, newest first, with those that it had under names from
/// which it was moved.
///
/// # Errors
/// [`ChangeError::Unreadable`].
pub(crate) fn changes_of_file(
    access: &Arc<FileAccess>,
    workspace: &Path,
    path: &InnerPath,
) -> Result<Vec<FileChange>, ChangeError> {
    let Some(kept) = Kept::find(&changes_dir(workspace))? else {
        return Ok(Vec::new());
    };
    let reach = Reach::new(access, workspace, CancellationToken::new());
    let records = kept.load()?;
    let now = reach.open(path.clone()).and_then(|spot| look(&spot)).ok();
    let mut walk = Walk {
        kept: &kept,
        most: reach.limits.read_bytes,
        name: path.clone(),
        after: now.and_then(content),
    };
    let mut told = Vec::new();
    for record in records.all.iter().rev() {
        if told.len() == MAX_TOLD {
            break;
        }
        if let Some(diff) = walk.back(record) {
            told.push(FileChange {
                change: record.told(check(&reach, &kept, record)),
                diff: diff.filter(|diff| diff.len() <= MAX_DIFFERENCE_BYTES),
            });
        }
    }
    Ok(told)
}

/// From the newest change to the oldest.
struct Walk<'a> {
    kept: &'a Kept,
    /// As many bytes of a content as are read.
    most: u64,
    /// The file's name before the changes that were passed.
    name: InnerPath,
    /// Its content then; none where it is not known, or too large.
    after: Option<Vec<u8>>,
}

impl Walk<'_> {
    /// Goes back over a change. None where it is of no account to the file; what it changed, as far
    /// as that is known.
    fn back(&mut self, record: &Record) -> Option<Option<String>> {
        if let Some(to) = &record.to {
            let rest = self.name.prefix().strip_prefix(to.prefix()).ok()?;
            if to.root() != self.name.root() {
                return None;
            }
            self.name = record.place.at(&record.place.prefix().join(rest));
            return Some(None);
        }
        if record.place.root() != self.name.root() || record.place.prefix() != self.name.prefix() {
            return None;
        }
        let before = self.before(record);
        let after = std::mem::replace(&mut self.after, before.clone());
        let after = after.filter(|after| left(record, after));
        let diff = before.zip(after);
        Some(diff.and_then(|(before, after)| whole_difference(&before, &after)))
    }

    /// What stood there before the change.
    fn before(&self, record: &Record) -> Option<Vec<u8>> {
        match &record.inverse {
            Inverse::Remove { .. } => Some(Vec::new()),
            Inverse::Restore { .. } | Inverse::PutBack if record.kept_bytes <= self.most => {
                let name = record.id.to_string();
                self.kept.read(&name, self.most).ok()
            }
            _ => None,
        }
    }
}

/// Whether this is what the change left.
fn left(record: &Record, after: &[u8]) -> bool {
    match &record.inverse {
        Inverse::Restore { expects } | Inverse::Remove { expects, .. } => {
            *expects == fingerprint_of_content(after)
        }
        Inverse::PutBack => after.is_empty(),
        Inverse::MoveBack { .. } | Inverse::Nothing { .. } => false,
    }
}

fn content(before: Before) -> Option<Vec<u8>> {
    match before {
        Before::Absent => Some(Vec::new()),
        Before::Content(bytes) => Some(bytes),
        Before::Large(_) => None,
    }
}
