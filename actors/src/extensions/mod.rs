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

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message,
    ResponseActFuture, WrapFuture,
};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::handle::Extensions;
pub use self::view::ExtensionsView;
use crate::mcp::{McpServerActor, Restart, ServerReport, Tell};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::extension::ExtensionState;
use crate::protocol::ids::UserId;
use crate::root::store_error;
use crate::services::now;
use crate::store::{Store, ToolPin};
use crate::supervision::{Guard, RestartPolicy, Slot, keep_alive};
use crate::tools::mcp::{McpConfig, ServerConfig, ServerHandle};
use crate::tools::registry::Registry;
use crate::tools::skills::{self, SkillScan};
use crate::tools::toolbox::Toolbox;
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

/// Asks to allow a tool as it was seen.
#[derive(Debug, Message)]
#[rtype(result = "Result<(), NaviError>")]
struct Allow {
    name: String,
    sha256: String,
    user: UserId,
}

/// Asks to allow a tool no more.
#[derive(Debug, Message)]
#[rtype(result = "Result<(), NaviError>")]
struct Forbid {
    name: String,
}

/// Asks to start a server again.
#[derive(Debug, Message)]
#[rtype(result = "Result<(), NaviError>")]
struct RestartServer {
    name: String,
}

/// A server is otherwise than it was.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct ServerChanged {
    life: u64,
    report: ServerReport,
}

/// A server of the configuration.
#[derive(Debug)]
struct Server {
    config: Arc<ServerConfig>,
    actor: Slot<McpServerActor>,
    link: ServerHandle,
    /// What it says is heeded only where it is this one that says it.
    life: u64,
    report: Option<ServerReport>,
    _closing: DropGuard,
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
    scanner: Scanner,
    scan: Scan,
    skills: SkillScan,
    mcp_problems: Vec<String>,
    servers: BTreeMap<String, Server>,
    /// What the store has, by the tools' names. None before it was read.
    pins: Option<BTreeMap<String, ToolPin>>,
    lives: u64,
    guard: Guard,
}

impl ExtensionsActor {
    fn new(around: Dependencies, guard: Guard) -> Self {
        Self {
            scanner: Scanner::new(around.places.tools_dir.clone()),
            scan: Scan::default(),
            skills: SkillScan::default(),
            mcp_problems: Vec::new(),
            servers: BTreeMap::new(),
            pins: None,
            lives: 0,
            around,
            guard,
        }
    }

    /// Takes in what was found on the disk.
    fn take(&mut self, found: Found, ctx: &mut Context<Self>) {
        self.scanner = found.scanner;
        self.scan = found.scan;
        self.skills = found.skills;
        self.mcp_problems = found.mcp.problems;
        let wanted = found.mcp.servers;
        if !found.mcp.unreadable {
            // Dropping a server ends its actor.
            self.servers.retain(|name, server| {
                wanted
                    .iter()
                    .any(|c| c.name == *name && *c == *server.config)
            });
        }
        for config in wanted {
            if !self.servers.contains_key(&config.name) {
                let server = self.start(config, ctx);
                self.servers.insert(server.config.name.clone(), server);
            }
        }
        self.publish();
    }

    fn start(&mut self, config: ServerConfig, ctx: &Context<Self>) -> Server {
        self.lives += 1;
        let life = self.lives;
        let closing = self.around.closing.child_token();
        let config = Arc::new(config);
        let link = ServerHandle::default();
        let own = ctx.address();
        // Bounded by the server's own pauses.
        let tell: Tell = Arc::new(move |report| own.do_send(ServerChanged { life, report }));
        let actor = keep_alive(
            "MCP server",
            RestartPolicy::default(),
            closing.clone(),
            {
                let (config, link, closing) = (Arc::clone(&config), link.clone(), closing.clone());
                move |guard| {
                    let (config, link) = (Arc::clone(&config), link.clone());
                    McpServerActor::new(config, link, Arc::clone(&tell), closing.clone(), guard)
                }
            },
            // Its tools say that it is not running.
            || {},
        );
        Server {
            config,
            actor,
            link,
            life,
            report: None,
            _closing: closing.drop_guard(),
        }
    }

    /// Puts the tools in force that may be called now, and tells how everything stands.
    fn publish(&self) {
        let pins = self.pins.as_ref();
        let view = self.view(&|name| pins?.get(name).map(|pin| pin.sha256.clone()));
        let tools = self.callable(&view);
        let waits = [ExtensionState::New, ExtensionState::Changed];
        let unallowed = view.tools.iter().filter(|tool| waits.contains(&tool.state));
        let unallowed = unallowed.map(|tool| tool.name.clone());
        let registry = self.around.base.with(tools).with_unallowed(unallowed);
        self.around.toolbox.replace(registry);
        self.around.view.send_if_modified(|before| {
            let is_another = **before != view;
            if is_another {
                *before = Arc::new(view);
            }
            is_another
        });
    }

    /// Pins what a server lists when it is first seen: its owner named it a moment ago. From
    /// then on a tool that is new or described otherwise waits for a word.
    fn pin_first_sight(&mut self, name: &str, ctx: &mut Context<Self>) {
        let Some(server) = self.servers.get(name) else {
            return;
        };
        let Some(listing) = server.report.as_ref().and_then(|r| r.listing.as_ref()) else {
            return;
        };
        let source = source_of(name);
        let Some(pins) = &mut self.pins else { return };
        if pins.values().any(|pin| pin.source == source) {
            return;
        }
        let fresh: Vec<ToolPin> = listing
            .tools
            .iter()
            .map(|tool| ToolPin {
                name: tool.name.clone(),
                source: source.clone(),
                sha256: tool.sha256.clone(),
                allowed_by: None,
                allowed_at: now(),
            })
            .collect();
        for pin in &fresh {
            self.around
                .workshop
                .trust
                .allow(pin.name.clone(), pin.sha256.clone());
            pins.insert(pin.name.clone(), pin.clone());
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
        let (places, scanner) = (self.around.places.clone(), self.scanner.clone());
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
                    for pin in pins.iter().filter(|pin| pin.sha256 != FORBIDDEN) {
                        let trust = &actor.around.workshop.trust;
                        trust.allow(pin.name.clone(), pin.sha256.clone());
                    }
                    let by_name = pins.into_iter().map(|pin| (pin.name.clone(), pin));
                    actor.pins = Some(by_name.collect());
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

impl Handler<ServerChanged> for ExtensionsActor {
    type Result = ();

    fn handle(&mut self, changed: ServerChanged, ctx: &mut Self::Context) {
        let ServerChanged { life, report } = changed;
        let name = report.name.clone();
        let Some(server) = self.servers.get_mut(&name).filter(|s| s.life == life) else {
            return;
        };
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

impl Handler<Allow> for ExtensionsActor {
    type Result = ResponseActFuture<Self, Result<(), NaviError>>;

    fn handle(&mut self, allow: Allow, _: &mut Self::Context) -> Self::Result {
        let view = self.around.view.borrow().clone();
        let Allow { name, sha256, user } = allow;
        let checked = match view.tools.iter().find(|tool| tool.name == name) {
            None => Err(not_found(&name)),
            Some(tool) if tool.state == ExtensionState::Failed => Err(NaviError::new(
                ErrorCode::ToolChanged,
                format!(
                    "{name} cannot be allowed: {}",
                    tool.problem.as_deref().unwrap_or("it cannot be read")
                ),
            )),
            Some(tool) if tool.sha256.as_deref() != Some(&sha256) => Err(NaviError::new(
                ErrorCode::ToolChanged,
                format!(
                    "{name} is not what was seen any more; look at it again, and name the hash that it has now"
                ),
            )),
            Some(tool) => Ok(ToolPin {
                name: name.clone(),
                source: tool
                    .server
                    .as_deref()
                    .map_or_else(|| "user".to_owned(), source_of),
                sha256,
                allowed_by: Some(user),
                allowed_at: now(),
            }),
        };
        let store = self.around.store.clone();
        let writing = async move {
            let pin = checked?;
            let written = store.pin_tools(vec![pin.clone()]).await;
            written.map_err(|error| store_error(&error))?;
            Ok(pin)
        };
        Box::pin(writing.into_actor(self).map(|written, actor, _| {
            let pin = written?;
            tracing::info!(tool = pin.name, sha256 = pin.sha256, "a tool was allowed");
            let trust = &actor.around.workshop.trust;
            trust.allow(pin.name.clone(), pin.sha256.clone());
            if let Some(pins) = &mut actor.pins {
                pins.insert(pin.name.clone(), pin);
            }
            actor.publish();
            Ok(())
        }))
    }
}

impl Handler<Forbid> for ExtensionsActor {
    type Result = ResponseActFuture<Self, Result<(), NaviError>>;

    fn handle(&mut self, Forbid { name }: Forbid, _: &mut Self::Context) -> Self::Result {
        let view = self.around.view.borrow().clone();
        let tool = view.tools.iter().find(|tool| tool.name == name);
        let is_known = tool.is_some() || self.around.workshop.trust.hash(&name).is_some();
        let server = tool.and_then(|tool| tool.server.clone());
        // At once, whatever the store says then.
        self.around.workshop.trust.forbid(&name);
        // A server that was seen must stay so: without any pin its tools would be taken anew.
        let pin = server.map(|server| ToolPin {
            name: name.clone(),
            source: source_of(&server),
            sha256: FORBIDDEN.to_owned(),
            allowed_by: None,
            allowed_at: now(),
        });
        let store = self.around.store.clone();
        let writing = async move {
            if !is_known {
                return Err(not_found(&name));
            }
            let written = match &pin {
                Some(pin) => store.pin_tools(vec![pin.clone()]).await,
                None => store.unpin_tool(&name).await.map(|_| ()),
            };
            written.map_err(|error| store_error(&error))?;
            Ok((name, pin))
        };
        Box::pin(writing.into_actor(self).map(|written, actor, _| {
            let (name, pin) = written?;
            tracing::info!(tool = name, "a tool is allowed no more");
            if let Some(pins) = &mut actor.pins {
                match pin {
                    Some(pin) => pins.insert(name, pin),
                    None => pins.remove(&name),
                };
            }
            actor.publish();
            Ok(())
        }))
    }
}

impl Handler<RestartServer> for ExtensionsActor {
    type Result = Result<(), NaviError>;

    fn handle(
        &mut self,
        RestartServer { name }: RestartServer,
        _: &mut Self::Context,
    ) -> Self::Result {
        let Some(server) = self.servers.get(&name) else {
            return Err(NaviError::new(
                ErrorCode::NotFound,
                format!("there is no MCP server {name:?}"),
            ));
        };
        // Asked for by a person.
        server.actor.addr().do_send(Restart);
        Ok(())
    }
}

fn not_found(name: &str) -> NaviError {
    NaviError::new(
        ErrorCode::NotFound,
        format!("there is no tool {name:?} of yours or of an MCP server; GET /tools lists them"),
    )
}
