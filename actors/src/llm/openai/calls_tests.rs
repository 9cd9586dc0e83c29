use serde_json::json;

use super::*;
use crate::protocol::chat::ChatDelta;

/// The calls that fragments come to, each as `name(arguments)`.
fn assembled(deltas: &[Value]) -> Vec<String> {
    let mut calls = CallAssembler::default();
    let mut reply = DeltaQueue::default();
    for delta in deltas {
        let fragments = delta.as_array().cloned().unwrap_or_default();
        assert_eq!(calls.push(&fragments, &mut reply), Ok(()));
    }
    assert_eq!(calls.finish(&mut reply), Ok(()));
    let mut found = Vec::new();
    while let Some(delta) = reply.next() {
        if let ChatDelta::ToolCall(call) = delta {
            found.push(format!("{}({})", call.name, call.arguments));
        }
    }
    found
}

#[test]
fn calls_come_together_however_they_are_told() {
    let cases: Vec<(&str, Vec<Value>, Vec<&str>)> = vec![
        (
            "by the specification",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]),
                json!([{"index": 0, "function": {"arguments": "{\"x\":"}}]),
                json!([{"index": 0, "function": {"arguments": "1}"}}]),
                json!([{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}]),
            ],
            vec!["f({\"x\":1})", "g({})"],
        ),
        (
            "fragments of two calls mixed",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}, {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{\"y\":"}}]),
                json!([{"index": 1, "function": {"arguments": "2}"}}, {"index": 0, "function": {"arguments": "1}"}}]),
            ],
            vec!["f({\"x\":1})", "g({\"y\":2})"],
        ),
        (
            "names null later",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": null}}]),
                json!([{"index": 0, "id": null, "function": {"name": null, "arguments": "{}"}}]),
            ],
            vec!["f({})"],
        ),
        (
            "id and name repeated with every piece",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\""}}]),
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ":1}"}}]),
            ],
            vec!["f({\"x\":1})"],
        ),
        (
            "no index, own ids",
            vec![
                json!([{"id": "a", "function": {"name": "f", "arguments": "{}"}}]),
                json!([{"id": "b", "function": {"name": "f", "arguments": "{}"}}]),
            ],
            vec!["f({})", "f({})"],
        ),
        (
            "no index, empty ids, fragments",
            vec![
                json!([{"id": "", "function": {"name": "f", "arguments": "{\"x\":"}}]),
                json!([{"id": "", "function": {"arguments": "1}"}}]),
                json!([{"id": "", "function": {"name": "f", "arguments": "{}"}}]),
            ],
            vec!["f({\"x\":1})", "f({})"],
        ),
        (
            "no index, no id, two in one list",
            vec![
                json!([{"function": {"name": "f", "arguments": {"x": 1}}}, {"function": {"name": "f", "arguments": {"x": 1}}}]),
            ],
            vec!["f({\"x\":1})", "f({\"x\":1})"],
        ),
        (
            "every call has index 0",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]),
                json!([{"index": 0, "id": "b", "function": {"name": "f", "arguments": "{}"}}]),
            ],
            vec!["f({})", "f({})"],
        ),
        (
            "every call has index 0 and no id",
            vec![
                json!([{"index": 0, "function": {"name": "f", "arguments": "{\"x\":1}"}}]),
                json!([{"index": 0, "function": {"name": "g", "arguments": "{\"x\":2}"}}]),
            ],
            vec!["f({\"x\":1})", "g({\"x\":2})"],
        ),
        (
            "one id for two calls",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}}]),
                json!([{"index": 1, "id": "a", "function": {"name": "f", "arguments": "{\"x\":2}"}}]),
            ],
            vec!["f({\"x\":1})", "f({\"x\":2})"],
        ),
        (
            "the whole call told again at the end",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}}]),
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}}]),
            ],
            vec!["f({\"x\":1})"],
        ),
        (
            "a name in pieces",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "get_"}}]),
                json!([{"index": 0, "function": {"name": "weather"}}]),
                json!([{"index": 0, "function": {"arguments": "{}"}}]),
            ],
            vec!["get_weather({})"],
        ),
        (
            "indexes with holes",
            vec![json!([{"index": 7, "function": {"name": "f", "arguments": "{}"}}])],
            vec!["f({})"],
        ),
        (
            "cut off arguments",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}]),
            ],
            vec!["f(\"{\\\"x\\\":\")"],
        ),
        (
            "no arguments at all",
            vec![json!([{"index": 0, "id": "a", "function": {"name": "f"}}])],
            vec!["f({})"],
        ),
        (
            "nothing",
            vec![
                json!([]),
                json!(null),
                json!([null, 7, {}, {"function": null}, {"index": 0, "function": {}}]),
            ],
            vec![],
        ),
    ];
    for (what, deltas, expected) in cases {
        assert_eq!(assembled(&deltas), expected, "{what}");
    }
}

#[test]
fn endless_calls_are_refused() {
    let mut calls = CallAssembler::default();
    let mut reply = DeltaQueue::default();
    let fragments: Vec<Value> = (0..=MAX_CALLS)
        .map(|index| json!({"index": index, "function": {"name": "f"}}))
        .collect();
    assert_eq!(calls.push(&fragments, &mut reply), Err(too_many_calls()));
}
