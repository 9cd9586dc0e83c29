//! Model calls: each request to a model server, one that is tried again too.

use std::time::SystemTime;

use opentelemetry::{Array, StringValue, Value};
use url::Url;

use super::span::{Place, Span, Timed};
use super::{InRun, Traces};
use crate::domain::lanes::Priority;
use crate::llm::{Backend, LlmError};
use crate::metrics::lane;
use crate::protocol::chat::{ChatRequest, FinishReason, Usage};
use crate::protocol::error::ErrorCode;
use crate::protocol::status::BackendKind;

/// One call's span. One that is dropped before its end was cut.
#[derive(Debug)]
pub(crate) struct CallSpan {
    timed: Timed,
    calls_tools: bool,
    outcome: &'static str,
}

impl CallSpan {
    /// Of a call that begins now. One that is for no run (a title, facts to remember) is a trace
    /// by itself.
    pub(crate) fn begin(
        traces: &'static Traces,
        backend: &dyn Backend,
        request: &ChatRequest,
        priority: Priority,
        run: Option<InRun>,
    ) -> Self {
        let place = run.map_or_else(Place::alone, |run| Place::within(run.run_id));
        let name = format!("chat {}", request.model);
        let mut span = Span::new(place, name, SystemTime::now());
        span.set("gen_ai.operation.name", "chat");
        span.set("gen_ai.provider.name", backend.kind().as_str());
        span.set("gen_ai.request.model", request.model.clone());
        if let Some(run) = run {
            span.set("gen_ai.conversation.id", run.session_id.to_string());
        }
        span.set("gen_ai.request.temperature", f64::from(request.temperature));
        if let Some(tokens) = request.max_output_tokens {
            span.set("gen_ai.request.max_tokens", i64::from(tokens));
        }
        span.set("gen_ai.request.stream", request.streamed);
        span.set("navi.lane", lane(priority));
        // The starter computes in this process.
        if backend.kind() != BackendKind::Starter {
            span = span.client();
            set_server(&mut span, &backend.address());
        }
        Self {
            timed: Timed::begin(traces, span),
            calls_tools: false,
            outcome: "cut",
        }
    }

    /// The first of a stream came.
    pub(crate) fn first_token(&mut self) {
        let seconds = self.timed.seconds();
        self.timed
            .change(|span| span.set("gen_ai.response.time_to_first_chunk", seconds));
    }

    /// The model asks for a tool.
    pub(crate) fn calls_tool(&mut self) {
        self.calls_tools = true;
    }

    /// The answer is whole. `usage` is what the server said.
    pub(crate) fn done(mut self, finish: FinishReason, usage: Option<Usage>) {
        self.outcome = "done";
        let reason = match finish {
            FinishReason::Stop if self.calls_tools => "tool_calls",
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::Other => "other",
        };
        self.timed.change(|span| {
            let reasons = vec![StringValue::from(reason)];
            span.set(
                "gen_ai.response.finish_reasons",
                Value::Array(Array::String(reasons)),
            );
            if let Some(usage) = usage {
                set_usage(
                    span,
                    usage.prompt_tokens.into(),
                    usage.completion_tokens.into(),
                );
            }
        });
    }

    pub(crate) fn failed(mut self, error: &LlmError) {
        self.outcome = "failed";
        self.timed.change(|span| span.fail(word(error.code())));
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        let outcome = self.outcome;
        self.timed.change(|span| span.set("navi.outcome", outcome));
    }
}

pub(super) fn set_usage(span: &mut Span, prompt_tokens: u64, completion_tokens: u64) {
    for (key, tokens) in [
        ("gen_ai.usage.input_tokens", prompt_tokens),
        ("gen_ai.usage.output_tokens", completion_tokens),
    ] {
        span.set(key, i64::try_from(tokens).unwrap_or(i64::MAX));
    }
}

/// A code as it stands on the wire.
fn word(code: ErrorCode) -> String {
    let word = serde_json::to_value(code).ok();
    let word = word.and_then(|word| word.as_str().map(str::to_owned));
    word.unwrap_or_default()
}

/// Host and port alone: an address may hold a password.
fn set_server(span: &mut Span, address: &str) {
    let Ok(url) = Url::parse(address) else {
        return;
    };
    if let Some(host) = url.host_str() {
        span.set("server.address", host.to_owned());
    }
    if let Some(port) = url.port_or_known_default() {
        span.set("server.port", i64::from(port));
    }
}
