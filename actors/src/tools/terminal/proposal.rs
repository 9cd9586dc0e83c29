//! A command as a person is asked about it.

use std::fmt::Write as _;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::Terminal;
use super::run::Wanted;
use crate::protocol::approval::{Detail, DetailKind};
use crate::tools::output::shortened;
use crate::tools::sandbox::Fence;
use crate::tools::{Proposal, RuleSubject, ToolContext, ToolError};

/// As many words of a command as are looked at for a file that it runs, and as much of one.
const WORDS: usize = 16;
const SCRIPT_BYTES: u64 = 8 << 20;

impl Terminal {
    pub(super) async fn propose(
        &self,
        wanted: &Wanted,
        _: &ToolContext,
    ) -> Result<Proposal, ToolError> {
        let for_files = wanted.clone();
        let files = tokio::task::spawn_blocking(move || files_of(&for_files)).await;
        let files = files.unwrap_or_default();
        let directory = match wanted.directory.strip_prefix(&wanted.workspace) {
            Ok(inside) if inside.as_os_str().is_empty() => "the workspace".to_owned(),
            Ok(inside) => inside.display().to_string(),
            Err(_) => wanted.directory.display().to_string(),
        };
        let mut details = vec![
            Detail {
                label: "command".to_owned(),
                kind: DetailKind::Code,
                text: wanted.command.clone(),
            },
            Detail {
                label: "directory".to_owned(),
                kind: DetailKind::Text,
                text: directory,
            },
        ];
        let open = self.why_open();
        details.extend(open.clone().map(|why| Detail {
            label: "why it asks".to_owned(),
            kind: DetailKind::Text,
            text: why,
        }));
        let rule = open.is_none().then(|| RuleSubject {
            key: json!([wanted.command, wanted.directory, files]).to_string(),
            words: format!("`{}`, word for word", shortened(&wanted.command, 120)),
        });
        Ok(Proposal {
            summary: format!("run `{}`", shortened(&wanted.command, 200)),
            details,
            rule,
            binding: self.binding(wanted, &files),
        })
    }

    /// An end of a background command.
    pub(super) fn propose_end(
        &self,
        id: u64,
        context: &ToolContext,
    ) -> Result<Proposal, ToolError> {
        let command = self.shells.command(context.session_id, id)?;
        Ok(Proposal {
            summary: format!("end background command {id}"),
            details: vec![Detail {
                label: "command".to_owned(),
                kind: DetailKind::Code,
                text: command.clone(),
            }],
            rule: Some(RuleSubject {
                key: "end".to_owned(),
                words: "ending background commands".to_owned(),
            }),
            binding: command,
        })
    }

    /// Why a command is not held as it should be; none where it is.
    fn why_open(&self) -> Option<String> {
        match (self.fence(), self.sandbox.available()) {
            (Fence::Lifted, _) => Some(
                "TERMINAL_ALLOWED_COMMANDS is *: commands run outside the sandbox, with Navi's own rights"
                    .to_owned(),
            ),
            (Fence::Inside, Err(reason)) => Some(reason.to_string()),
            (Fence::Inside, Ok(_)) => None,
        }
    }

    /// What makes the call what it is: the command, its directory, its environment, and the
    /// content of each file of the workspace that it names.
    fn binding(&self, wanted: &Wanted, files: &[(String, String)]) -> String {
        let job = self.sandbox.job(self.order(wanted), true);
        json!({
            "command": wanted.command,
            "directory": wanted.directory,
            "environment": job.environment,
            "inside": job.policy.inside && self.why_open().is_none(),
            "files": files,
        })
        .to_string()
    }
}

/// Each file of the workspace that the command names, with the hash of its content: a script
/// that was changed after it was approved is another one.
fn files_of(wanted: &Wanted) -> Vec<(String, String)> {
    let words = shlex::split(&wanted.command).unwrap_or_else(|| {
        let words = wanted.command.split_whitespace();
        words.map(str::to_owned).collect()
    });
    let Ok(inside) = wanted.directory.strip_prefix(&wanted.workspace) else {
        return Vec::new();
    };
    let Ok(workspace) = Dir::open_ambient_dir(&wanted.workspace, ambient_authority()) else {
        return Vec::new();
    };
    words
        .iter()
        .take(WORDS)
        .filter_map(|word| {
            let word = word.trim_end_matches(';');
            let path = match Path::new(word).strip_prefix(&wanted.workspace) {
                Ok(inside) => inside.to_owned(),
                Err(_) => inside.join(word),
            };
            let metadata = workspace.metadata(&path).ok()?;
            if !metadata.is_file() {
                return None;
            }
            if metadata.len() > SCRIPT_BYTES {
                return Some((word.to_owned(), format!("{} bytes", metadata.len())));
            }
            let content = workspace.read(&path).ok()?;
            let mut hash = String::new();
            for byte in Sha256::digest(&content) {
                // Writing to a text cannot fail.
                let _ = write!(hash, "{byte:02x}");
            }
            Some((word.to_owned(), hash))
        })
        .collect()
}
