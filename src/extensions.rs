//! Has tools, skills and the servers' configuration read again when their files change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use navi_actors::engine::Engine;
use navi_actors::extensions::ExtensionPlaces;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

use crate::watches::{PACE, Watches};

/// As many folders as are watched; what changes in others is seen with the next rescan.
const MAX_WATCHED: usize = 256;

/// Follows the files until `closing`, or until the handle is dropped.
pub(crate) fn watch(
    engine: Engine,
    places: ExtensionPlaces,
    closing: CancellationToken,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        closing.run_until_cancelled(follow(engine, places)).await;
    }))
}

async fn follow(engine: Engine, places: ExtensionPlaces) {
    let changed = Arc::new(Notify::new());
    let mut watches = Some(Watches::new(Vec::new(), Arc::clone(&changed)));
    let mut told = engine.extensions().view();
    for problem in &told.problems {
        warn!("{problem}");
    }
    loop {
        // The watches stand before the files are read: what changes in between is told.
        watches = arm(watches, &places, &changed).await;
        engine.extensions().rescan().await;
        let now = engine.extensions().view();
        for problem in now.problems.iter().filter(|p| !told.problems.contains(p)) {
            warn!("{problem}");
        }
        if now.tools != told.tools || now.skills != told.skills {
            info!(
                tools = now.tools.len(),
                skills = now.skills.len(),
                "tools and skills changed"
            );
        }
        told = now;
        PACE.wait(&changed).await;
    }
}

/// Sets the watches, as far as they can be had.
async fn arm(
    watches: Option<Watches>,
    places: &ExtensionPlaces,
    changed: &Arc<Notify>,
) -> Option<Watches> {
    let mut watches = watches.unwrap_or_else(|| Watches::new(Vec::new(), Arc::clone(changed)));
    let places = places.clone();
    let arming = tokio::task::spawn_blocking(move || {
        watches.aim(targets(&places));
        watches.arm();
        watches
    });
    arming
        .await
        .inspect_err(|error| error!(%error, "tools and skills cannot be watched"))
        .ok()
}

/// The folders of tools and skills with those inside of them, and the servers' file.
fn targets(places: &ExtensionPlaces) -> Vec<PathBuf> {
    let mut targets = vec![places.mcp_config.clone()];
    for dir in [&places.tools_dir, &places.skills_dir] {
        targets.push(dir.clone());
        add_folders(dir, &mut targets);
    }
    targets
}

fn add_folders(dir: &Path, targets: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        if targets.len() >= MAX_WATCHED {
            return;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            targets.push(entry.path());
            add_folders(&entry.path(), targets);
        }
    }
}
