//! Navi as a process, and her doors.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::conversation::{Conversation, Dialect};
use crate::house::House;
use crate::http::{self, Answer, Call, Identity};
use crate::process::Process;

/// What opens her doors to the benchmark.
pub(crate) const TOKEN: &str = "a-token-of-the-benchmark";

/// How long Navi may take to find the model server.
const PATIENCE: Duration = Duration::from_secs(30);

/// A service that runs. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Navi {
    pub(crate) process: Process,
    address: SocketAddr,
    /// Who asks where nobody else is named.
    script: Identity,
    /// From the start of its process to its first answer.
    pub(crate) started_in: Duration,
    /// Last, so that the process has ended before its directory goes.
    house: House,
}

impl Navi {
    /// One that has answered.
    pub(crate) fn new(
        process: Process,
        address: SocketAddr,
        started_in: Duration,
        house: House,
    ) -> Self {
        Self {
            process,
            address,
            script: Identity::Token(format!("Bearer {TOKEN}")),
            started_in,
            house,
        }
    }

    /// Waits until it has found the model server.
    ///
    /// # Errors
    /// It does not find it.
    pub(crate) async fn ready(&self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let status = self.ask("GET", "/api/status", None).await?.json();
            if !status["active"].is_null() {
                return Ok(());
            }
            // Only its own sockets tell of a backend, and they are not open yet.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("navi finds no model server: {}", self.house.said())
    }

    /// A new session's id.
    ///
    /// # Errors
    /// It is refused.
    pub(crate) async fn new_session(&self) -> Result<String> {
        self.new_session_of(&self.script).await
    }

    /// The same, of somebody.
    ///
    /// # Errors
    /// It is refused.
    pub(crate) async fn new_session_of(&self, who: &Identity) -> Result<String> {
        let created = self
            .ask_as(who, "POST", "/sessions", Some(&json!({})))
            .await?;
        let created = created.json();
        let id = created["session_id"].as_str();
        Ok(id.context("a session without an id")?.to_owned())
    }

    /// A tab on a session, which is told nothing of what was before.
    ///
    /// # Errors
    /// There is no such session.
    pub(crate) async fn tab(&self, session: &str) -> Result<Conversation> {
        self.tab_of(&self.script, session).await
    }

    /// The same, of somebody.
    ///
    /// # Errors
    /// There is no such session, or they may not come in.
    pub(crate) async fn tab_of(&self, who: &Identity, session: &str) -> Result<Conversation> {
        let path = format!("/ws/sessions/{session}");
        Conversation::open(self.address, &path, who, Dialect::Navi).await
    }

    /// A tab that comes back after this event, and is told nothing of what was before it.
    ///
    /// # Errors
    /// There is no such session.
    pub(crate) async fn tab_after(&self, session: &str, seq: u64) -> Result<Conversation> {
        let path = format!("/ws/sessions/{session}?after={seq}");
        Conversation::open(self.address, &path, &self.script, Dialect::Navi).await
    }

    /// The number of a session's newest event. The session is in memory then.
    ///
    /// # Errors
    /// There is no such session.
    pub(crate) async fn last_seq(&self, session: &str) -> Result<u64> {
        let path = format!("/sessions/{session}");
        let found = self.ask("GET", &path, None).await?.json();
        found["last_seq"]
            .as_u64()
            .context("a session without last_seq")
    }

    /// What stands at a path, and how long it took until all of it was there.
    ///
    /// # Errors
    /// It is refused.
    pub(crate) async fn timed(&self, who: &Identity, path: &str) -> Result<(Answer, Duration)> {
        let begun = Instant::now();
        let answer = http::call(self.address, Call::get(path, who)).await?;
        Ok((answer, begun.elapsed()))
    }

    /// How many sessions are in memory, where she counts.
    ///
    /// # Errors
    /// She does not count.
    pub(crate) async fn live_sessions(&self) -> Result<usize> {
        const NAME: &str = "navi_sessions_live ";
        let told = self.ask("GET", "/metrics", None).await?;
        let told = String::from_utf8(told.body.to_vec())?;
        let number = told.lines().find_map(|line| line.strip_prefix(NAME));
        Ok(number.context("no count of sessions")?.parse()?)
    }

    /// Where her doors are.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The script that asks where nobody else is named.
    pub(crate) fn script(&self) -> &Identity {
        &self.script
    }

    /// A browser that has followed a one-time link.
    ///
    /// # Errors
    /// There is no link, or it lets nobody in.
    pub(crate) async fn browser(&self, program: &Path) -> Result<Identity> {
        let mut command = self.house.program(program);
        command.arg("link").stdin(Stdio::null());
        let printed = tokio::process::Command::from(command).output().await?;
        let link = String::from_utf8(printed.stdout)?;
        let origin = format!("http://{}", self.address);
        let path = link.trim().strip_prefix(&origin);
        let path = path.with_context(|| format!("no link to {origin}: {link}"))?;
        let call = Call::get(path, &Identity::Nobody);
        let answer = http::call(self.address, call).await?;
        let key = answer
            .header("location")
            .and_then(|to| to.split_once("#key="));
        let cookie = answer
            .header("set-cookie")
            .and_then(|it| it.split(';').next());
        let ((_, key), cookie) = key.zip(cookie).context("a login without its halves")?;
        Ok(Identity::Browser {
            origin,
            cookie: cookie.to_owned(),
            key: key.to_owned(),
        })
    }

    /// A person who joined by an invitation, as a script of theirs; their name is theirs alone.
    ///
    /// # Errors
    /// People do not sign in there, or one of that name does already.
    pub(crate) async fn person(&self, program: &Path, name: &str) -> Result<Identity> {
        let role = json!({"role": "user"});
        let invited = self.ask("POST", "/api/invitations", Some(&role)).await?;
        let link = invited.json();
        let secret = link["link"]
            .as_str()
            .and_then(|it| it.split_once("#invitation="));
        let (_, secret) = secret.context("an invitation without its secret")?;
        let joins = json!({"invitation": secret, "name": name, "password": "of the benchmark"});
        let path = "/api/invitation/accept";
        self.ask_as(&Identity::Nobody, "POST", path, Some(&joins))
            .await?;
        let mut command = self.house.program(program);
        command
            .args(["token", "add", "bench", "--user", name, "--consent"])
            .stdin(Stdio::null());
        let printed = tokio::process::Command::from(command).output().await?;
        let printed = String::from_utf8(printed.stdout)?;
        let token = printed
            .split_whitespace()
            .find(|word| word.starts_with("navi_"));
        let token = token.with_context(|| format!("no token: {printed}"))?;
        Ok(Identity::Token(format!("Bearer {token}")))
    }

    async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer> {
        self.ask_as(&self.script, method, path, body).await
    }

    /// Asks on somebody's behalf.
    ///
    /// # Errors
    /// As [`http::call`].
    pub(crate) async fn ask_as(
        &self,
        identity: &Identity,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer> {
        let call = Call {
            method,
            path,
            identity,
            body,
        };
        http::call(self.address, call).await
    }
}
