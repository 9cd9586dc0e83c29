//! Navi's service: command line, settings, HTTP, WebSocket and the embedded page. Everything
//! that a conversation is stands in `navi-actors`.

mod access;
mod backends;
mod checks;
mod cli;
mod command;
mod console;
mod engine_config;
mod eval;
mod extensions;
mod http;
mod instance;
mod profiles;
mod serve;
mod settings;
#[cfg(feature = "starter")]
mod starter;
mod telemetry;
mod watches;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use navi_actors::tools::sandbox;
use tokio::runtime::Runtime;
use tracing::Level;

use crate::cli::{Cli, Command};
use crate::settings::Loaded;

/// The C library's allocator keeps the pieces of long answers: after 100 MB of them the
/// process held five times as much as it used.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // It confines itself, has no settings and says nothing: no part of the service is in it.
    let mut words = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .skip(1);
    if words.next().as_deref() == Some(sandbox::SUBCOMMAND) {
        return ExitCode::from(sandbox::carry_out(&words.collect::<Vec<_>>()));
    }
    // Before anything else: it sets a variable, which is sound only while there is one thread.
    #[cfg(feature = "starter")]
    navi_threads::leave_one_free();
    match run(&Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            console::complain(&format!("navi: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    if let Some(Command::ReadDocument { media_type }) = &cli.command {
        // Without settings: it is given nothing but the document.
        return Ok(command::read_document::run(media_type));
    }
    if let None | Some(Command::Serve) = &cli.command {
        serve::upgrade::brace()?;
    }
    // Fails only where a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    #[cfg(feature = "failpoints")]
    let _faults = navi_actors::faults::arm().map_err(anyhow::Error::msg)?;
    let loaded = settings::load(&cli.places.overrides(), &std::env::vars_os().collect())?;
    telemetry::start(match (&cli.command, loaded.settings.log_level) {
        // Its progress stands where logs do; the usual ones would bury it.
        (Some(Command::Eval(_) | Command::Runs { .. }), Level::INFO) => Level::WARN,
        (_, level) => level,
    });
    // One runtime for all: a pooled connection must not hang on one actor's thread.
    let runtime = Arc::new(
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?,
    );
    let code = carry_out(cli, &loaded, &runtime);
    // Blocking work that hangs must not keep the process.
    if let Ok(runtime) = Arc::try_unwrap(runtime) {
        runtime.shutdown_timeout(Duration::from_millis(500));
    }
    code
}

fn carry_out(cli: &Cli, loaded: &Loaded, runtime: &Arc<Runtime>) -> anyhow::Result<ExitCode> {
    let settings = &loaded.settings;
    match &cli.command {
        None | Some(Command::Serve) => serve::run(loaded, runtime),
        Some(Command::Doctor { json }) => runtime.block_on(command::doctor::run(loaded, *json)),
        Some(Command::Config { json }) => command::config::run(loaded, *json),
        Some(Command::Sandbox(args)) => command::sandbox::run(settings, args),
        Some(Command::Eval(args)) => command::eval::run(settings, &cli.places, runtime, args),
        Some(Command::Runs { command }) => command::runs::run(settings, runtime, command),
        Some(Command::Model { command }) => {
            runtime.block_on(command::model::run(settings, command))
        }
        Some(Command::ReadDocument { media_type }) => Ok(command::read_document::run(media_type)),
        Some(Command::Link) => command::link::run(settings),
        Some(Command::Upgrade) => command::upgrade::run(settings),
        Some(Command::Token { command }) => {
            runtime.block_on(command::token::run(settings, command))
        }
        Some(Command::Migrate { command }) => {
            runtime.block_on(command::migrate::run(settings, command))
        }
    }
}
