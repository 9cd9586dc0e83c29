//! Reads profiles and the persona again when their files change.

#[cfg(test)]
mod watch_tests;

use std::sync::Arc;
use std::time::Duration;

use navi_actors::profiles::ProfileSet;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

use super::ProfileFiles;
use crate::watches::{PACE, Pace, Watches};

/// How long files are looked at before a word about their silence.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// Tells `put_in_force` of each change, from `in_force` on, until `closing` or until the
/// handle is dropped.
pub(crate) fn watch(
    files: ProfileFiles,
    in_force: ProfileSet,
    put_in_force: impl Fn(ProfileSet) + Send + 'static,
    closing: CancellationToken,
) -> AbortOnDropHandle<()> {
    let changed = Arc::new(Notify::new());
    let watches = Watches::new(files.places(), Arc::clone(&changed));
    let following = follow(files, watches, in_force, changed, put_in_force, PACE);
    AbortOnDropHandle::new(tokio::spawn(async move {
        closing.run_until_cancelled(following).await;
    }))
}

async fn follow(
    mut files: ProfileFiles,
    mut watches: Watches,
    mut in_force: ProfileSet,
    changed: Arc<Notify>,
    put_in_force: impl Fn(ProfileSet) + Send,
    pace: Pace,
) {
    loop {
        let now;
        (files, watches, now) = look(files, watches, &changed).await;
        if let Some(now) = now
            && now != in_force
        {
            info!(
                profiles = now.profiles.len(),
                refused = now.warnings.len(),
                "profiles changed"
            );
            for warning in now
                .warnings
                .iter()
                .filter(|w| !in_force.warnings.contains(w))
            {
                warn!("{warning}");
            }
            in_force = now.clone();
            put_in_force(now);
        }
        pace.wait(&changed).await;
    }
}

/// Sets the watches and then reads, in this order: what changes in between is told.
async fn look(
    files: ProfileFiles,
    mut watches: Watches,
    changed: &Arc<Notify>,
) -> (ProfileFiles, Watches, Option<ProfileSet>) {
    let before = files.clone();
    let mut looking = tokio::task::spawn_blocking(move || {
        let mut files = files;
        watches.arm();
        let found = files.read();
        (files, watches, found)
    });
    loop {
        match timeout(READ_LIMIT, &mut looking).await {
            Ok(Ok((files, watches, found))) => return (files, watches, Some(found)),
            Ok(Err(panic)) => {
                error!(error = %panic, "profiles could not be read; they stay as they are");
                let watches = Watches::new(before.places(), Arc::clone(changed));
                return (before, watches, None);
            }
            Err(_) => warn!("the profiles' files do not answer; they stay as they are"),
        }
    }
}
