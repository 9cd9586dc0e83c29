//! `navi token`.

use std::path::Path;
use std::process::ExitCode;

use navi_actors::store::Store;

use super::store_config;
use crate::access::{self, Consent};
use crate::cli::TokenCommand;
use crate::console::{complain, say, table};
use crate::settings::Settings;

/// Makes, lists and removes tokens; a service that runs knows at once.
///
/// # Errors
/// The database cannot be used, or there is no such token.
pub(crate) async fn run(settings: &Settings, command: &TokenCommand) -> anyhow::Result<ExitCode> {
    let store = Store::open(&store_config(settings)).await?;
    let done = carry_out(&store, command, &settings.data_dir).await;
    store.close().await?;
    done
}

async fn carry_out(
    store: &Store,
    command: &TokenCommand,
    data_dir: &Path,
) -> anyhow::Result<ExitCode> {
    let user = store.local_user().await?.id;
    match command {
        TokenCommand::Add { name, consent } => {
            let consent = if *consent {
                Consent::Programs
            } else {
                Consent::Page
            };
            let (row, token) = access::add_token(store, user, name, consent).await?;
            say(&token);
            complain(&format!(
                "This is the only time that the token {} is shown. Send it as `Authorization: Bearer …`.",
                row.id
            ));
        }
        TokenCommand::List => {
            let tokens = store.list_tokens(user).await?;
            let rows: Vec<[String; 5]> = tokens
                .into_iter()
                .map(|token| {
                    let used = token.last_used_at.map_or_else(
                        || "never used".to_owned(),
                        |at| format!("used {}", at.format("%Y-%m-%d %H:%M")),
                    );
                    [
                        token.id.to_string(),
                        format!("made {}", token.created_at.format("%Y-%m-%d")),
                        used,
                        if token.may_consent { "may consent" } else { "" }.to_owned(),
                        token.name,
                    ]
                })
                .collect();
            table(&rows);
        }
        TokenCommand::Remove { id } => {
            if !store.delete_token(user, *id).await? {
                anyhow::bail!("there is no token {id}; `navi token list` shows them");
            }
            if let Err(error) = access::tell_ended(data_dir) {
                complain(&format!(
                    "The token is removed. A service that runs takes it for a second yet: {error}"
                ));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
