//! `navi migrate`.

use std::process::ExitCode;

use anyhow::bail;
use navi_actors::store::Store;

use super::{open_store, store_config};
use crate::cli::MigrateCommand;
use crate::console::{say, table};
use crate::instance;
use crate::settings::Settings;

/// Changes or shows the database's schema.
///
/// # Errors
/// The database cannot be used, or a service uses it.
pub(crate) async fn run(settings: &Settings, command: &MigrateCommand) -> anyhow::Result<ExitCode> {
    let config = store_config(settings);
    match command {
        MigrateCommand::Up => {
            let store = open_store(settings).await?;
            show(&store).await?;
            store.close().await?;
        }
        MigrateCommand::Status => {
            let store = Store::open_as_it_is(&config).await?;
            show(&store).await?;
            store.close().await?;
        }
        MigrateCommand::Down { yes: false } => {
            bail!("this deletes all sessions, messages and tokens; add --yes if you mean it");
        }
        MigrateCommand::Down { yes: true } => {
            if let Some(running) = instance::running(&settings.data_dir) {
                bail!(
                    "navi runs on this database (process {}); stop it first",
                    running.pid
                );
            }
            let store = Store::open_as_it_is(&config).await?;
            store.drop_schema().await?;
            show(&store).await?;
            store.close().await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn show(store: &Store) -> anyhow::Result<()> {
    let rows: Vec<[String; 2]> = store
        .migrations()
        .await?
        .into_iter()
        .map(|step| {
            let state = if step.applied { "applied" } else { "pending" };
            [state.to_owned(), step.name]
        })
        .collect();
    table(&rows);
    say("");
    Ok(())
}
