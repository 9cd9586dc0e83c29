//! A command as a person is asked about it.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde_json::json;

use super::held::files_of;
use super::run::Wanted;
use super::{NAME, Terminal};
use crate::protocol::approval::Detail;
use crate::protocol::phrase::{Label, Phrase, PhraseCode};
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
            told if told.is_empty() => Detail::words(Label::Directory, PhraseCode::Workspace),
            told => Detail::text(Label::Directory, told),
        };
        let time = if wanted.background {
            PhraseCode::InBackground.into()
        } else {
            let seconds = wanted.time.as_secs().to_string();
            Phrase::new(PhraseCode::AtMost, [("seconds", seconds)])
        };
        let mut details = vec![
            Detail::code(Label::Command, &wanted.command),
            directory,
            Detail::words(Label::Time, time),
            Detail::words(Label::Held, held(&files)),
        ];
        let open = self.why_open();
        let job = self.sandbox.job(wanted.order.clone(), true);
        let is_held = open.is_none();
        details.extend(open);
        let command = |bytes| [("command", shortened(&wanted.command, bytes))];
        let rule = is_held.then(|| {
            RuleSubject::new(
                json!([wanted.command, wanted.order.directory, files]).to_string(),
                Phrase::new(PhraseCode::CommandExactly, command(120)),
            )
        });
        Ok(Proposal {
            summary: Phrase::new(PhraseCode::Run, command(200)),
            details,
            rule,
            // The command, its directory, its environment, and the content of each file that it
            // names.
            binding: json!({
                "command": wanted.command,
                "directory": wanted.order.directory,
                "environment": job.order.environment,
                "inside": is_held,
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
            summary: Phrase::new(PhraseCode::EndCommand, [("id", id.to_string())]),
            details: vec![Detail::code(Label::Command, &command)],
            rule: Some(RuleSubject::new("end", PhraseCode::EndingCommands)),
            binding: command,
        })
    }

    /// Why a command is not held as it should be; none where it is.
    pub(super) fn why_open(&self) -> Option<Detail> {
        match (self.fence(), self.sandbox.available()) {
            (Fence::Lifted, _) => Some(Detail::words(Label::WhyItAsks, PhraseCode::FenceLifted)),
            (Fence::Inside, Err(reason)) => Some(Detail::text(Label::WhyItAsks, reason)),
            (Fence::Inside, Ok(_)) => None,
        }
    }
}

/// What a person has to know of a command that reads more than they are shown.
fn held(files: &BTreeMap<String, String>) -> Phrase {
    let named = files.keys().take(NAMED_FILES).join(", ");
    match files.len() {
        0 => PhraseCode::HeldNone.into(),
        1..=NAMED_FILES => Phrase::new(PhraseCode::Held, [("files", named)]),
        all => {
            let more = (all - NAMED_FILES).to_string();
            Phrase::new(PhraseCode::HeldMore, [("files", named), ("more", more)])
        }
    }
}
