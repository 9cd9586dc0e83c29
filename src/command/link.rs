//! `navi link`.

use std::process::ExitCode;

use anyhow::Context as _;

use crate::access::links::Links;
use crate::console::{complain, say};
use crate::instance;
use crate::settings::Settings;

/// Prints a fresh one-time link to the service that runs.
///
/// # Errors
/// No service runs on this data directory, or it cannot be written to.
pub(crate) fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let running = instance::expect_running(&settings.data_dir)?;
    let secret = Links::new(&settings.data_dir).issue().with_context(|| {
        let dir = settings.data_dir.display();
        format!("the link could not be written to {dir}")
    })?;
    let here = format!("{}/login/{secret}", running.url());
    let reach = running.reach(settings);
    match &reach.public {
        Some(public) => {
            say(&format!("{public}login/{secret}"));
            complain(&format!("On this machine also: {here}"));
        }
        None => say(&here),
    }
    if let Some(hint) = reach.hint(running.address) {
        complain(hint);
    }
    Ok(ExitCode::SUCCESS)
}
