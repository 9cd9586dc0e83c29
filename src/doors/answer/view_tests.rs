//! A run that has ended, as a program is told of it from the log.

use chrono::Utc;
use navi_actors::protocol::ids::{CallId, MessageId};
use navi_actors::protocol::message::ToolOutcome;
use serde_json::{Value, json};

use super::super::Waits;
use super::*;

fn args() -> Value {
    json!({"query": "snow"})
}

/// A call, from its start to its result.
fn call(id: &str, tool: &str, lent: bool) -> [Event; 2] {
    let (tool, call_id) = (tool.to_owned(), CallId(id.to_owned()));
    [
        Event::ToolStarted {
            tool: tool.clone(),
            args: args(),
            is_subagent: false,
            call_id: call_id.clone(),
            message_id: MessageId::new(),
            lent,
        },
        Event::ToolCall {
            tool,
            args: args(),
            result: "It snows.".to_owned(),
            success: true,
            outcome: ToolOutcome::Success,
            is_subagent: false,
            call_id,
            duration_ms: 1,
            outside: true,
            files: Vec::new(),
            lent,
        },
    ]
}

/// The events of a run that made these calls and answered, as its log has them.
fn log(run_id: RunId, calls: [[Event; 2]; 2]) -> Vec<String> {
    let end = Event::StreamEnd {
        content: "Snow.".to_owned(),
        message_id: MessageId::new(),
        context_tokens: 1,
        max_context_tokens: 2,
        completed: true,
    };
    let events = calls.into_iter().flatten().chain([end]);
    let envelopes = (1..).zip(events).map(|(seq, event)| Envelope {
        seq: Some(seq),
        run_id: Some(run_id),
        parent_run_id: None,
        at: Utc::now(),
        event,
    });
    envelopes
        .map(|envelope| serde_json::to_string(&envelope).unwrap())
        .collect()
}

/// The answer that begins so, to its end, and how many ended up to there by the program's turn.
fn answer(begin: Begin, calls: [[Event; 2]; 2]) -> (Vec<Told>, u32) {
    let run_id = RunId::new();
    let mut view = View::of(run_id, false, Approvals::ByProgram, begin);
    let (mut told, mut all) = (VecDeque::new(), Vec::new());
    for event in log(run_id, calls) {
        view.take(Cow::Owned(serde_json::from_str(&event).unwrap()), &mut told);
        while let Some(next) = told.pop_front() {
            let is_end = matches!(next, Told::Over(_));
            all.push(next);
            if is_end {
                return (all, view.turns().answers());
            }
        }
    }
    (all, view.turns().answers())
}

fn lent_call(id: &str, name: &str) -> Told {
    Told::Call(LentCall {
        id: CallId(id.to_owned()),
        name: name.to_owned(),
        args: args(),
    })
}

/// A step of Navi's own, from its start to its result.
fn steps(id: &str, tool: &str) -> [Told; 2] {
    let (tool, call) = (tool.to_owned(), CallId(id.to_owned()));
    let began = Step::Began {
        call: call.clone(),
        tool: tool.clone(),
        args: args(),
    };
    let ended = Step::Ended {
        call,
        tool,
        args: args(),
        result: "It snows.".to_owned(),
        succeeded: true,
    };
    [began, ended].map(Told::Step)
}

fn text() -> [Told; 2] {
    [Told::Text("Snow.".to_owned()), Told::Over(Ending::Whole)]
}

#[test]
fn a_programs_tool_that_is_called_as_one_of_ours_is_the_programs() {
    let calls = || [call("a", "web_search", true), call("b", "todo", true)];
    let turn = |id, name| vec![lent_call(id, name), Told::Over(Ending::Turn)];
    let first = answer(Begin::AtAnswer(0), calls());
    assert_eq!(first, (turn("a", "web_search"), 1));
    let second = answer(Begin::AtAnswer(1), calls());
    assert_eq!(second, (turn("b", "todo"), 2));
    let third = answer(Begin::AtAnswer(2), calls());
    assert_eq!(third, (text().into(), 2));
    let waits = ["a", "b"].map(|id| Waits::Call(CallId(id.to_owned())));
    let behind = answer(Begin::Behind(waits.into()), calls());
    assert_eq!(behind.0, text());
}

/// So is whatever a log from before events said it has.
#[test]
fn a_tool_of_ours_that_is_gone_is_ours_still() {
    let gone = ["mcp__wiki__search", "prime_factors"];
    let calls = || [call("a", gone[0], false), call("b", gone[1], false)];
    let silent = log(RunId::new(), calls());
    assert!(!silent.concat().contains("lent"), "{silent:?}");
    let steps = [steps("a", gone[0]), steps("b", gone[1]), text()];
    let all: Vec<Told> = steps.into_iter().flatten().collect();
    assert_eq!(answer(Begin::AtAnswer(0), calls()), (all, 0));
}

/// A request that comes again when its run is over joins it so.
#[test]
fn a_repeat_behind_the_end_is_told_what_the_first_was_told() {
    let calls = [call("a", "todo", false), call("b", "weather", true)];
    let turn = [lent_call("b", "weather"), Told::Over(Ending::Turn)];
    let all: Vec<Told> = steps("a", "todo").into_iter().chain(turn).collect();
    assert_eq!(answer(Begin::AtOnce, calls), (all, 1));
}
