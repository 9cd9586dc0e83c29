//! How the service is, and that pages are told when that changes.

use std::time::Duration;

use futures_util::stream::select_all;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::WatchStream;

use super::Engine;
use crate::domain::model_choice;
use crate::hub::HubFrame;
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::status::SystemStatus;

/// How often a page is told how far a model is fetched.
const FETCH_PROGRESS: Duration = Duration::from_millis(500);

impl Engine {
    /// How the service is.
    #[must_use]
    pub fn status(&self) -> SystemStatus {
        let backends = self.services.models.statuses();
        let profiles = &self.services.profiles;
        let warnings = [
            &*self.warnings,
            &profiles.warnings(),
            &self.extensions.view().problems,
            &self.hangs(),
        ]
        .concat();
        SystemStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            active: model_choice::active(&backends).map(|backend| backend.kind),
            profile_models: profiles
                .all()
                .iter()
                .map(|profile| model_choice::expected(&backends, profile, profiles.default_id()))
                .collect(),
            backends,
            warnings: warnings.iter().map(ToString::to_string).collect(),
            warning_phrases: warnings,
            fetchable: self
                .fetcher
                .as_ref()
                .map_or_else(Vec::new, |fetcher| fetcher.fetchable()),
            pull: self.pulls.now(),
            fence: self.fence.as_ref().clone(),
            mode: self.services.consent.mode,
        }
    }

    fn hangs(&self) -> Vec<Phrase> {
        let hanging = self.watchdog.hanging();
        let hanging = hanging.borrow();
        let hanging = hanging
            .iter()
            .map(|name| Phrase::new(PhraseCode::Hangs, [("name", name.to_string())]));
        hanging.chain(self.mended.borrow().clone()).collect()
    }

    /// Tells pages when a backend's state changed, and how a fetch goes on.
    pub(super) async fn tell_status(self) {
        let models = &self.services.models;
        let followed = || select_all((models.watches().into_iter()).map(WatchStream::from_changes));
        let mut replacements = models.replacements();
        let mut changes = followed();
        let mut fetches = tokio::time::interval(FETCH_PROGRESS);
        let mut told = (Vec::new(), None);
        loop {
            tokio::select! {
                _ = changes.next() => {}
                // It ends with the service alone.
                _ = replacements.changed() => changes = followed(),
                _ = fetches.tick() => {
                    let fetchable = self.fetcher.as_ref().map_or_else(Vec::new, |f| f.fetchable());
                    let now = (fetchable, self.pulls.now());
                    if now == told {
                        continue;
                    }
                    told = now;
                }
            }
            self.tell_status_now();
        }
    }

    /// What is wrong with extensions stands in the status.
    pub(super) async fn tell_extensions(self) {
        let mut changes = self.extensions.changes();
        while changes.changed().await.is_ok() {
            self.tell_status_now();
        }
    }

    /// What hangs stands in the status.
    pub(super) async fn tell_hangs(self) {
        let (mut hanging, mut mended) = (self.watchdog.hanging(), self.mended.clone());
        loop {
            let changed = tokio::select! {
                changed = hanging.changed() => changed,
                changed = mended.changed() => changed,
            };
            if changed.is_err() {
                return;
            }
            self.tell_status_now();
        }
    }

    pub(super) fn tell_status_now(&self) {
        let status = Box::new(self.status());
        self.services.hub.tell(None, HubFrame::Status { status });
    }
}
