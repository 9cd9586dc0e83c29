//! `navi config`.

use std::process::ExitCode;

use crate::console::{complain, say, table};
use crate::settings::Loaded;

/// Prints each value and where it came from.
///
/// # Errors
/// None that a person could cause.
pub(crate) fn run(loaded: &Loaded, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        say(&serde_json::to_string_pretty(&loaded.values)?);
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<[String; 4]> = loaded
        .values
        .iter()
        .map(|row| {
            [
                row.variable.to_owned(),
                row.key.to_owned(),
                row.value.clone().unwrap_or_else(|| "(unset)".to_owned()),
                row.origin.clone(),
            ]
        })
        .collect();
    table(&rows);
    say("\nAn empty variable counts as unset. config/default.toml says what each one means.");
    for warning in &loaded.warnings {
        complain(&format!("! {warning}"));
    }
    Ok(ExitCode::SUCCESS)
}
