//! `navi doctor`.

use std::process::ExitCode;
use std::sync::Arc;

use navi_actors::protocol::phrase::CheckName;

use crate::backends;
use crate::checks::{self, Level, Report};
use crate::console::say;
use crate::settings::{Loaded, SettingsError};

/// Looks at everything and changes nothing.
///
/// # Errors
/// None that a person could cause.
pub(crate) async fn run(loaded: &Loaded, json: bool) -> anyhow::Result<ExitCode> {
    let (asked, wrong) = match backends::build(&loaded.settings) {
        Ok(backends) => (checks::probe(&backends.all).await, None),
        Err(error) => (Vec::new(), Some(format!("{error:#}"))),
    };
    let mut report = checks::look(Arc::new(loaded.clone()), &asked).await;
    if let Some(wrong) = wrong {
        let wrong = checks::wrong_settings(&[wrong]);
        report.level = wrong.level;
        report
            .checks
            .retain(|check| check.name != CheckName::Settings);
        report.checks.insert(0, wrong);
    }
    tell(&report, json)
}

/// Tells what is wrong with the settings: without them there is nothing else to look at.
///
/// # Errors
/// None that a person could cause.
pub(crate) fn refuse(wrong: &SettingsError, json: bool) -> anyhow::Result<ExitCode> {
    let check = checks::wrong_settings(&wrong.problems);
    let report = Report {
        level: check.level,
        checks: vec![check],
    };
    tell(&report, json)
}

fn tell(report: &Report, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        say(&serde_json::to_string_pretty(report)?);
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
