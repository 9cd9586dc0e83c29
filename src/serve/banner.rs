//! What a start tells: line by line what is well and what is not.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use navi_actors::protocol::phrase::{CheckName, Phrase};
use navi_actors::protocol::profile::Profile;
use navi_actors::protocol::status::{BackendState, BackendStatus};

use super::Service;
use crate::access::links::Links;
use crate::checks::{self, Check};
use crate::console::say;
use crate::instance::Reach;
use crate::settings::{DatabaseSettings, Settings};

/// How long the banner waits for model servers to say how they are.
const PATIENCE: Duration = Duration::from_secs(3);

/// Prints the banner, without the way in.
pub(super) async fn print(service: &Service, settings: &Settings) {
    let backends = first_statuses(service).await;
    say(&format!(
        "Navi {} on {}",
        env!("CARGO_PKG_VERSION"),
        settings.wire().url(service.address)
    ));
    if let Some(hint) = Reach::of(settings).hint(service.address) {
        say(hint);
    }
    let names = ids(&service.engine.profiles());
    let database = match &settings.database {
        DatabaseSettings::Sqlite(path) => path.display().to_string(),
        DatabaseSettings::Postgres(_) => "PostgreSQL".to_owned(),
    };
    for check in [
        Check::fine(CheckName::Database, Phrase::plain(database)),
        checks::profiles(&names, &service.warnings),
        checks::models(&backends),
        checks::sandbox(settings),
    ] {
        say(&check.text());
    }
}

/// Prints the way in. A link opens the door to whoever reads it: it is for the person at the
/// terminal, and stands in no journal.
///
/// # Errors
/// The data directory cannot be written to.
pub(super) fn print_way_in(service: &Service, settings: &Settings) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        say("\n`navi link` prints a link to the page.");
        return Ok(());
    }
    let secret = Links::new(&settings.data_dir).issue()?;
    let link = match &settings.people.public {
        Some(public) => public.link(&secret),
        None => format!("{}/login/{secret}", settings.wire().url(service.address)),
    };
    say(&format!(
        "\nOpen this link. It works once; `navi link` prints another.\n\n{link}\n"
    ));
    Ok(())
}

pub(super) fn ids(profiles: &[Profile]) -> Vec<String> {
    profiles.iter().map(|profile| profile.id.clone()).collect()
}

/// The backends' first answers, or what there is of them when patience ends.
async fn first_statuses(service: &Service) -> Vec<BackendStatus> {
    // Only the wait is bounded: an answer that comes later reaches the page by itself.
    let _ = tokio::time::timeout(PATIENCE, service.engine.probe()).await;
    let mut backends = service.engine.status().backends;
    for backend in &mut backends {
        if backend.state == BackendState::Unknown {
            backend.state = BackendState::Loading {
                detail: format!("{} has not answered yet", backend.address),
            };
        }
    }
    backends
}
