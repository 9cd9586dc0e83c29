//! What a session's commands leave for the next one: where they ended, and those that still run.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use itertools::Itertools as _;
use parking_lot::Mutex;

use super::background::Background;
use crate::protocol::ids::{RunId, SessionId};
use crate::tools::{ToolContext, ToolError};

/// How many commands of one session run in the background at once.
const RUNNING: usize = 8;
/// How many are kept in all, for a look at how they ended.
const KEPT: usize = 16;
/// Of how many subagents the directory is kept: the newest, by their ids. More do not work at once.
const SUBAGENTS: usize = 64;

/// Every session that ran a command.
#[derive(Debug, Default)]
pub(super) struct Shells(Mutex<HashMap<SessionId, Shell>>);

#[derive(Debug, Default)]
struct Shell {
    /// Where the commands of each subagent ended, which work side by side, and those of the
    /// session itself (none), where that is not the workspace.
    directories: BTreeMap<Option<RunId>, PathBuf>,
    background: BTreeMap<u64, Background>,
    /// How many were started.
    started: u64,
}

impl Shells {
    /// Where the last command ended, of the session's own or of the subagent that asks.
    pub(super) fn directory(&self, context: &ToolContext) -> Option<PathBuf> {
        let all = self.0.lock();
        let shell = all.get(&context.session_id)?;
        shell.directories.get(&subagent(context)).cloned()
    }

    pub(super) fn set_directory(&self, context: &ToolContext, directory: &Path, workspace: &Path) {
        let mut all = self.0.lock();
        if directory == workspace {
            let shell = all.get_mut(&context.session_id);
            shell.map(|shell| shell.directories.remove(&subagent(context)));
            return;
        }
        let known = &mut all.entry(context.session_id).or_default().directories;
        known.insert(subagent(context), directory.to_owned());
        let of_subagents = known.keys().flatten();
        if of_subagents.clone().count() > SUBAGENTS {
            let oldest = of_subagents.min().copied();
            known.remove(&oldest);
        }
    }

    /// Whether one more may be started.
    pub(super) fn has_room(&self, session: SessionId) -> Result<(), ToolError> {
        let all = self.0.lock();
        let kept = all.get(&session).map(|shell| shell.background.values());
        let running = kept.into_iter().flatten().filter(|one| one.is_running());
        refuse_if!(
            running.count() >= RUNNING,
            "{RUNNING} commands run in the background already; end one with {{\"action\":\"end\",\"id\":1}}"
        );
        Ok(())
    }

    /// Keeps a command that was started. Gives back its number.
    pub(super) fn keep(&self, session: SessionId, started: Background) -> u64 {
        let mut all = self.0.lock();
        let shell = all.entry(session).or_default();
        shell.started += 1;
        let id = shell.started;
        shell.background.insert(id, started);
        let kept = &mut shell.background;
        let is_over = |(id, one): (&u64, &Background)| (!one.is_running()).then_some(*id);
        while kept.len() > KEPT
            && let Some(id) = kept.iter().find_map(is_over)
        {
            kept.remove(&id);
        }
        id
    }

    /// What there is to see of a background command.
    pub(super) fn of(
        &self,
        session: SessionId,
        id: u64,
        see: impl FnOnce(&Background) -> String,
    ) -> Result<String, ToolError> {
        let all = self.0.lock();
        let shell = all.get(&session);
        let found = shell.and_then(|shell| shell.background.get(&id));
        found.map(see).ok_or_else(|| unknown(id))
    }

    /// Ends a background command.
    pub(super) async fn end(&self, session: SessionId, id: u64) -> Result<String, ToolError> {
        let take = |shell: &mut Shell| shell.background.remove(&id);
        let taken = self.0.lock().get_mut(&session).and_then(take);
        Ok(taken.ok_or_else(|| unknown(id))?.end().await)
    }

    pub(super) fn list(&self, session: SessionId) -> String {
        let all = self.0.lock();
        let kept = all.get(&session).into_iter();
        let lines = kept
            .flat_map(|shell| &shell.background)
            .map(|(id, one)| format!("{id}: {}", one.line()))
            .join("\n");
        if lines.is_empty() {
            return "nothing runs in the background".to_owned();
        }
        lines
    }

    /// Ends everything of a session.
    pub(super) fn forget(&self, session: SessionId) {
        let shell = self.0.lock().remove(&session);
        // After the lock is free: it ends what runs.
        drop(shell);
    }
}

/// The subagent that makes a call, where one does.
fn subagent(context: &ToolContext) -> Option<RunId> {
    context.is_subagent.then_some(context.run_id)
}

fn unknown(id: u64) -> ToolError {
    ToolError(format!(
        "there is no background command {id}; {{\"action\":\"list\"}} shows which there are"
    ))
}
