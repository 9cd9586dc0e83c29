//! What runs do, as OpenTelemetry's spans (docs/observing.md), by its conventions for generative AI:
//! runs, model calls, tool calls, commits. What is said in them, and what tools are given and
//! give back, is never among it.
//!
//! Off unless [`turn_on`] is called before the service starts. Then whoever would tell a span
//! looks at an empty cell, and nothing is kept. Sending is not done here: a finished span goes
//! to a processor, which must not block.
//!
//! A run's id is its trace's, and the ids of spans that others hang on are made of ours. So
//! nothing is handed along with the work, and a run that a restart cuts in two is one trace.

mod calls;
mod commits;
mod runs;
mod span;
#[cfg(test)]
mod tests;
mod tools;

use std::sync::OnceLock;

use opentelemetry::InstrumentationScope;
use opentelemetry_sdk::trace::SpanProcessor;

pub(crate) use self::calls::CallSpan;
pub(crate) use self::commits::CommitSpan;
pub(crate) use self::runs::RunSpans;
pub(crate) use self::tools::ToolSpan;
use crate::protocol::ids::{RunId, SessionId};

static TRACES: OnceLock<Traces> = OnceLock::new();

/// Where finished spans go.
#[derive(Debug)]
pub struct Traces {
    processor: Box<dyn SpanProcessor>,
    scope: InstrumentationScope,
}

/// The run that some work is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InRun {
    pub session_id: SessionId,
    pub run_id: RunId,
}

/// Tells spans to this processor from here on, for the process's life.
pub fn turn_on(processor: Box<dyn SpanProcessor>) {
    TRACES.get_or_init(|| Traces::new(processor));
}

/// Where spans go, where they go anywhere.
#[must_use]
pub fn on() -> Option<&'static Traces> {
    TRACES.get()
}

impl Traces {
    fn new(processor: Box<dyn SpanProcessor>) -> Self {
        let scope = InstrumentationScope::builder("navi")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        Self { processor, scope }
    }

    /// The processor, to be shut down with the service.
    #[must_use]
    pub fn processor(&self) -> &dyn SpanProcessor {
        self.processor.as_ref()
    }
}
