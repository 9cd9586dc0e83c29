//! `navi runs`.

mod replay;
mod show;
mod words;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use navi_actors::files::SessionFiles;
use navi_actors::inspect::Inspector;
use navi_actors::prices::Prices;
use navi_actors::protocol::ids::{RunId, SessionId, UserId};
use navi_actors::protocol::inspect::{RunDetails, RunInfo};
use navi_actors::store::{LOCAL_USER, Store};
use tokio::runtime::Runtime;

use self::words::{name, took};
use super::open_store;
use crate::cli::RunsCommand;
use crate::console::{say, table};
use crate::settings::Settings;

/// What the commands read from.
pub(super) struct Archive {
    store: Store,
    inspector: Inspector,
    user: UserId,
}

/// Lists runs, shows one, or asks another model what one's was asked. Changes nothing.
///
/// # Errors
/// The database cannot be used; there is no such run or call; the model fails.
pub(crate) fn run(
    settings: &Settings,
    runtime: &Arc<Runtime>,
    command: &RunsCommand,
) -> anyhow::Result<ExitCode> {
    match command {
        RunsCommand::List {
            session,
            before,
            json,
        } => runtime.block_on(async {
            let archive = Archive::open(settings).await?;
            let session = session.map(SessionId);
            let listed = archive.list(session, before.map(RunId), *json).await;
            archive.close(listed).await
        }),
        RunsCommand::Show { id, call, json } => runtime.block_on(async {
            let archive = Archive::open(settings).await?;
            let shown = match call {
                Some(n) => show::call(&archive, RunId(*id), *n, *json).await,
                None => show::run(&archive, RunId(*id), *json).await,
            };
            archive.close(shown).await
        }),
        RunsCommand::Replay(args) => replay::run(settings, runtime, args),
    }
}

impl Archive {
    pub(super) async fn open(settings: &Settings) -> anyhow::Result<Self> {
        let store = open_store(settings).await?;
        let files = SessionFiles::new(store.clone(), settings.homes(), settings.files);
        let prices = Arc::new(Prices::new(settings.prices_file.clone()));
        Ok(Self {
            user: store
                .user(LOCAL_USER)
                .await?
                .context("these are the runs of this machine's own user, who was removed")?
                .id,
            inspector: Inspector::new(store.clone(), files, prices),
            store,
        })
    }

    pub(super) async fn close<T>(&self, done: anyhow::Result<T>) -> anyhow::Result<T> {
        self.store.close().await?;
        done
    }

    pub(super) async fn details(&self, run: RunId) -> anyhow::Result<RunDetails> {
        let details = self.inspector.run(self.user, run).await?;
        details.with_context(|| format!("there is no run {run}; `navi runs list` shows the newest"))
    }

    async fn list(
        &self,
        session: Option<SessionId>,
        before: Option<RunId>,
        json: bool,
    ) -> anyhow::Result<ExitCode> {
        let runs = match session {
            Some(session) => self.store.session_runs(self.user, session, before).await?,
            None => self.store.newest_runs(self.user).await?,
        };
        if json {
            say(&serde_json::to_string_pretty(&runs)?);
            return Ok(ExitCode::SUCCESS);
        }
        table(&runs.iter().map(row).collect::<Vec<_>>());
        Ok(ExitCode::SUCCESS)
    }
}

fn row(run: &RunInfo) -> [String; 6] {
    [
        run.run_id.to_string(),
        run.started_at.format("%Y-%m-%d %H:%M:%S").to_string(),
        name(&run.state),
        took(run),
        format!("{} + {} tokens", run.prompt_tokens, run.completion_tokens),
        run.model.clone(),
    ]
}
