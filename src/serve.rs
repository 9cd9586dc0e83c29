//! `navi serve`: builds the service, tells how it stands, waits, and shuts down in order.

mod banner;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use actix::System;
use anyhow::{Context as _, anyhow, bail};
use navi_actors::documents;
use navi_actors::engine::Engine;
use navi_actors::store::Store;
use navi_actors::tools::registry::Registry;
use navi_actors::tools::user::end_groups;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

use crate::access::Access;
use crate::access::links::{Links, make_private_dir};
use crate::command::store_config;
use crate::engine_config::{Parts, engine_config, extension_places, tool_config};
use crate::http::{self, App, HttpDoor};
use crate::instance::Instance;
use crate::profiles::ProfileFiles;
use crate::settings::{Loaded, Settings};
use crate::{backends, console, extensions, profiles};

/// How long runs have to reach a safe point at the end.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(10);
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
    let listener = listen(settings.bind)?;
    let for_system = Arc::clone(runtime);
    let system = System::with_tokio_rt(move || for_system);
    system.block_on(async {
        let service = Service::start(loaded, Arc::clone(runtime), listener).await?;
        instance
            .announce(service.address)
            .context("the data directory cannot be written to")?;
        service.greet(settings).await?;
        Ok(service.wait().await)
    })
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
    warnings: Vec<String>,
    _watches: [AbortOnDropHandle<()>; 2],
}

/// Why the service ends.
enum End {
    Asked,
    Broken,
    DoorClosed,
}

impl Service {
    async fn start(
        loaded: &Loaded,
        runtime: Arc<Runtime>,
        listener: TcpListener,
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
        match std::env::current_exe() {
            Ok(program) => documents::isolate(program),
            Err(error) => {
                warn!(%error, "documents are read in this process: its own file is not known");
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
        let user = store.local_user().await?.id;
        let access = Access::new(
            store.clone(),
            runtime.handle().clone(),
            Links::new(&settings.data_dir),
            settings.api_token.as_ref(),
            user,
        );
        let parts = Parts {
            store: store.clone(),
            backends: backends.all,
            fetcher: backends.fetcher,
            profiles: found.clone(),
            registry,
            extensions: Some(extension_places(settings)),
            sessions_dir: settings.session_files_dir.clone(),
            warnings: loaded.warnings.clone(),
            runtime,
        };
        let engine = Engine::start(engine_config(settings, parts)).await?;
        let closing = CancellationToken::new();
        let warnings = found.warnings.clone();
        let for_watch = engine.clone();
        let put_in_force = move |found| for_watch.replace_profiles(found);
        let watch = profiles::watch(files, found, put_in_force, closing.clone());
        let watch_extensions =
            extensions::watch(engine.clone(), extension_places(settings), closing.clone());
        let app = App {
            engine: engine.clone(),
            access: Arc::new(access),
            address,
            closing: closing.clone(),
            tabs: http::Tabs::default(),
        };
        let door = http::open(app, listener)?;
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
        let secret = Links::new(&settings.data_dir)
            .issue()
            .context("the data directory cannot be written to")?;
        banner::print(self, settings).await;
        console::say(&format!("\nhttp://{}/login/{secret}\n", self.address));
        Ok(())
    }

    /// Waits for the end, and brings it about in order.
    async fn wait(mut self) -> ExitCode {
        let end = tokio::select! {
            () = asked_to_stop() => End::Asked,
            () = self.engine.broken() => End::Broken,
            () = self.door.ended() => End::DoorClosed,
        };
        match end {
            End::Asked => info!("shutting down; a second signal ends navi at once"),
            End::Broken => error!("a part that everything needs has failed; shutting down"),
            End::DoorClosed => error!("the HTTP server has ended; shutting down"),
        }
        actix::spawn(async {
            asked_to_stop().await;
            end_groups();
            std::process::exit(INTERRUPTED);
        });
        self.closing.cancel();
        self.engine.shutdown(SHUTDOWN_DEADLINE).await;
        if !matches!(end, End::DoorClosed) {
            self.door.close().await;
        }
        if let Err(error) = self.store.close().await {
            warn!(%error, "the database could not be closed");
        }
        match end {
            End::Asked => ExitCode::SUCCESS,
            End::Broken | End::DoorClosed => ExitCode::FAILURE,
        }
    }
}

/// Ends with a SIGINT or SIGTERM. Where signals cannot be had, only the process's end helps.
async fn asked_to_stop() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        warn!("signals cannot be received; only killing the process will end it");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
