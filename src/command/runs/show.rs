//! `navi runs show`.

use std::collections::VecDeque;
use std::process::ExitCode;

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use navi_actors::domain::permissions::Memory;
use navi_actors::protocol::chat::{ChatMessage, ChatRequest};
use navi_actors::protocol::ids::RunId;
use navi_actors::protocol::inspect::{CallDetails, CallInfo, RunDetails, RunInfo};
use navi_actors::store::LogCursor;
use serde_json::{Value, json};

use super::Archive;
use super::words::{self, millis, name, plain, seconds, took};
use crate::console::say;

/// Prints a run's events and model calls in order.
///
/// # Errors
/// There is no such run; the database cannot be read.
pub(super) async fn run(archive: &Archive, id: RunId, json: bool) -> anyhow::Result<ExitCode> {
    let details = archive.details(id).await?;
    let events = events(archive, &details.run).await?;
    if json {
        let mut whole = serde_json::to_value(&details)?;
        whole["events"] = Value::Array(events);
        say(&serde_json::to_string_pretty(&whole)?);
        return Ok(ExitCode::SUCCESS);
    }
    head(&details);
    let mut calls = calls(archive, details.clone()).await?;
    let began = details.run.started_at;
    for event in events {
        let seq = event["seq"].as_u64();
        if let Some(seq) = seq {
            tell_calls(&mut calls, began, |call| call.after_seq < seq);
        }
        tell_event(&event, &details.run);
        if let Some(seq) = seq {
            tell_calls(&mut calls, began, |call| call.after_seq <= seq);
        }
    }
    tell_calls(&mut calls, began, |_| true);
    Ok(ExitCode::SUCCESS)
}

fn head(details: &RunDetails) {
    let run = &details.run;
    say(&format!(
        "run {}: {}, {}",
        run.run_id,
        name(&run.state),
        took(run)
    ));
    if let Some(reason) = &run.reason {
        say(&format!("  because: {}", words::line(reason)));
    }
    say(&format!(
        "  session {}, message {}",
        run.session_id, run.message_id
    ));
    say(&format!(
        "  {} on {}, profile {}",
        plain(&run.model),
        plain(&run.backend),
        plain(&run.profile_id)
    ));
    say(&format!(
        "  began {}; {} iterations, {} + {} tokens",
        run.started_at.format("%Y-%m-%d %H:%M:%S"),
        run.iterations,
        run.prompt_tokens,
        run.completion_tokens
    ));
    if let Some(cost) = details
        .spent
        .as_ref()
        .and_then(|spent| spent.run.cost.as_ref())
    {
        say(&format!(
            "  cost with subagents: {:.4} {}",
            cost.amount, cost.currency
        ));
    }
    for child in &details.children {
        say(&format!("  subagent {child}"));
    }
    say("");
}

/// All that was told of the run and those under it.
async fn events(archive: &Archive, run: &RunInfo) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    let mut from = LogCursor::default();
    loop {
        let page = archive.inspector.events(run.session_id, run.run_id, from);
        let page = page.await?.context("the run has just gone")?;
        for event in page.events {
            all.push(serde_json::from_str(&event)?);
        }
        match page.next {
            Some(next) => from = next,
            None => return Ok(all),
        }
    }
}

/// The calls of the run and of those under it, in the order in which they began.
async fn calls(
    archive: &Archive,
    details: RunDetails,
) -> anyhow::Result<VecDeque<(RunId, CallInfo)>> {
    let mut all = Vec::new();
    let mut left = VecDeque::from([details]);
    while let Some(next) = left.pop_front() {
        let of = next.run.run_id;
        all.extend(next.calls.into_iter().map(|call| (of, call)));
        for child in next.children {
            left.push_back(archive.details(child).await?);
        }
    }
    all.sort_by_key(|(_, call)| (call.after_seq, call.started_at));
    Ok(all.into())
}

fn tell_calls(
    calls: &mut VecDeque<(RunId, CallInfo)>,
    began: DateTime<Utc>,
    is_due: impl Fn(&CallInfo) -> bool,
) {
    while let Some((_, call)) = calls.front()
        && is_due(call)
    {
        let at = seconds(millis(call.started_at - began));
        say(&format!("{at:>12}         > {}", words::call(call)));
        calls.pop_front();
    }
}

fn tell_event(event: &Value, run: &RunInfo) {
    let at = event["at"].as_str().unwrap_or_default();
    let at = at.parse::<DateTime<Utc>>();
    // Streamed text is kept without its time.
    let at = match (event["seq"].as_u64(), at) {
        (Some(_), Ok(at)) => seconds(millis(at - run.started_at)),
        _ => String::new(),
    };
    let seq = event["seq"].as_u64();
    let seq = seq.map_or_else(String::new, |seq| format!("#{seq}"));
    let own = event["run_id"] == json!(run.run_id);
    let whose = if own { "" } else { "  subagent: " };
    let kind = event["type"].as_str().unwrap_or_default();
    let says = words::event(event);
    let line = format!("{at:>12} {seq:>6}  {whose}{kind} {says}");
    say(line.trim_end());
}

/// Prints what the model was sent at a call.
///
/// # Errors
/// There is no such call; the database cannot be read.
pub(super) async fn call(
    archive: &Archive,
    id: RunId,
    n: u32,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let details = archive.details(id).await?;
    let inspector = &archive.inspector;
    let found = inspector.call(archive.user, id, n, Memory::Shown).await?;
    let found = found.with_context(|| {
        let calls = details.calls.len();
        format!("run {id} has no model call {n}; it has {calls}")
    })?;
    if json {
        say(&serde_json::to_string_pretty(&found)?);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(call) = details.calls.iter().find(|call| call.n == n) {
        say(&words::call(call));
    }
    tell_sent(&found);
    Ok(ExitCode::SUCCESS)
}

fn tell_sent(call: &CallDetails) {
    let request = &call.request;
    say(if call.exact {
        "This is what was sent, to the byte."
    } else {
        "This is made again from what is stored, and it is NOT exactly what was sent: a file may have gone since, or another version of Navi sent it."
    });
    options(request);
    for message in &request.messages {
        tell_message(message);
    }
    say("\n=== the reply");
    if let Some(thinking) = &call.reply.thinking {
        say(&format!("(thinking) {}\n", plain(thinking)));
    }
    if let Some(content) = &call.reply.content {
        say(&plain(content));
    }
    for call in &call.reply.tool_calls {
        say(&format!(
            "calls {} {} ({})",
            plain(&call.name),
            plain(&call.arguments.to_string()),
            plain(&call.id.0)
        ));
    }
}

fn options(request: &ChatRequest) {
    let tools: Vec<&str> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    say(&format!(
        "model {}, temperature {}, window {}, {}, tools: {}",
        plain(&request.model),
        request.temperature,
        request.context_window,
        if request.think {
            "with reasoning"
        } else {
            "without reasoning"
        },
        if tools.is_empty() {
            "none".to_owned()
        } else {
            plain(&tools.join(", "))
        }
    ));
}

fn tell_message(message: &ChatMessage) {
    match message {
        ChatMessage::System { content } => say(&format!("\n=== system\n{}", plain(content))),
        ChatMessage::User { content, images } => {
            say(&format!("\n=== user\n{}", plain(content)));
            for image in images {
                say(&format!("(an image, {} KB)", image.len() * 3 / 4 / 1024));
            }
        }
        ChatMessage::Assistant {
            content,
            tool_calls,
        } => {
            say(&format!("\n=== assistant\n{}", plain(content)));
            for call in tool_calls {
                say(&format!(
                    "calls {} {} ({})",
                    plain(&call.name),
                    plain(&call.arguments.to_string()),
                    plain(&call.id.0)
                ));
            }
        }
        ChatMessage::Tool {
            call_id,
            name,
            content,
        } => say(&format!(
            "\n=== result of {} ({})\n{}",
            plain(name),
            plain(&call_id.0),
            plain(content)
        )),
    }
}
