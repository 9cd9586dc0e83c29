//! `navi serve`: builds the service, tells how it stands, waits, and shuts down in order.

mod banner;
pub(crate) mod upgrade;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use actix::System;
use anyhow::{Context as _, anyhow, bail};
use navi_actors::documents;
use navi_actors::domain::session::command::LeftRuns;
use navi_actors::engine::Engine;
use navi_actors::metrics;
use navi_actors::programs::end_groups;
use navi_actors::protocol::phrase::Phrase;
use navi_actors::store::Store;
use navi_actors::tools::mcp;
use navi_actors::tools::registry::Registry;
use navi_actors::tools::sandbox::{self, Sandbox};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, error, info, warn};

use crate::access::links::make_private_dir;
use crate::access::passkeys::site;
use crate::access::{Access, SignOns};
use crate::command::store_config;
use crate::diagnostics::Diagnostics;
use crate::doors::{Lenders, Requests};
use crate::engine_config::{Parts, engine_config, extension_places, tool_config};
use crate::http::{self, App, HttpDoor};
use crate::instance::{Instance, Reach};
use crate::mcp_servers::McpServersFile;
use crate::profiles::ProfileFiles;
use crate::settings::change::SettingsFile;
use crate::settings::{Loaded, Settings};
use crate::tls::Tls;
use crate::{backends, collector, console, extensions, profiles};

/// How long all of a shutdown may take, whatever hangs: many supervisors kill after ten seconds.
const SHUTDOWN_DEADLINE: Duration = Duration::from_millis(8_500);
/// What the engine has of that, most of it for runs to reach a safe point.
const ENGINE_DEADLINE: Duration = Duration::from_secs(8);
/// The exit code of a second signal, as shells tell an interrupted program.
const INTERRUPTED: i32 = 130;

/// Serves until a signal, or until the service cannot go on.
///
/// # Errors
/// What keeps it from starting, as one sentence.
pub(crate) fn run(loaded: &Loaded, runtime: &Arc<Runtime>) -> anyhow::Result<ExitCode> {
    let settings = &loaded.settings;
    make_private_dir(&settings.data_dir).with_context(|| {
        format!(
            "the data directory {} cannot be made; set NAVI_DATA_DIR to another place",
            settings.data_dir.display()
        )
    })?;
    let instance = Instance::claim(&settings.data_dir)?;
    match sandbox::take_over_groups(settings.terminal.sandbox.sum_limits.all) {
        Ok(()) => info!("control groups hold commands to their limits"),
        Err(why) => debug!(
            why,
            "commands are held to their limits without control groups"
        ),
    }
    Sandbox::look_ahead(&settings.terminal.sandbox);
    let listener = match upgrade::inherited() {
        Some(listener) => {
            let address = listener.local_addr()?;
            let may_serve = settings.people.check_socket(address);
            may_serve.map_err(|expected| {
                anyhow!("the socket that was handed over listens on {address}: expected {expected}")
            })?;
            listener
        }
        None => listen(settings.bind)?,
    };
    let heirloom = upgrade::Heirloom::of(&listener)?;
    let tls = settings.tls.as_ref().map(Tls::read).transpose();
    let tls = tls.map_err(|why| {
        anyhow!("{why}; set NAVI_TLS_CERTIFICATE and NAVI_TLS_KEY to files in PEM that belong together, or neither")
    })?;
    let for_system = Arc::clone(runtime);
    let system = System::with_tokio_rt(move || for_system);
    let end = system.block_on(async {
        let service = Service::start(loaded, Arc::clone(runtime), listener, tls.as_ref()).await?;
        // Whoever reads the announcement may send one.
        let (signals, requests) = (Signals::new(), upgrade::Requests::new());
        let certificates = tls.iter().map(Tls::fingerprint).collect();
        instance
            .announce(service.address, certificates, Reach::of(settings))
            .context("the data directory cannot be written to")?;
        let _renewals = tls.map(|tls| {
            let note = instance.note();
            let tell = move |certificates| {
                if let Err(error) = note.tell(certificates) {
                    warn!(%error, "programs of this user cannot be told of the new certificate");
                }
            };
            tls.watch(tell, service.closing.clone())
        });
        service.greet(settings).await?;
        anyhow::Ok(service.wait(signals, requests).await)
    })?;
    match end {
        End::Asked => Ok(ExitCode::SUCCESS),
        End::Upgrade { withdrawn } => {
            drop(instance);
            if withdrawn.is_cancelled() {
                return Ok(ExitCode::SUCCESS);
            }
            Err(heirloom.hand_over())
        }
        End::Broken | End::DoorClosed => Ok(ExitCode::FAILURE),
    }
}

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "{address} is in use by another program; stop it, or choose another port with NAVI_BIND or --bind (port 0 takes any free one)"
        ),
        _ => anyhow!("cannot serve on {address}: {error}; choose another address with NAVI_BIND or --bind"),
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Everything that runs.
struct Service {
    engine: Engine,
    store: Store,
    door: HttpDoor,
    address: SocketAddr,
    closing: CancellationToken,
    /// What was wrong with profiles at the start.
    warnings: Vec<Phrase>,
    _watches: [AbortOnDropHandle<()>; 2],
}

/// Why the service ends.
enum End {
    Asked,
    /// Another program takes this one's place, and goes on with its runs; where a signal takes
    /// that back meanwhile, whichever is started next goes on with them.
    Upgrade {
        withdrawn: CancellationToken,
    },
    Broken,
    DoorClosed,
}

impl Service {
    async fn start(
        loaded: &Loaded,
        runtime: Arc<Runtime>,
        listener: TcpListener,
        tls: Option<&Tls>,
    ) -> anyhow::Result<Self> {
        let settings = &loaded.settings;
        let address = listener.local_addr()?;
        let registry = Registry::builtin(&tool_config(settings));
        let tools = registry.all().map(|tool| tool.name.clone()).collect();
        let mut files = ProfileFiles::new(settings, tools);
        let found = files.read();
        if !found
            .profiles
            .iter()
            .any(|profile| profile.id == settings.default_profile)
        {
            bail!(
                "the default profile \"{}\" does not exist; set NAVI_DEFAULT_PROFILE to one of {}",
                settings.default_profile,
                banner::ids(&found.profiles).join(", ")
            );
        }
        let secrets = loaded.secrets.iter();
        let secrets = secrets.map(|secret| secret.reveal().to_owned()).collect();
        let program = std::env::current_exe();
        mcp::set_up(program.as_ref().ok().cloned(), secrets);
        match program {
            Ok(program) => documents::isolate(program),
            Err(error) => {
                warn!(%error, "documents are read in this process, and MCP servers may outlive it where it is killed: its own file is not known");
            }
        }
        let backends = backends::build(settings)?;
        make_private_dir(&settings.session_files_dir).with_context(|| {
            format!(
                "the sessions' directory {} cannot be made; set SESSION_FILES_DIR to another place",
                settings.session_files_dir.display()
            )
        })?;
        let store = Store::open(&store_config(settings)).await?;
        let store = store.keeping(settings.context_cache_bytes);
        if !settings.people.accounts {
            store.welcome_back_local_user().await?;
            store.local_user().await.context(
                "without accounts there is this machine's own user alone: start with NAVI_ACCOUNTS=on, as before",
            )?;
        }
        let access = Access::new(
            store.clone(),
            runtime.handle().clone(),
            settings.api_token.as_ref(),
            settings.people.accounts,
            &settings.data_dir,
        )
        .with_sign_on(SignOns::new(settings.sign_on.clone())?);
        let public = settings.people.public.as_ref().map(|public| &public.url);
        let access = access.with_passkeys_at(site::page(public, address, settings.wire()));
        if let Some(settings) = &settings.collector {
            collector::turn_on(settings, runtime.handle().clone())?;
        }
        let for_diagnostics = runtime.handle().clone();
        let parts = Parts {
            store: store.clone(),
            backends: backends.all,
            fetcher: backends.fetcher,
            ollama: backends.ollama,
            profiles: found.clone(),
            registry,
            extensions: Some(extension_places(settings)),
            sessions_dir: settings.session_files_dir.clone(),
            warnings: loaded.warnings.clone(),
            runtime,
        };
        if settings.metrics {
            metrics::turn_on();
        }
        let engine = Engine::start(engine_config(settings, parts)).await?;
        let closing = CancellationToken::new();
        let warnings = found.warnings.clone();
        let for_watch = engine.clone();
        let put_in_force = move |found| for_watch.replace_profiles(found);
        let watch = profiles::watch(files, found, put_in_force, closing.clone());
        let watch_extensions =
            extensions::watch(engine.clone(), extension_places(settings), closing.clone());
        let shared = Arc::new(loaded.clone());
        let app = App {
            engine: engine.clone(),
            access: Arc::new(access),
            diagnostics: Diagnostics::new(Arc::clone(&shared), for_diagnostics),
            settings: Arc::new(SettingsFile::new(Arc::clone(&shared))),
            loaded: shared,
            places: Arc::new(http::Places::new(
                address,
                settings.wire(),
                settings.people.public.clone(),
            )),
            closing: closing.clone(),
            tabs: http::Tabs::default(),
            requests: Requests::default(),
            lenders: Lenders::default(),
            mcp_servers: Arc::new(McpServersFile::new(settings.extensions.mcp_config.clone())),
        };
        let tls = tls.map(Tls::config).transpose()?;
        let door = http::open(app, listener, tls)?;
        Ok(Self {
            engine,
            store,
            door,
            address,
            closing,
            warnings,
            _watches: [watch, watch_extensions],
        })
    }

    /// Tells how the service stands, and the way in.
    async fn greet(&self, settings: &Settings) -> anyhow::Result<()> {
        banner::print(self, settings).await;
        banner::print_way_in(self, settings).context("the data directory cannot be written to")?;
        // She serves, whether or not somebody could read it.
        let _ = console::lost();
        Ok(())
    }

    /// Waits for the end, and brings it about in order.
    async fn wait(mut self, mut signals: Signals, mut requests: upgrade::Requests) -> End {
        let end = tokio::select! {
            () = signals.next() => End::Asked,
            () = requests.next() => End::Upgrade { withdrawn: CancellationToken::new() },
            () = self.engine.broken() => End::Broken,
            () = self.door.ended() => End::DoorClosed,
        };
        match &end {
            End::Asked => info!("shutting down; a second signal ends navi at once"),
            End::Upgrade { .. } => {
                info!("shutting down for an upgrade; runs go on in the next program");
            }
            End::Broken => error!("a part that everything needs has failed; shutting down"),
            End::DoorClosed => error!("the HTTP server has ended; shutting down"),
        }
        let (runs, withdrawn) = match &end {
            End::Upgrade { withdrawn } => (LeftRuns::Parked, Some(withdrawn.clone())),
            End::Asked | End::Broken | End::DoorClosed => (LeftRuns::Interrupted, None),
        };
        // On the runtime, which outlives this system: heard until another program takes over.
        tokio::spawn(async move {
            if let Some(withdrawn) = withdrawn {
                signals.next().await;
                info!("no upgrade after all; another signal ends navi at once");
                withdrawn.cancel();
            }
            signals.next().await;
            end_groups();
            std::process::exit(INTERRUPTED);
        });
        let until = Instant::now() + SHUTDOWN_DEADLINE;
        self.closing.cancel();
        self.engine.leave(ENGINE_DEADLINE, runs).await;
        if !matches!(end, End::DoorClosed) && timeout_at(until, self.door.close()).await.is_err() {
            warn!("requests that were still open are cut off");
        }
        // It says itself what became of them.
        let _ = timeout_at(until, collector::flush()).await;
        match timeout_at(until, self.store.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "the database could not be closed"),
            Err(_) => warn!("the database did not close in time"),
        }
        end
    }
}

/// SIGINT and SIGTERM as they come: one that comes right after another is not lost. Where they
/// cannot be had, only the process's end helps.
struct Signals(Option<(Signal, Signal)>);

impl Signals {
    fn new() -> Self {
        let (Ok(interrupt), Ok(terminate)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        ) else {
            warn!("signals cannot be received; only killing the process will end it");
            return Self(None);
        };
        Self(Some((interrupt, terminate)))
    }

    async fn next(&mut self) {
        let Some((interrupt, terminate)) = &mut self.0 else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}
