//! Conversations for tests: short to write, with ids that are the same every time.

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use crate::protocol::ids::{CallId, MessageId, RunId};
use crate::protocol::message::{Message, MessageState, Role, ToolCall, ToolOutcome};
use crate::protocol::plan::{Executor, Plan, PlanStep};

pub(crate) const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

pub(crate) fn run(number: u128) -> RunId {
    RunId(Uuid::from_u128(number))
}

pub(crate) fn user(run_number: u128, text: &str) -> Message {
    Message::user(MessageId::new(), run(run_number), text.to_owned(), NOW)
}

pub(crate) fn said(run_number: u128, text: &str) -> Message {
    let mut message = Message::assistant(MessageId::new(), run(run_number), NOW);
    message.content = Some(text.to_owned());
    message
}

pub(crate) fn call(id: &str) -> ToolCall {
    ToolCall {
        id: CallId(id.to_owned()),
        name: "filesystem".to_owned(),
        arguments: json!({"action": "read", "path": format!("{id}.md")}),
    }
}

pub(crate) fn asked(run_number: u128, calls: &[&str]) -> Message {
    let mut message = said(run_number, "");
    message.content = None;
    message.tool_calls = calls.iter().map(|id| call(id)).collect();
    message
}

pub(crate) fn result(run_number: u128, id: &str, text: &str) -> Message {
    Message::tool_result(
        run(run_number),
        &call(id),
        ToolOutcome::Success,
        text.to_owned(),
        NOW,
    )
}

/// A plan of one step, and the message that holds it.
pub(crate) fn planned(run_number: u128, text: &str) -> (Plan, Message) {
    let mut message = said(run_number, text);
    message.is_plan = true;
    let plan = Plan {
        run_id: message.run_id,
        message_id: message.id,
        text: text.to_owned(),
        steps: vec![PlanStep {
            number: 1,
            text: "the step".to_owned(),
            executor: Executor::Itself,
            milestone: None,
        }],
    };
    (plan, message)
}

/// Any messages at all, as no run would leave them: results without calls and calls without
/// results, ids twice, empty texts, long ones, images, system messages.
pub(crate) fn anything() -> impl Strategy<Value = Vec<Message>> {
    let id = || prop::sample::select(vec!["a", "b", "c"]);
    let text = || {
        prop_oneof![
            Just(String::new()),
            "\\PC{1,20}",
            Just("aї漢".repeat(1_200)),
        ]
    };
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Assistant, Role::Tool]);
    let state = prop::sample::select(vec![MessageState::Complete, MessageState::Stopped]);
    let calls = prop::collection::vec(id(), 0..4);
    let one = (role, 1u128..5, text(), calls, id(), state, 0usize..2).prop_map(
        |(role, run_number, text, calls, id, state, images)| {
            let mut message = match role {
                Role::Tool => result(run_number, id, &text),
                Role::Assistant => {
                    let mut message = asked(run_number, &calls);
                    message.content = (!text.is_empty()).then_some(text);
                    message.state = state;
                    message
                }
                Role::User | Role::System => {
                    let mut message = user(run_number, &text);
                    message.images = vec!["iVBORw0KGgo=".to_owned(); images];
                    message
                }
            };
            message.role = role;
            message
        },
    );
    prop::collection::vec(one, 0..14)
}
