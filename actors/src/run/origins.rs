//! Whether what a call said came from outside (DESIGN section 6).

use std::io::ErrorKind;
use std::path::PathBuf;

use actix::Addr;

use super::driver::Driver;
use crate::domain::files::FILES_DIR;
use crate::domain::run_loop::Record;
use crate::protocol::ids::{CallId, RunId};
use crate::session::SessionActor;
use crate::session::messages::GetConsent;
use crate::tools::registry::PreparedCall;
use crate::tools::{Provenance, ToolContext};

/// What a call may have read, as far as that tells where its words come from.
pub(super) struct Origins {
    session: Addr<SessionActor>,
    run_id: RunId,
    workspace: PathBuf,
    /// See [`ToolContext::untrusted`].
    untrusted: bool,
}

impl Driver {
    pub(super) fn origins(&self, context: &ToolContext) -> Origins {
        Origins {
            session: self.session.clone(),
            run_id: context.run_id,
            workspace: context.workspace.clone(),
            untrusted: context.untrusted,
        }
    }

    /// What a call from outside records as it begins: one beside it may read what it leaves in
    /// the workspace before its own result is there.
    pub(super) fn taint_of(&self, call_id: &CallId) -> Option<Record> {
        let prepared = self.prepared.get(call_id)?;
        (prepared.provenance == Provenance::Outside).then_some(Record::Tainted)
    }
}

impl Origins {
    /// Before the call: a command may take away what it read.
    pub(super) async fn look(&mut self, call: &PreparedCall) {
        if call.provenance == Provenance::Workspace && !self.untrusted {
            self.untrusted = self.holds_files().await;
        }
    }

    /// When it has ended: what came meanwhile counts.
    pub(super) async fn is_outside(&self, call: &PreparedCall) -> bool {
        match call.provenance {
            Provenance::Own => false,
            Provenance::Workspace => {
                self.untrusted || self.holds_files().await || self.has_read().await
            }
            Provenance::Outside => true,
        }
    }

    /// Whether files were sent into the session: the first one brought their folder with it.
    async fn holds_files(&self) -> bool {
        let folder = tokio::fs::symlink_metadata(self.workspace.join(FILES_DIR)).await;
        // What cannot be looked at may hold anything.
        folder.map_or_else(|error| error.kind() != ErrorKind::NotFound, |_| true)
    }

    async fn has_read(&self) -> bool {
        let asked = self.session.send(GetConsent(self.run_id)).await;
        // A session that is gone records nothing of this any more.
        asked.is_ok_and(|state| state.is_ok_and(|state| state.tainted_at.is_some()))
    }
}
