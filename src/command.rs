//! The commands beside `navi serve`.

pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod link;
pub(crate) mod migrate;
pub(crate) mod model;
pub(crate) mod read_document;
pub(crate) mod runs;
pub(crate) mod sandbox;
pub(crate) mod token;
pub(crate) mod upgrade;
pub(crate) mod user;

use anyhow::{Context as _, bail};
use chrono::Utc;
use navi_actors::protocol::people::Recorded;
use navi_actors::store::{Location, RecordEntry, Store, StoreConfig};

use crate::instance;
use crate::settings::{DatabaseSettings, Settings};

/// Where the settings put the database.
pub(crate) fn store_config(settings: &Settings) -> StoreConfig {
    StoreConfig {
        location: match &settings.database {
            DatabaseSettings::Sqlite(path) => Location::Sqlite(path.clone()),
            DatabaseSettings::Postgres(url) => Location::Postgres(url.reveal().to_owned()),
        },
    }
}

/// Opens the database, and brings its schema up to date where no service runs: one of an older
/// program goes by the schema that it found.
///
/// # Errors
/// The database cannot be used, or a service of another program runs on it.
pub(crate) async fn open_store(settings: &Settings) -> anyhow::Result<Store> {
    let config = store_config(settings);
    let Some(running) = instance::running(&settings.data_dir) else {
        return Ok(Store::open(&config).await?);
    };
    let store = Store::open_as_it_is(&config).await?;
    let steps = store.migrations().await.with_context(|| {
        format!(
            "navi {} runs on this database, and this is navi {}",
            running.version,
            env!("CARGO_PKG_VERSION")
        )
    })?;
    if steps.iter().all(|step| !step.applied) {
        store.close().await?;
        bail!(
            "the navi that runs here (process {}) has another database than these settings name; give this command its DATABASE_URL",
            running.pid
        );
    }
    if steps.iter().any(|step| !step.applied) {
        store.close().await?;
        bail!(
            "an older navi runs on this database (process {}); restart it first, or have it become this one with `navi upgrade`",
            running.pid
        );
    }
    Ok(store)
}

/// Has the record say what was done by this command.
async fn note(
    store: &Store,
    command: &'static str,
    what: Recorded,
    about: String,
) -> anyhow::Result<()> {
    let entry = RecordEntry {
        what,
        user_id: None,
        name: Some(command.to_owned()),
        about: Some(about),
        address: None,
    };
    Ok(store.add_record(entry, Utc::now()).await?)
}
