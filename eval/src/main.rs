//! Has real conversations with whatever model Navi is configured for, and scores them by what
//! came of them. `docs/eval.md` is for the person who runs it.

mod checks;
mod cli;
mod drive;
mod files;
mod house;
mod meter;
mod outcome;
mod plan_text;
mod report;
mod suite;
mod tasks;
mod text;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use actix::System;
use anyhow::{Context as _, bail};
use clap::Parser as _;
use navi::backends;
use navi::console::{complain, say, table};
use navi::process::{self, Logs};
use navi::settings::Settings;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::cli::Cli;
use crate::report::Report;
use crate::suite::Call;
use crate::tasks::Task;

/// The exit code of a run that a person ended, and of one that they ended twice.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    process::main("navi-eval", || run(&Cli::parse()))
}

/// A task that fails is a result: the exit code is 0 all the same.
fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    let tasks = tasks::chosen(cli)?;
    if cli.list {
        let rows = tasks
            .iter()
            .map(|task| [task.area.clone(), task.name.clone()]);
        table(&rows.collect::<Vec<_>>());
        return Ok(ExitCode::SUCCESS);
    }
    process::with_settings(&cli.overrides(), Logs::Warnings, |loaded, runtime| {
        converse(&tasks, &loaded.settings, runtime, cli)
    })
}

/// Has the tasks' conversations and prints how they came out.
fn converse(
    tasks: &[Task],
    settings: &Settings,
    runtime: &Arc<Runtime>,
    cli: &Cli,
) -> anyhow::Result<ExitCode> {
    if let Some(file) = &cli.json {
        // Half an hour of work should not end with a report that cannot be written.
        write(file, "")?;
    }
    let backends = backends::build(settings)?;
    let call = Call {
        cli,
        runtime,
        cancelled: CancellationToken::new(),
    };
    let by_hand = CancellationToken::new();
    let for_system = Arc::clone(runtime);
    let system = System::with_tokio_rt(move || for_system);
    let ended = system.block_on(async {
        actix::spawn(end_by_hand(call.cancelled.clone(), by_hand.clone()));
        if let Some(minutes) = cli.limit_minutes {
            actix::spawn(end_in_time(call.cancelled.clone(), minutes));
        }
        suite::run(tasks, settings, backends.all, &call).await
    })?;
    show(&ended.report);
    if let Some(file) = &cli.json {
        write(file, &serde_json::to_string_pretty(&ended.report)?)?;
    }
    match ended.broken {
        Some(reason) => bail!("the run could not go on: {reason}"),
        None if by_hand.is_cancelled() => Ok(ExitCode::from(INTERRUPTED)),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn show(report: &Report) {
    say(&format!(
        "{} on {} ({}), navi {}, {}\n",
        report.model, report.backend, report.address, report.version, report.date
    ));
    table(&report::task_rows(&report.tasks));
    say("");
    table(&report::area_rows(report));
    if !report.complete {
        say("\nThis run ended early: what is missing was not tried.");
    }
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text)
        .with_context(|| format!("the report {} cannot be written", file.display()))
}

/// A first Ctrl-C ends the run with what there is; a second one ends the process.
async fn end_by_hand(cancelled: CancellationToken, by_hand: CancellationToken) {
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    complain("ending; once more ends it at once");
    by_hand.cancel();
    cancelled.cancel();
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(i32::from(INTERRUPTED));
    }
}

async fn end_in_time(cancelled: CancellationToken, minutes: u32) {
    tokio::time::sleep(Duration::from_secs(u64::from(minutes) * 60)).await;
    complain(&format!("{minutes} minutes are over; ending"));
    cancelled.cancel();
}
