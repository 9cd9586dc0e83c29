//! Rules that every model call must keep, whatever the test is about: what real providers
//! demand. A call that breaks one is refused, and fails the test in the end.

use serde_json::Value;

use super::rules::{messages, role, text_of};
use super::script::is_streamed;
use super::wire::Protocol;

/// What is wrong with a call's messages.
pub(super) fn violations(protocol: Protocol, body: &Value) -> Vec<String> {
    let mut found = wrong_offer(body);
    if protocol == Protocol::OpenAi && !is_streamed(body) && body.get("stream_options").is_some() {
        found.push("stream_options beside a whole answer".to_owned());
    }
    let messages = messages(body);
    if messages.is_empty() {
        found.push("no messages".to_owned());
    }
    let mut seen_ids: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < messages.len() {
        let message = messages[at];
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let calls = calls.map(Vec::as_slice).unwrap_or_default();
        match role(&message) {
            "assistant" if calls.is_empty() && text_of(&message).is_empty() => {
                found.push(format!(
                    "message {at}: the assistant says and calls nothing"
                ));
            }
            "assistant" => {}
            "tool" => found.push(format!("message {at}: a result that no call asked for")),
            "system" | "user" => {}
            other => found.push(format!("message {at}: role {other:?}")),
        }
        for (number, call) in calls.iter().enumerate() {
            let place = format!("message {at}, call {number}");
            found.extend(wrong_arguments(protocol, call).map(|wrong| format!("{place}: {wrong}")));
            if let Some(id) = call.get("id").and_then(Value::as_str) {
                if seen_ids.contains(&id) {
                    found.push(format!("{place}: the id {id} was used before"));
                }
                seen_ids.push(id);
            }
            let result = messages.get(at + 1 + number);
            match result.filter(|result| role(result) == "tool") {
                None => found.push(format!("{place}: no result stands in its place")),
                Some(result) => {
                    found.extend(
                        wrong_result(protocol, call, result)
                            .map(|wrong| format!("{place}: {wrong}")),
                    );
                }
            }
        }
        // Results that stand where they belong are told off above, or are right.
        let results = messages[at + 1..].iter().take(calls.len());
        at += 1 + results
            .take_while(|message| role(message) == "tool")
            .count();
    }
    found
}

/// What is wrong with the tools that are offered.
fn wrong_offer(body: &Value) -> Vec<String> {
    let tools = body.get("tools").and_then(Value::as_array);
    let mut found = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for tool in tools.into_iter().flatten() {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.is_empty() || name.len() > 64 || !name.bytes().all(usual) {
            found.push(format!("a tool by the name {name:?}"));
        }
        if seen.contains(&name) {
            found.push(format!("the tool {name} is offered twice"));
        }
        seen.push(name);
    }
    found
}

fn wrong_arguments(protocol: Protocol, call: &Value) -> Option<String> {
    let arguments = &call["function"]["arguments"];
    let is_object = match protocol {
        Protocol::Ollama => arguments.is_object(),
        Protocol::OpenAi => arguments
            .as_str()
            .and_then(|text| serde_json::from_str::<Value>(text).ok())
            .is_some_and(|value| value.is_object()),
    };
    (!is_object).then(|| format!("arguments {arguments} are not what this protocol takes"))
}

fn wrong_result(protocol: Protocol, call: &Value, result: &Value) -> Option<String> {
    let (wanted, given) = match protocol {
        Protocol::Ollama => (&call["function"]["name"], &result["tool_name"]),
        Protocol::OpenAi => (&call["id"], &result["tool_call_id"]),
    };
    (wanted != given || wanted.is_null())
        .then(|| format!("the result in its place is for {given}, not for {wanted}"))
}
