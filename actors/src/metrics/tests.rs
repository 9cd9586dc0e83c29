//! What is counted, by its text: each test has counters of its own.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::Utc;
use serde_json::json;

use super::*;
use crate::domain::hangs::Role;
use crate::domain::lanes::Priority;
use crate::domain::session::change::Change;
use crate::domain::session::state::State;
use crate::domain::session::tests::store::empty as stored_session;
use crate::domain::session::transition::{Effect, Launch, StartPoint};
use crate::domain::session::write::{RunRow, Write};
use crate::protocol::approval::ConsentMode;
use crate::protocol::chat::Usage;
use crate::protocol::command::PlainConsent;
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, MessageId, Origin, RunId};
use crate::protocol::message::{ToolCall, ToolOutcome};
use crate::protocol::session::RunState;
use crate::protocol::status::BackendKind;
use crate::tools::registry::Registry as Tools;
use crate::tools::todo::TodoTool;
use crate::tools::toolbox::Toolbox;

/// Counters that live as long as those of a service do.
fn counted() -> &'static Metrics {
    Box::leak(Box::new(Metrics::new()))
}

fn text(metrics: &Metrics) -> String {
    metrics.text(&Looked {
        tabs: 0,
        database_bytes: None,
    })
}

/// The value of a sample, by its name and labels as they stand.
#[track_caller]
fn value(metrics: &Metrics, sample: &str) -> f64 {
    let text = text(metrics);
    let mut lines = text.lines();
    let found = lines.find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    let found = found.unwrap_or_else(|| panic!("no {sample} in\n{text}"));
    found.parse().unwrap()
}

fn changes(writes: Vec<Write>, events: Vec<Event>) -> Change {
    Change {
        writes,
        events: events.into_iter().map(|event| (None, event)).collect(),
        closed: Vec::new(),
    }
}

fn started(run_id: RunId, parent_run_id: Option<RunId>) -> Write {
    Write::RunStarted(RunRow {
        run_id,
        parent_run_id,
        call_id: parent_run_id.map(|_| CallId::new()),
        message_id: MessageId::new(),
        profile_id: "p".to_owned(),
        backend: String::new(),
        model: String::new(),
        started_at: Utc::now(),
    })
}

fn ended(run_id: RunId, state: RunState) -> Write {
    Write::RunEnded {
        run_id,
        state,
        reason: None,
        iterations: 1,
        prompt_tokens: 0,
        completion_tokens: 0,
        cached_tokens: 0,
        leaked_calls: 0,
        at: Utc::now(),
    }
}

fn called(tool: &str, outcome: ToolOutcome, duration_ms: u64) -> Event {
    Event::ToolCall {
        tool: tool.to_owned(),
        args: json!({}),
        result: String::new(),
        success: outcome == ToolOutcome::Success,
        outcome,
        is_subagent: false,
        call_id: CallId::new(),
        duration_ms,
        outside: false,
        files: Vec::new(),
        lent: false,
    }
}

fn launch(run_id: RunId, again: Vec<ToolCall>) -> Effect {
    Effect::Launch(Box::new(Launch {
        config: None,
        run_id,
        message_id: MessageId::new(),
        plans: false,
        consent: PlainConsent::default(),
        from: StartPoint::Start {
            again,
            steps: Default::default(),
        },
        profile_id: String::new(),
        model: None,
        before_seq: 0,
    }))
}

fn toolbox() -> Toolbox {
    let todo: std::sync::Arc<dyn crate::tools::Tool> = std::sync::Arc::new(TodoTool);
    Toolbox::new(Tools::new([todo]))
}

#[test]
fn runs_are_counted_by_kind_and_outcome() {
    let metrics = counted();
    let mut meter = SessionMeter::of(Some(&metrics.runs), 0);
    let mut state = empty_session();
    let (run, child) = (RunId::new(), RunId::new());
    for change in [
        changes(vec![started(run, None)], Vec::new()),
        changes(vec![started(child, Some(run))], Vec::new()),
        changes(vec![ended(child, RunState::Limited)], Vec::new()),
        changes(vec![ended(run, RunState::Completed)], Vec::new()),
    ] {
        meter.told(&state, &change, &toolbox());
        state.apply(&change);
    }
    for (sample, expected) in [
        (r#"navi_runs_started_total{kind="foreground"}"#, 1.0),
        (r#"navi_runs_started_total{kind="subagent"}"#, 1.0),
        (
            r#"navi_runs_ended_total{kind="foreground",outcome="completed"}"#,
            1.0,
        ),
        (
            r#"navi_runs_ended_total{kind="subagent",outcome="limited"}"#,
            1.0,
        ),
        (
            r#"navi_runs_ended_total{kind="foreground",outcome="limited"}"#,
            0.0,
        ),
    ] {
        assert_eq!(value(metrics, sample), expected, "{sample}");
    }
}

#[test]
fn a_tool_that_is_not_navis_own_has_no_label_of_its_own() {
    let metrics = counted();
    let mut meter = SessionMeter::of(Some(&metrics.runs), 0);
    let calls = vec![
        called("todo", ToolOutcome::Success, 250),
        called("todo", ToolOutcome::Success, 750),
        called("rm -rf \"\n", ToolOutcome::Failed, 0),
    ];
    let change = changes(Vec::new(), calls);
    meter.told(&empty_session(), &change, &toolbox());
    let todo = r#"{tool="todo",outcome="success"}"#;
    assert_eq!(
        value(metrics, &format!("navi_tool_call_seconds_count{todo}")),
        2.0
    );
    assert_eq!(
        value(metrics, &format!("navi_tool_call_seconds_sum{todo}")),
        1.0
    );
    let unknown = r#"navi_tool_call_seconds_count{tool="unknown",outcome="failed"}"#;
    assert_eq!(value(metrics, unknown), 1.0);
    assert!(!text(metrics).contains("rm -rf"));
}

#[test]
fn what_waits_in_a_session_goes_with_it() {
    let metrics = counted();
    let mut meter = SessionMeter::of(Some(&metrics.runs), 2);
    let other = SessionMeter::of(Some(&metrics.runs), 1);
    assert_eq!(value(metrics, "navi_messages_waiting"), 3.0);
    assert_eq!(value(metrics, "navi_sessions_live"), 2.0);
    let withdrawn = changes(vec![Write::Dequeue(MessageId::new())], Vec::new());
    meter.told(&empty_session(), &withdrawn, &toolbox());
    assert_eq!(value(metrics, "navi_messages_waiting"), 2.0);
    drop(meter);
    assert_eq!(value(metrics, "navi_messages_waiting"), 1.0);
    drop(other);
    assert_eq!(value(metrics, "navi_messages_waiting"), 0.0);
    assert_eq!(value(metrics, "navi_sessions_live"), 0.0);
}

#[test]
fn of_a_turn_the_first_request_counts_and_of_one_that_goes_on_none() {
    let metrics = counted();
    let count = || value(metrics, "navi_turn_first_request_seconds_count");
    let (turn, repeated, unheard) = (RunId::new(), RunId::new(), RunId::new());
    let again = vec![ToolCall {
        id: CallId::new(),
        name: "todo".to_owned(),
        arguments: json!({}),
    }];
    let then = [
        launch(turn, Vec::new()),
        launch(repeated, again),
        launch(unheard, Vec::new()),
    ];
    metrics.runs.turns_begin(&then);
    metrics.runs.request_leaves(repeated);
    assert_eq!(count(), 0.0);
    metrics.runs.request_leaves(turn);
    metrics.runs.request_leaves(turn);
    assert_eq!(count(), 1.0);
    drop(metrics.runs.go(Origin::foreground(unheard)));
    metrics.runs.request_leaves(unheard);
    assert_eq!(count(), 1.0, "a run that is over asks no more");
}

#[test]
fn a_run_is_in_progress_until_it_is_dropped() {
    let metrics = counted();
    let sample = r#"navi_runs_in_progress{kind="foreground"}"#;
    let going = metrics.runs.go(Origin::foreground(RunId::new()));
    assert_eq!(value(metrics, sample), 1.0);
    drop(going);
    assert_eq!(value(metrics, sample), 0.0);
}

#[test]
fn a_call_that_is_dropped_was_cut() {
    let metrics = counted();
    let begin = || {
        CallMeter::of(
            Some(&metrics.calls),
            BackendKind::Ollama,
            Priority::Interactive,
        )
    };
    drop(begin());
    begin().failed();
    let mut call = begin();
    call.first_token();
    call.done(Some(Usage {
        prompt_tokens: 40,
        completion_tokens: 2,
        cached_tokens: Some(30),
    }));
    drop(call);
    for outcome in ["cut", "failed", "done"] {
        let sample =
            format!(r#"navi_model_call_seconds_count{{backend="ollama",outcome="{outcome}"}}"#);
        assert_eq!(value(metrics, &sample), 1.0, "{sample}");
    }
    let first = r#"navi_model_first_token_seconds_count{backend="ollama",lane="interactive"}"#;
    assert_eq!(value(metrics, first), 1.0);
    let prompt = r#"navi_model_tokens_total{backend="ollama",kind="prompt"}"#;
    assert_eq!(value(metrics, prompt), 40.0);
    let cached = r#"navi_model_tokens_total{backend="ollama",kind="cached"}"#;
    assert_eq!(value(metrics, cached), 30.0);
}

#[test]
fn a_transaction_counts_its_commits_by_what_came_of_them() {
    let metrics = counted();
    let took = Duration::from_millis(2);
    let service = &metrics.service;
    service.transaction(&[Ok(()), Err("gone"), Ok(())], took);
    service.thread(Role::Service("http"), took);
    service.mailbox("root", took);
    service.restarted("journal");
    for (sample, expected) in [
        (r#"navi_journal_commits_total{outcome="committed"}"#, 2.0),
        (r#"navi_journal_commits_total{outcome="failed"}"#, 1.0),
        ("navi_journal_transaction_seconds_count", 1.0),
        (
            r#"navi_journal_transaction_seconds_bucket{le="0.001"}"#,
            0.0,
        ),
        (
            r#"navi_journal_transaction_seconds_bucket{le="0.0025"}"#,
            1.0,
        ),
        ("navi_journal_transaction_commits_sum", 3.0),
        (r#"navi_event_loop_lag_seconds_count{thread="http"}"#, 1.0),
        (r#"navi_mailbox_wait_seconds_count{actor="root"}"#, 1.0),
        (r#"navi_actor_restarts_total{actor="journal"}"#, 1.0),
    ] {
        assert_eq!(value(metrics, sample), expected, "{sample}");
    }
}

#[test]
fn what_cannot_be_known_has_no_sample() {
    let metrics = counted();
    assert!(!text(metrics).contains("\nnavi_database_bytes "));
    let with_file = metrics.text(&Looked {
        tabs: 7,
        database_bytes: Some(4096),
    });
    assert!(with_file.contains("\nnavi_database_bytes 4096\n"));
    assert!(with_file.contains("\nnavi_tabs_open 7\n"));
}

/// Everything at least once.
fn all_counted() -> &'static Metrics {
    let metrics = counted();
    let took = Duration::from_millis(1);
    let mut meter = SessionMeter::of(Some(&metrics.runs), 0);
    let change = changes(Vec::new(), vec![called("todo", ToolOutcome::Success, 1)]);
    meter.told(&empty_session(), &change, &toolbox());
    let kind = BackendKind::Starter;
    let mut call = CallMeter::of(Some(&metrics.calls), kind, Priority::Subagent);
    call.first_token();
    call.done(Some(Usage {
        prompt_tokens: 1,
        completion_tokens: 1,
        cached_tokens: None,
    }));
    drop(call);
    metrics.calls.queue(kind, 2, 1);
    metrics.service.mailbox("llm", took);
    metrics.service.thread(Role::Sessions, took);
    metrics.service.restarted("session");
    metrics.service.tab_behind();
    metrics
}

#[test]
fn the_documentation_names_what_there_is_and_nothing_else() {
    let text = all_counted().text(&Looked {
        tabs: 1,
        database_bytes: Some(1),
    });
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let told: BTreeSet<&str> = types.filter_map(|it| it.split(' ').next()).collect();
    let documentation = include_str!("../../../docs/observing.md");
    let rows = documentation
        .lines()
        .filter(|line| line.starts_with("| `navi_"));
    let names = rows.flat_map(|row| {
        let cell = row.split(" | ").next().unwrap_or_default();
        cell.split('`').filter(|part| part.starts_with("navi_"))
    });
    let named: BTreeSet<&str> = names.filter_map(|name| name.split('{').next()).collect();
    assert_eq!(named, told);
}

fn empty_session() -> State {
    State::from_loaded(stored_session(), ConsentMode::Ask)
}
