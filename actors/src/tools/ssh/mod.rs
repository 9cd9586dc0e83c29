//! `ssh`: commands and files on the hosts that the user has named (SPEC section 11), by keys or
//! the ssh agent, with each host's key checked.

mod command;
mod connection;
mod files;
pub mod hosts;
mod identity;
mod known_hosts;
mod order;
mod pool;
mod transfer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use itertools::Itertools as _;
use russh::Channel;
use russh::client::Msg;
use serde_json::{Value, json};
use tokio::time::timeout;

use self::command::{End, told};
use self::connection::{Connection, DEAD, Times};
use self::files::Source;
use self::hosts::Host;
use self::known_hosts::{Trust, shown};
use self::order::{Order, SshArgs, Work};
use self::pool::{Lease, Pool};
use super::actions::ActionFields;
use super::output::{bounded_for, human_size, shortened};
use super::schema::spec_of;
use super::workspace::InnerPath;
use super::{Proposal, Provenance, RuleSubject, Tool, ToolContext, ToolResult, blocking};
use crate::protocol::approval::Detail;
use crate::protocol::ids::{SessionId, UserId};
use crate::protocol::phrase::{Label, Phrase, PhraseCode};
use crate::protocol::powers::{PowerKind, Powers};
use crate::protocol::tool::{Effect, ToolSpec};

/// The tool's name.
pub(super) const NAME: &str = "ssh";

const NOT_SET_UP: &str = "no host is set up: the user has to name hosts in ssh_hosts.json in the \
    data directory, or set SSH_HOSTS_FILE to such a file, and start Navi anew; say so to the user";

/// As many hosts as the description names; list_hosts has them all.
const DESCRIBED_HOSTS: usize = 20;
const MAX_SECONDS: u64 = 3_600;
/// For connecting, beside what the command or the transfer itself may take.
const MARGIN_SECONDS: u64 = 120;
/// How long a connection may be without use.
const IDLE: Duration = Duration::from_secs(300);
/// The largest file that is transferred.
const TRANSFER_BYTES: u64 = 512 << 20;

/// What the settings say of this tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshConfig {
    /// In the order of their file.
    pub hosts: Vec<Host>,
    /// Where the keys of hosts that the user approved are kept.
    pub known_hosts: PathBuf,
    /// Another such file, which is read and never written.
    pub more_known_hosts: Option<PathBuf>,
    /// The ssh agent's socket.
    pub agent_socket: Option<PathBuf>,
}

/// The tool.
#[derive(Debug)]
pub struct Ssh {
    spec: ToolSpec,
    hosts: Vec<Host>,
    agent_socket: Option<PathBuf>,
    trust: Trust,
    pool: Arc<Pool>,
    times: Times,
    transfer_bytes: u64,
}

impl Ssh {
    /// The tool for these hosts; without any it is not offered to any model. Nothing is connected
    /// to before a call.
    pub fn new(config: SshConfig) -> Self {
        Self {
            spec: spec(&config.hosts),
            hosts: config.hosts,
            agent_socket: config.agent_socket,
            trust: Trust::new(config.known_hosts, config.more_known_hosts),
            pool: Arc::new(Pool::new(IDLE)),
            times: Times::default(),
            transfer_bytes: TRANSFER_BYTES,
        }
    }

    /// The session's connection to the host, which is made where there is none.
    async fn connection(&self, host: &Host, context: &ToolContext) -> ToolResult<Lease> {
        let connect = async {
            let known = self.trust.check(host, context).await?;
            let opened = Connection::open(host, known, self.agent_socket.as_deref(), self.times);
            let (connection, new_key) = opened.await?;
            if let Some(key) = new_key {
                self.trust.keep(host, key, context).await?;
            }
            Ok(connection)
        };
        self.pool.get(context.session_id, &host.name, connect).await
    }

    /// A channel to the host, on the session's connection to it.
    async fn channel(
        &self,
        host: &Host,
        context: &ToolContext,
    ) -> ToolResult<(Lease, Channel<Msg>)> {
        let mut lease = self.connection(host, context).await?;
        let mut channel = lease.connection.channel().await;
        if channel.as_ref().is_err_and(|why| *why == DEAD) {
            // It died while nobody looked. Nothing was sent on it, so another may be tried.
            Pool::discard(lease).await;
            lease = self.connection(host, context).await?;
            channel = lease.connection.channel().await;
        }
        let channel = channel.map_err(|error| refusal!("the host `{}` {error}", host.name))?;
        Ok((lease, channel))
    }

    async fn run(
        &self,
        host: &Host,
        command: &str,
        limit: Duration,
        context: &ToolContext,
    ) -> ToolResult<String> {
        let (lease, channel) = self.channel(host, context).await?;
        let ran = command::run(
            (lease.clone(), channel),
            (&host.user, command),
            limit,
            context.output.clone(),
        )
        .await?;
        if ran.end == End::Lost {
            Pool::discard(lease).await;
        }
        let mut text = format!("{}: {}", host.name, told(&ran, limit));
        if ran.output.is_empty() {
            text.push_str("; no output");
        } else {
            text.push_str("\n\n");
            text.push_str(&bounded_for(ran.output, context).await?);
        }
        Ok(text)
    }

    async fn upload(
        &self,
        host: &Host,
        path: InnerPath,
        to: &str,
        context: &ToolContext,
    ) -> ToolResult<String> {
        let name = path.name();
        let source = self.source(path, context).await?;
        let size = human_size(source.size_bytes);
        let (lease, channel) = self.channel(host, context).await?;
        let line = (&*lease.connection, channel);
        let to = transfer::upload(line, &name, source, to, &context.output).await?;
        Ok(format!(
            "uploaded `{name}` ({size}) to `{to}` on {}",
            host.name
        ))
    }

    async fn download(
        &self,
        host: &Host,
        from: &str,
        path: InnerPath,
        context: &ToolContext,
    ) -> ToolResult<String> {
        context.means.check_room()?;
        let (_lease, channel) = self.channel(host, context).await?;
        let (workspace, place) = (context.workspace.clone(), path.clone());
        let sink = blocking(NAME, move || files::create(&workspace, &place)).await?;
        let (to, limit) = ((sink, &path), self.transfer_bytes);
        let size = transfer::download(channel, from, to, limit, &context.output).await?;
        Ok(format!(
            "downloaded {} from {} to the workspace's file `{path}`",
            human_size(size),
            host.name
        ))
    }

    /// A file that is to be sent.
    async fn source(&self, path: InnerPath, context: &ToolContext) -> ToolResult<Source> {
        let (workspace, limit) = (context.workspace.clone(), self.transfer_bytes);
        blocking(NAME, move || files::open(&workspace, &path, limit)).await
    }

    fn list(&self) -> String {
        let hosts = self.hosts.iter();
        hosts
            .map(|host| match host.description.as_str() {
                "" => format!("{} ({})\n", host.name, host.login()),
                what => format!("{} ({}): {what}\n", host.name, host.login()),
            })
            .collect()
    }
}

#[async_trait]
impl Tool for Ssh {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn for_powers(self: Arc<Self>, powers: &Powers) -> Option<Arc<dyn Tool>> {
        if *powers == Powers::All {
            return Some(self);
        }
        let hosts = self.hosts.iter();
        let granted = hosts.filter(|host| powers.has_named(PowerKind::Ssh, &host.name));
        let hosts: Vec<Host> = granted.cloned().collect();
        (!hosts.is_empty()).then(|| {
            Arc::new(Self {
                spec: spec(&hosts),
                hosts,
                agent_socket: self.agent_socket.clone(),
                trust: self.trust.personal(),
                pool: Arc::clone(&self.pool),
                times: self.times,
                transfer_bytes: self.transfer_bytes,
            }) as Arc<dyn Tool>
        })
    }

    fn reaches(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.name.clone()).collect()
    }

    fn person_removed(&self, user: UserId) {
        self.trust.forget(user);
    }

    fn unavailable(&self) -> Option<&str> {
        self.hosts.is_empty().then_some(NOT_SET_UP)
    }

    fn actions(&self) -> &[ActionFields] {
        order::ACTIONS
    }

    async fn proposal(&self, args: &Value, context: &ToolContext) -> ToolResult<Proposal> {
        let order = Order::of(args.clone(), &self.hosts)?;
        let Some(Order { host, work, limit }) = order else {
            return Ok(Proposal::of_arguments(NAME, args));
        };
        let name = &host.name;
        let login = format!("{name} ({})", host.login());
        let mut details = vec![Detail::text(Label::Host, login)];
        let mut digest = String::new();
        let on_host =
            |code, what, value: String| Phrase::new(code, [(what, value), ("host", name.clone())]);
        // What would be done, on a host that is known and on one that is not.
        let (known, unknown, summary, key, words) = match &work {
            Work::Run(command) => {
                details.push(Detail::code(Label::Command, command));
                (
                    PhraseCode::RunOn,
                    PhraseCode::RunOnUnknown,
                    ("command", shortened(command, 100)),
                    format!("run\0{name}\0{command}"),
                    on_host(PhraseCode::CommandOn, "command", command.clone()),
                )
            }
            Work::Upload(path, to) => {
                let source = self.source(path.clone(), context).await?;
                let size = human_size(source.size_bytes);
                digest = blocking(NAME, || source.digest()).await?;
                details.push(Detail::text(Label::File, format!("{path} ({size})")));
                details.push(Detail::text(Label::To, to));
                (
                    PhraseCode::Upload,
                    PhraseCode::UploadUnknown,
                    ("file", path.name()),
                    format!("upload\0{name}\0{to}"),
                    on_host(PhraseCode::UploadsTo, "path", to.clone()),
                )
            }
            Work::Download(from, path) => {
                details.push(Detail::text(Label::From, from));
                details.push(Detail::text(Label::File, path.to_string()));
                (
                    PhraseCode::Download,
                    PhraseCode::DownloadUnknown,
                    ("path", from.clone()),
                    format!("download\0{name}\0{from}"),
                    on_host(PhraseCode::DownloadsOf, "path", from.clone()),
                )
            }
        };
        let seconds = [("seconds", limit.as_secs().to_string())];
        let seconds = Phrase::new(PhraseCode::Seconds, seconds);
        details.push(Detail::words(Label::TimeLimit, seconds));
        let (new_key, trusted) = self.trust.offer(host, context, self.times).await?;
        let mut code = known;
        let mut rule = Some(RuleSubject { key, words });
        if let Some(key) = new_key {
            code = unknown;
            let trusts = Phrase::new(PhraseCode::TrustsKey, [("key", shown(&key))]);
            details.insert(1, Detail::words(Label::NewKey, trusts));
            // Nobody has a rule for a host that they have never seen.
            rule = None;
        }
        let (what, value) = summary;
        Ok(Proposal {
            summary: on_host(code, what, value),
            details,
            rule,
            binding: json!([host.login(), host.key, host.agent, trusted, digest]).to_string(),
        })
    }

    fn provenance(&self, args: &Value) -> Provenance {
        match args["action"].as_str() {
            Some("list_hosts") => Provenance::Own,
            _ => Provenance::Outside,
        }
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let order = Order::of(args, &self.hosts)?;
        let Some(Order { host, work, limit }) = order else {
            return Ok(self.list().into());
        };
        let (what, whole) = match &work {
            // It has its own limit, after which its output so far is told.
            Work::Run(_) => ("command", limit + Duration::from_secs(MARGIN_SECONDS)),
            Work::Upload(..) => ("upload", limit),
            Work::Download(..) => ("download", limit),
        };
        let done = timeout(whole, async {
            match work {
                Work::Run(command) => self.run(host, &command, limit, &context).await,
                Work::Upload(path, to) => self.upload(host, path, &to, &context).await,
                Work::Download(from, path) => self.download(host, &from, path, &context).await,
            }
        });
        let text = done.await.unwrap_or_else(|_| {
            refuse!(
                "the {what} was not done within {} s and was given up; set timeout_seconds for more",
                limit.as_secs()
            )
        })?;
        Ok(text.into())
    }

    fn session_closed(&self, session: SessionId) {
        self.pool.end_session(session);
    }
}

/// What the model is told, with these hosts.
fn spec(hosts: &[Host]) -> ToolSpec {
    let time_limit_ms = (MAX_SECONDS + MARGIN_SECONDS) * 1_000;
    let mut spec = spec_of::<SshArgs>(NAME, &description(hosts), Effect::Host, time_limit_ms);
    let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    if let Some(first) = names.first() {
        spec.parameters["examples"][0]["host"] = json!(first);
        spec.parameters["properties"]["host"]["enum"] = json!(names);
    }
    spec
}

fn description(hosts: &[Host]) -> String {
    let does = "Run commands on the user's other machines, and move files between them and the workspace. Look before you change anything there.";
    if hosts.is_empty() {
        return does.to_owned();
    }
    let described = hosts.iter().take(DESCRIBED_HOSTS);
    let mut named = described.map(|host| match host.description.as_str() {
        "" => host.name.clone(),
        description => format!("{} ({description})", host.name),
    });
    let more = if hosts.len() > DESCRIBED_HOSTS {
        ", and more: see list_hosts"
    } else {
        ""
    };
    format!("{does} Hosts: {}{more}.", named.join(", "))
}

#[cfg(test)]
mod attack_tests;
#[cfg(test)]
mod sshd;
#[cfg(test)]
mod tests;
