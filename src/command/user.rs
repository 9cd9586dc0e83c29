//! `navi user`: accounts, from the machine itself, so that nobody is locked out.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use chrono::Utc;
use navi_actors::domain::names;
use navi_actors::protocol::people::{Recorded, UserRole};
use navi_actors::store::{Changed, SecretHash, Store, User};

use super::{note, open_store};
use crate::access::random::digest;
use crate::access::{self, MAX_INVITATION_DAYS, Offer, role_name};
use crate::cli::UserCommand;
use crate::console::{complain, say, table};
use crate::instance::{self, Reach};
use crate::settings::Settings;

/// Who did it, as the record has it.
const NAME: &str = "navi user";
/// How long a link for another password is good.
const RESET_DAYS: u32 = 1;

/// # Errors
/// There is no such person, or the database cannot be used.
pub(crate) async fn run(settings: &Settings, command: &UserCommand) -> anyhow::Result<ExitCode> {
    let (reach, here, address) = match instance::running(&settings.data_dir) {
        Some(running) => (running.reach(settings), running.url(), running.address),
        None => {
            let here = settings.wire().url(settings.bind);
            (Reach::of(settings), here, settings.bind)
        }
    };
    if !reach.accounts {
        bail!("there are no accounts here; NAVI_ACCOUNTS=on makes some (docs/people.md)");
    }
    let page = Page {
        hint: reach.hint(address),
        url: reach.public.unwrap_or_else(|| format!("{here}/")),
    };
    let store = open_store(settings).await?;
    let done = carry_out(&store, command, &settings.data_dir, &page).await;
    store.close().await?;
    done
}

/// Where invitations lead.
struct Page {
    /// With a slash at its end.
    url: String,
    hint: Option<&'static str>,
}

async fn carry_out(
    store: &Store,
    command: &UserCommand,
    data_dir: &Path,
    page: &Page,
) -> anyhow::Result<ExitCode> {
    match command {
        UserCommand::Add { role, days } => {
            if !(1..=MAX_INVITATION_DAYS).contains(days) {
                bail!("--days must be 1 to {MAX_INVITATION_DAYS}");
            }
            let offer = Offer {
                role: (*role).into(),
                user: None,
                days: *days,
            };
            invite(store, page, offer, role_name(offer.role)).await?;
        }
        UserCommand::List => {
            let people = store.people().await?.into_iter();
            let rows: Vec<[String; 5]> = people
                .map(|person| {
                    let seen = person.last_seen_at.map_or_else(
                        || "never seen".to_owned(),
                        |at| format!("seen {}", at.format("%Y-%m-%d %H:%M")),
                    );
                    let password = if person.has_password {
                        ""
                    } else {
                        "no password"
                    };
                    let passkeys = match person.passkeys {
                        0 => String::new(),
                        1 => "1 passkey".to_owned(),
                        many => format!("{many} passkeys"),
                    };
                    [
                        person.user.name,
                        role_name(person.user.role).to_owned(),
                        seen,
                        password.to_owned(),
                        passkeys,
                    ]
                })
                .collect();
            table(&rows);
        }
        UserCommand::Reset { name } => {
            let user = by_name(store, name).await?;
            let offer = Offer {
                role: user.role,
                user: Some(user.id),
                days: RESET_DAYS,
            };
            invite(store, page, offer, &user.name).await?;
        }
        UserCommand::Role { name, role } => {
            let (user, role) = (by_name(store, name).await?, UserRole::from(*role));
            let user = settled(store.set_role(user.id, role).await?, name)?;
            tell_service(data_dir);
            let about = format!("{}: {}", user.name, role_name(role));
            note(store, NAME, Recorded::RoleChanged, about).await?;
        }
        UserCommand::Remove { name, yes } => {
            let user = by_name(store, name).await?;
            if !yes {
                bail!(
                    "this deletes {} with all conversations, files and memory; say --yes if that is meant",
                    user.name
                );
            }
            let user = settled(store.remove_person(user.id, Utc::now()).await?, name)?;
            tell_service(data_dir);
            note(store, NAME, Recorded::PersonRemoved, user.name).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes an invitation and prints its link.
async fn invite(store: &Store, page: &Page, offer: Offer, about: &str) -> anyhow::Result<()> {
    let (invitation, secret) = offer.made(None, Utc::now());
    let until = invitation.expires_at;
    store
        .add_invitation(SecretHash(digest(&secret)), invitation)
        .await?;
    note(store, NAME, Recorded::Invited, about.to_owned()).await?;
    say(&format!("{}#invitation={secret}", page.url));
    complain(&format!(
        "It works once, until {}.",
        until.format("%Y-%m-%d %H:%M UTC")
    ));
    if let Some(hint) = page.hint {
        complain(hint);
    }
    Ok(())
}

/// # Errors
/// There is nobody of this name.
pub(super) async fn by_name(store: &Store, name: &str) -> anyhow::Result<User> {
    let people = store.people().await?.into_iter();
    let key = names::key(name);
    people
        .map(|person| person.user)
        .find(|user| names::key(&user.name) == key)
        .with_context(|| {
            format!("there is nobody called {name}; `navi user list` shows who there is")
        })
}

/// Has a service that runs look anew at what keys open.
pub(super) fn tell_service(data_dir: &Path) {
    if let Err(error) = access::tell_ended(data_dir) {
        complain(&format!(
            "It is done. A service that runs goes by what was for a second yet: {error}"
        ));
    }
}

fn settled(changed: Changed, name: &str) -> anyhow::Result<User> {
    match changed {
        Changed::Done(user) => Ok(user),
        Changed::Unknown => bail!("there is nobody called {name}"),
        Changed::LastAdmin => bail!("there is no other admin; make somebody one first"),
    }
}
