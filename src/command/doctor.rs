//! `navi doctor`.

use std::process::ExitCode;
use std::sync::Arc;

use crate::backends;
use crate::checks::{self, Level};
use crate::console::say;
use crate::settings::Loaded;

/// Looks at everything and changes nothing.
///
/// # Errors
/// A backend that the settings do not allow.
pub(crate) async fn run(loaded: &Loaded, json: bool) -> anyhow::Result<ExitCode> {
    let backends = backends::build(&loaded.settings)?;
    let backends = checks::probe(&backends.all).await;
    let report = checks::look(Arc::new(loaded.clone()), &backends).await;
    if json {
        say(&serde_json::to_string_pretty(&report)?);
    } else {
        for check in &report.checks {
            say(&check.text());
        }
    }
    Ok(ExitCode::from(match report.level {
        Level::Fine => 0,
        Level::Warning => 1,
        Level::Broken => 2,
    }))
}
