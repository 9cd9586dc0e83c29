//! What a start tells: line by line what is well and what is not.

use std::time::Duration;

use navi_actors::protocol::profile::Profile;
use navi_actors::protocol::status::{BackendState, BackendStatus};

use super::Service;
use crate::checks::{self, Check};
use crate::console::say;
use crate::settings::{DatabaseSettings, Settings};

/// How long the banner waits for model servers to say how they are.
const PATIENCE: Duration = Duration::from_secs(3);

/// Prints the banner, without the link.
pub(super) async fn print(service: &Service, settings: &Settings) {
    let backends = first_statuses(service).await;
    say(&format!(
        "Navi {} on http://{}",
        env!("CARGO_PKG_VERSION"),
        service.address
    ));
    let names = ids(&service.engine.profiles());
    let database = match &settings.database {
        DatabaseSettings::Sqlite(path) => path.display().to_string(),
        DatabaseSettings::Postgres(_) => "PostgreSQL".to_owned(),
    };
    for check in [
        Check::fine("database", database),
        checks::profiles(&names, &service.warnings),
        checks::models(&backends),
        checks::sandbox(&settings.terminal),
    ] {
        say(&check.text());
    }
    say("\nOpen this link. It works once; `navi link` prints another.");
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
