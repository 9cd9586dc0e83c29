//! What the model asks for, and the order that it comes to.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::hosts::Host;
use super::transfer::check_remote;
use crate::tools::actions::actions;
use crate::tools::workspace::InnerPath;
use crate::tools::{COMMAND_BYTES, ToolError};

const RUN_SECONDS: u64 = 60;
const TRANSFER_SECONDS: u64 = 600;

/// One flat object: see `filesystem`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"action": "run", "host": "web1", "command": "uptime"}))]
pub(super) struct SshArgs {
    /// run: run `command` on the host. upload: send the workspace's file `path` to `to` on the
    /// host. download: fetch `from` on the host into the workspace as `path`. list_hosts: what
    /// hosts there are.
    action: Action,
    /// The host, by its name.
    host: Option<String>,
    /// run: the command line, for the shell on the host. It gets no input, so use flags such as
    /// -y where it would ask.
    command: Option<String>,
    /// upload, download: the file in the workspace.
    path: Option<String>,
    /// upload: the path on the host; what stood there is replaced.
    to: Option<String>,
    /// download: the path on the host.
    from: Option<String>,
    /// How long it may take; 60 for run, 600 for a file.
    #[schemars(range(min = 1, max = 3600))]
    timeout_seconds: Option<u64>,
}

actions! {
    "run" Run Host ["host", "command"] ["timeout_seconds"];
    "upload" Upload Host ["host", "path", "to"] ["timeout_seconds"];
    "download" Download Host ["host", "path", "from"] ["timeout_seconds"];
    "list_hosts" ListHosts Read [] [];
}

/// A call with everything that it needs.
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) host: &'a Host,
    pub(super) work: Work,
    pub(super) limit: Duration,
}

/// Paths on the host are as they were asked for.
#[derive(Debug)]
pub(super) enum Work {
    Run(String),
    Upload(InnerPath, String),
    Download(String, InnerPath),
}

impl<'a> Order<'a> {
    /// None for a list of the hosts.
    pub(super) fn of(args: SshArgs, hosts: &'a [Host]) -> Result<Option<Self>, ToolError> {
        let (work, usual_seconds) = match args.action {
            Action::ListHosts => return Ok(None),
            Action::Run => {
                let command = needed(args.command, "run", "command")?;
                refuse_if!(
                    command.len() > COMMAND_BYTES,
                    "`command` has {} bytes, and {COMMAND_BYTES} is the limit; upload a script and run that",
                    command.len()
                );
                refuse_if!(
                    command.contains('\0'),
                    "`command` has a NUL byte; leave it out"
                );
                (Work::Run(command), RUN_SECONDS)
            }
            Action::Upload => {
                let path = InnerPath::file(&needed(args.path, "upload", "path")?)?;
                let to = needed(args.to, "upload", "to")?;
                check_remote(&to)?;
                (Work::Upload(path, to), TRANSFER_SECONDS)
            }
            Action::Download => {
                let from = needed(args.from, "download", "from")?;
                let path = InnerPath::file(&needed(args.path, "download", "path")?)?;
                check_remote(&from)?;
                (Work::Download(from, path), TRANSFER_SECONDS)
            }
        };
        let name = needed(args.host, "this action", "host")?;
        // The schema has the names, so that a wrong one does not come this far.
        let Some(host) = hosts.iter().find(|host| host.name == name) else {
            refuse!("there is no host `{name}`; use list_hosts to see which there are");
        };
        Ok(Some(Self {
            host,
            work,
            limit: Duration::from_secs(args.timeout_seconds.unwrap_or(usual_seconds)),
        }))
    }
}

fn needed(value: Option<String>, action: &str, field: &str) -> Result<String, ToolError> {
    value.filter(|text| !text.trim().is_empty()).ok_or_else(|| {
        ToolError(format!(
            "{action} needs `{field}`, which is missing or empty"
        ))
    })
}
