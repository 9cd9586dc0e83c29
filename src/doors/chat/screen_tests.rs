//! Events in, lines out.

use chrono::Utc;
use navi_actors::protocol::approval::{Detail, DetailKind};
use navi_actors::protocol::event::Delta;
use navi_actors::protocol::ids::{CallId, MessageId};
use navi_actors::protocol::message::ToolOutcome;
use navi_actors::protocol::phrase::{Label, Phrase};
use navi_actors::protocol::tool::Effect;
use serde_json::{Value, json};

use super::super::style::Colours;
use super::*;

struct Shown {
    screen: Screen,
    run: RunId,
    lines: Vec<String>,
}

impl Shown {
    fn new() -> Self {
        Self {
            screen: Screen::new(60),
            run: RunId::new(),
            lines: Vec::new(),
        }
    }

    fn tell(&mut self, event: Event) -> &mut Self {
        self.tell_of(None, event)
    }

    fn tell_of(&mut self, parent: Option<RunId>, event: Event) -> &mut Self {
        let lines = self.screen.take(Envelope {
            seq: Some(1),
            run_id: Some(parent.map_or(self.run, |_| RunId::new())),
            parent_run_id: parent,
            at: Utc::now(),
            event,
        });
        let painted = lines.iter().map(|line| line.paint(Colours::Off));
        self.lines.extend(painted);
        self
    }

    fn json(&mut self, event: Value) -> &mut Self {
        self.tell(serde_json::from_value(event).unwrap())
    }

    /// What was shown since this was asked last.
    fn shown(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    fn start(&mut self) -> &mut Self {
        self.tell(Event::StreamStart {
            message_id: MessageId::new(),
            model: "small".to_owned(),
            profile_id: "secretary".to_owned(),
        })
    }
}

fn piece(message: MessageId, offset: u64, text: &str) -> Delta {
    Delta {
        part_id: PartId::text(message),
        offset,
        delta: text.to_owned(),
        is_subagent: false,
    }
}

fn end(message: MessageId, content: &str, completed: bool) -> Event {
    Event::StreamEnd {
        content: content.to_owned(),
        message_id: message,
        context_tokens: 1,
        max_context_tokens: 2,
        completed,
    }
}

fn request(id: ApprovalId, summary: &str) -> Event {
    Event::ApprovalRequested {
        approval_id: id,
        call_id: CallId::new(),
        tool: "terminal".to_owned(),
        request: ApprovalRequest {
            summary: summary.to_owned(),
            effect: Effect::Host,
            reason: "it leaves the workspace".to_owned(),
            details: vec![
                Detail::code(Label::Command, "make\nrm \u{202e}x"),
                Detail {
                    kind: DetailKind::Diff,
                    ..Detail::text(Label::Path, "-old\n+new")
                },
            ],
            always: Some("`make` here".to_owned()),
            phrases: None,
        },
        expires_at: Utc::now(),
        is_subagent: false,
    }
}

fn resolved(id: ApprovalId, decision: Decision, by: DecidedBy) -> Event {
    Event::ApprovalResolved {
        approval_id: id,
        call_id: CallId::new(),
        decision,
        by,
        note: None,
        author: None,
        is_subagent: false,
    }
}

#[test]
fn an_answer_is_shown_as_it_comes_and_once() {
    let mut shown = Shown::new();
    let message = MessageId::new();
    shown.start();
    assert_eq!(shown.shown(), ["secretary · small"]);
    assert!(shown.screen.is_running());
    shown.tell(Event::StreamDelta(piece(message, 0, "one\ntw")));
    assert_eq!(shown.shown(), ["one"]);
    // Who comes back is told an open part from its beginning.
    shown.tell(Event::StreamDelta(piece(message, 0, "one\ntwo\nth")));
    assert_eq!(shown.shown(), ["two"]);
    shown.tell(end(message, "one\ntwo\nthree", true));
    assert_eq!(shown.shown(), ["three", ""]);
    assert!(!shown.screen.is_running());
    // The model is named where it is another one.
    shown.start().tell(end(MessageId::new(), "*yes*", false));
    assert_eq!(
        shown.shown(),
        ["yes", "a limit ended this; /continue goes on", ""]
    );
}

#[test]
fn what_a_model_says_gives_a_terminal_no_orders() {
    let mut shown = Shown::new();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J";
    shown.start();
    shown.tell(end(MessageId::new(), evil, true));
    shown.json(
        json!({"type": "tool_started", "tool": evil, "args": {"x": evil},
        "is_subagent": false, "call_id": "c", "message_id": MessageId::new()}),
    );
    shown.json(json!({"type": "notice", "code": "x", "message": evil}));
    shown.json(
        json!({"type": "error", "message": evil, "recoverable": false, "code": "run_failed"}),
    );
    shown.json(
        json!({"type": "plan_ready", "plan": evil, "message_id": MessageId::new(),
        "steps": [{"number": 1, "text": evil, "executor": "self"}]}),
    );
    shown.tell(request(ApprovalId::new(), evil));
    let all = shown.shown().join("");
    assert!(!all.contains(['\u{1b}', '\u{7}']), "{all}");
    assert!(all.matches(r"\u{1b}").count() >= 6, "{all}");
}

#[test]
fn reasoning_is_folded_into_a_line_and_kept() {
    let mut shown = Shown::new();
    let message = MessageId::new();
    let thought = |offset, text: &str| {
        Event::ThinkingDelta(Delta {
            part_id: PartId::thinking(message),
            ..piece(message, offset, text)
        })
    };
    shown.tell(thought(0, "first\nthis, "));
    shown.tell(thought(12, "then that"));
    shown.tell(Event::ThinkingEnd { is_subagent: false });
    assert_eq!(
        shown.shown(),
        ["thinking…", "thought for 4 words · /thinking shows them"]
    );
    let whole: Vec<String> = shown.screen.reasoning().iter().map(Line::text).collect();
    assert_eq!(whole, ["first", "this, then that"]);
}

#[test]
fn a_call_is_a_line_at_its_beginning_and_one_at_its_end() {
    let mut shown = Shown::new();
    let started = |args: Value| {
        json!({"type": "tool_started", "tool": "terminal", "args": args,
            "is_subagent": false, "call_id": "c", "message_id": MessageId::new()})
    };
    let ended = |outcome: &str| {
        json!({"type": "tool_call", "tool": "terminal", "args": {}, "result": "no such\nfile",
            "success": false, "outcome": outcome, "is_subagent": false, "call_id": "c",
            "duration_ms": 1250})
    };
    shown.json(started(json!({"command": "ls\n-l"})));
    shown.json(ended("failed"));
    shown.json(started(json!({"a": 1, "b": "two"})));
    shown.json(ended("success"));
    assert_eq!(
        shown.shown(),
        [
            "● terminal ls -l",
            "  ✗ terminal 1.2 s no such file",
            "● terminal a: 1, b: two",
            "  ✓ terminal 1.2 s",
        ]
    );
    for outcome in [
        ToolOutcome::Stopped,
        ToolOutcome::Interrupted,
        ToolOutcome::OutcomeUnknown,
    ] {
        shown.json(ended(
            serde_json::to_value(outcome).unwrap().as_str().unwrap(),
        ));
    }
    assert_eq!(
        shown.shown(),
        [
            "  ■ terminal 1.2 s stopped",
            "  ■ terminal 1.2 s cut off",
            "  ? terminal 1.2 s nobody knows whether it took effect",
        ]
    );
}

#[test]
fn steps_are_shown_whole_and_then_as_they_change() {
    let mut shown = Shown::new();
    let step =
        |number: u32, text: &str| json!({"number": number, "text": text, "executor": "self"});
    shown.json(
        json!({"type": "plan_ready", "plan": "x", "message_id": MessageId::new(),
        "steps": [step(1, "look"), step(2, "write")]}),
    );
    assert_eq!(shown.shown(), ["Plan", "  ☐ 1. look", "  ☐ 2. write"]);
    let list = |first: &str, second: &str| {
        json!({"type": "todo_updated", "items": [
            {"id": 1, "text": "look", "status": first},
            {"id": 2, "text": "write", "status": second, "note": "later"}]})
    };
    shown.json(list("pending", "pending"));
    assert_eq!(shown.shown(), [""; 0]);
    shown.json(list("done", "pending"));
    assert_eq!(shown.shown(), ["  ☑ 1. look"]);
    shown.json(list("done", "skipped"));
    assert_eq!(
        shown.shown(),
        ["  – 2. write (later)", "  every step is settled"]
    );
    shown.json(json!({"type": "todo_updated", "items": [
        {"id": 1, "text": "another", "status": "pending"}]}));
    assert_eq!(shown.shown(), ["  ☐ 1. another"]);
}

#[test]
fn one_question_is_asked_after_the_other_and_shows_all_of_it() {
    let mut shown = Shown::new();
    let (first, second) = (ApprovalId::new(), ApprovalId::new());
    shown.tell(request(first, "run `make`"));
    assert_eq!(
        shown.shown(),
        [
            "? run `make`",
            "  it leaves the workspace",
            "  command: ",
            "    make",
            r"    rm \u{202e}x",
            "  path: ",
            "    -old",
            "    +new",
        ]
    );
    shown.tell(request(second, "run `rm`"));
    assert_eq!(shown.shown(), ["1 more to answer after this"]);
    assert_eq!(shown.screen.question().unwrap().id, first);
    let keys = shown::keys(&shown.screen.question().unwrap().request);
    assert_eq!(
        keys.text(),
        "  a allow · A allow always: `make` here · d deny · /deny WHY tells why"
    );
    shown.screen.answers(first);
    shown.tell(resolved(first, Decision::Once, DecidedBy::User));
    let lines = shown.shown();
    assert_eq!(lines[..2], ["allowed", "? run `rm`"]);
    shown.tell(resolved(second, Decision::Deny, DecidedBy::User));
    assert_eq!(shown.shown(), ["denied elsewhere"]);
    assert_eq!(shown.screen.question(), None);
}

#[test]
fn no_answer_is_taken_for_another_question_that_stands_there_by_now() {
    let mut shown = Shown::new();
    let (first, second) = (ApprovalId::new(), ApprovalId::new());
    shown.tell(request(first, "run `make`"));
    shown.tell(request(second, "run `rm`"));
    assert_eq!(shown.screen.asked(first).unwrap().id, first);
    assert_eq!(shown.screen.asked(second), None);
    // Another tab answers it while a key for it is on its way.
    shown.tell(resolved(first, Decision::Deny, DecidedBy::User));
    assert_eq!(shown.screen.asked(first), None);
    assert_eq!(shown.screen.asked(second).unwrap().id, second);
}

#[test]
fn what_is_sent_here_stands_there_already_and_what_is_sent_elsewhere_is_told() {
    let mut shown = Shown::new();
    let accepted = |client_id: &str, queued: bool| {
        json!({"type": "message_accepted", "client_id": client_id, "message_id": MessageId::new(),
            "queued": queued, "content": "two\nlines"})
    };
    shown.screen.sends("mine");
    shown.json(accepted("mine", false));
    assert_eq!(shown.shown(), [""; 0]);
    shown.screen.sends("again");
    shown.json(accepted("again", true));
    assert_eq!(shown.shown(), ["it waits for the run that goes"]);
    shown.json(accepted("theirs", false));
    assert_eq!(shown.shown(), ["› two", "  lines"]);
}

#[test]
fn a_message_that_was_said_again_stands_there_once() {
    let mut shown = Shown::new();
    let accepted = json!({"type": "message_accepted", "client_id": "mine",
        "message_id": MessageId::new(), "queued": true, "content": "hello"});
    shown.screen.sends("mine");
    shown.json(accepted.clone());
    assert_eq!(shown.shown(), ["it waits for the run that goes"]);
    let repeat = Envelope {
        seq: None,
        run_id: Some(shown.run),
        parent_run_id: None,
        at: Utc::now(),
        event: serde_json::from_value(accepted).unwrap(),
    };
    assert!(shown.screen.take(repeat).is_empty());
}

#[test]
fn a_subagent_is_told_of_and_not_listened_to() {
    let mut shown = Shown::new();
    let run = shown.run;
    let task = "find it".to_owned();
    let (call_id, profile_id) = (CallId::new(), "secretary".to_owned());
    shown.tell_of(
        Some(run),
        Event::SubagentStarted {
            call_id: call_id.clone(),
            profile_id,
            task,
            is_subagent: true,
        },
    );
    shown.tell_of(
        Some(run),
        Event::StreamDelta(piece(MessageId::new(), 0, "I search\n")),
    );
    shown.tell_of(
        Some(run),
        Event::ToolStarted {
            tool: "web_search".to_owned(),
            args: json!({"query": "x"}),
            is_subagent: true,
            call_id: call_id.clone(),
            message_id: MessageId::new(),
            lent: false,
        },
    );
    shown.tell_of(
        Some(run),
        Event::SubagentFinished {
            call_id,
            completed_normally: false,
            is_subagent: true,
        },
    );
    assert_eq!(
        shown.shown(),
        [
            "  ↳ subagent secretary: find it",
            "    ● web_search x",
            "  ✗ the subagent did not finish",
        ]
    );
}

#[test]
fn why_nothing_moves_is_told_once() {
    let mut shown = Shown::new();
    let waits = |reason, detail: &str| Event::waiting(reason, Phrase::plain(detail), false);
    shown.tell(waits(WaitReason::Prefill, "the prompt is read: 10 %"));
    shown.tell(waits(WaitReason::Prefill, "the prompt is read: 20 %"));
    shown.tell(waits(WaitReason::Approval, "you are asked"));
    shown.tell(Event::StreamStopped {});
    assert_eq!(shown.shown(), ["the prompt is read: 10 %", "stopped", ""]);
}
