//! Replays against what was recorded, step by step.
use serde_json::json;

use super::*;
use crate::domain::context::Conversation;
use crate::protocol::prompt::PromptMessage;
use crate::protocol::tool::{Effect, ToolSpec};

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}),
        effect: Effect::Read,
        time_limit_ms: 1,
    }
}

fn system(text: &str) -> PromptMessage {
    let said = ChatMessage::System {
        content: text.to_owned(),
    };
    said.into()
}

fn assistant(content: &str, tool_calls: Vec<ToolCall>) -> PromptMessage {
    let said = ChatMessage::Assistant {
        content: content.to_owned(),
        tool_calls,
    };
    said.into()
}

fn call(id: &str, path: &str) -> ToolCall {
    ToolCall {
        id: CallId(id.to_owned()),
        name: "look".to_owned(),
        arguments: json!({"path": path}),
    }
}

fn result(id: &str, content: &str) -> PromptMessage {
    let said = ChatMessage::Tool {
        call_id: CallId(id.to_owned()),
        name: "look".to_owned(),
        content: content.to_owned(),
    };
    said.into()
}

fn recorded(
    n: u32,
    messages: Vec<PromptMessage>,
    content: &str,
    calls: Vec<ToolCall>,
) -> RecordedCall {
    RecordedCall {
        n,
        request: ChatRequest {
            model: "first".to_owned(),
            messages,
            tools: vec![tool("look")].into(),
            temperature: 0.7,
            think: true,
            context_window: 4096,
            max_output_tokens: None,
            streamed: true,
            form: None,
        },
        exact: true,
        reply: CallReply {
            content: Some(content.to_owned()),
            thinking: None,
            tool_calls: calls,
        },
    }
}

/// Puts a note where a call's notes stand.
fn put(messages: &mut Vec<PromptMessage>, note: &str) {
    let notes = Notes::new(&Conversation::default(), &[note.to_owned()]);
    notes.unwrap().put(messages);
}

/// Two looks, then an answer.
fn run() -> Vec<RecordedCall> {
    let (a, b) = (call("a", "a.txt"), call("b", "b.txt"));
    let head = vec![system("You are Navi."), assistant("hello", Vec::new())];
    let with = |more: Vec<PromptMessage>, note: &str| {
        let mut messages = head.clone();
        messages.extend(more);
        put(&mut messages, note);
        messages
    };
    let first = vec![assistant("I look.", vec![a.clone()]), result("a", "apples")];
    let mut second = first.clone();
    second.extend([assistant("Again.", vec![b.clone()]), result("b", "pears")]);
    vec![
        recorded(1, with(Vec::new(), "[budget] 3"), "I look.", vec![a]),
        recorded(2, with(first, "[budget] 2"), "Again.", vec![b]),
        recorded(3, with(second, "[budget] 1"), "Fruit.", Vec::new()),
    ]
}

fn other() -> ModelInfo {
    ModelInfo {
        name: "other".to_owned(),
        thinking: Some(false),
        context_window: Some(2048),
        ..ModelInfo::default()
    }
}

fn says(content: &str, paths: &[&str]) -> Said {
    let calls = paths.iter().map(|path| RequestedCall {
        name: "look".to_owned(),
        arguments: json!({"path": path}),
    });
    Said {
        content: content.to_owned(),
        tool_calls: calls.collect(),
        ..Said::default()
    }
}

#[test]
fn one_that_does_the_same_is_sent_the_same_in_its_own_words() {
    let mut replay = Replay::new(run(), 0, other()).unwrap();
    let asked = replay.request();
    assert_eq!((asked.model.as_str(), asked.think), ("other", false));
    assert_eq!(asked.context_window, 2048);
    let (step, end) = replay.on_reply(says("Let me see.", &["a.txt"]));
    assert_eq!(
        (step.n, step.same_calls, step.same_text),
        (Some(1), Some(true), Some(false))
    );
    assert_eq!(end, None);

    let expected = run().remove(1).request.messages;
    let mut asked = replay.request().messages;
    assert_eq!(asked[2], assistant("Let me see.", vec![call("a", "a.txt")]));
    asked[2] = expected[2].clone();
    assert_eq!(asked, expected);

    assert_eq!(replay.on_reply(says("Again.", &["b.txt"])).1, None);
    let (step, end) = replay.on_reply(says(" Fruit.\n", &[]));
    assert_eq!(
        (step.n, step.same_calls, step.same_text),
        (Some(3), Some(true), Some(true))
    );
    assert_eq!(end, Some(ReplayEnd::Answered));
}

#[test]
fn one_that_goes_another_way_gets_what_was_found_then() {
    let mut replay = Replay::new(run(), 0, other()).unwrap();
    let (step, end) = replay.on_reply(says("Both.", &["b.txt", "a.txt"]));
    assert_eq!((step.same_calls, end), (Some(false), None));
    let messages = replay.request().messages;
    let calls = vec![call("b", "b.txt"), call("a", "a.txt")];
    let mut expected = vec![
        assistant("Both.", calls),
        result("b", "pears"),
        result("a", "apples"),
    ];
    // The notes still stand last.
    put(&mut expected, "[budget] 3");
    assert_eq!(messages[2..], expected);
    // Again: under an id of its own.
    let (step, end) = replay.on_reply(says("", &["b.txt"]));
    assert_eq!((step.n, step.recorded, end), (None, None, None));
    let mut messages = replay.request().messages;
    Notes::take(&mut messages);
    assert_eq!(messages[6..], [result("b_2", "pears")]);
    let (_, end) = replay.on_reply(says("So it is.", &[]));
    assert_eq!(end, Some(ReplayEnd::Answered));
}

#[test]
fn a_call_that_was_never_made_ends_it() {
    let mut replay = Replay::new(run(), 1, other()).unwrap();
    assert_eq!(replay.request().messages.len(), 4);
    let (step, end) = replay.on_reply(says("", &["c.txt"]));
    assert_eq!((step.n, step.same_calls), (Some(2), Some(false)));
    let arguments = json!({"path": "c.txt"});
    let tool = "look".to_owned();
    assert_eq!(end, Some(ReplayEnd::Parted { tool, arguments }));
}

#[test]
fn calls_of_a_run_that_was_cut_off_have_no_result() {
    let mut cut_off = run();
    cut_off.truncate(2);
    let mut replay = Replay::new(cut_off, 1, other()).unwrap();
    let (step, end) = replay.on_reply(says("Again.", &["b.txt"]));
    assert_eq!(step.same_calls, Some(true));
    assert!(matches!(end, Some(ReplayEnd::Parted { .. })), "{end:?}");
    assert!(Replay::new(run(), 3, other()).is_none());
}

#[test]
fn going_round_in_circles_has_its_end() {
    let mut replay = Replay::new(run(), 0, other()).unwrap();
    let mut ends = (0..100).filter_map(|_| replay.on_reply(says("", &["b.txt"])).1);
    assert_eq!(ends.next(), Some(ReplayEnd::Limit));
}

#[test]
fn calls_written_as_text_count_and_calls_that_were_not_offered_do_not() {
    let mut replay = Replay::new(run(), 0, other()).unwrap();
    let text = r#"{"name": "look", "arguments": {"path": "a.txt"}}"#;
    let (step, end) = replay.on_reply(says(text, &[]));
    assert_eq!((step.same_calls, end), (Some(true), None));

    let without = ModelInfo {
        tools: Some(false),
        ..other()
    };
    let mut replay = Replay::new(run(), 0, without).unwrap();
    assert!(replay.request().tools.is_empty());
    let (step, end) = replay.on_reply(says("no", &["a.txt"]));
    assert!(step.said.tool_calls.is_empty());
    assert_eq!(end, Some(ReplayEnd::Answered));
}
