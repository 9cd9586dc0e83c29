//! A command as a person is asked about it.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde_json::json;

use super::held::files_of;
use super::run::Wanted;
use super::{NAME, Terminal};
use crate::protocol::approval::Detail;
use crate::tools::output::shortened;
use crate::tools::sandbox::Fence;
use crate::tools::{Proposal, RuleSubject, ToolContext, ToolError, blocking};

/// As many files as a person is told by name.
const NAMED_FILES: usize = 12;

impl Terminal {
    pub(super) async fn propose(&self, wanted: &Wanted) -> Result<Proposal, ToolError> {
        let for_files = wanted.clone();
        let files = blocking(NAME, move || Ok(files_of(&for_files))).await?;
        let directory = match wanted.told(&wanted.order.directory) {
            told if told.is_empty() => "the workspace".to_owned(),
            told => told,
        };
        let time = if wanted.background {
            "in the background, until it is ended".to_owned()
        } else {
            format!("at most {} s", wanted.time.as_secs())
        };
        let mut details = vec![
            Detail::code("command", &wanted.command),
            Detail::text("directory", directory),
            Detail::text("time", time),
            Detail::text("what is held", held(&files)),
        ];
        let open = self.why_open();
        let job = self.sandbox.job(wanted.order.clone(), true);
        details.extend(open.iter().map(|why| Detail::text("why it asks", why)));
        let rule = open.is_none().then(|| RuleSubject {
            key: json!([wanted.command, wanted.order.directory, files]).to_string(),
            words: format!("`{}`, word for word", shortened(&wanted.command, 120)),
        });
        Ok(Proposal {
            summary: format!("run `{}`", shortened(&wanted.command, 200)),
            details,
            rule,
            // The command, its directory, its environment, and the content of each file that it
            // names.
            binding: json!({
                "command": wanted.command,
                "directory": wanted.order.directory,
                "environment": job.order.environment,
                "inside": open.is_none(),
                "files": files,
            })
            .to_string(),
        })
    }

    /// An end of a background command.
    pub(super) fn propose_end(
        &self,
        id: u64,
        context: &ToolContext,
    ) -> Result<Proposal, ToolError> {
        let command = self
            .shells
            .of(context.session_id, id, |found| found.command.clone())?;
        Ok(Proposal {
            summary: format!("end background command {id}"),
            details: vec![Detail::code("command", &command)],
            rule: Some(RuleSubject::new("end", "ending background commands")),
            binding: command,
        })
    }

    /// Why a command is not held as it should be; none where it is.
    pub(super) fn why_open(&self) -> Option<String> {
        match (self.fence(), self.sandbox.available()) {
            (Fence::Lifted, _) => Some(
                "TERMINAL_ALLOWED_COMMANDS is *: commands run outside the sandbox, with Navi's own rights"
                    .to_owned(),
            ),
            (Fence::Inside, Err(reason)) => Some(reason.to_owned()),
            (Fence::Inside, Ok(_)) => None,
        }
    }
}

/// What a person has to know of a command that reads more than they are shown.
fn held(files: &BTreeMap<String, String>) -> String {
    let more = files.len().saturating_sub(NAMED_FILES);
    let mut held = files.keys().take(NAMED_FILES).join(", ");
    if more > 0 {
        held.push_str(&format!(" and {more} more"));
    }
    if !held.is_empty() {
        held.push_str(": where one of these has changed, nothing is run. ");
    }
    held + "Whatever else of the workspace the command reads is held against Navi's other calls until you have answered, and not against you, commands in the background and other programs"
}
