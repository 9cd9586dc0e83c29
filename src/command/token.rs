//! `navi token`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use navi_actors::protocol::people::{Recorded, Scope, Scopes};
use navi_actors::store::{LOCAL_USER, Store};

use super::user::{by_name, tell_service};
use super::{note, open_store};
use crate::access::{self, WantedToken};
use crate::cli::TokenCommand;
use crate::console::{complain, say, table};
use crate::instance::{self, Reach};
use crate::settings::Settings;

/// Who did it, as the record has it.
const NAME: &str = "navi token";

/// Makes, lists and removes tokens; a service that runs knows at once.
///
/// # Errors
/// The database cannot be used, or there is no such token.
pub(crate) async fn run(settings: &Settings, command: &TokenCommand) -> anyhow::Result<ExitCode> {
    let running = instance::running(&settings.data_dir);
    let reach = running.map_or_else(|| Reach::of(settings), |it| it.reach(settings));
    let store = open_store(settings).await?;
    let done = carry_out(&store, command, &settings.data_dir, &reach).await;
    store.close().await?;
    done
}

async fn carry_out(
    store: &Store,
    command: &TokenCommand,
    data_dir: &Path,
    reach: &Reach,
) -> anyhow::Result<ExitCode> {
    // There is no record where there are no accounts.
    let noted = async |what: Recorded, about: String| match reach.accounts {
        true => note(store, NAME, what, about).await,
        false => Ok(()),
    };
    match command {
        TokenCommand::Add {
            name,
            scopes,
            consent,
            days,
            user,
        } => {
            let user = match user {
                Some(name) => by_name(store, name).await?,
                None => store.user(LOCAL_USER).await?.context(
                    "this machine's own user was removed; say whose token it is with --user",
                )?,
            };
            let scopes = scopes.unwrap_or(Scopes::USUAL).iter();
            let wanted = WantedToken {
                name: name.clone(),
                scopes: scopes.chain(consent.then_some(Scope::Consent)).collect(),
                days: *days,
            };
            let (row, token) = access::add_token(store, user.id, wanted).await?;
            say(&token);
            complain(&format!(
                "This is the only time that the token {} is shown. Send it as `Authorization: Bearer …`.",
                row.id
            ));
            let about = format!("{}: {} ({})", user.name, row.name, row.scopes);
            noted(Recorded::TokenMade, about).await?;
        }
        TokenCommand::List => {
            let mut rows: Vec<[String; 7]> = Vec::new();
            for person in store.people().await? {
                let owner = &person.user.name;
                let tokens = store.list_tokens(person.user.id).await?.into_iter();
                rows.extend(tokens.map(|token| {
                    let used = token.last_used_at.map_or_else(
                        || "never used".to_owned(),
                        |at| format!("used {}", at.format("%Y-%m-%d %H:%M")),
                    );
                    [
                        token.id.to_string(),
                        format!("made {}", token.created_at.format("%Y-%m-%d")),
                        used,
                        token.expires_at.map_or_else(String::new, |at| {
                            format!("until {}", at.format("%Y-%m-%d"))
                        }),
                        token.scopes.to_string(),
                        owner.clone(),
                        token.name,
                    ]
                }));
            }
            table(&rows);
        }
        TokenCommand::Remove { id } => {
            if !store.delete_token_of_anybody(*id).await? {
                anyhow::bail!("there is no token {id}; `navi token list` shows them");
            }
            tell_service(data_dir);
            noted(Recorded::TokenRemoved, id.to_string()).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
