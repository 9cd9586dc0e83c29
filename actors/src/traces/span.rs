//! A span, from what is known when it begins to its end.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Instant, SystemTime};

use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::trace::{
    IdGenerator as _, RandomIdGenerator, SpanData, SpanEvents, SpanLinks,
};

use super::Traces;
use crate::protocol::ids::{CallId, RunId};

/// Whose a span is in its trace, and beneath which other one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    trace: TraceId,
    own: SpanId,
    parent: SpanId,
}

impl Place {
    /// Of a run's own span: its trace's first.
    pub(super) fn run(run: RunId) -> Self {
        Self {
            trace: trace_of(run),
            own: span_of_run(run),
            parent: SpanId::INVALID,
        }
    }

    /// Of a call's, beneath its run's.
    pub(super) fn call(run: RunId, call: &CallId) -> Self {
        Self {
            own: span_of_call(call),
            ..Self::within(run)
        }
    }

    /// Of a span that no other hangs on, beneath its run's.
    pub(super) fn within(run: RunId) -> Self {
        Self {
            trace: trace_of(run),
            own: RandomIdGenerator::default().new_span_id(),
            parent: span_of_run(run),
        }
    }

    /// Of a span that is a trace by itself.
    pub(super) fn alone() -> Self {
        let ids = RandomIdGenerator::default();
        Self {
            trace: ids.new_trace_id(),
            own: ids.new_span_id(),
            parent: SpanId::INVALID,
        }
    }
}

/// A link to a run.
pub(super) fn link_to_run(run: RunId) -> SpanContext {
    context(trace_of(run), span_of_run(run))
}

/// A link to a call of a run's.
pub(super) fn link_to_call(run: RunId, call: &CallId) -> SpanContext {
    context(trace_of(run), span_of_call(call))
}

fn context(trace: TraceId, span: SpanId) -> SpanContext {
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::NONE)
}

fn trace_of(run: RunId) -> TraceId {
    TraceId::from_bytes(run.0.into_bytes())
}

/// The second half of the id: what is random in it.
fn span_of_run(run: RunId) -> SpanId {
    let (_, random) = run.0.as_u64_pair();
    SpanId::from_bytes(random.to_be_bytes())
}

/// The same wherever it is asked for in this process.
fn span_of_call(call: &CallId) -> SpanId {
    let mut hasher = DefaultHasher::new();
    call.0.hash(&mut hasher);
    SpanId::from_bytes(hasher.finish().to_be_bytes())
}

/// A span on its way.
#[derive(Debug)]
pub(super) struct Span {
    place: Place,
    name: Cow<'static, str>,
    kind: SpanKind,
    began: SystemTime,
    attributes: Vec<KeyValue>,
    links: SpanLinks,
    status: Status,
}

impl Span {
    pub(super) fn new(place: Place, name: impl Into<Cow<'static, str>>, began: SystemTime) -> Self {
        Self {
            place,
            name: name.into(),
            kind: SpanKind::Internal,
            began,
            attributes: Vec::with_capacity(12),
            links: SpanLinks::default(),
            status: Status::Unset,
        }
    }

    /// Of work that another program does.
    pub(super) fn client(mut self) -> Self {
        self.kind = SpanKind::Client;
        self
    }

    pub(super) fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        self.attributes.push(KeyValue::new(key, value));
    }

    pub(super) fn link(&mut self, to: SpanContext) {
        self.links.links.push(Link::with_context(to));
    }

    /// It failed, for a reason of a closed list: an error's own words may repeat what people and
    /// models said.
    pub(super) fn fail(&mut self, error: impl Into<Value>) {
        self.set("error.type", error);
        self.status = Status::error("");
    }
}

impl Traces {
    /// A span is over.
    pub(super) fn tell(&self, span: Span, ended: SystemTime) {
        let Place { trace, own, parent } = span.place;
        self.processor.on_end(SpanData {
            span_context: context(trace, own),
            parent_span_id: parent,
            parent_span_is_remote: false,
            span_kind: span.kind,
            name: span.name,
            start_time: span.began,
            end_time: ended,
            attributes: span.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: span.links,
            status: span.status,
            instrumentation_scope: self.scope.clone(),
        });
    }
}

/// A span that is told when this is dropped, timed in between.
#[derive(Debug)]
pub(super) struct Timed {
    traces: &'static Traces,
    began: Instant,
    /// None once it was told.
    span: Option<Span>,
}

impl Timed {
    /// Of a span that begins now.
    pub(super) fn begin(traces: &'static Traces, span: Span) -> Self {
        Self {
            traces,
            began: Instant::now(),
            span: Some(span),
        }
    }

    pub(super) fn change(&mut self, change: impl FnOnce(&mut Span)) {
        if let Some(span) = &mut self.span {
            change(span);
        }
    }

    /// How long it took so far, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        if let Some(span) = self.span.take() {
            // The clock of the wall may have been set meanwhile.
            let ended = span.began + self.began.elapsed();
            self.traces.tell(span, ended);
        }
    }
}
