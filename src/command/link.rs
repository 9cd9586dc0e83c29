//! `navi link`.

use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::access::links::Links;
use crate::console::{complain, say};
use crate::instance;
use crate::settings::Settings;

/// Prints a fresh one-time link to the service that runs.
///
/// # Errors
/// No service runs on this data directory, or it cannot be written to.
pub(crate) fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let dir = settings.data_dir.display();
    let Some(running) = instance::running(&settings.data_dir) else {
        bail!("navi does not run on {dir}; start it with `navi`");
    };
    let secret = Links::new(&settings.data_dir)
        .issue()
        .with_context(|| format!("the link could not be written to {dir}"))?;
    let here = format!("{}/login/{secret}", running.url());
    match &settings.people.public {
        Some(public) => {
            say(&public.link(&secret));
            complain(&format!("On this machine also: {here}"));
        }
        None => say(&here),
    }
    Ok(ExitCode::SUCCESS)
}
