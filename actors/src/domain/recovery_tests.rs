//! What a crash leaves, at each place where it can happen.
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::json;

use super::recovery::{DeadRun, UnfinishedPart, close};
use super::run_loop::{Record, RunEnd};
use super::session::state::TokensUsed;
use crate::protocol::event::{Event, PartKind};
use crate::protocol::ids::{CallId, MessageId, RunId};
use crate::protocol::message::{Message, MessageState, ToolCall, ToolOutcome};

const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: CallId(id.into()),
        name: "filesystem".into(),
        arguments: json!({}),
    }
}

fn interrupt(
    messages: &[Arc<Message>],
    unfinished: &[UnfinishedPart],
    started: &[&str],
) -> Vec<Record> {
    let started = started.iter();
    let started: HashMap<CallId, bool> = started
        .map(|id| (CallId((*id).into()), id.starts_with("lent")))
        .collect();
    let wreck = DeadRun {
        run_id: RunId::new(),
        messages,
        unfinished,
        started: &started,
        reads: &HashSet::new(),
        used: TokensUsed {
            prompt: 7,
            completion: 3,
            cached: 5,
        },
    };
    let end = RunEnd::Interrupted {
        reason: "down".into(),
    };
    close(&wreck, end, NOW)
}

fn messages_of(records: &[Record]) -> Vec<&Message> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Message(message) => Some(message),
            _ => None,
        })
        .collect()
}

fn asked(calls: &[&str]) -> Vec<Arc<Message>> {
    let run = RunId::new();
    let mut reply = Message::assistant(MessageId::new(), run, NOW);
    reply.tool_calls = calls.iter().map(|id| call(id)).collect();
    vec![
        Arc::new(Message::user(MessageId::new(), run, "do it".into(), NOW)),
        Arc::new(reply),
    ]
}

#[test]
fn before_the_first_word_only_the_end_is_missing() {
    let user = Message::user(MessageId::new(), RunId::new(), "hi".into(), NOW);
    let records = interrupt(&[Arc::new(user)], &[], &[]);
    let [
        Record::Event(Event::RunInterrupted {
            can_continue: true, ..
        }),
        Record::Ended(summary),
    ] = &records[..]
    else {
        unreachable!("two records: {records:?}");
    };
    // What it used stays used.
    assert_eq!((summary.prompt_tokens, summary.completion_tokens), (7, 3));
    assert_eq!(summary.cached_tokens, 5);
}

#[test]
fn in_mid_answer_text_and_reasoning_become_one_message() {
    let id = MessageId::new();
    let part = |kind, text: &str| UnfinishedPart {
        message_id: id,
        kind,
        text: text.into(),
    };
    let parts = [part(PartKind::Thinking, "hm"), part(PartKind::Text, "half")];
    let records = interrupt(&[], &parts, &[]);
    let messages = messages_of(&records);
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].id, id);
    assert_eq!(messages[0].content.as_deref(), Some("half"));
    assert_eq!(messages[0].thinking.as_deref(), Some("hm"));
    assert_eq!(messages[0].state, MessageState::Interrupted);
}

#[test]
fn among_calls_each_gets_the_result_that_is_true_of_it() {
    let mut messages = asked(&["a", "b", "c"]);
    messages.push(Arc::new(Message::tool_result(
        RunId::new(),
        &call("a"),
        ToolOutcome::Success,
        "done".into(),
        NOW,
    )));
    let records = interrupt(&messages, &[], &["a", "b"]);
    let outcomes: Vec<_> = messages_of(&records)
        .iter()
        .map(|m| (m.tool_call_id.as_ref().map(|id| id.0.as_str()), m.outcome))
        .collect();
    assert_eq!(
        outcomes,
        [
            (Some("b"), Some(ToolOutcome::OutcomeUnknown)),
            (Some("c"), Some(ToolOutcome::Failed)),
        ]
    );
}

#[test]
fn the_end_of_a_call_says_of_its_tool_what_its_start_said() {
    let records = interrupt(&asked(&["lent", "b"]), &[], &["lent", "b"]);
    let lent: Vec<bool> = records
        .iter()
        .filter_map(|record| match record {
            Record::Event(Event::ToolCall { lent, .. }) => Some(*lent),
            _ => None,
        })
        .collect();
    assert_eq!(lent, [true, false]);
}

#[test]
fn a_history_that_is_whole_gets_no_second_result() {
    let mut messages = asked(&["a"]);
    let result = Message::tool_result(
        RunId::new(),
        &call("a"),
        ToolOutcome::Success,
        "x".into(),
        NOW,
    );
    messages.push(Arc::new(result));
    assert!(messages_of(&interrupt(&messages, &[], &["a"])).is_empty());
}
