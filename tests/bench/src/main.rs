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
mod house;
mod http;
mod model;
mod navi;
mod options;
mod pass_through;
mod process;
mod profile;
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
use crate::profile::Profiler;
use crate::report::{Recorded, Row, Told, Worse};

/// From this load on somebody else is measured too.
const BUSY: f64 = 0.5;

/// How often a figure is measured again that is far worse than recorded.
const REPEATS: usize = 2;

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
    // Before processors are divided: it may have to be built.
    let program = options.navi()?;
    process::raise_open_files().context("open files cannot be many")?;
    let profiler = options.profile.as_deref().map(Profiler::new).transpose()?;
    let cores = Cores::divide()?;
    let bench = Bench {
        ground: Ground {
            program,
            cores,
            protocol: options.protocol,
            model: ModelServer::start()?,
            profiler,
        },
        form: options.form(),
        rounds: options.rounds(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut ends = signal(SignalKind::terminate())?;
        tokio::select! {
            ended = run(&options, &bench) => ended,
            // What runs is dropped, and ended with that.
            _ = interrupts.recv() => bail!("interrupted"),
            _ = ends.recv() => bail!("asked to end"),
        }
    })
}

/// Measures, tells, and says whether all went well.
async fn run(options: &Options, bench: &Bench) -> Result<ExitCode> {
    if !bench.ground.cores.are_divided() {
        note("one processor alone: nothing is pinned, and times are of no use");
    }
    let load = cores::load();
    if load.is_some_and(|load| load > BUSY) {
        note("the machine does other things too: times are of little use, and ratios vary");
    }
    let recorded = match &options.check {
        Some(file) => Some(Recorded::read(file)?),
        None => None,
    };
    let begun = Instant::now();
    let (mut rows, mut failed) = (Vec::new(), false);
    for figure in options.figures() {
        let started = Instant::now();
        let measured = measure(bench, figure, recorded.as_ref()).await;
        if let Some(profiler) = &bench.ground.profiler {
            profiler.keep(&figure.name()).await?;
        }
        match measured {
            Ok(measured) => {
                let seconds = started.elapsed().as_secs();
                note(&format!("{}: measured in {seconds} s", figure.name()));
                for line in &measured.worse {
                    note(&format!("far worse than recorded: {line}"));
                }
                failed |= !measured.worse.is_empty();
                rows.extend(measured.rows);
            }
            Err(error) => {
                failed = true;
                note(&format!("{}: {error:#}", figure.name()));
            }
        }
    }
    say(&report::table(&rows))?;
    if let Some(recorded) = recorded
        && !recorded.knows(&rows)
    {
        bail!("nothing of what was measured is recorded; --record writes it");
    }
    if let Some(file) = &options.json {
        let told: Vec<Told<'_>> = rows.iter().map(Told::from).collect();
        let seconds = begun.elapsed().as_secs();
        let whole = json!({
            "processors": bench.ground.cores.count,
            "load": load,
            "seconds": seconds,
            "rows": told,
        });
        let text = serde_json::to_string_pretty(&whole)? + "\n";
        fs::write(file, text).with_context(|| file.display().to_string())?;
    }
    if let Some(file) = &options.record {
        Recorded::record(file, &rows)?;
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// A figure's rows, and what of them is far worse than it was recorded.
struct Measured {
    rows: Vec<Row>,
    worse: Vec<Worse>,
}

/// Measures a figure, and does it again where a row is far worse than recorded: what else the
/// machine does hardly comes at the same place each time.
async fn measure(bench: &Bench, figure: Figure, recorded: Option<&Recorded>) -> Result<Measured> {
    let Some(recorded) = recorded else {
        let rows = figure.measure(bench).await?;
        let worse = Vec::new();
        return Ok(Measured { rows, worse });
    };
    let mut measured = compared(bench, figure, recorded).await?;
    for _ in 0..REPEATS {
        if measured.worse.is_empty() {
            break;
        }
        for line in &measured.worse {
            note(&format!("measured again: {line}"));
        }
        let before = measured.worse;
        measured = compared(bench, figure, recorded).await?;
        let again = |row: &Worse| before.iter().any(|one| one.key == row.key);
        measured.worse.retain(again);
    }
    Ok(measured)
}

/// Measures a figure once. What else the machine does stretches Navi's part, which computes for
/// longer than the pass-through's: as much more is allowed.
async fn compared(bench: &Bench, figure: Figure, recorded: &Recorded) -> Result<Measured> {
    let before = bench.ground.cores.stretch()?;
    let rows = figure.measure(bench).await?;
    let stretch = before.max(bench.ground.cores.stretch()?);
    let worse = recorded.worse(&rows, stretch);
    Ok(Measured { rows, worse })
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
