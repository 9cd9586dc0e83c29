//! Scripted traces of the loop, and what holds for every trace there is.
use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use serde_json::json;

use super::consent::Asking;
use super::planning::{PlanningReply, Task, ToolSteps};
use super::run_loop::{
    CallBook, CallPlan, CallResult, Cut, ModelReply, PlannedCall, Record, RunEnd, RunLoop,
    RunStart, Since, Step, ToolUse,
};
use crate::protocol::approval::{ApprovalRequest, PendingApproval};
use crate::protocol::chat::{FinishReason, ReplyForm, RequestedCall, Usage};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{ApprovalId, MessageId, Origin, RunId};
use crate::protocol::message::{MessageState, Role, ToolCall, ToolOutcome};
use crate::protocol::profile::Profile;
use crate::protocol::todo::{StepEdit, StepEdited, TodoItem, TodoStatus};
use crate::protocol::tool::{Effect, ToolSpec};

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH
}

fn profile(max_iterations: u32) -> Profile {
    Profile {
        max_iterations,
        ..serde_json::from_value(json!({
            "id": "test", "name": "Test", "description": "", "system_prompt": "",
            "enabled_tools": [], "temperature": 0.5,
        }))
        .unwrap()
    }
}

fn start_with(profile: &Profile) -> RunLoop {
    RunLoop::new(run_start(profile))
}

fn run_start(profile: &Profile) -> RunStart<'_> {
    RunStart {
        origin: Origin::foreground(RunId::new()),
        profile,
        goal: "do it".into(),
        plans: false,
        steps: ToolSteps::default(),
        edits_since: None,
        max_tokens: u64::MAX,
        context_tokens: 0,
        window: 100,
    }
}

pub(super) fn start(max_iterations: u32) -> RunLoop {
    start_with(&profile(max_iterations))
}

pub(super) fn says(text: &str, calls: &[&str]) -> ModelReply {
    ModelReply {
        text: text.into(),
        calls: calls
            .iter()
            .map(|name| RequestedCall {
                name: (*name).into(),
                arguments: json!({}),
            })
            .collect(),
        usage: Some(Usage {
            prompt_tokens: 7,
            completion_tokens: 3,
            cached_tokens: None,
        }),
        ..ModelReply::empty(MessageId::new())
    }
}

/// `read…` reads, `bad…` is refused, anything else changes things; `…lent` is a program's.
pub(super) struct Tools;

impl CallBook for Tools {
    fn is_known(&self, tool: &str) -> bool {
        !tool.starts_with("bad")
    }

    fn fits(&self, _: &ReplyForm, text: &str) -> Result<(), String> {
        serde_json::from_str::<serde_json::Value>(text)
            .map_or_else(|_| Err("no JSON".into()), |_| Ok(()))
    }

    fn is_lent(&self, tool: &str) -> bool {
        tool.ends_with("lent")
    }

    fn plan(&mut self, call: &ToolCall) -> CallPlan {
        let effect = match call.name.as_str() {
            name if name.starts_with("bad") => return CallPlan::Refuse("no such tool".into()),
            name if name.starts_with("read") => Effect::Read,
            _ => Effect::Write,
        };
        CallPlan::Run {
            effect,
            side_by_side: effect == Effect::Read,
        }
    }
}

pub(super) fn result(text: &str) -> CallResult {
    CallResult {
        outcome: ToolOutcome::Success,
        text: text.into(),
        outside: false,
        files: Vec::new(),
        duration_ms: 1,
    }
}

fn group(run: &RunLoop) -> Vec<PlannedCall> {
    match run.next_step() {
        Step::RunTools(group) => group,
        other => panic!("{other:?}"),
    }
}

fn names(group: &[PlannedCall]) -> Vec<&str> {
    group.iter().map(|p| p.call.name.as_str()).collect()
}

/// Records by their names: events by type, messages by role.
fn told(records: &[Record]) -> Vec<String> {
    records
        .iter()
        .map(|record| match record {
            Record::Event(event) => event.name().to_owned(),
            Record::Message(message) => format!("+{:?}", message.role).to_lowercase(),
            Record::ContextTokens(tokens) => format!("tokens={tokens}"),
            Record::Plan(plan) => format!("plan:{}", plan.steps.len()),
            Record::Mark(mark) => format!("step {} {:?}", mark.number, mark.status),
            Record::Context(_) => "context".to_owned(),
            Record::Began { .. } => "began".to_owned(),
            Record::Window(window) => format!("window {window}"),
            Record::Ask(_) => "ask".to_owned(),
            Record::Consented(_) => "consented".to_owned(),
            Record::Tainted => "tainted".to_owned(),
            Record::Called(_) => "called".to_owned(),
            Record::Waits(_) => "waits".to_owned(),
            Record::Ended(summary) => format!("ended:{:?}", summary.end.state()).to_lowercase(),
        })
        .collect()
}

#[test]
fn an_answer_ends_the_run() {
    let mut run = start(5);
    assert_eq!(
        run.next_step(),
        Step::CallModel {
            tools: ToolUse::Offered
        }
    );
    let records = run.on_reply(says("hello", &[]), &mut Tools, now());
    assert_eq!(
        told(&records),
        ["tokens=10", "+assistant", "stream_end", "ended:completed"]
    );
    assert_eq!(run.next_step(), Step::Finish(RunEnd::Answered));
}

fn asking(run: &PlannedCall) -> Asking {
    Asking {
        pending: PendingApproval {
            approval_id: ApprovalId::new(),
            run_id: RunId::new(),
            call_id: run.call.id.clone(),
            tool: run.call.name.clone(),
            request: ApprovalRequest {
                summary: "write".into(),
                effect: Effect::Write,
                reason: "it is asked".into(),
                details: Vec::new(),
                always: None,
                phrases: None,
            },
            requested_at: now(),
            expires_at: now(),
            is_subagent: false,
        },
        digest: "digest".into(),
        rule_key: None,
    }
}

#[test]
fn a_call_that_is_asked_about_begins_when_it_is_allowed() {
    let mut run = start(5);
    run.on_reply(says("", &["write1", "write2"]), &mut Tools, now());
    let first = group(&run);
    let request = asking(&first[0]);
    let records = run.on_asked(request);
    assert_eq!(told(&records), ["ask", "approval_requested"]);
    assert_eq!(run.asked(&first[0].call.id).unwrap().digest, "digest");
    // It is still the next to be run, and nothing behind it is.
    assert_eq!(group(&run), first);
    assert_eq!(told(&run.on_tools_started(&first)), ["tool_started"]);
    let records = run.on_tool_result(&first[0].call.id, result("ok"), now());
    assert_eq!(told(&records), ["+tool", "tool_call"]);
    assert_eq!(names(&group(&run)), ["write2"]);
    // One that is cut off while it waits has its start told before its result.
    run.on_asked(asking(&group(&run)[0]));
    let records = run.cut(&Cut::Stopped, None, now());
    assert_eq!(
        told(&records),
        [
            "tool_started",
            "+tool",
            "tool_call",
            "stream_stopped",
            "ended:stopped"
        ]
    );
}

#[test]
fn a_stored_loop_goes_on_from_what_was_recorded_after_it() {
    let mut run = start(5);
    let calls = ["read1", "read2", "read3", "write1"];
    run.on_reply(says("", &calls), &mut Tools, now());
    let all = run.not_begun();
    let reads = group(&run);
    assert_eq!(names(&reads), ["read1", "read2", "read3"]);
    run.on_tools_started(&[reads[0].clone(), reads[2].clone()]);
    let request = asking(&reads[1]);
    let waiting = [request.pending.approval_id].into();
    run.on_asked(request);
    let stored = serde_json::to_string(&run).unwrap();

    let mut run: RunLoop = serde_json::from_str(&stored).unwrap();
    let since = Since {
        answered: &[reads[0].call.id.clone()].into(),
        begun: &[reads[0].call.id.clone(), reads[2].call.id.clone()].into(),
        waiting: &waiting,
    };
    // The third went down with the process; its result waits for that of the second.
    assert!(run.resume(&since, now()).is_empty());
    assert_eq!(names(&group(&run)), ["read2"]);
    assert!(run.asked(&reads[1].call.id).is_some());
    run.on_tools_started(&[reads[1].clone()]);
    let records = run.on_tool_result(&reads[1].call.id, result("ok"), now());
    assert_eq!(told(&records), ["+tool", "tool_call", "+tool", "tool_call"]);
    let Record::Message(lost) = &records[2] else {
        panic!("{records:?}")
    };
    assert!(lost.content.as_deref().unwrap().contains("call it again"));
    assert_eq!(group(&run), [all[3].clone()]);

    // One that was answered, and had not begun, is asked anew.
    let mut run: RunLoop = serde_json::from_str(&stored).unwrap();
    let answered = Since {
        waiting: &HashSet::new(),
        ..since
    };
    run.resume(&answered, now());
    assert!(run.asked(&reads[1].call.id).is_none());
    assert_eq!(names(&group(&run)), ["read2"]);

    // One that cannot go on leaves no call open.
    let gone = NaviError::new(ErrorCode::BackendUnavailable, "gone");
    let told = told(&run.on_not_resumed(gone, now()));
    let results = told.iter().filter(|told| *told == "tool_call");
    assert_eq!(results.count(), 3);
    assert_eq!(told[told.len() - 2..], ["error", "ended:failed"]);
}

#[test]
fn a_result_that_waits_for_those_before_it_outlives_a_restart() {
    let mut run = start(5);
    run.on_reply(says("", &["read1", "read2"]), &mut Tools, now());
    let reads = group(&run);
    run.on_tools_started(&reads[1..]);
    let request = asking(&reads[0]);
    let waiting = [request.pending.approval_id].into();
    run.on_asked(request);
    let kept = run.on_tool_result(&reads[1].call.id, result("kept"), now());
    assert!(kept.is_empty());
    let stored = serde_json::to_string(&run).unwrap();

    let mut run: RunLoop = serde_json::from_str(&stored).unwrap();
    let since = Since {
        answered: &HashSet::new(),
        begun: &[reads[1].call.id.clone()].into(),
        waiting: &waiting,
    };
    assert!(run.resume(&since, now()).is_empty());
    run.on_tools_started(&reads[..1]);
    let records = run.on_tool_result(&reads[0].call.id, result("first"), now());
    let Record::Message(message) = &records[2] else {
        panic!("{records:?}")
    };
    assert_eq!(message.content.as_deref(), Some("kept"));
    assert_eq!(message.outcome, Some(ToolOutcome::Success));
}

#[test]
fn text_from_outside_taints_with_its_result() {
    let mut run = start(5);
    run.on_reply(says("", &["read1"]), &mut Tools, now());
    let group = group(&run);
    run.on_tools_started(&group);
    let outside = CallResult {
        outside: true,
        ..result("a page")
    };
    let records = run.on_tool_result(&group[0].call.id, outside, now());
    assert_eq!(told(&records), ["tainted", "+tool", "tool_call"]);
    let Record::Message(message) = &records[1] else {
        panic!("{records:?}")
    };
    assert!(message.outside);
}

#[test]
fn reads_go_side_by_side_and_changes_alone_in_order() {
    let mut run = start(5);
    run.on_reply(
        says("", &["read1", "bad", "read2", "write1", "write2", "read3"]),
        &mut Tools,
        now(),
    );
    let mut seen = Vec::new();
    while let Step::RunTools(group) = run.next_step() {
        seen.push(names(&group).join("+"));
        run.on_tools_started(&group);
        // Answered from the back: recorded in order all the same.
        for planned in group.iter().rev() {
            run.on_tool_result(&planned.call.id, result("ok"), now());
        }
    }
    assert_eq!(seen, ["read1+bad+read2", "write1", "write2", "read3"]);
}

#[test]
fn results_are_recorded_in_the_order_of_the_calls() {
    let mut run = start(5);
    run.on_reply(says("", &["read1", "read2"]), &mut Tools, now());
    let calls = group(&run);
    assert_eq!(
        told(&run.on_tools_started(&calls)),
        ["tool_started", "tool_started"]
    );
    assert!(
        run.on_tool_result(&calls[1].call.id, result("b"), now())
            .is_empty()
    );
    let records = run.on_tool_result(&calls[0].call.id, result("a"), now());
    assert_eq!(told(&records), ["+tool", "tool_call", "+tool", "tool_call"]);
    let Record::Message(first) = &records[0] else {
        panic!()
    };
    assert_eq!(first.content.as_deref(), Some("a"));
}

#[test]
fn a_calls_events_say_whether_its_tool_is_lent() {
    let mut run = start(5);
    run.on_reply(says("", &["lent", "write"]), &mut Tools, now());
    // A loop that was stored while it waited knows it too.
    let stored = serde_json::to_string(&run).unwrap();
    let mut run: RunLoop = serde_json::from_str(&stored).unwrap();
    let calls = group(&run);
    let mut records = run.on_tools_started(&calls);
    records.extend(run.on_tool_result(&calls[0].call.id, result("ok"), now()));
    records.extend(run.cut(&Cut::Stopped, None, now()));
    let said: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Event(
                Event::ToolStarted { tool, lent, .. } | Event::ToolCall { tool, lent, .. },
            ) => Some((tool.as_str(), *lent)),
            _ => None,
        })
        .collect();
    let (lent, ours) = (("lent", true), ("write", false));
    assert_eq!(said, [lent, lent, ours, ours]);
}

#[test]
fn the_limit_asks_once_without_tools_and_ignores_further_calls() {
    let mut run = start(1);
    run.on_reply(says("", &["read"]), &mut Tools, now());
    let calls = group(&run);
    run.on_tools_started(&calls);
    run.on_tool_result(&calls[0].call.id, result("x"), now());
    assert_eq!(
        run.next_step(),
        Step::CallModel {
            tools: ToolUse::Withheld
        }
    );
    let records = run.on_reply(says("so far", &["write"]), &mut Tools, now());
    assert_eq!(
        told(&records),
        ["tokens=10", "+assistant", "stream_end", "ended:limited"]
    );
}

#[test]
fn a_switch_of_profile_gives_no_more_time() {
    let mut run = start(5);
    run.on_time_up(None, now());
    run.on_switch(&profile(50), 100);
    let tools = ToolUse::Withheld;
    assert_eq!(run.next_step(), Step::CallModel { tools });
}

fn todo(id: u32, status: TodoStatus) -> TodoItem {
    TodoItem {
        id,
        text: String::new(),
        status,
        note: None,
        held: false,
        edited: None,
    }
}

/// A loop that made a plan of these steps.
fn planned(steps: &str) -> RunLoop {
    let mut run = RunLoop::new(RunStart {
        plans: true,
        ..run_start(&profile(20))
    });
    let tools: Vec<ToolSpec> = ["read", "write"]
        .map(|name| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({}),
            effect: Effect::Read,
            time_limit_ms: 1,
        })
        .into();
    let task = Task {
        request: "do it",
        recent: &[],
        tools: &tools,
        agents: &[],
    };
    for text in ["Several things.", steps] {
        let finish = FinishReason::Stop;
        run.on_planned(Some(PlanningReply { text, finish }), &task, now());
    }
    run
}

/// Makes these calls and ends each so; gives back how its steps were marked.
fn calls(run: &mut RunLoop, calls: &[(&str, ToolOutcome)]) -> Vec<String> {
    let names: Vec<&str> = calls.iter().map(|(name, _)| *name).collect();
    run.on_reply(says("", &names), &mut Tools, now());
    let mut records = Vec::new();
    let mut outcomes = calls.iter();
    while let Step::RunTools(group) = run.next_step() {
        records.extend(run.on_tools_started(&group));
        for (planned, (_, outcome)) in group.iter().zip(&mut outcomes) {
            let result = CallResult {
                outcome: *outcome,
                ..result("what came")
            };
            records.extend(run.on_tool_result(&planned.call.id, result, now()));
        }
    }
    let marks = records.iter().filter_map(|record| match record {
        Record::Mark(mark) => Some(format!("{} {:?}", mark.number, mark.status)),
        _ => None,
    });
    marks.collect()
}

#[test]
fn steps_of_tools_are_marked_as_their_calls_begin_and_end() {
    let (ok, failed) = (ToolOutcome::Success, ToolOutcome::Failed);
    let plan = "1. Find | TOOL: read\n2. Look | TOOL: read\n3. Think | SELF\n4. Keep | TOOL: write\n5. Check | TOOL: read";
    let mut run = planned(plan);
    // Out of order it is no step of the plan.
    assert!(calls(&mut run, &[("write", ok)]).is_empty());
    // Side by side each has its own; what is refused carries nothing out.
    assert_eq!(
        calls(&mut run, &[("read", ok), ("bad", failed), ("read", failed)]),
        ["1 InProgress", "2 InProgress", "1 Done", "2 Failed"]
    );
    // The next call of that tool is another try.
    assert_eq!(
        calls(&mut run, &[("read", failed)]),
        ["2 InProgress", "2 Failed"]
    );
    // It holds up nothing: the others go on in their order.
    assert_eq!(
        calls(&mut run, &[("write", ToolOutcome::Stopped)]),
        ["4 InProgress"]
    );
    let stored = serde_json::to_string(&run).unwrap();
    let mut run: RunLoop = serde_json::from_str(&stored).unwrap();
    assert_eq!(
        calls(&mut run, &[("write", ok)]),
        ["4 InProgress", "4 Done"]
    );
    // What the model marked itself is over.
    run.on_todo(&[todo(2, TodoStatus::Skipped), todo(5, TodoStatus::Pending)]);
    assert_eq!(
        calls(&mut run, &[("read", ok), ("read", ok)]),
        ["5 InProgress", "5 Done"]
    );
}

#[test]
fn steps_of_tools_go_in_the_order_of_the_list_and_one_that_is_held_waits() {
    let mut run = planned("1. a | TOOL: read\n2. b | TOOL: write\n3. c | TOOL: read");
    let begun = [("read", ToolOutcome::Stopped)];
    let held = TodoItem {
        held: true,
        ..todo(1, TodoStatus::Pending)
    };
    run.on_todo(&[
        held,
        todo(3, TodoStatus::Pending),
        todo(2, TodoStatus::Pending),
    ]);
    assert_eq!(calls(&mut run, &begun), ["3 InProgress"]);
    let released = [1, 3, 2].map(|id| todo(id, TodoStatus::Pending));
    run.on_todo(&released);
    assert_eq!(calls(&mut run, &begun), ["1 InProgress"]);
}

#[test]
fn what_the_user_changed_of_the_steps_is_told_with_every_call_and_to_no_subagent() {
    let profile = profile(5);
    let skipped = TodoItem {
        text: "send it".to_owned(),
        edited: Some(StepEdited {
            how: StepEdit::Skipped,
            at: now(),
        }),
        ..todo(1, TodoStatus::Skipped)
    };
    let notes = |start: RunStart<'_>| {
        let mut run = RunLoop::new(start);
        run.on_todo(std::slice::from_ref(&skipped));
        run.on_reply(says("", &["read"]), &mut Tools, now());
        run.on_todo(std::slice::from_ref(&skipped));
        run.notes().join("\n")
    };
    let told = notes(run_start(&profile));
    assert!(
        told.contains("Skipped, leave out: 1 \"send it\"."),
        "{told}"
    );
    let before = RunStart {
        edits_since: Some(now() + TimeDelta::seconds(1)),
        ..run_start(&profile)
    };
    assert!(!notes(before).contains("[plan]"));
    let origin = Origin {
        parent_run_id: Some(RunId::new()),
        ..Origin::foreground(RunId::new())
    };
    let child = RunStart {
        origin,
        ..run_start(&profile)
    };
    assert!(!notes(child).contains("[plan]"));
}

#[test]
fn what_can_only_be_simple_is_not_planned() {
    let profile = profile(5);
    let asks = |goal: &str| {
        let start = RunStart {
            goal: goal.to_owned(),
            plans: true,
            ..run_start(&profile)
        };
        matches!(RunLoop::new(start).next_step(), Step::Plan(_))
    };
    assert!(asks("compare my reports"));
    assert!(!asks("3+4?"));
}

#[test]
fn a_promise_is_asked_about_once_and_then_told() {
    let mut run = start(5);
    let promise = "I'll write it to notes.md.";
    let records = run.on_reply(says(promise, &[]), &mut Tools, now());
    assert_eq!(told(&records), ["tokens=10", "+assistant"]);
    assert!(
        run.notes()
            .iter()
            .any(|note| note.starts_with("[unfinished]"))
    );
    let mut other = run.clone();
    let records = run.on_reply(says(promise, &[]), &mut Tools, now());
    assert_eq!(
        told(&records),
        [
            "tokens=10",
            "notice",
            "+assistant",
            "stream_end",
            "ended:completed"
        ]
    );

    // It does what it said, and may answer.
    let records = other.on_reply(says("", &["write"]), &mut Tools, now());
    assert_eq!(told(&records), ["tokens=10", "+assistant"]);
    assert!(
        !other
            .notes()
            .iter()
            .any(|note| note.starts_with("[unfinished]"))
    );
    let written = group(&other);
    other.on_tools_started(&written);
    other.on_tool_result(&written[0].call.id, result("ok"), now());
    let records = other.on_reply(says("It is in notes.md.", &[]), &mut Tools, now());
    assert!(told(&records).contains(&"ended:completed".to_owned()));
}

#[test]
fn silence_twice_is_an_error() {
    let mut run = start(5);
    assert_eq!(
        told(&run.on_reply(says(" \n", &[]), &mut Tools, now())),
        ["tokens=10"]
    );
    assert_eq!(
        run.next_step(),
        Step::CallModel {
            tools: ToolUse::Offered
        }
    );
    let records = run.on_reply(says("", &[]), &mut Tools, now());
    assert_eq!(told(&records), ["tokens=10", "error", "ended:failed"]);
}

#[test]
fn stop_keeps_the_text_and_closes_the_calls() {
    let mut run = start(5);
    let records = run.cut(&Cut::Stopped, Some(says("half", &["write"])), now());
    assert_eq!(
        told(&records),
        ["tokens=10", "+assistant", "stream_stopped", "ended:stopped"]
    );
    let Record::Message(message) = &records[1] else {
        panic!()
    };
    assert_eq!(message.state, MessageState::Stopped);
    assert!(
        message.tool_calls.is_empty(),
        "a call that was cut off never began"
    );

    let mut run = start(5);
    run.on_reply(says("", &["write1", "write2"]), &mut Tools, now());
    let calls = group(&run);
    run.on_tools_started(&calls);
    let records = run.cut(&Cut::Stopped, None, now());
    assert_eq!(
        told(&records),
        [
            "+tool",
            "tool_call",
            "tool_started",
            "+tool",
            "tool_call",
            "stream_stopped",
            "ended:stopped"
        ]
    );
}

#[test]
fn a_shutdown_leaves_the_outcome_of_a_running_call_open() {
    let mut run = start(5);
    run.on_reply(says("", &["write1", "write2"]), &mut Tools, now());
    let calls = group(&run);
    run.on_tools_started(&calls);
    let cut = Cut::Interrupted {
        reason: "shutdown".into(),
    };
    let outcomes: Vec<_> = run
        .cut(&cut, None, now())
        .into_iter()
        .filter_map(|record| match record {
            Record::Message(message) => message.outcome,
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, [ToolOutcome::OutcomeUnknown, ToolOutcome::Failed]);
}

#[test]
fn a_loop_can_be_stored_at_any_step() {
    let mut run = start(5);
    run.on_reply(says("", &["read", "write"]), &mut Tools, now());
    let calls = group(&run);
    run.on_tools_started(&calls);
    let stored = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<RunLoop>(&stored).unwrap(), run);
}

#[derive(Clone, Debug)]
enum Happening {
    Reply(&'static str, Vec<&'static str>),
    Fail(&'static str),
    /// The results of the group come, the last first, but only so many.
    Results(usize),
    Cut(bool),
    /// The time is up, perhaps in the middle of a reply.
    TimeUp(&'static str),
}

fn happening() -> impl Strategy<Value = Happening> {
    let name = prop::sample::select(vec!["read", "write", "bad", "read2"]);
    let text = prop::sample::select(vec!["", "text", "  "]);
    prop_oneof![
        4 => (text.clone(), prop::collection::vec(name, 0..4)).prop_map(|(t, c)| Happening::Reply(t, c)),
        1 => text.prop_map(Happening::Fail),
        6 => (1_usize..4).prop_map(Happening::Results),
        1 => any::<bool>().prop_map(Happening::Cut),
        1 => prop::sample::select(vec!["", "half"]).prop_map(Happening::TimeUp),
    ]
}

proptest! {
    /// Promise 5, the loop's half: whatever happens, each call has exactly one result, in
    /// order, right after the message that asked for it, and the run ends once.
    #[test]
    fn each_call_has_exactly_one_result(happenings in prop::collection::vec(happening(), 0..40)) {
        let mut run = start(6);
        let mut records = Vec::new();
        for happening in happenings {
            let step = run.next_step();
            match (happening, step) {
                (Happening::Cut(stopped), _) => {
                    let cut = if stopped { Cut::Stopped } else { Cut::Interrupted { reason: String::new() } };
                    records.extend(run.cut(&cut, None, now()));
                }
                (Happening::TimeUp(text), step) => {
                    let partial = matches!(step, Step::CallModel { .. }).then(|| says(text, &[]));
                    records.extend(run.on_time_up(partial, now()));
                }
                (Happening::Reply(text, calls), Step::CallModel { .. }) => {
                    records.extend(run.on_reply(says(text, &calls), &mut Tools, now()));
                }
                (Happening::Fail(text), Step::CallModel { .. }) => {
                    let error = NaviError::new(ErrorCode::BackendError, "no");
                    records.extend(run.on_model_failed(says(text, &[]), error, now()));
                }
                (Happening::Results(count), Step::RunTools(group)) => {
                    records.extend(run.on_tools_started(&group));
                    for planned in group.iter().rev().take(count) {
                        records.extend(run.on_tool_result(&planned.call.id, result("ok"), now()));
                    }
                    if count < group.len() {
                        // The rest never answers: only a stop gets the run out of this.
                        records.extend(run.cut(&Cut::Stopped, None, now()));
                    }
                }
                _ => {}
            }
        }
        records.extend(run.cut(&Cut::Stopped, None, now()));

        let mut waiting: Vec<_> = Vec::new();
        let mut ends = 0;
        for record in &records {
            match record {
                Record::Message(message) if message.role == Role::Tool => {
                    prop_assert_eq!(message.tool_call_id.clone(), waiting.pop());
                }
                Record::Message(message) => {
                    prop_assert!(waiting.is_empty());
                    waiting = message.tool_calls.iter().rev().map(|call| call.id.clone()).collect();
                }
                Record::Ended(_) => ends += 1,
                _ => prop_assert_eq!(ends, 0),
            }
        }
        prop_assert!(waiting.is_empty());
        prop_assert_eq!(ends, 1);
        prop_assert!(matches!(records.last(), Some(Record::Ended(_))));
    }
}
