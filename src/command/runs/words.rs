//! Runs, events and calls in words for a terminal.

use std::fmt::Write as _;

use chrono::TimeDelta;
use navi_actors::protocol::inspect::{CallInfo, CallReply, RunInfo};
use serde::Serialize;
use serde_json::Value;

/// How much of a text one line shows, in characters.
const LINE: usize = 100;

/// The name that a value has on the wire.
pub(super) fn name<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

/// How long a run took.
pub(super) fn took(run: &RunInfo) -> String {
    run.ended_at.map_or_else(
        || "has not ended".to_owned(),
        |ended| seconds(millis(ended - run.started_at)),
    )
}

pub(super) fn millis(time: TimeDelta) -> u64 {
    // A clock that was set back is no negative duration.
    u64::try_from(time.num_milliseconds()).unwrap_or_default()
}

pub(super) fn seconds(millis: u64) -> String {
    format!("{}.{:03} s", millis / 1000, millis % 1000)
}

/// Text from a model or a tool without what a terminal would obey.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}

/// The beginning of a text on one line.
pub(super) fn line(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut line: String = plain(&one_line).chars().take(LINE).collect();
    if line.chars().count() < one_line.chars().count() {
        line.push('…');
    }
    line
}

/// A model call on one line.
pub(super) fn call(call: &CallInfo) -> String {
    let mut words = format!(
        "model call {} ({}) {}: {}, {}",
        call.n,
        name(&call.kind),
        plain(&call.model),
        name(&call.outcome),
        seconds(call.duration_ms)
    );
    if let Some(first) = call.first_chunk_ms {
        let _ = write!(words, ", first chunk after {}", seconds(first));
    }
    let _ = match (call.prompt_tokens, call.completion_tokens) {
        (Some(read), Some(written)) => write!(words, ", {read} + {written} tokens"),
        _ => write!(words, ", tokens not counted"),
    };
    if let Some(prefix) = &call.prefix
        && let Some(piece) = &prefix.broken_by
    {
        let again = prefix.read_again_tokens;
        let _ = write!(
            words,
            ", prefix broken by {}: {again} tokens read again",
            name(piece)
        );
    }
    words
}

/// A tool call on one line.
pub(super) fn tool(name: &str, arguments: &Value) -> String {
    let arguments = match arguments {
        Value::String(raw) => raw.clone(),
        other => other.to_string(),
    };
    format!("{} {}", line(name), line(&arguments))
}

/// A reply on a few lines.
pub(super) fn reply(reply: &CallReply) -> Vec<String> {
    let calls = reply.tool_calls.iter();
    let mut lines: Vec<String> = calls
        .map(|call| tool(&call.name, &call.arguments))
        .collect();
    let content = reply.content.as_deref().unwrap_or_default();
    if !content.trim().is_empty() {
        lines.insert(0, format!("“{}”", line(content)));
    }
    if lines.is_empty() {
        lines.push("nothing".to_owned());
    }
    lines
}

/// What an event says, beside its type.
pub(super) fn event(event: &Value) -> String {
    let text = |field: &str| line(event[field].as_str().unwrap_or_default());
    match event["type"].as_str().unwrap_or_default() {
        "stream_start" => format!("{} as {}", text("model"), text("profile_id")),
        "message_accepted" | "stream_end" => text("content"),
        "run_waiting" => format!("{}: {}", text("reason"), text("detail")),
        "stream_delta" | "thinking_delta" | "tool_output" => text("delta"),
        "turn_thinking" => text("thinking"),
        "plan_ready" => text("plan"),
        "tool_started" => tool(&text("tool"), &event["args"]),
        "tool_call" => format!(
            "{}: {}, {}: {}",
            text("tool"),
            text("outcome"),
            seconds(event["duration_ms"].as_u64().unwrap_or_default()),
            text("result")
        ),
        "subagent_started" => format!("{}: {}", text("profile_id"), text("task")),
        "subagent_finished" => {
            let completed = event["completed_normally"] == true;
            let how = if completed {
                "completed"
            } else {
                "did not complete"
            };
            how.to_owned()
        }
        "profile_switched" => text("profile_id"),
        "context_compressed" => format!(
            "{} messages became {}",
            event["messages_before"], event["messages_after"]
        ),
        "approval_requested" => text("tool"),
        "approval_resolved" => format!("{} by {}", text("decision"), text("by")),
        "run_interrupted" => text("reason"),
        "notice" => format!("{}: {}", text("code"), text("message")),
        "error" => text("message"),
        _ => String::new(),
    }
}
