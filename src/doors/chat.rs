//! `navi chat`: a conversation in a terminal, and one answer for a script. A client of the
//! service that runs, as the page is: what it shows and does goes over the same ways.
//!
//! What decides stands apart from the terminal: `screen` turns events into lines, `commands`
//! reads what was typed, `heard_run` finds the answer in the events. `terminal` is the keyboard
//! and the screen themselves, `talk` and `once` do what was decided.

mod commands;
mod files;
mod heard_run;
mod markdown;
mod once;
mod report;
mod screen;
mod style;
mod talk;
mod terminal;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use navi_actors::domain::redact::redacted;
use navi_actors::protocol::approval::ConsentMode;
use navi_actors::protocol::ids::SessionId;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::report::{Outcome, Problem, Report, warn};
use crate::cli::ChatArgs;
use crate::client::{Client, ClientError};
use crate::settings::{Settings, SettingsError};

/// How long the end waits for the service to hear of it.
const GOODBYE: Duration = Duration::from_secs(2);

/// Talks with the service that runs.
///
/// # Errors
/// Those of the terminal.
pub(crate) fn run(
    settings: &Settings,
    runtime: &Runtime,
    args: &ChatArgs,
) -> anyhow::Result<ExitCode> {
    if args.prompt.is_some() {
        return Ok(runtime.block_on(once::run(settings, args)));
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        warn("without a terminal, `navi chat -p \"…\"` asks once; see `navi chat --help`");
        return Ok(ExitCode::from(Outcome::Refused.exit_code()));
    }
    runtime.block_on(talk::run(settings, args))
}

/// Tells what is wrong with the settings, as why nothing was asked is told.
pub(crate) fn refuse(args: &ChatArgs, wrong: &SettingsError) -> ExitCode {
    let problem = Problem::new("settings", redacted(&wrong.to_string()));
    Report::new(Outcome::Refused, Some(problem)).print(args.json)
}

/// What a session is made with; what is left out is as the settings have it.
#[derive(Clone, Debug, Default, Serialize)]
struct Wish {
    #[serde(skip_serializing_if = "Option::is_none")]
    profile_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<ConsentMode>,
}

impl Wish {
    fn of(args: &ChatArgs) -> Self {
        Self {
            profile_id: args.profile.clone(),
            model: args.model.clone(),
            mode: None,
        }
    }
}

/// Makes a session.
async fn make(client: &Client, wish: &Wish) -> Result<SessionId, ClientError> {
    #[derive(Deserialize)]
    struct Created {
        session_id: SessionId,
    }
    let created: Created = client.send(Method::POST, "/sessions", wish).await?;
    Ok(created.session_id)
}

/// Gives a session another profile or model, where one is wished.
async fn change(client: &Client, session: SessionId, wish: &Wish) -> Result<(), ClientError> {
    let mut change = json!({});
    if let Some(profile) = &wish.profile_id {
        change["profile_id"] = json!(profile);
    }
    if let Some(model) = &wish.model {
        change["model"] = json!(model);
    }
    if change.as_object().is_some_and(|fields| !fields.is_empty()) {
        let path = format!("/sessions/{session}");
        let _: Value = client.send(Method::PATCH, &path, &change).await?;
    }
    Ok(())
}

/// Gives the login back, unless the service is not there to take it.
async fn leave(client: Client) {
    let _ = tokio::time::timeout(GOODBYE, client.log_out()).await;
}
