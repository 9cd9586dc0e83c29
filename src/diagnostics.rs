//! What `navi doctor` finds, found by the service that runs.

use std::sync::Arc;
use std::time::Duration;

use navi_actors::engine::Engine;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::phrase::{Phrase, PhraseCode};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};
use tracing::error;

use crate::checks::{self, Report};
use crate::settings::Loaded;

/// A look that takes longer hangs, and nobody waits for it.
const LIMIT: Duration = Duration::from_secs(30);

/// Looks one at a time: who asks while one goes on gets what it finds. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Diagnostics {
    loaded: Arc<Loaded>,
    runtime: Handle,
    last: Arc<Mutex<Option<Look>>>,
}

#[derive(Debug)]
struct Look {
    ended: Instant,
    report: Report,
}

impl Diagnostics {
    pub(crate) fn new(loaded: Arc<Loaded>, runtime: Handle) -> Self {
        Self {
            loaded,
            runtime,
            last: Arc::default(),
        }
    }

    /// Looks at everything and changes nothing.
    ///
    /// # Errors
    /// `internal` where it takes too long.
    pub(crate) async fn look(&self, engine: &Engine) -> Result<Report, NaviError> {
        let asked = Instant::now();
        let until = asked + LIMIT;
        let mut last = timeout_at(until, Arc::clone(&self.last).lock_owned())
            .await
            .map_err(|_| too_slow())?;
        if let Some(look) = last.as_ref().filter(|look| look.ended >= asked) {
            return Ok(look.report.clone());
        }
        let (loaded, engine) = (Arc::clone(&self.loaded), engine.clone());
        // One that hangs keeps its turn, so that no second one hangs beside it.
        let look = self.runtime.spawn(async move {
            engine.probe().await;
            let report = checks::look(loaded, &engine.status().backends).await;
            *last = Some(Look {
                ended: Instant::now(),
                report: report.clone(),
            });
            report
        });
        match timeout_at(until, look).await {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(error)) => {
                error!(%error, "what is wrong could not be looked for");
                Err(NaviError::said(
                    ErrorCode::Internal,
                    PhraseCode::SomethingFailed,
                ))
            }
            Err(_) => Err(too_slow()),
        }
    }
}

fn too_slow() -> NaviError {
    let seconds = [("seconds", LIMIT.as_secs().to_string())];
    NaviError::said(
        ErrorCode::Internal,
        Phrase::new(PhraseCode::LookHangs, seconds),
    )
}
