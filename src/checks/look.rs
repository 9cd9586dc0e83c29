//! All of the checks, for `navi doctor` and for the page.

use std::sync::Arc;

use navi_actors::protocol::phrase::{CheckName, Phrase, PhraseCode};
use navi_actors::protocol::status::BackendStatus;
use navi_actors::tools::registry::Registry;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Check, Level, certificate, database, machine, models};
use crate::command::store_config;
use crate::engine_config::tool_config;
use crate::profiles::ProfileFiles;
use crate::settings::{Loaded, Settings};

/// What was found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// That of the worst.
    pub(crate) level: Level,
    pub(crate) checks: Vec<Check>,
}

/// Looks at everything and changes nothing. The backends were asked before.
pub(crate) async fn look(loaded: Arc<Loaded>, backends: &[BackendStatus]) -> Report {
    let database = database::check(&store_config(&loaded.settings)).await;
    let looking = tokio::task::spawn_blocking(move || here(&loaded));
    let mut checks = looking.await.unwrap_or_else(|error| {
        let error = [("error", error.to_string())];
        let failed = Phrase::new(PhraseCode::LookFailed, error);
        vec![Check::broken(
            CheckName::Machine,
            failed,
            PhraseCode::LookAtLog,
        )]
    });
    checks.extend([database, models::check(backends)]);
    let level = checks.iter().map(|check| check.level).max();
    Report {
        level: level.unwrap_or(Level::Fine),
        checks,
    }
}

/// What stands here and answers at once. Blocks.
fn here(loaded: &Loaded) -> Vec<Check> {
    let settings = &loaded.settings;
    let dir = &settings.data_dir;
    let mut checks = vec![
        super::settings(&loaded.warnings),
        machine::data_directory(dir),
        machine::disk_space(dir),
        machine::clock(dir),
        machine::port(settings.bind, dir),
        profiles(settings),
        machine::sandbox(settings),
    ];
    let public = settings.people.public.as_ref().map(|public| &public.url);
    let certificate = settings.tls.as_ref();
    checks.extend(certificate.map(|files| certificate::check(files, public)));
    checks
}

fn profiles(settings: &Settings) -> Check {
    let tools = Registry::builtin(&tool_config(settings))
        .all()
        .map(|tool| tool.name.clone())
        .collect();
    let found = ProfileFiles::new(settings, tools).read();
    let ids: Vec<String> = found.profiles.iter().map(|p| p.id.clone()).collect();
    let wanted = &settings.default_profile;
    if ids.contains(wanted) {
        return super::profiles(&ids, &found.warnings);
    }
    Check::broken(
        CheckName::Profiles,
        Phrase::new(PhraseCode::DefaultUnknown, [("profile", wanted.clone())]),
        Phrase::new(
            PhraseCode::SetDefaultProfile,
            [("profiles", ids.join(", "))],
        ),
    )
}
