//! `ExtensionsActor`: what is added to Navi from outside, and may come and go while it runs:
//! user tools, MCP servers, skills.
//!
//! Started by the engine, stopped with it. It owns what was found, what of it is allowed, and
//! the actors of the servers; it puts together the tools that runs begin with. It must not
//! know what a tool does. When it dies it is built anew: the servers are started again, what
//! is allowed is read from the store.

mod handle;
mod view;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use actix::fut::ready;
use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message,
    ResponseActFuture, WrapFuture,
};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::handle::Extensions;
pub use self::view::ExtensionsView;
use crate::mcp::{McpServerActor, Restart, ServerReport, ServerTask};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::extension::ExtensionState;
use crate::protocol::ids::UserId;
use crate::root::store_error;
use crate::services::now;
use crate::store::{Store, ToolPin};
use crate::supervision::{Guard, RestartPolicy, Slot, keep_alive};
use crate::tools::mcp::{Listing, McpConfig, ServerConfig, ServerHandle};
use crate::tools::registry::Registry;
use crate::tools::skills::{self, SkillScan};
use crate::tools::toolbox::{Servers, Toolbox};
use crate::tools::trust::Trust;
use crate::tools::user::{Runner, Scan, Scanner, Workshop};
use crate::tools::{mcp, user};

/// Where extensions are. Paths need not exist.
#[derive(Clone, Debug)]
pub struct ExtensionPlaces {
    pub tools_dir: PathBuf,
    pub skills_dir: PathBuf,
    pub mcp_config: PathBuf,
    /// Where copies of tools are kept to be run. Emptied at the start.
    pub copies_dir: PathBuf,
    pub runner: Runner,
}

/// What the actor works with, through its restarts.
#[derive(Clone, Debug)]
struct Dependencies {
    places: ExtensionPlaces,
    store: Store,
    /// Without anything from outside.
    base: Registry,
    toolbox: Toolbox,
    workshop: Workshop,
    view: Arc<watch::Sender<Arc<ExtensionsView>>>,
    closing: CancellationToken,
}

/// Asks to read everything again. Answered when that holds.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct Rescan;

/// What a person asks.
#[derive(Debug, Message)]
#[rtype(result = "Result<(), NaviError>")]
enum Order {
    /// To allow a tool as it was seen.
    Allow {
        name: String,
        sha256: String,
        user: UserId,
    },
    /// To allow a tool no more.
    Forbid { name: String },
    /// To start a server again.
    Restart { server: String },
}

/// A server of the configuration.
#[derive(Debug)]
struct Server {
    /// What it says is heeded only where it is of this one's life.
    task: ServerTask,
    actor: Slot<McpServerActor>,
    report: Option<ServerReport>,
    _closing: DropGuard,
}

impl Server {
    /// What it last listed.
    fn listing(&self) -> Option<&Listing> {
        self.report.as_ref()?.listing.as_ref()
    }

    /// Whether it has neither listed anything yet nor failed to.
    fn is_awaited(&self) -> bool {
        let report = self.report.as_ref();
        report.is_none_or(|report| report.listing.is_none() && report.failures == 0)
    }
}

/// What a look at the disk found.
#[derive(Debug)]
struct Found {
    scanner: Scanner,
    scan: Scan,
    skills: SkillScan,
    mcp: McpConfig,
}

/// See the module.
#[derive(Debug)]
struct ExtensionsActor {
    around: Dependencies,
    found: Found,
    servers: BTreeMap<String, Server>,
    /// What the store has, by the tools' names. None before it was read.
    pins: Option<BTreeMap<String, ToolPin>>,
    lives: u64,
    guard: Guard,
}

impl ExtensionsActor {
    fn new(around: Dependencies, guard: Guard) -> Self {
        Self {
            found: Found {
                scanner: Scanner::new(around.places.tools_dir.clone()),
                scan: Scan::default(),
                skills: SkillScan::default(),
                mcp: McpConfig::default(),
            },
            servers: BTreeMap::new(),
            pins: None,
            lives: 0,
            around,
            guard,
        }
    }

    /// Takes in what was found on the disk.
    fn take(&mut self, found: Found, ctx: &mut Context<Self>) {
        self.found = found;
        let wanted = std::mem::take(&mut self.found.mcp.servers);
        if !self.found.mcp.unreadable {
            // Dropping a server ends its actor.
            self.servers
                .retain(|_, server| wanted.contains(&server.task.config));
        }
        for config in wanted {
            if !self.servers.contains_key(&config.name) {
                let name = config.name.clone();
                let server = self.start_server(config, ctx);
                self.servers.insert(name, server);
            }
        }
        self.publish();
    }

    fn start_server(&mut self, config: ServerConfig, ctx: &Context<Self>) -> Server {
        self.lives += 1;
        let task = ServerTask {
            config: Arc::new(config),
            link: ServerHandle::default(),
            life: self.lives,
            tell: ctx.address().recipient(),
            closing: self.around.closing.child_token(),
        };
        let kept = task.clone();
        let actor = keep_alive(
            "MCP server",
            RestartPolicy::default(),
            task.closing.clone(),
            move |guard| McpServerActor::new(kept.clone(), guard).start(),
            // Its tools say that it is not running.
            || {},
        );
        Server {
            actor,
            report: None,
            _closing: task.closing.clone().drop_guard(),
            task,
        }
    }

    /// Puts the tools in force that may be called now, and tells how everything stands.
    fn publish(&self) {
        let view = self.view();
        let tools = self.callable(&view);
        let waits = [ExtensionState::New, ExtensionState::Changed];
        let unallowed = view.tools.iter().filter(|tool| waits.contains(&tool.state));
        let unallowed = unallowed.map(|tool| tool.name.clone());
        let registry = self.around.base.with(tools).with_unallowed(unallowed);
        let servers = match self.servers.values().any(Server::is_awaited) {
            true => Servers::Awaited,
            false => Servers::Heard,
        };
        self.around.toolbox.replace(registry, servers);
        self.around.view.send_if_modified(|before| {
            let is_another = **before != view;
            if is_another {
                *before = Arc::new(view);
            }
            is_another
        });
    }

    /// Has calls go by what the store says of a tool.
    fn hold(&mut self, pin: ToolPin) {
        if pin.sha256 != FORBIDDEN {
            let trust = &self.around.workshop.trust;
            trust.allow(pin.name.clone(), pin.sha256.clone());
        }
        if let Some(pins) = &mut self.pins {
            pins.insert(pin.name.clone(), pin);
        }
    }

    /// Pins what a server lists when it is first seen: its owner named it a moment ago. From
    /// then on a tool that is new or described otherwise waits for a word.
    fn pin_first_sight(&mut self, name: &str, ctx: &mut Context<Self>) {
        let source = source_of(name);
        let is_new = |pins: &BTreeMap<_, ToolPin>| pins.values().all(|pin| pin.source != source);
        let listing = self.servers.get(name).and_then(Server::listing);
        let Some(listing) = listing.filter(|_| self.pins.as_ref().is_some_and(is_new)) else {
            return;
        };
        let pins = listing.tools.iter().map(|tool| ToolPin {
            name: tool.spec.name.clone(),
            source: source.clone(),
            sha256: tool.sha256.clone(),
            allowed_by: None,
            allowed_at: now(),
        });
        let fresh: Vec<ToolPin> = pins.collect();
        for pin in &fresh {
            self.hold(pin.clone());
        }
        let store = self.around.store.clone();
        let writing = async move { store.pin_tools(fresh).await };
        ctx.spawn(writing.into_actor(self).map(|written, _, _| {
            if let Err(error) = written {
                // It is pinned again when the server is next seen.
                tracing::warn!(%error, "the tools of an MCP server could not be pinned");
            }
        }));
    }

    fn restart(&self, server: &str) -> Result<(), NaviError> {
        let Some(server) = self.servers.get(server) else {
            return Err(NaviError::new(
                ErrorCode::NotFound,
                format!("there is no MCP server {server:?}"),
            ));
        };
        // Asked for by a person.
        server.actor.addr().do_send(Restart);
        Ok(())
    }

    /// What an allowance comes to in the store, where it is for what is there.
    fn allowance(&self, name: &str, sha256: String, user: UserId) -> Result<ToolPin, NaviError> {
        let changed = |problem| Err(NaviError::new(ErrorCode::ToolChanged, problem));
        let view = self.around.view.borrow();
        let Some(tool) = view.tools.iter().find(|tool| tool.name == name) else {
            return Err(not_found(name));
        };
        if tool.state == ExtensionState::Failed {
            let problem = tool.problem.as_deref().unwrap_or("it cannot be read");
            return changed(format!("{name} cannot be allowed: {problem}"));
        }
        if tool.sha256.as_deref() != Some(&sha256) {
            return changed(format!(
                "{name} is not what was seen any more; look at it again, and name the hash that it has now"
            ));
        }
        let server = tool.server.as_deref();
        Ok(ToolPin {
            name: name.to_owned(),
            source: server.map_or_else(|| "user".to_owned(), source_of),
            sha256,
            allowed_by: Some(user),
            allowed_at: now(),
        })
    }

    /// Allows a tool no more. Gives back what stands in the store in place of that.
    fn forbid(&self, name: &str) -> Result<Option<ToolPin>, NaviError> {
        let view = self.around.view.borrow();
        let tool = view.tools.iter().find(|tool| tool.name == name);
        let trust = &self.around.workshop.trust;
        let is_known = tool.is_some() || trust.hash(name).is_some();
        // At once, whatever the store says then.
        trust.forbid(name);
        if !is_known {
            return Err(not_found(name));
        }
        // A server that was seen must stay so: without any pin its tools would be taken anew.
        let server = tool.and_then(|tool| tool.server.as_deref());
        Ok(server.map(|server| ToolPin {
            name: name.to_owned(),
            source: source_of(server),
            sha256: FORBIDDEN.to_owned(),
            allowed_by: None,
            allowed_at: now(),
        }))
    }

    /// Writes down what was decided on a tool, and then goes by it.
    fn write(
        &self,
        name: String,
        decided: Result<Option<ToolPin>, NaviError>,
    ) -> ResponseActFuture<Self, Result<(), NaviError>> {
        let store = self.around.store.clone();
        let writing = async move {
            let pin = decided?;
            let written = match &pin {
                Some(pin) => store.pin_tools(vec![pin.clone()]).await,
                None => store.unpin_tool(&name).await.map(|_| ()),
            };
            written.map_err(|error| store_error(&error))?;
            Ok((name, pin))
        };
        Box::pin(writing.into_actor(self).map(|written, actor, _| {
            let (name, pin) = written?;
            let sha256 = pin.as_ref().map_or(FORBIDDEN, |pin| &pin.sha256);
            if sha256 == FORBIDDEN {
                tracing::info!(tool = name, "a tool is allowed no more");
            } else {
                tracing::info!(tool = name, sha256, "a tool was allowed");
            }
            match (pin, &mut actor.pins) {
                (Some(pin), _) => actor.hold(pin),
                (None, Some(pins)) => drop(pins.remove(&name)),
                (None, None) => {}
            }
            actor.publish();
            Ok(())
        }))
    }
}

/// In the place of a hash: the tool of a server that was allowed once and is no more.
const FORBIDDEN: &str = "";

fn source_of(server: &str) -> String {
    format!("mcp:{server}")
}

/// Looks at the disk. Blocks.
fn look(places: &ExtensionPlaces, mut scanner: Scanner) -> Found {
    let scan = scanner.scan();
    Found {
        scan,
        scanner,
        skills: skills::scan(&places.skills_dir),
        mcp: mcp::read(&places.mcp_config, |name| std::env::var(name).ok()),
    }
}

impl Actor for ExtensionsActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let closing = self.around.closing.clone();
        let closed = async move { closing.cancelled().await };
        ctx.spawn(closed.into_actor(self).map(|(), actor, ctx| {
            actor.guard.mark_clean();
            ctx.stop();
        }));
        // Nobody need ask for the first look.
        ctx.notify(Rescan);
    }
}

impl Handler<Rescan> for ExtensionsActor {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, _: Rescan, _: &mut Self::Context) -> Self::Result {
        fail::fail_point!("extensions::look");
        let (places, scanner) = (self.around.places.clone(), self.found.scanner.clone());
        let store = self.pins.is_none().then(|| self.around.store.clone());
        let looking = async move {
            let found = tokio::task::spawn_blocking(move || look(&places, scanner)).await;
            let pins = match store {
                Some(store) => Some(store.tool_pins().await),
                None => None,
            };
            (found, pins)
        };
        Box::pin(looking.into_actor(self).map(|(found, pins), actor, ctx| {
            match pins {
                Some(Ok(pins)) if actor.pins.is_none() => {
                    actor.pins = Some(BTreeMap::new());
                    pins.into_iter().for_each(|pin| actor.hold(pin));
                }
                // Nothing is allowed meanwhile; it is asked again with the next look.
                Some(Err(error)) => tracing::warn!(%error, "which tools are allowed is not known"),
                Some(Ok(_)) | None => {}
            }
            match found {
                Ok(found) => actor.take(found, ctx),
                Err(error) => tracing::error!(%error, "extensions could not be read"),
            }
        }))
    }
}

impl Handler<ServerReport> for ExtensionsActor {
    type Result = ();

    fn handle(&mut self, report: ServerReport, ctx: &mut Self::Context) {
        let name = report.name.clone();
        let Some(server) = self.servers.get_mut(&name) else {
            return;
        };
        if server.task.life != report.life {
            return;
        }
        // While it is away its tools stay as they were: a run that begins now may see it back.
        let known = server.report.take().and_then(|before| before.listing);
        server.report = Some(ServerReport {
            listing: report.listing.or(known),
            ..report
        });
        self.pin_first_sight(&name, ctx);
        self.publish();
    }
}

impl Handler<Order> for ExtensionsActor {
    type Result = ResponseActFuture<Self, Result<(), NaviError>>;

    fn handle(&mut self, order: Order, _: &mut Self::Context) -> Self::Result {
        match order {
            Order::Allow { name, sha256, user } => {
                let decided = self.allowance(&name, sha256, user);
                self.write(name, decided.map(Some))
            }
            Order::Forbid { name } => {
                let decided = self.forbid(&name);
                self.write(name, decided)
            }
            Order::Restart { server } => Box::pin(ready(self.restart(&server))),
        }
    }
}

fn not_found(name: &str) -> NaviError {
    NaviError::new(
        ErrorCode::NotFound,
        format!("there is no tool {name:?} of yours or of an MCP server; GET /tools lists them"),
    )
}
