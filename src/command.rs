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

use navi_actors::store::{Location, StoreConfig};

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
