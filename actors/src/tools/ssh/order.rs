//! What the model asks for, and the order that it comes to.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::hosts::Host;
use super::transfer::check_remote;
use crate::tools::actions::{actions, read_action};
use crate::tools::workspace::InnerPath;
use crate::tools::{ToolResult, check_command};

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
    #[serde(default)]
    host: String,
    /// run: the command line, for the shell on the host. It gets no input, so use flags such as
    /// -y where it would ask.
    #[serde(default)]
    command: String,
    /// upload, download: the file in the workspace.
    #[serde(default)]
    path: String,
    /// upload: the path on the host; what stood there is replaced.
    #[serde(default)]
    to: String,
    /// download: the path on the host.
    #[serde(default)]
    from: String,
    /// How long it may take; 60 for run, 600 for a file.
    #[schemars(range(min = 1, max = 3600))]
    timeout_seconds: Option<u64>,
}

actions! {
    "run" Run Host ["host", "command"] ["timeout_seconds"]
        r#"{"action":"run","host":"web1","command":"uptime"}"#;
    "upload" Upload Host ["host", "path", "to"] ["timeout_seconds"]
        r#"{"action":"upload","host":"web1","path":"site.tar","to":"/srv/site.tar"}"#;
    "download" Download Host ["host", "path", "from"] ["timeout_seconds"]
        r#"{"action":"download","host":"web1","path":"syslog","from":"/var/log/syslog"}"#;
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
    pub(super) fn of(args: Value, hosts: &'a [Host]) -> ToolResult<Option<Self>> {
        let args: SshArgs = read_action(ACTIONS, args)?;
        let (work, usual_seconds) = match args.action {
            Action::ListHosts => return Ok(None),
            Action::Run => {
                check_command(&args.command, "upload a script and run that")?;
                (Work::Run(args.command), RUN_SECONDS)
            }
            Action::Upload => {
                let path = InnerPath::file(&args.path)?;
                check_remote(&args.to)?;
                (Work::Upload(path, args.to), TRANSFER_SECONDS)
            }
            Action::Download => {
                let path = InnerPath::file(&args.path)?;
                check_remote(&args.from)?;
                (Work::Download(args.from, path), TRANSFER_SECONDS)
            }
        };
        // The schema has the names, so that a wrong one does not come this far.
        let Some(host) = hosts.iter().find(|host| host.name == args.host) else {
            refuse!(
                "there is no host `{}`; use list_hosts to see which there are",
                args.host
            );
        };
        Ok(Some(Self {
            host,
            work,
            limit: Duration::from_secs(args.timeout_seconds.unwrap_or(usual_seconds)),
        }))
    }
}
