//! Has tools, skills and the servers' configuration read again when their files change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use navi_actors::engine::Engine;
use navi_actors::extensions::ExtensionPlaces;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

use crate::watches::Watches;

/// After a change files must be left alone for so long: editors write in several steps.
const QUIET: Duration = Duration::from_millis(200);

/// But no longer than this.
const LONGEST: Duration = Duration::from_secs(2);

/// And without any word of a change: some file systems tell none.
const RESCAN: Duration = Duration::from_secs(30);

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
        if timeout(RESCAN, changed.notified()).await.is_ok() {
            let last = Instant::now() + LONGEST;
            while Instant::now() < last
                && timeout_at(last.min(Instant::now() + QUIET), changed.notified())
                    .await
                    .is_ok()
            {}
        }
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
