use chrono::{DateTime, Utc};
use navi_actors::protocol::error::ErrorCode;
use navi_actors::protocol::event::Envelope;
use serde_json::{Value, json};

use super::*;
use crate::meter::Reading;
use crate::outcome::Turn;

fn check(toml: &str) -> Check {
    #[derive(Deserialize)]
    struct File {
        check: Check,
    }
    toml::from_str::<File>(&format!("check = {toml}"))
        .unwrap()
        .check
}

/// An event as it comes over the wire.
fn event(mut event: Value) -> Envelope {
    event["seq"] = json!(1);
    event["at"] = json!("2024-05-06T07:08:09Z");
    serde_json::from_value(event).unwrap()
}

fn call(id: &str, tool: &str, args: &Value, success: bool) -> [Envelope; 2] {
    let started = json!({
        "type": "tool_started", "tool": tool, "args": args, "is_subagent": false,
        "call_id": id, "message_id": uuid::Uuid::nil(),
    });
    let ended = json!({
        "type": "tool_call", "tool": tool, "args": args, "result": "", "success": success,
        "outcome": if success { "success" } else { "failed" }, "is_subagent": false,
        "call_id": id, "duration_ms": 1,
    });
    [event(started), event(ended)]
}

fn plan(text: &str, steps: u32) -> Envelope {
    let steps: Vec<Value> = (1..=steps)
        .map(|number| json!({"number": number, "text": "step", "executor": "self"}))
        .collect();
    event(json!({
        "type": "plan_ready", "plan": text, "message_id": uuid::Uuid::nil(), "steps": steps,
    }))
}

fn outcome(events: Vec<Envelope>, answer: &str) -> Outcome {
    let at = DateTime::<Utc>::UNIX_EPOCH;
    let session = json!({
        "id": uuid::Uuid::nil(), "user_id": uuid::Uuid::nil(), "title": "", "pinned": false,
        "profile_id": "secretary", "context_token_count": 0, "state": "idle",
        "created_at": at, "last_active": at, "messages": [],
        "todo": [{"id": 1, "text": "a", "status": "done"}, {"id": 2, "text": "b", "status": "pending"}],
        "plan": null, "compression": null, "forks": [], "queue": [], "run": null,
        "mode": "edits", "approvals": [],
        "unknown_calls": [], "can_continue": false, "max_context_tokens": 0, "last_seq": 0, "epoch": 1,
    });
    Outcome {
        events,
        turns: vec![Turn {
            answer: Some(answer.to_owned()),
            end: End::Answered { completed: true },
        }],
        session: serde_json::from_value(session).unwrap(),
        workspace: "/nowhere".into(),
        remembered: None,
        spent: Reading::default(),
        tools: vec!["filesystem".to_owned(), "todo".to_owned()],
        profiles: vec!["secretary".to_owned()],
    }
}

#[track_caller]
fn holds(at: &Outcome, toml: &str) {
    assert_eq!(check(toml).look(at), Ok(()), "{toml}");
}

#[track_caller]
fn fails(at: &Outcome, toml: &str, because: &str) {
    let found = check(toml).look(at).unwrap_err();
    assert!(found.contains(because), "{toml}: {found}");
}

#[test]
fn files_are_looked_at_where_the_session_has_them() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "one\ntwo\n").unwrap();
    let mut at = outcome(Vec::new(), "");
    at.workspace = dir.path().to_owned();
    holds(&at, "{ file_exists = { path = 'a.txt' } }");
    fails(
        &at,
        "{ file_exists = { path = 'b.txt' } }",
        "no file b.txt; there is a.txt",
    );
    holds(&at, "{ file_missing = { path = 'b.txt' } }");
    fails(
        &at,
        "{ file_missing = { path = 'a.txt' } }",
        "a.txt is there",
    );
    holds(
        &at,
        "{ file_contains = { path = 'a.txt', matches = '^two$' } }",
    );
    fails(
        &at,
        "{ file_contains = { path = 'a.txt', matches = 'three' } }",
        "nothing like `three`",
    );
    fails(
        &at,
        "{ file_contains = { path = 'b.txt', matches = 'x' } }",
        "no file b.txt",
    );
    holds(
        &at,
        "{ file_lacks = { path = 'a.txt', matches = 'three' } }",
    );
    fails(
        &at,
        "{ file_lacks = { path = 'a.txt', matches = 'one' } }",
        "has `one`",
    );
}

#[test]
fn calls_count_by_tool_arguments_order_and_success() {
    let read = json!({"action": "read", "path": "x"});
    let events = [
        call("1", "filesystem", &read, false),
        call("2", "filesystem", &read, true),
        call("3", "todo", &json!({"action": "add"}), true),
    ];
    let at = outcome(events.concat(), "");
    holds(
        &at,
        "{ first_tool = { tool = 'filesystem', args = '\"read\"' } }",
    );
    fails(
        &at,
        "{ first_tool = { tool = 'todo' } }",
        "the first call was filesystem",
    );
    holds(
        &at,
        "{ tool_called = { tool = 'filesystem', args = '\"path\":\"x\"' } }",
    );
    fails(
        &at,
        "{ tool_called = { tool = 'filesystem', at_least = 2 } }",
        "failed",
    );
    fails(
        &at,
        "{ tool_called = { tool = 'todo', at_least = 2 } }",
        "1 times, not 2",
    );
    fails(
        &at,
        "{ tool_called = { tool = 'teleport' } }",
        "no such tool",
    );
    fails(
        &at,
        "{ tool_called = { tool = 'todo', args = 'mark' } }",
        "called were",
    );
    holds(
        &at,
        "{ tool_not_called = { tool = 'todo', args = 'mark' } }",
    );
    fails(
        &at,
        "{ tool_not_called = { tool = 'todo' } }",
        "todo was called",
    );
    holds(&at, "{ recovered = { tool = 'filesystem' } }");
    fails(
        &at,
        "{ recovered = { tool = 'todo' } }",
        "no call of todo failed",
    );
    fails(&at, "'no_tool'", "filesystem, filesystem, todo");
    holds(&outcome(Vec::new(), ""), "'no_tool'");
    holds(&at, "{ calls_at_most = { tools = 3, model = 0 } }");
    fails(&at, "{ calls_at_most = { tools = 2 } }", "3 tools");
    let failed = outcome(call("1", "todo", &json!({}), false).to_vec(), "");
    fails(
        &failed,
        "{ recovered = { tool = 'todo' } }",
        "none succeeded",
    );
}

#[test]
fn a_plan_is_what_was_announced() {
    let at = outcome(
        vec![plan("1. Read it. TOOL: filesystem\n2. Tell. SELF", 2)],
        "",
    );
    holds(&at, "'plan_made'");
    fails(&at, "'no_plan'", "a plan was made");
    holds(&at, "{ plan_steps = { min = 2, max = 3 } }");
    fails(&at, "{ plan_steps = { min = 3, max = 9 } }", "has 2 steps");
    holds(&at, "'plan_executors'");
    fails(&at, "{ plan_kept = { min = 1 } }", "0 steps at the end");
    let odd = outcome(vec![plan("1. Fly. TOOL: teleport", 1)], "");
    fails(&odd, "'plan_executors'", "the tool teleport");
    let bare = outcome(vec![plan("1. Do it", 1)], "");
    fails(&bare, "'plan_executors'", "names no executor");
    let none = outcome(Vec::new(), "");
    holds(&none, "'no_plan'");
    fails(&none, "'plan_made'", "no plan was made");
    fails(&none, "'plan_executors'", "no plan was made");
}

#[test]
fn answers_count_by_facts_and_letters() {
    let at = outcome(Vec::new(), "Столиця Франції — Париж.");
    holds(&at, "{ answer_matches = { matches = 'париж' } }");
    fails(
        &at,
        "{ answer_matches = { matches = 'Рим' } }",
        "nothing like `Рим`",
    );
    holds(&at, "{ answer_lacks = { matches = 'Рим' } }");
    fails(
        &at,
        "{ answer_lacks = { matches = 'Париж' } }",
        "`Париж` is in",
    );
    holds(&at, "{ script = { script = 'ukrainian' } }");
    fails(&at, "{ script = { script = 'latin' } }", "0% of");
    holds(&at, "'completed'");
    holds(&at, "{ profile_is = { id = 'secretary' } }");
    fails(
        &at,
        "{ profile_is = { id = 'smart_home' } }",
        "the profile secretary",
    );
}

#[test]
fn an_end_before_the_end_is_told() {
    let mut at = outcome(Vec::new(), "");
    let mut end = |end: End| {
        at.turns[0].end = end;
        check("'completed'").look(&at).unwrap_err()
    };
    assert!(end(End::Answered { completed: false }).contains("a limit ended"));
    assert!(end(End::OutOfTime { seconds: 300 }).contains("300 s"));
    assert!(end(End::OutOfCalls { limit: 40 }).contains("40 model calls"));
    let failed = End::Failed {
        code: ErrorCode::EmptyReply,
        message: "it said nothing".to_owned(),
    };
    assert!(end(failed).contains("it said nothing"));
}

#[test]
fn facts_are_those_that_were_saved_and_not_forgotten() {
    let fact = |value: &str| json!({"category": "home", "key": "city", "value": value});
    let mut events = [
        call("1", "memory_save", &fact("Odesa"), true),
        call("2", "memory_save", &fact("Lviv"), true),
    ]
    .concat();
    let mut at = outcome(events.clone(), "");
    holds(&at, "{ fact_stored = { key = 'city', value = 'Lviv' } }");
    fails(
        &at,
        "{ fact_stored = { value = 'Odesa' } }",
        "the last is home/city",
    );
    fails(
        &at,
        "{ fact_stored = { key = 'pet', value = 'Lviv' } }",
        "none like",
    );
    events.extend(call("3", "memory_forget", &fact(""), true));
    at.events = events;
    fails(
        &at,
        "{ fact_stored = { value = 'Lviv' } }",
        "no fact was saved",
    );
    fails(
        &at,
        "{ remembered = { matches = 'Lviv' } }",
        "told nothing like",
    );
    at.remembered = Some("## What I remember about the user\nLives in Lviv.".to_owned());
    holds(&at, "{ remembered = { matches = 'Lviv' } }");
}

#[test]
fn steps_events_and_children_are_counted() {
    let child = |kind: &str| {
        event(json!({
            "type": kind, "call_id": "c", "profile_id": "secretary", "task": "t",
            "completed_normally": true,
        }))
    };
    let (began, ended) = (child("subagent_started"), child("subagent_finished"));
    let one_by_one = vec![began.clone(), ended.clone(), began.clone(), ended.clone()];
    let at = outcome(one_by_one, "");
    fails(&at, "{ subagents_at_once = { min = 2 } }", "at most 1");
    holds(
        &at,
        "{ event = { event = 'subagent_started', at_least = 2, at_most = 2 } }",
    );
    fails(
        &at,
        "{ event = { event = 'subagent_started', at_most = 1 } }",
        "came 2 times",
    );
    fails(
        &at,
        "{ event = { event = 'context_compressed' } }",
        "came 0 times",
    );
    let at = outcome(vec![began.clone(), began, ended], "");
    holds(&at, "{ subagents_at_once = { min = 2 } }");
    holds(&at, "{ todo_has = { min = 2 } }");
    fails(&at, "{ todo_has = { min = 3 } }", "has 2 steps");
    fails(&at, "{ todo_done = { min = 1 } }", "1 of 2 steps");
}
