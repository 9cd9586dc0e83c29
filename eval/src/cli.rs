//! The command line.

use std::path::PathBuf;

use clap::Parser;
use navi::settings::Overrides;

/// Has conversations with Navi's model and scores what comes of them (docs/eval.md).
///
/// The model, the persona and the profiles are those that `navi` itself would use.
#[derive(Clone, Debug, Parser)]
#[command(name = "navi-eval", version)]
pub(crate) struct Cli {
    /// Only tasks of this area; may be given several times.
    #[arg(long)]
    pub(crate) area: Vec<String>,
    /// Only this task; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Vec<String>,
    /// Print the tasks, and try none.
    #[arg(long)]
    pub(crate) list: bool,
    /// Try each task so often.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,
    /// Write a report as JSON too.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// How long a task may take that does not ask for more.
    #[arg(long, value_name = "MINUTES", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) task_minutes: u32,
    /// End after so many minutes, with what there is by then.
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit_minutes: Option<u32>,
    /// Take the tasks from this folder instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Read Navi's settings from this file instead of navi.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Navi's data directory (NAVI_DATA_DIR): her settings and profiles are there. Nothing is
    /// written to it.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Cli {
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides {
            config: self.config.clone(),
            data_dir: self.data_dir.clone(),
            bind: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
