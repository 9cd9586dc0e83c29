//! What a session's commands leave for the next one: where they ended, and those that still run.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::background::Background;
use crate::protocol::ids::{RunId, SessionId};
use crate::tools::{ToolContext, ToolError};

/// How many commands of one session run in the background at once.
const RUNNING: usize = 8;
/// How many are kept in all, for a look at how they ended.
const KEPT: usize = 16;
/// Of how many subagents the directory is kept: the newest. More do not work at once.
const SUBAGENTS: usize = 64;

/// Every session that ran a command.
#[derive(Debug, Default)]
pub(super) struct Shells(Mutex<HashMap<SessionId, Shell>>);

#[derive(Debug, Default)]
struct Shell {
    /// Where the session's own commands ended. None: the workspace.
    directory: Option<PathBuf>,
    /// The same of subagents, which work side by side.
    of_subagents: VecDeque<(RunId, PathBuf)>,
    background: BTreeMap<u64, Background>,
    /// How many were started.
    started: u64,
}

impl Shells {
    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Shell>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the last command ended, of the session's own or of the subagent that asks.
    pub(super) fn directory(&self, context: &ToolContext) -> Option<PathBuf> {
        let all = self.all();
        let shell = all.get(&context.session_id)?;
        if !context.is_subagent {
            return shell.directory.clone();
        }
        let mut known = shell.of_subagents.iter();
        let own = known.find(|(run, _)| *run == context.run_id);
        own.map(|(_, directory)| directory.clone())
    }

    pub(super) fn set_directory(&self, context: &ToolContext, directory: &Path, workspace: &Path) {
        let mut all = self.all();
        let elsewhere = (directory != workspace).then(|| directory.to_owned());
        if elsewhere.is_none() && !all.contains_key(&context.session_id) {
            return;
        }
        let shell = all.entry(context.session_id).or_default();
        if !context.is_subagent {
            shell.directory = elsewhere;
            return;
        }
        let known = &mut shell.of_subagents;
        known.retain(|(run, _)| *run != context.run_id);
        known.extend(elsewhere.map(|directory| (context.run_id, directory)));
        if known.len() > SUBAGENTS {
            known.pop_front();
        }
    }

    /// Whether one more may be started.
    pub(super) fn has_room(&self, session: SessionId) -> Result<(), ToolError> {
        let all = self.all();
        let running = all.get(&session).map_or(0, |shell| {
            let running = shell.background.values().filter(|one| one.is_running());
            running.count()
        });
        if running < RUNNING {
            return Ok(());
        }
        Err(ToolError(format!(
            "{RUNNING} commands run in the background already; end one with {{\"action\":\"end\",\"id\":1}}"
        )))
    }

    /// Keeps a command that was started. Gives back its number.
    pub(super) fn keep(&self, session: SessionId, started: Background) -> u64 {
        let mut all = self.all();
        let shell = all.entry(session).or_default();
        shell.started += 1;
        let id = shell.started;
        shell.background.insert(id, started);
        while shell.background.len() > KEPT {
            let ended = shell.background.iter().find(|(_, one)| !one.is_running());
            let Some(id) = ended.map(|(id, _)| *id) else {
                break;
            };
            shell.background.remove(&id);
        }
        id
    }

    /// What a background command wrote since the last look, and how it stands.
    pub(super) fn look(&self, session: SessionId, id: u64) -> Result<String, ToolError> {
        let all = self.all();
        let found = all
            .get(&session)
            .and_then(|shell| shell.background.get(&id));
        let found = found.ok_or_else(|| unknown(id))?;
        Ok(found.look())
    }

    /// Ends a background command.
    pub(super) async fn end(&self, session: SessionId, id: u64) -> Result<String, ToolError> {
        let taken = {
            let mut all = self.all();
            let shell = all.get_mut(&session);
            shell.and_then(|shell| shell.background.remove(&id))
        };
        let taken = taken.ok_or_else(|| unknown(id))?;
        Ok(taken.end().await)
    }

    /// What a background command runs.
    pub(super) fn command(&self, session: SessionId, id: u64) -> Result<String, ToolError> {
        let all = self.all();
        let found = all
            .get(&session)
            .and_then(|shell| shell.background.get(&id));
        let found = found.ok_or_else(|| unknown(id))?;
        Ok(found.command().to_owned())
    }

    pub(super) fn list(&self, session: SessionId) -> String {
        let all = self.all();
        let shell = all.get(&session);
        let lines: Vec<String> = shell
            .into_iter()
            .flat_map(|shell| &shell.background)
            .map(|(id, one)| format!("{id}: {}", one.line()))
            .collect();
        if lines.is_empty() {
            "nothing runs in the background".to_owned()
        } else {
            lines.join("\n")
        }
    }

    /// Ends everything of a session.
    pub(super) fn forget(&self, session: SessionId) {
        let shell = self.all().remove(&session);
        // After the lock is free: it ends what runs.
        drop(shell);
    }
}

fn unknown(id: u64) -> ToolError {
    ToolError(format!(
        "there is no background command {id}; {{\"action\":\"list\"}} shows which there are"
    ))
}
