//! What `/metrics` tells of this process (docs/observing.md): counts and times, kept in memory.
//!
//! Off unless [`turn_on`] is called before the service starts. Then a recorder is one look at an
//! empty cell, and nothing is kept. Labels come from closed lists: kinds, outcomes, lanes,
//! backends, Navi's own tools. What a person or a model named, and ids, are never among them.

mod calls;
mod labels;
mod process;
mod runs;
mod service;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;

pub(crate) use self::calls::CallMeter;
use self::calls::ModelCalls;
pub(crate) use self::labels::{lane, outcome_of_call, outcome_of_run};
use self::runs::Runs;
pub(crate) use self::runs::SessionMeter;
pub use self::service::Looked;
use self::service::Service;

/// The type of [`Metrics::text`], as a response's `Content-Type`.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

static METRICS: OnceLock<Metrics> = OnceLock::new();

/// Everything that is counted, by what it is about.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pub(crate) runs: Runs,
    pub(crate) calls: ModelCalls,
    pub(crate) service: Service,
}

/// Counts from here on, for the process's life. What began before is not seen.
pub fn turn_on() {
    METRICS.get_or_init(Metrics::new);
}

/// What is counted, where it is.
#[must_use]
pub fn on() -> Option<&'static Metrics> {
    METRICS.get()
}

/// Has something counted, where anything is.
pub(crate) fn record(what: impl FnOnce(&'static Metrics)) {
    if let Some(metrics) = METRICS.get() {
        what(metrics);
    }
}

impl Metrics {
    fn new() -> Self {
        let mut registry = Registry::with_prefix("navi");
        Self {
            runs: Runs::new(&mut registry),
            calls: ModelCalls::new(&mut registry),
            service: Service::new(&mut registry),
            registry,
        }
    }

    /// All of it in Prometheus' text format, with what was looked at for this answer.
    #[must_use]
    pub fn text(&self, looked: &Looked) -> String {
        self.service.looked(looked);
        let mut text = String::new();
        // A `String` takes all that is written to it.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        text
    }
}
