//! [`McpServerActor`]: keeps one MCP server alive.
//!
//! Started by `ExtensionsActor`, one for each server of the configuration, and stopped by it
//! when the configuration has it no more. It owns the connection, and with it the server's
//! program. It must not know which of the tools are allowed. When it dies its program is
//! killed, and it is built anew.

use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, Recipient,
    WrapFuture,
};
use chrono::{DateTime, Utc};
use rmcp::RoleClient;
use rmcp::service::Peer;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::protocol::extension::McpServerState;
use crate::services::now;
use crate::supervision::Guard;
use crate::tools::mcp::{Connection, Listing, ServerConfig, ServerHandle, listing};

/// A server that was well for so long starts its count of failures anew.
const WELL: Duration = Duration::from_secs(60);

/// After so many failures in a row a program is left alone.
const MAX_FAILURES: u32 = 8;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How often a server that is reached over HTTP is asked whether it is there: nothing else
/// tells that it went.
const ASK_EVERY: Duration = Duration::from_secs(30);

/// A server that is well and at no call answers this soon.
const ASK_LIMIT: Duration = Duration::from_secs(10);

/// A server that says all the time that its tools are others is asked no more often.
const LIST_EVERY: Duration = Duration::from_secs(2);

/// How a server is, whenever that changes. The rate is bounded by the pauses above.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub struct ServerReport {
    pub name: String,
    /// The task's own.
    pub life: u64,
    pub state: McpServerState,
    pub since: DateTime<Utc>,
    pub failures: u32,
    pub last_error: Option<String>,
    /// What it lists; absent where it is not ready.
    pub listing: Option<Listing>,
}

/// Asks to start the server anew, now.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Restart;

/// A server to keep alive.
#[derive(Clone, Debug)]
pub struct ServerTask {
    pub config: Arc<ServerConfig>,
    pub link: ServerHandle,
    /// Tells this task's reports from those of another one for a server of the same name.
    pub life: u64,
    pub tell: Recipient<ServerReport>,
    /// Until then.
    pub closing: CancellationToken,
}

/// See the module.
#[derive(Debug)]
pub struct McpServerActor {
    task: ServerTask,
    restart: Arc<Notify>,
    guard: Guard,
}

impl McpServerActor {
    pub fn new(task: ServerTask, guard: Guard) -> Self {
        let restart = Arc::default();
        Self {
            task,
            restart,
            guard,
        }
    }
}

impl Actor for McpServerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let keeping = self.task.clone().keep(Arc::clone(&self.restart));
        ctx.spawn(keeping.into_actor(self).map(|(), actor, ctx| {
            actor.guard.mark_clean();
            ctx.stop();
        }));
    }
}

impl Handler<Restart> for McpServerActor {
    type Result = ();

    fn handle(&mut self, _: Restart, _: &mut Self::Context) {
        self.restart.notify_one();
    }
}

impl ServerTask {
    async fn keep(self, restart: Arc<Notify>) {
        let mut report = ServerReport {
            name: self.config.name.clone(),
            life: self.life,
            state: McpServerState::Starting,
            since: now(),
            failures: 0,
            last_error: None,
            listing: None,
        };
        while !self.closing.is_cancelled() {
            tokio::select! {
                () = self.connect(&mut report) => {}
                // With what it was at goes the connection, if there is one, and the program.
                () = restart.notified() => {
                    self.link.down("it is started again".to_owned());
                    report.failures = 0;
                }
            }
        }
        self.link.down("it was switched off".to_owned());
    }

    /// One connection, and the pause after it.
    async fn connect(&self, report: &mut ServerReport) {
        fail::fail_point!("mcp::connect");
        self.enter(report, McpServerState::Starting, None);
        let mut ready_at = None;
        let why = self.connection(report, &mut ready_at).await;
        if self.closing.is_cancelled() {
            return;
        }
        let was_well = ready_at.is_some_and(|at: Instant| at.elapsed() >= WELL);
        report.failures = if was_well { 1 } else { report.failures + 1 };
        tracing::warn!(
            server = report.name,
            failures = report.failures,
            why,
            "MCP server is down"
        );
        self.link.down(why.clone());
        report.last_error = Some(why);
        // Trying costs little where nothing is started for it: a far machine comes back some day.
        if report.failures > MAX_FAILURES && self.config.transport.word() == "stdio" {
            self.enter(report, McpServerState::Failed, None);
            self.closing.cancelled().await;
            return;
        }
        self.enter(report, McpServerState::Waiting, None);
        let pause = FIRST_PAUSE
            .saturating_mul(2_u32.saturating_pow(report.failures - 1))
            .min(LONGEST_PAUSE);
        self.closing.run_until_cancelled(sleep(pause)).await;
    }

    /// A connection from its greeting to its end, and why it ended.
    async fn connection(
        &self,
        report: &mut ServerReport,
        ready_at: &mut Option<Instant>,
    ) -> String {
        let changed = Arc::new(Notify::new());
        let opening = Connection::open(&self.config, Arc::clone(&changed));
        let (connection, listing) = match self.closing.run_until_cancelled(opening).await {
            Some(Ok(opened)) => opened,
            Some(Err(why)) => return why,
            None => return "it was switched off".to_owned(),
        };
        tracing::info!(
            server = report.name,
            tools = listing.tools.len(),
            "MCP server is up"
        );
        let peer = connection.peer();
        self.link.up(peer.clone(), Arc::clone(&listing.tools));
        *ready_at = Some(Instant::now());
        self.enter(report, McpServerState::Ready, Some(listing));
        tokio::select! {
            // Let go of in order where it is switched off.
            why = connection.ended(self.closing.clone()) => why,
            // The connection is dropped with it, and the program killed.
            why = self.tend(peer, &changed, report) => why,
        }
    }

    /// Looks after a connection until something is wrong with it.
    async fn tend(
        &self,
        peer: Peer<RoleClient>,
        changed: &Notify,
        report: &mut ServerReport,
    ) -> String {
        let asks = self.config.transport.word() == "http";
        loop {
            let asked = tokio::select! {
                () = changed.notified() => false,
                () = self.link.doubt.notified() => true,
                () = sleep(ASK_EVERY), if asks => true,
            };
            if asked {
                if !self.link.answers(&peer, ASK_LIMIT, asks).await {
                    return "it does not answer".to_owned();
                }
                continue;
            }
            match listing(&peer, &self.config).await {
                Ok(listing) => {
                    self.link.up(peer.clone(), Arc::clone(&listing.tools));
                    report.listing = Some(listing);
                    self.tell.do_send(report.clone());
                }
                Err(why) => return why,
            }
            sleep(LIST_EVERY).await;
        }
    }

    fn enter(&self, report: &mut ServerReport, state: McpServerState, listing: Option<Listing>) {
        report.state = state;
        report.since = now();
        report.listing = listing;
        self.tell.do_send(report.clone());
    }
}
