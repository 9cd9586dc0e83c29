//! Measures Navi from outside, beside a bare pass-through that does nothing but forward, and
//! reports what Navi adds as a multiple of that.
//!
//! `cargo run --release -p navi-bench` takes the `navi` that was built beside it. What is measured
//! has a processor to itself; the model server and the clients have the others.

mod conversation;
mod cores;
mod figures;
mod fleet;
mod ground;
mod http;
mod model;
mod navi;
mod options;
mod pass_through;
mod process;
mod report;
mod script;
mod stamp;
mod statistics;

use std::fs;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::cores::Cores;
use crate::figures::{Bench, Figure};
use crate::ground::Ground;
use crate::model::ModelServer;
use crate::options::{Command, Options};
use crate::report::{Row, Told};

/// From this load on somebody else is measured too.
const BUSY: f64 = 0.5;

fn main() -> ExitCode {
    begin(Options::parse()).unwrap_or_else(|error| {
        note(&format!("{error:#}"));
        ExitCode::FAILURE
    })
}

fn begin(mut options: Options) -> Result<ExitCode> {
    if let Some(Command::PassThrough(settings)) = options.command.take() {
        return pass_through::run(settings).map(|()| ExitCode::SUCCESS);
    }
    if options.list {
        say(&list())?;
        return Ok(ExitCode::SUCCESS);
    }
    process::raise_open_files().context("open files cannot be many")?;
    let cores = Cores::divide()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut ends = signal(SignalKind::terminate())?;
        tokio::select! {
            ended = run(&options, cores) => ended,
            // What runs is dropped, and ended with that.
            _ = interrupts.recv() => bail!("interrupted"),
            _ = ends.recv() => bail!("asked to end"),
        }
    })
}

/// Measures, tells, and says whether all went well.
async fn run(options: &Options, cores: Cores) -> Result<ExitCode> {
    let bench = Bench {
        ground: Ground {
            program: options.navi()?,
            cores,
            protocol: options.protocol,
            model: ModelServer::start()?,
        },
        form: options.form(),
        rounds: options.rounds(),
    };
    if !cores.are_divided() {
        note("one processor alone: nothing is pinned, and times are of no use");
    }
    let load = cores::load();
    if load.is_some_and(|load| load > BUSY) {
        note("the machine does other things too: times are of little use, and ratios vary");
    }
    let begun = Instant::now();
    let (mut rows, mut failed) = (Vec::new(), false);
    for figure in options.figures() {
        let started = Instant::now();
        match figure.measure(&bench).await {
            Ok(measured) => {
                let seconds = started.elapsed().as_secs();
                note(&format!("{}: measured in {seconds} s", figure.name()));
                rows.extend(measured);
            }
            Err(error) => {
                failed = true;
                note(&format!("{}: {error:#}", figure.name()));
            }
        }
    }
    say(&report::table(&rows))?;
    if let Some(file) = &options.json {
        let told: Vec<Told<'_>> = rows.iter().map(Told::from).collect();
        let seconds = begun.elapsed().as_secs();
        let whole = json!({
            "processors": cores.count,
            "load": load,
            "seconds": seconds,
            "rows": told,
        });
        let text = serde_json::to_string_pretty(&whole)? + "\n";
        fs::write(file, text).with_context(|| file.display().to_string())?;
    }
    failed |= has_got_worse(options, &rows)?;
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Compares with what was recorded, and records, as it was asked.
fn has_got_worse(options: &Options, rows: &[Row]) -> Result<bool> {
    let worse = match &options.check {
        Some(file) => report::check(file, rows)?,
        None => Vec::new(),
    };
    for line in &worse {
        note(&format!("far worse than recorded: {line}"));
    }
    if let Some(file) = &options.record {
        report::record(file, rows)?;
    }
    Ok(!worse.is_empty())
}

fn list() -> String {
    let lines = Figure::all().map(|figure| {
        let quick = if figure.is_quick() { "quick" } else { "" };
        format!("{:<16} {quick:<6} {}", figure.name(), figure.about())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What was asked for, on standard output.
fn say(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

/// What becomes of it meanwhile, on standard error. Nobody is left to be told where that is gone.
fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
