//! `navi doctor`.

use std::process::ExitCode;

use navi_actors::tools::registry::Registry;
use serde_json::json;

use super::store_config;
use crate::backends;
use crate::checks::{self, Check, Level};
use crate::console::say;
use crate::engine_config::tool_config;
use crate::profiles::ProfileFiles;
use crate::settings::Loaded;

/// Looks at everything and changes nothing.
///
/// # Errors
/// A backend that the settings do not allow.
pub(crate) async fn run(loaded: &Loaded, json: bool) -> anyhow::Result<ExitCode> {
    let found = look(loaded).await?;
    let worst = found
        .iter()
        .map(|check| check.level)
        .max()
        .unwrap_or(Level::Fine);
    if json {
        let report = json!({"level": worst, "checks": found});
        say(&serde_json::to_string_pretty(&report)?);
    } else {
        for check in &found {
            say(&check.text());
        }
    }
    Ok(ExitCode::from(match worst {
        Level::Fine => 0,
        Level::Warning => 1,
        Level::Broken => 2,
    }))
}

async fn look(loaded: &Loaded) -> anyhow::Result<Vec<Check>> {
    let settings = &loaded.settings;
    let dir = &settings.data_dir;
    let tools = Registry::builtin(&tool_config(settings))
        .all()
        .map(|tool| tool.name.clone())
        .collect();
    let found = ProfileFiles::new(settings, tools).read();
    let ids: Vec<String> = found.profiles.iter().map(|p| p.id.clone()).collect();
    let backends = backends::build(settings)?;
    Ok(vec![
        checks::settings(&loaded.warnings),
        checks::data_directory(dir),
        checks::disk_space(dir),
        checks::clock(dir),
        checks::port(settings.bind, dir),
        checks::database(&store_config(settings)).await,
        default_profile(&ids, &settings.default_profile)
            .unwrap_or_else(|| checks::profiles(&ids, &found.warnings)),
        checks::models(&checks::probe(&backends.all).await),
        checks::sandbox(&settings.terminal),
    ])
}

fn default_profile(ids: &[String], wanted: &str) -> Option<Check> {
    (!ids.iter().any(|id| id == wanted)).then(|| {
        Check::broken(
            "profiles",
            format!("the default profile \"{wanted}\" does not exist"),
            format!("set NAVI_DEFAULT_PROFILE to one of {}", ids.join(", ")),
        )
    })
}
