//! The command line.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process;

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};

use crate::figures::{Figure, Form};
use crate::model::Protocol;
use crate::pass_through;

/// Measures Navi from outside, beside a bare pass-through.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// The built `navi`. Without it: the one beside this program.
    #[arg(long, value_name = "PATH")]
    navi: Option<PathBuf>,

    /// These figures alone.
    #[arg(long, value_name = "NAME", num_args = 1.., value_enum)]
    only: Vec<Figure>,

    /// Lists the figures, and which the quick form has.
    #[arg(long)]
    pub(crate) list: bool,

    /// Few figures with few rounds, in about a minute.
    #[arg(long, conflicts_with = "long")]
    quick: bool,

    /// Waits minutes for sessions to be put away before it looks at memory again.
    #[arg(long)]
    long: bool,

    /// How many rounds each figure has, instead of its own number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,

    /// Which way of speaking the model server is asked in.
    #[arg(long, value_enum, default_value = "openai")]
    pub(crate) protocol: Protocol,

    /// Writes everything that was measured to a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Samples where Navi's time goes, and writes a recording of each figure's into a directory.
    ///
    /// `perf script` reads them; the figures themselves are of no use then.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["check", "record"])]
    pub(crate) profile: Option<PathBuf>,

    /// Fails where a ratio to the pass-through is over twice the one that this file has.
    #[arg(long, value_name = "FILE")]
    pub(crate) check: Option<PathBuf>,

    /// Writes the ratios to a file, for `--check`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

/// What is not for people.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Forwards a model's events, and does nothing else.
    #[command(hide = true)]
    PassThrough(pass_through::Settings),
}

/// Has cargo build Navi, and what fills her database.
fn build(cargo: &OsStr) -> Result<()> {
    let mut command = process::Command::new(cargo);
    command.args(["build", "--package=navi", "--package=navi-bench-fill"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let status = command.status().context("cargo cannot be started")?;
    if !status.success() {
        bail!("navi is not built, {status}");
    }
    Ok(())
}

impl Options {
    /// The program that is measured. Where cargo runs this one, it builds that first, the same way.
    ///
    /// # Errors
    /// It is not there, or cannot be built.
    pub(crate) fn navi(&self) -> Result<PathBuf> {
        let program = match &self.navi {
            Some(program) => program.clone(),
            None => {
                if let Some(cargo) = std::env::var_os("CARGO") {
                    build(&cargo)?;
                }
                std::env::current_exe()?.with_file_name("navi")
            }
        };
        if !program.is_file() {
            bail!(
                "there is no navi at {}: `cargo build --release` makes it, or name another by --navi",
                program.display()
            );
        }
        Ok(program)
    }

    pub(crate) fn form(&self) -> Form {
        match (self.quick, self.long) {
            (true, _) => Form::Quick,
            (false, true) => Form::Long,
            (false, false) => Form::Usual,
        }
    }

    /// How many rounds each figure has, where that was asked for.
    pub(crate) fn rounds(&self) -> Option<usize> {
        self.runs.map(usize::from)
    }

    /// What is to be measured, in the order of the list.
    pub(crate) fn figures(&self) -> impl Iterator<Item = Figure> {
        Figure::all().filter(|figure| {
            if self.only.is_empty() {
                figure.is_quick() || !self.quick
            } else {
                self.only.contains(figure)
            }
        })
    }
}
