//! Tool calls of runs, from their start to their result.

use std::time::SystemTime;

use super::span::{Place, Span, Timed};
use super::{InRun, Traces};
use crate::metrics::outcome_of_call;
use crate::protocol::ids::CallId;
use crate::protocol::message::ToolOutcome;

/// One call's span. One that is dropped before its end was stopped.
#[derive(Debug)]
pub(crate) struct ToolSpan {
    timed: Timed,
    outcome: ToolOutcome,
}

impl ToolSpan {
    /// Of a call that begins now. Where nothing is traced there is none.
    pub(crate) fn begin(run: InRun, call: &CallId, tool: &str) -> Option<Self> {
        super::on().map(|traces| Self::of(traces, run, call, tool))
    }

    pub(super) fn of(traces: &'static Traces, run: InRun, call: &CallId, tool: &str) -> Self {
        let place = Place::call(run.run_id, call);
        let mut span = Span::new(place, format!("execute_tool {tool}"), SystemTime::now());
        span.set("gen_ai.operation.name", "execute_tool");
        span.set("gen_ai.tool.name", tool.to_owned());
        span.set("gen_ai.tool.call.id", call.0.clone());
        span.set("gen_ai.tool.type", "function");
        span.set("gen_ai.conversation.id", run.session_id.to_string());
        Self {
            timed: Timed::begin(traces, span),
            outcome: ToolOutcome::Stopped,
        }
    }

    /// It has its result.
    pub(crate) fn ended(mut self, outcome: ToolOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for ToolSpan {
    fn drop(&mut self) {
        let outcome = self.outcome;
        self.timed.change(|span| {
            span.set("navi.outcome", outcome_of_call(outcome));
            if outcome == ToolOutcome::Failed {
                span.fail("tool_error");
            }
        });
    }
}
