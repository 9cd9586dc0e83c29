//! Navi's service: command line, settings, HTTP, WebSocket and the embedded page. Everything
//! that a conversation is stands in `navi-actors`.
//!
//! Public is what the eval shares with it: the process, the settings, and what an engine is
//! made of.

mod access;
pub mod backends;
mod checks;
mod cli;
mod client;
mod collector;
mod command;
pub mod console;
mod diagnostics;
mod doors;
pub mod engine_config;
mod extensions;
mod http;
mod instance;
mod mcp_servers;
pub mod process;
pub mod profiles;
mod serve;
pub mod settings;
mod starter;
mod telemetry;
mod tls;
mod watches;
mod whole_file;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use tokio::runtime::Runtime;

use crate::cli::{Cli, Command};
use crate::process::Logs;
use crate::settings::{Loaded, SettingsError};

/// The program `navi`: the service and its commands.
pub fn main() -> ExitCode {
    process::main("navi", || run(&Cli::parse()))
}

fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    if let Some(Command::ReadDocument { media_type }) = &cli.command {
        // Without settings: it is given nothing but the document.
        return Ok(command::read_document::run(media_type));
    }
    if let None | Some(Command::Serve) = &cli.command {
        serve::upgrade::brace()?;
    }
    let logs = match &cli.command {
        Some(Command::Runs { .. } | Command::Acp | Command::Chat(_) | Command::Mcp { .. }) => {
            Logs::Warnings
        }
        _ => Logs::Usual,
    };
    let done = process::with_settings(&cli.places.overrides(), logs, |loaded, runtime| {
        carry_out(cli, loaded, runtime)
    });
    done.or_else(|error| refuse(cli, error))
}

/// Ends as the command does where the settings are wrong. What else failed is told as it is.
fn refuse(cli: &Cli, error: anyhow::Error) -> anyhow::Result<ExitCode> {
    let wrong = error.downcast::<SettingsError>()?;
    match &cli.command {
        Some(Command::Doctor { json }) => command::doctor::refuse(&wrong, *json),
        Some(Command::Chat(args)) => Ok(doors::chat::refuse(args, &wrong)),
        _ => Err(wrong.into()),
    }
}

fn carry_out(cli: &Cli, loaded: &Loaded, runtime: &Arc<Runtime>) -> anyhow::Result<ExitCode> {
    let settings = &loaded.settings;
    match &cli.command {
        None | Some(Command::Serve) => serve::run(loaded, runtime),
        Some(Command::Doctor { json }) => runtime.block_on(command::doctor::run(loaded, *json)),
        Some(Command::Config { json }) => command::config::run(loaded, *json),
        Some(Command::Sandbox(args)) => command::sandbox::run(settings, args),
        Some(Command::Runs { command }) => command::runs::run(settings, runtime, command),
        Some(Command::Model { command }) => {
            runtime.block_on(command::model::run(settings, command))
        }
        Some(Command::ReadDocument { media_type }) => Ok(command::read_document::run(media_type)),
        Some(Command::Acp) => runtime.block_on(doors::acp::serve(settings)),
        Some(Command::Chat(args)) => doors::chat::run(settings, runtime, args),
        Some(Command::Mcp { consent }) => {
            runtime.block_on(doors::mcp::stdio::run(settings, *consent))
        }
        Some(Command::Link) => command::link::run(settings),
        Some(Command::Upgrade) => command::upgrade::run(settings),
        Some(Command::User { command }) => runtime.block_on(command::user::run(settings, command)),
        Some(Command::Token { command }) => {
            runtime.block_on(command::token::run(settings, command))
        }
        Some(Command::Migrate { command }) => {
            runtime.block_on(command::migrate::run(settings, command))
        }
    }
}
