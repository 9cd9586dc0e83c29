//! Spans as they reach the processor: each test has one of its own.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use chrono::Utc;
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{Context, Value};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span as SdkSpan, SpanData};
use parking_lot::Mutex;

use super::*;
use crate::domain::lanes::Priority;
use crate::domain::run_loop::EndReason;
use crate::domain::session::change::Change;
use crate::domain::session::state::State;
use crate::domain::session::tests::store::empty as stored_session;
use crate::domain::session::write::{ChunkRow, RunRow, Write};
use crate::llm::{Backend, ChatStream, LlmError, Probe};
use crate::protocol::approval::ConsentMode;
use crate::protocol::chat::{ChatRequest, FinishReason, Usage};
use crate::protocol::event::PartKind;
use crate::protocol::ids::{CallId, MessageId, OwnerId, PartId};
use crate::protocol::message::ToolOutcome;
use crate::protocol::offered::OfferedTools;
use crate::protocol::session::RunState;
use crate::protocol::status::{BackendKind, BackendState};
use crate::store::{Commit, StoreError};

/// Keeps what it is told.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl SpanProcessor for Kept {
    fn on_start(&self, _: &mut SdkSpan, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.lock().push(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl Kept {
    /// The only span.
    #[track_caller]
    fn only(&self) -> SpanData {
        let mut spans = self.0.lock();
        assert_eq!(spans.len(), 1, "{spans:#?}");
        spans.remove(0)
    }
}

/// Traces that live as long as those of a service do.
fn traced() -> (&'static Traces, Kept) {
    let kept = Kept::default();
    let traces = Traces::new(Box::new(kept.clone()));
    (Box::leak(Box::new(traces)), kept)
}

fn text(span: &SpanData, key: &str) -> Option<String> {
    let mut attributes = span.attributes.iter();
    let found = attributes.find(|pair| pair.key.as_str() == key)?;
    Some(match &found.value {
        Value::String(text) => text.to_string(),
        other => format!("{other:?}"),
    })
}

#[derive(Debug)]
struct Somewhere(BackendKind, &'static str);

#[async_trait]
impl Backend for Somewhere {
    fn kind(&self) -> BackendKind {
        self.0
    }

    fn address(&self) -> String {
        self.1.to_owned()
    }

    async fn probe(&self) -> Probe {
        Probe {
            state: BackendState::Unknown,
            version: None,
            models: Vec::new(),
            default_model: None,
            capacity: None,
        }
    }

    async fn chat(&self, _: Arc<ChatRequest>) -> Result<ChatStream, LlmError> {
        Err(LlmError::EndedEarly)
    }
}

fn request() -> ChatRequest {
    ChatRequest {
        model: "m".to_owned(),
        messages: Vec::new(),
        tools: OfferedTools::default(),
        temperature: 0.5,
        think: false,
        context_window: 8192,
        max_output_tokens: Some(7),
        streamed: true,
        form: None,
    }
}

fn a_run() -> InRun {
    InRun {
        session_id: SessionId::new(),
        run_id: RunId::new(),
    }
}

fn begin(traces: &'static Traces, backend: &Somewhere, run: Option<InRun>) -> CallSpan {
    CallSpan::begin(traces, backend, &request(), Priority::Interactive, run)
}

#[test]
fn a_call_that_is_dropped_was_cut() {
    let (traces, kept) = traced();
    let server = Somewhere(BackendKind::Openai, "http://me:secret@gpu:9000/v1");
    let run = a_run();
    drop(begin(traces, &server, Some(run)));
    let cut = kept.only();
    assert_eq!(text(&cut, "navi.outcome").as_deref(), Some("cut"));
    assert_eq!(cut.status, Status::Unset);
    assert_eq!(cut.span_kind, SpanKind::Client);
    assert_eq!(text(&cut, "server.address").as_deref(), Some("gpu"));
    assert_eq!(text(&cut, "server.port").as_deref(), Some("I64(9000)"));
    assert!(!format!("{cut:?}").contains("secret"));
    assert_eq!(
        cut.span_context.trace_id().to_bytes(),
        run.run_id.0.into_bytes()
    );

    begin(traces, &server, Some(run)).failed(&LlmError::MidStream {
        message: "what it had said".to_owned(),
    });
    let failed = kept.only();
    assert_eq!(
        text(&failed, "error.type").as_deref(),
        Some("backend_stream_broken")
    );
    assert!(matches!(failed.status, Status::Error { .. }));
    assert!(!format!("{failed:?}").contains("what it had said"));
}

#[test]
fn a_call_for_no_run_is_a_trace_by_itself() {
    let (traces, kept) = traced();
    let starter = Somewhere(BackendKind::Starter, "in process");
    let usage = Usage {
        prompt_tokens: 40,
        completion_tokens: 2,
        cached_tokens: None,
    };
    begin(traces, &starter, None).done(FinishReason::Stop, Some(usage));
    let span = kept.only();
    assert!(span.span_context.is_valid());
    assert_eq!(span.parent_span_id, opentelemetry::trace::SpanId::INVALID);
    assert_eq!(span.span_kind, SpanKind::Internal);
    assert_eq!(text(&span, "gen_ai.conversation.id"), None);
    assert_eq!(text(&span, "server.address"), None);
    assert_eq!(
        text(&span, "gen_ai.usage.input_tokens").as_deref(),
        Some("I64(40)")
    );
}

#[test]
fn a_tool_that_is_dropped_was_stopped() {
    let (traces, kept) = traced();
    let (run, call) = (a_run(), CallId::new());
    let begin = || ToolSpan::of(traces, run, &call, "todo");
    drop(begin());
    let stopped = kept.only();
    assert_eq!(text(&stopped, "navi.outcome").as_deref(), Some("stopped"));
    assert_eq!(stopped.status, Status::Unset);
    begin().ended(ToolOutcome::Failed);
    let failed = kept.only();
    assert_eq!(text(&failed, "error.type").as_deref(), Some("tool_error"));
    begin().ended(ToolOutcome::Success);
    assert_eq!(text(&kept.only(), "error.type"), None);
}

fn commit(writes: Vec<Write>) -> Commit {
    Commit {
        session_id: SessionId::new(),
        owner: OwnerId::new(),
        epoch: 1,
        writes,
    }
}

fn chunk(run_id: RunId) -> Write {
    let message_id = MessageId::new();
    Write::Chunk(ChunkRow {
        after_seq: 1,
        run_id,
        part_id: PartId::text(message_id),
        kind: PartKind::Text,
        message_id,
        offset: 0,
        text: "said".to_owned(),
        parent_run_id: None,
        goes_on: None,
    })
}

fn started(run_id: RunId, parent: Option<(RunId, CallId)>, message_id: MessageId) -> RunRow {
    let (parent_run_id, call_id) = parent.unzip();
    RunRow {
        run_id,
        parent_run_id,
        call_id,
        message_id,
        profile_id: "p".to_owned(),
        backend: "ollama".to_owned(),
        model: "m".to_owned(),
        started_at: Utc::now(),
    }
}

fn ended(run_id: RunId, state: RunState) -> Write {
    Write::RunEnded {
        run_id,
        state,
        reason: Some(EndReason {
            text: "what nobody shall read".to_owned(),
            phrase: None,
        }),
        iterations: 1,
        prompt_tokens: 10,
        completion_tokens: 2,
        cached_tokens: 0,
        leaked_calls: 0,
        at: Utc::now(),
    }
}

#[test]
fn commits_are_told_where_a_run_goes_and_more_than_text_is_logged() {
    let (traces, kept) = traced();
    let run = RunId::new();
    let begin = |writes, running| CommitSpan::of(traces, &commit(writes), running, "sqlite");
    assert!(begin(vec![chunk(run), chunk(run)], Some(run)).is_none());
    assert!(begin(vec![Write::Title("t".to_owned())], None).is_none());
    let first = begin(
        vec![Write::RunStarted(started(run, None, MessageId::new()))],
        None,
    );
    first.unwrap().ended(&Ok(()));
    let first = kept.only();
    assert_eq!(first.span_context.trace_id().to_bytes(), run.0.into_bytes());
    assert_eq!(text(&first, "db.operation.batch.size"), None);
    assert_eq!(first.status, Status::Unset);
    let next = begin(vec![chunk(run), ended(run, RunState::Completed)], Some(run));
    let problem = StoreError::Unavailable("no".to_owned());
    next.unwrap().ended(&Err(problem));
    let next = kept.only();
    assert_eq!(
        text(&next, "error.type").as_deref(),
        Some("store_unavailable")
    );
    assert_eq!(
        text(&next, "db.operation.batch.size").as_deref(),
        Some("I64(2)")
    );
    assert_eq!(next.parent_span_id, first.parent_span_id);
}

/// A session and the spans of its runs.
struct House {
    traces: &'static Traces,
    state: State,
    spans: RunSpans,
    kept: Kept,
}

impl House {
    fn new() -> Self {
        let (traces, kept) = traced();
        let state = State::from_loaded(stored_session(), ConsentMode::Ask);
        let spans = RunSpans::of(traces, &state);
        Self {
            traces,
            state,
            spans,
            kept,
        }
    }

    fn tell(&mut self, writes: Vec<Write>) {
        let change = Change {
            writes,
            ..Change::default()
        };
        self.spans.told(&self.state, &change);
        self.state.apply(&change);
    }

    /// The service went down and came again.
    fn restart(&mut self) {
        self.spans = RunSpans::of(self.traces, &self.state);
    }
}

#[test]
fn a_run_that_another_process_finds_has_the_same_span() {
    let mut house = House::new();
    let (run, child, call) = (RunId::new(), RunId::new(), CallId::new());
    let row = started(run, None, MessageId::new());
    let began: SystemTime = row.started_at.into();
    house.tell(vec![Write::RunStarted(row)]);
    let row = started(child, Some((run, call)), MessageId::new());
    house.tell(vec![Write::RunStarted(row)]);
    house.restart();

    house.tell(vec![ended(child, RunState::Stopped)]);
    let span = house.kept.only();
    let [link] = &span.links[..] else {
        panic!("{span:?}");
    };
    assert_eq!(link.span_context.trace_id().to_bytes(), run.0.into_bytes());
    assert!(began.duration_since(span.start_time).unwrap() < Duration::from_secs(1));

    house.tell(vec![ended(run, RunState::Interrupted)]);
    let span = house.kept.only();
    assert_eq!(span.start_time, began);
    assert!(span.links.is_empty());
    assert_eq!(
        text(&span, "error.type").as_deref(),
        Some("run_interrupted")
    );
    assert_eq!(text(&span, "gen_ai.request.model").as_deref(), Some("m"));
    assert!(!format!("{span:?}").contains("nobody shall read"));
}

#[test]
fn a_run_that_goes_on_in_the_change_that_ends_the_one_before_links_to_it() {
    let mut house = House::new();
    let (first, next, message) = (RunId::new(), RunId::new(), MessageId::new());
    house.tell(vec![Write::RunStarted(started(first, None, message))]);
    house.tell(vec![
        ended(first, RunState::Interrupted),
        Write::RunStarted(started(next, None, message)),
    ]);
    house.kept.only();
    house.tell(vec![ended(next, RunState::Completed)]);
    assert_eq!(house.kept.only().links.len(), 1);
}

#[test]
fn only_a_run_that_goes_on_links_to_the_one_before() {
    for (state, same_message, links) in [
        (RunState::Interrupted, true, 1),
        (RunState::Failed, true, 1),
        (RunState::Completed, true, 0),
        (RunState::Interrupted, false, 0),
    ] {
        let mut house = House::new();
        let (first, next, message) = (RunId::new(), RunId::new(), MessageId::new());
        house.tell(vec![Write::RunStarted(started(first, None, message))]);
        house.tell(vec![ended(first, state)]);
        house.kept.only();
        let message = if same_message {
            message
        } else {
            MessageId::new()
        };
        house.tell(vec![Write::RunStarted(started(next, None, message))]);
        house.tell(vec![ended(next, RunState::Completed)]);
        let span = house.kept.only();
        assert_eq!(span.links.len(), links, "{state:?} {same_message}");
        for link in span.links {
            assert_eq!(
                link.span_context.trace_id().to_bytes(),
                first.0.into_bytes()
            );
        }
    }
}
