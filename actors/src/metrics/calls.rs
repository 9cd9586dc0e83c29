//! Model calls, and who waits for one.

use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::labels::{Make, OfBackend, OfEndedCall, OfLane, OfTokens, lane, long, set};
use crate::domain::lanes::Priority;
use crate::protocol::chat::Usage;
use crate::protocol::status::BackendKind;

/// See the module.
#[derive(Debug)]
pub(crate) struct ModelCalls {
    first_token: Family<OfLane, Histogram, Make>,
    took: Family<OfEndedCall, Histogram, Make>,
    tokens: Family<OfTokens, Counter>,
    waiting: Family<OfBackend, Gauge>,
    running: Family<OfBackend, Gauge>,
}

impl ModelCalls {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let new = Self {
            first_token: Family::new_with_constructor(long),
            took: Family::new_with_constructor(long),
            tokens: Family::default(),
            waiting: Family::default(),
            running: Family::default(),
        };
        registry.register_with_unit(
            "model_first_token",
            "From a request to its first token, of streamed calls",
            Unit::Seconds,
            new.first_token.clone(),
        );
        registry.register_with_unit(
            "model_call",
            "Model calls, from the request to their end",
            Unit::Seconds,
            new.took.clone(),
        );
        registry.register(
            "model_tokens",
            "Tokens as model servers count them",
            new.tokens.clone(),
        );
        registry.register(
            "model_calls_waiting",
            "Calls that wait for a slot of the backend",
            new.waiting.clone(),
        );
        registry.register(
            "model_calls_running",
            "Calls that hold a slot of the backend",
            new.running.clone(),
        );
        new
    }

    /// How a backend's queue is now.
    pub(crate) fn queue(&self, backend: BackendKind, waiting: usize, running: usize) {
        let of = OfBackend {
            backend: backend.as_str(),
        };
        set(&self.waiting.get_or_create(&of), waiting);
        set(&self.running.get_or_create(&of), running);
    }
}

/// Times one call. One that is dropped before its end was cut.
#[derive(Debug)]
pub(crate) struct CallMeter(Option<Call>);

#[derive(Debug)]
struct Call {
    calls: &'static ModelCalls,
    backend: &'static str,
    lane: &'static str,
    began: Instant,
    outcome: &'static str,
}

impl CallMeter {
    /// Of a call that begins now. Where nothing is counted it does nothing.
    pub(crate) fn begin(backend: BackendKind, priority: Priority) -> Self {
        Self::of(super::on().map(|on| &on.calls), backend, priority)
    }

    pub(super) fn of(
        calls: Option<&'static ModelCalls>,
        backend: BackendKind,
        priority: Priority,
    ) -> Self {
        Self(calls.map(|calls| Call {
            calls,
            backend: backend.as_str(),
            lane: lane(priority),
            began: Instant::now(),
            outcome: "cut",
        }))
    }

    /// The first of a stream came.
    pub(crate) fn first_token(&self) {
        if let Some(Call {
            calls,
            backend,
            lane,
            began,
            ..
        }) = &self.0
        {
            let waited = began.elapsed().as_secs_f64();
            let of = OfLane { backend, lane };
            calls.first_token.get_or_create(&of).observe(waited);
        }
    }

    /// The answer is whole. `usage` is what the server said.
    pub(crate) fn done(&mut self, usage: Option<Usage>) {
        let Some(call) = &mut self.0 else {
            return;
        };
        call.outcome = "done";
        let Some(usage) = usage else {
            return;
        };
        let counted = [
            ("prompt", usage.prompt_tokens),
            ("completion", usage.completion_tokens),
        ];
        let cached = usage.cached_tokens.map(|tokens| ("cached", tokens));
        for (kind, tokens) in counted.into_iter().chain(cached) {
            let backend = call.backend;
            let of = OfTokens { backend, kind };
            let counter = call.calls.tokens.get_or_create(&of);
            counter.inc_by(tokens.into());
        }
    }

    pub(crate) fn failed(&mut self) {
        if let Some(call) = &mut self.0 {
            call.outcome = "failed";
        }
    }
}

impl Drop for CallMeter {
    fn drop(&mut self) {
        if let Some(call) = &self.0 {
            let of = OfEndedCall {
                backend: call.backend,
                outcome: call.outcome,
            };
            let took = call.began.elapsed().as_secs_f64();
            call.calls.took.get_or_create(&of).observe(took);
        }
    }
}
