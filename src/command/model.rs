//! `navi model`.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use navi_actors::llm::starter::FetchState;

use crate::access::links::make_private_dir;
use crate::cli::ModelCommand;
use crate::settings::Settings;
use crate::starter::Starter;

/// Lists and fetches models of the starter.
///
/// # Errors
/// There is no such model, no room for it, or no source that has it.
pub(crate) async fn run(settings: &Settings, command: &ModelCommand) -> anyhow::Result<ExitCode> {
    let Some(starter) = crate::starter::build(settings)? else {
        anyhow::bail!("the starter model is off; set STARTER_MODEL to a model's name");
    };
    match command {
        ModelCommand::List => list(&starter),
        ModelCommand::Fetch { name } => {
            // The fetch makes what lacks, open to others.
            let dir = &settings.data_dir;
            make_private_dir(dir)
                .with_context(|| format!("the data directory {} cannot be made", dir.display()))?;
            fetch(&starter, name).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(starter: &Starter) {
    let rows: Vec<[String; 5]> = starter
        .model()
        .fetchable()
        .into_iter()
        .map(|model| {
            [
                model.name,
                if model.present { "here" } else { "not here" }.to_owned(),
                format!("{} MB on disk", model.size / 1_000_000),
                format!("{} MB of memory", model.memory / 1_000_000),
                model.title,
            ]
        })
        .collect();
    crate::console::table(&rows);
}

/// Fetches with a line of progress, rewritten in place where there is a terminal.
async fn fetch(starter: &crate::starter::Starter, name: &str) -> anyhow::Result<()> {
    let mut state = starter.model().fetch_state();
    let is_terminal = std::io::stderr().is_terminal();
    let mut shown = None;
    let fetch = starter.model().fetch(name);
    tokio::pin!(fetch);
    let path = loop {
        tokio::select! {
            fetched = &mut fetch => break fetched?,
            Ok(()) = state.changed() => {
                let line = progress(&state.borrow_and_update());
                if let Some((percent, line)) = line
                    && shown != Some(percent)
                {
                    shown = Some(percent);
                    tell(&line, is_terminal, percent);
                }
            }
        }
    };
    if is_terminal && shown.is_some() {
        crate::console::complain("");
    }
    crate::console::say(&format!("{name} is here: {}", path.display()));
    Ok(())
}

fn progress(state: &FetchState) -> Option<(u64, String)> {
    match state {
        FetchState::Fetching {
            model,
            source,
            received,
            total,
        } => {
            let percent = received * 100 / (*total).max(1);
            let line = format!(
                "{model} from {source}: {percent} % of {} MB",
                total / 1_000_000
            );
            Some((percent, line))
        }
        FetchState::Idle | FetchState::Failed { .. } => None,
    }
}

/// Every percent on a terminal, every tenth into a file.
fn tell(line: &str, is_terminal: bool, percent: u64) {
    if is_terminal {
        let mut out = std::io::stderr();
        let _ = write!(out, "\r{line}\x1b[K");
        let _ = out.flush();
    } else if percent.is_multiple_of(10) {
        crate::console::complain(line);
    }
}
