//! The command line.

use std::path::PathBuf;

use anyhow::{Result, bail};
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

    /// Few figures with few rounds, in under 90 seconds.
    #[arg(long, conflicts_with = "long")]
    quick: bool,

    /// With what takes minutes to prepare: 10,000 messages, and sessions that are put away.
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

impl Options {
    /// The program that is measured.
    ///
    /// # Errors
    /// It is not there.
    pub(crate) fn navi(&self) -> Result<PathBuf> {
        let program = match &self.navi {
            Some(program) => program.clone(),
            None => std::env::current_exe()?.with_file_name("navi"),
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
