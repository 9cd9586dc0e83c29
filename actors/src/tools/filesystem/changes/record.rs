//! A change as it is stored.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::protocol::change::{Change, ChangeAction};
use crate::protocol::ids::{CallId, ChangeId, RunId};
use crate::tools::ToolError;
use crate::tools::workspace::InnerPath;

/// As many changes of a session as are listed.
const MAX_RECORDS: usize = 200;

/// Who makes a change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) run_id: Option<RunId>,
    pub(crate) call_id: Option<CallId>,
    /// The change that is taken back.
    pub(crate) undoes: Option<ChangeId>,
}

/// A change, and how to take it back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: ChangeId,
    pub(super) action: ChangeAction,
    pub(super) place: InnerPath,
    /// Where a move went.
    pub(super) to: Option<InnerPath>,
    pub(super) at: DateTime<Utc>,
    #[serde(flatten)]
    pub(super) origin: Origin,
    pub(super) undone_by: Option<ChangeId>,
    pub(super) inverse: Inverse,
    /// How large the copy is that is kept for it.
    pub(super) kept_bytes: u64,
}

/// What takes a change back. `expects` is the fingerprint of what the change left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Inverse {
    /// Put the kept content in place of what stands there now.
    Restore { expects: String },
    /// Take away what was made, and the directories that were made for it.
    Remove { expects: String, made: Vec<PathBuf> },
    /// Move it back to where it was.
    MoveBack { expects: String, made: Vec<PathBuf> },
    /// Put what was taken away back to where it was.
    PutBack,
    /// Nothing does.
    Nothing { why: String },
}

impl Record {
    /// Where what it changed is now: a move's end.
    pub(super) fn end(&self) -> &InnerPath {
        self.to.as_ref().unwrap_or(&self.place)
    }

    /// The change as its owner sees it: whether it can be taken back, or why not.
    pub(super) fn told(&self, can_be: Result<(), ToolError>) -> Change {
        let why_not = can_be.err().map(|why| why.0);
        Change {
            id: self.id,
            action: self.action,
            path: self.place.to_string(),
            to: self.to.as_ref().map(InnerPath::to_string),
            at: self.at,
            run_id: self.origin.run_id,
            call_id: self.origin.call_id.clone(),
            undoes: self.origin.undoes,
            undoable: why_not.is_none(),
            why_not,
        }
    }
}

/// All changes of a session that are listed, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Records {
    pub(super) all: Vec<Record>,
}

impl Records {
    /// Drops the oldest so that there are no more than may be, of no more bytes than may be
    /// kept. Gives back those whose copies are to go.
    pub(super) fn bound(&mut self, max_bytes: u64) -> Vec<ChangeId> {
        let surplus = self.all.len().saturating_sub(MAX_RECORDS);
        let mut gone: Vec<ChangeId> = self.all.drain(..surplus).map(|record| record.id).collect();
        let mut bytes: u64 = self.all.iter().map(|record| record.kept_bytes).sum();
        for record in &mut self.all {
            if bytes <= max_bytes {
                break;
            }
            if record.kept_bytes > 0 {
                bytes -= record.kept_bytes;
                record.kept_bytes = 0;
                record.inverse = Inverse::Nothing {
                    why: "its copy was dropped to make room for newer ones".to_owned(),
                };
                gone.push(record.id);
            }
        }
        gone
    }
}
