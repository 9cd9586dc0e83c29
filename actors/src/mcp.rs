//! [`McpServerActor`]: keeps one MCP server alive.
//!
//! Started by `ExtensionsActor`, one for each server of the configuration, and stopped by it
//! when the configuration has it no more. It owns the connection, and with it the server's
//! program. It must not know which of the tools are allowed. When it dies its program is
//! killed, and it is built anew.

use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, SpawnHandle,
    WrapFuture,
};
use chrono::{DateTime, Utc};
use rmcp::RoleClient;
use rmcp::service::Peer;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::protocol::extension::McpServerState;
use crate::services::now;
use crate::supervision::Guard;
use crate::tools::mcp::{Connection, Listing, ServerConfig, ServerHandle, answers, listing};

/// A server that was well for so long starts its count of failures anew.
const WELL: Duration = Duration::from_secs(60);

/// After so many failures in a row a program is left alone.
const MAX_FAILURES: u32 = 8;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How often a server that is reached over HTTP is asked whether it is there: nothing else
/// tells that it went.
const ASK_EVERY: Duration = Duration::from_secs(30);

/// A server that says all the time that its tools are others is asked no more often.
const LIST_EVERY: Duration = Duration::from_secs(2);

/// How a server is, whenever that changes.
#[derive(Clone, Debug)]
pub struct ServerReport {
    pub name: String,
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

/// The tools are others now.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct Relisted(Listing);

/// Who is told of a server. The rate is bounded by the pauses above.
pub type Tell = Arc<dyn Fn(ServerReport) + Send + Sync>;

/// See the module.
pub struct McpServerActor {
    config: Arc<ServerConfig>,
    link: ServerHandle,
    tell: Tell,
    closing: CancellationToken,
    state: McpServerState,
    since: DateTime<Utc>,
    ready_at: Option<Instant>,
    failures: u32,
    last_error: Option<String>,
    peer: Option<Peer<RoleClient>>,
    /// What it is at just now: a greeting, a connection, a pause.
    doing: Option<SpawnHandle>,
    guard: Guard,
}

impl std::fmt::Debug for McpServerActor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServerActor")
            .field("config", &self.config)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl McpServerActor {
    /// An actor for this server, until `closing`.
    pub fn new(
        config: Arc<ServerConfig>,
        link: ServerHandle,
        tell: Tell,
        closing: CancellationToken,
        guard: Guard,
    ) -> Self {
        Self {
            config,
            link,
            tell,
            closing,
            state: McpServerState::Starting,
            since: now(),
            ready_at: None,
            failures: 0,
            last_error: None,
            peer: None,
            doing: None,
            guard,
        }
    }

    fn enter(&mut self, state: McpServerState, listing: Option<Listing>) {
        self.state = state;
        self.since = now();
        self.report(listing);
    }

    fn report(&self, listing: Option<Listing>) {
        (self.tell)(ServerReport {
            name: self.config.name.clone(),
            state: self.state,
            since: self.since,
            failures: self.failures,
            last_error: self.last_error.clone(),
            listing,
        });
    }

    fn connect(&mut self, ctx: &mut Context<Self>) {
        fail::fail_point!("mcp::connect");
        self.enter(McpServerState::Starting, None);
        let config = Arc::clone(&self.config);
        let changed = Arc::new(Notify::new());
        let for_server = Arc::clone(&changed);
        let opening = async move { Connection::open(&config, for_server).await };
        self.doing = Some(
            ctx.spawn(
                opening
                    .into_actor(self)
                    .map(move |opened, actor, ctx| match opened {
                        Ok((connection, listing)) => actor.is_up(connection, listing, changed, ctx),
                        Err(reason) => actor.fell(reason, ctx),
                    }),
            ),
        );
    }

    fn is_up(
        &mut self,
        connection: Connection,
        listing: Listing,
        changed: Arc<Notify>,
        ctx: &mut Context<Self>,
    ) {
        tracing::info!(
            server = self.config.name,
            tools = listing.tools.len(),
            "MCP server is up"
        );
        let peer = connection.peer();
        self.link.up(peer.clone(), Arc::clone(&listing.tools));
        self.peer = Some(peer.clone());
        self.ready_at = Some(Instant::now());
        self.enter(McpServerState::Ready, Some(listing));
        let tending = tend(
            peer,
            Arc::clone(&self.config),
            changed,
            Arc::clone(&self.link.doubt),
            ctx.address(),
        );
        let ended = connection.ended(self.closing.clone());
        let life = async move {
            tokio::select! {
                why = ended => why,
                // The connection is dropped with it, and the program killed.
                why = tending => why,
            }
        };
        self.doing = Some(ctx.spawn(life.into_actor(self).map(|why, actor, ctx| {
            if actor.closing.is_cancelled() {
                actor.stop(ctx);
            } else {
                actor.fell(why, ctx);
            }
        })));
    }

    fn fell(&mut self, why: String, ctx: &mut Context<Self>) {
        let was_well = self.ready_at.take().is_some_and(|at| at.elapsed() >= WELL);
        self.failures = if was_well { 1 } else { self.failures + 1 };
        tracing::warn!(
            server = self.config.name,
            failures = self.failures,
            why,
            "MCP server is down"
        );
        self.link.down(why.clone());
        self.peer = None;
        self.last_error = Some(why);
        // Trying costs little where nothing is started for it: a far machine comes back some day.
        if self.failures > MAX_FAILURES && self.config.transport.word() == "stdio" {
            self.doing = None;
            self.enter(McpServerState::Failed, None);
            return;
        }
        self.enter(McpServerState::Waiting, None);
        let pause = FIRST_PAUSE
            .saturating_mul(2_u32.saturating_pow(self.failures - 1))
            .min(LONGEST_PAUSE);
        self.doing = Some(ctx.run_later(pause, Self::connect));
    }

    fn stop(&mut self, ctx: &mut Context<Self>) {
        self.link.down("it was switched off".to_owned());
        self.guard.mark_clean();
        ctx.stop();
    }
}

impl Actor for McpServerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let closing = self.closing.clone();
        let closed = async move { closing.cancelled().await };
        ctx.spawn(closed.into_actor(self).map(|(), actor, ctx| {
            // A connection ends itself in order, and then this.
            if actor.state != McpServerState::Ready {
                actor.stop(ctx);
            }
        }));
        self.connect(ctx);
    }
}

impl Handler<Restart> for McpServerActor {
    type Result = ();

    fn handle(&mut self, _: Restart, ctx: &mut Self::Context) {
        if self.closing.is_cancelled() {
            return;
        }
        if let Some(doing) = self.doing.take() {
            // With it goes the connection, if there is one, and the program.
            ctx.cancel_future(doing);
        }
        self.link.down("it is started again".to_owned());
        self.peer = None;
        self.ready_at = None;
        self.failures = 0;
        self.connect(ctx);
    }
}

impl Handler<Relisted> for McpServerActor {
    type Result = ();

    fn handle(&mut self, Relisted(listing): Relisted, _: &mut Self::Context) {
        if let (McpServerState::Ready, Some(peer)) = (self.state, &self.peer) {
            self.link.up(peer.clone(), Arc::clone(&listing.tools));
            self.report(Some(listing));
        }
    }
}

/// Looks after a connection until something is wrong with it.
async fn tend(
    peer: Peer<RoleClient>,
    config: Arc<ServerConfig>,
    changed: Arc<Notify>,
    doubt: Arc<Notify>,
    actor: actix::Addr<McpServerActor>,
) -> String {
    let asks = config.transport.word() == "http";
    loop {
        let asked = tokio::select! {
            () = changed.notified() => false,
            () = doubt.notified() => true,
            () = tokio::time::sleep(ASK_EVERY), if asks => true,
        };
        if asked {
            if !answers(&peer).await {
                return "it does not answer".to_owned();
            }
            continue;
        }
        match listing(&peer, &config).await {
            // No more often than the pause below.
            Ok(listing) => actor.do_send(Relisted(listing)),
            Err(why) => return why,
        }
        tokio::time::sleep(LIST_EVERY).await;
    }
}
