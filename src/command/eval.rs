//! `navi eval`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use actix::System;
use anyhow::{Context as _, bail};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::backends;
use crate::cli::{EvalArgs, Places};
use crate::console::{complain, say, table};
use crate::eval::{self, Call, EvalReport};
use crate::settings::Settings;

/// The exit code of a run that a person ended, and of one that they ended twice.
const INTERRUPTED: u8 = 130;

/// Has the tasks' conversations and prints how they came out. A task that fails is a result:
/// the exit code is 0 all the same.
///
/// # Errors
/// Tasks that are wrong; a backend that does not answer (any more); a report that cannot be
/// written.
pub(crate) fn run(
    settings: &Settings,
    places: &Places,
    runtime: &Arc<Runtime>,
    args: &EvalArgs,
) -> anyhow::Result<ExitCode> {
    let tasks = eval::chosen(args)?;
    if args.list {
        let rows: Vec<[String; 2]> = tasks
            .iter()
            .map(|task| [task.area.clone(), task.name.clone()])
            .collect();
        table(&rows);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(file) = &args.json {
        // Half an hour of work should not end with a report that cannot be written.
        write(file, "")?;
    }
    let backends = backends::build(settings)?;
    let call = Call {
        args,
        places,
        runtime,
        cancelled: CancellationToken::new(),
    };
    let by_hand = CancellationToken::new();
    let for_system = Arc::clone(runtime);
    let system = System::with_tokio_rt(move || for_system);
    let ended = system.block_on(async {
        actix::spawn(end_by_hand(call.cancelled.clone(), by_hand.clone()));
        if let Some(minutes) = args.limit_minutes {
            actix::spawn(end_in_time(call.cancelled.clone(), minutes));
        }
        eval::run(&tasks, settings, backends.all, &call).await
    })?;
    show(&ended.report);
    if let Some(file) = &args.json {
        write(file, &serde_json::to_string_pretty(&ended.report)?)?;
    }
    match ended.broken {
        Some(reason) => bail!("the run could not go on: {reason}"),
        None if by_hand.is_cancelled() => Ok(ExitCode::from(INTERRUPTED)),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn show(report: &EvalReport) {
    say(&format!(
        "{} on {} ({}), navi {}, {}\n",
        report.model, report.backend, report.address, report.version, report.date
    ));
    table(&eval::task_rows(&report.tasks));
    say("");
    table(&eval::area_rows(report));
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
    complain("ending; once more ends navi at once");
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
