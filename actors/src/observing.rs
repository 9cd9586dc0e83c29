//! Where one moment is both counted (`metrics`) and traced (`traces`): whoever does the work
//! tells it once.

use crate::domain::lanes::Priority;
use crate::domain::session::change::Change;
use crate::domain::session::state::State;
use crate::llm::{Backend, LlmError};
use crate::metrics::{CallMeter, SessionMeter};
use crate::protocol::chat::{ChatRequest, FinishReason, Usage};
use crate::tools::toolbox::Toolbox;
use crate::traces::{self, CallSpan, InRun, RunSpans};

/// Watches one model call. One that is dropped before its end was cut.
#[derive(Debug)]
pub(crate) struct CallWatch {
    meter: CallMeter,
    /// None once it was told, too.
    span: Option<CallSpan>,
}

impl CallWatch {
    /// Of a call that begins now, for this run.
    pub(crate) fn begin(
        backend: &dyn Backend,
        request: &ChatRequest,
        priority: Priority,
        run: Option<InRun>,
    ) -> Self {
        Self {
            meter: CallMeter::begin(backend.kind(), priority),
            span: traces::on()
                .map(|traces| CallSpan::begin(traces, backend, request, priority, run)),
        }
    }

    /// The first of a stream came.
    pub(crate) fn first_token(&mut self) {
        self.meter.first_token();
        if let Some(span) = &mut self.span {
            span.first_token();
        }
    }

    /// The model asks for a tool.
    pub(crate) fn calls_tool(&mut self) {
        if let Some(span) = &mut self.span {
            span.calls_tool();
        }
    }

    /// The answer is whole. `usage` is what the server said.
    pub(crate) fn done(&mut self, finish: FinishReason, usage: Option<Usage>) {
        self.meter.done(usage);
        if let Some(span) = self.span.take() {
            span.done(finish, usage);
        }
    }

    pub(crate) fn failed(&mut self, error: &LlmError) {
        self.meter.failed();
        if let Some(span) = self.span.take() {
            span.failed(error);
        }
    }
}

/// Watches what a live session tells. Lives in its actor, and goes with it.
#[derive(Debug)]
pub(crate) struct SessionWatch {
    meter: SessionMeter,
    spans: Option<RunSpans>,
}

impl SessionWatch {
    /// Of a session that stands so.
    pub(crate) fn new(told: &State) -> Self {
        Self {
            meter: SessionMeter::new(told.queue.len()),
            spans: RunSpans::new(told),
        }
    }

    /// A session that stood as `before` has committed this change and tells it.
    pub(crate) fn told(&mut self, before: &State, change: &Change, toolbox: &Toolbox) {
        self.meter.told(before, change, toolbox);
        if let Some(spans) = &mut self.spans {
            spans.told(before, change);
        }
    }
}
