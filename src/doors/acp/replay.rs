//! A stored conversation as a client is told of it that loads it.

use std::collections::HashMap;

use agent_client_protocol::v1::schema::{
    SessionInfoUpdate, SessionUpdate, ToolCall, ToolCallStatus, UsageUpdate,
};
use navi_actors::protocol::ids::{CallId, PartId};
use navi_actors::protocol::message::{self as stored, Message, Role, ToolOutcome};
use navi_actors::protocol::session::{SessionSnapshot, SessionSummary};

use super::calls::{self, Workspace};
use super::shapes::{chunk, ended, message, plan, said};

/// All of it, in order. What was planned is told as the list of steps that came of it.
pub(super) fn conversation(session: &SessionSnapshot, workspace: &Workspace) -> Vec<SessionUpdate> {
    let mut told = Vec::new();
    let mut calls: HashMap<&CallId, &stored::ToolCall> = HashMap::new();
    for said in session
        .messages
        .iter()
        .filter(|it| !it.is_summary && !it.is_plan)
    {
        match said.role {
            Role::User => told.extend(of_user(said)),
            Role::Assistant => {
                told.extend(of_assistant(said));
                for call in &said.tool_calls {
                    calls.insert(&call.id, call);
                    told.push(asked_for(call, workspace));
                }
            }
            Role::Tool => {
                let call = said.tool_call_id.as_ref().and_then(|id| calls.get(id));
                told.extend(call.map(|call| result(said, call, workspace)));
            }
            Role::System => {}
        }
    }
    if !session.todo.is_empty() {
        told.push(plan(&session.todo));
    }
    told.extend(state(session));
    told
}

/// What a client shows beside the conversation.
pub(super) fn state(session: &SessionSnapshot) -> Vec<SessionUpdate> {
    let summary = &session.summary;
    let used = u64::from(summary.context_token_count);
    let usage = UsageUpdate::new(used, session.max_context_tokens.into());
    vec![SessionUpdate::UsageUpdate(usage), info(summary)]
}

pub(super) fn info(summary: &SessionSummary) -> SessionUpdate {
    let mut info = SessionInfoUpdate::new().updated_at(summary.last_active.to_rfc3339());
    if !summary.title.is_empty() {
        info = info.title(summary.title.clone());
    }
    SessionUpdate::SessionInfoUpdate(info)
}

fn of_user(said_by: &Message) -> Vec<SessionUpdate> {
    let content = said_by.content.clone().unwrap_or_default();
    message(said_by.id, said(content, said_by.images.clone()))
}

fn of_assistant(said: &Message) -> Vec<SessionUpdate> {
    let part = PartId::text(said.id);
    let of = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let thought = of(&said.thinking).map(|text| chunk(text, &part));
    let text = of(&said.content).map(|text| chunk(text, &part));
    let thought = thought.map(SessionUpdate::AgentThoughtChunk);
    let text = text.map(SessionUpdate::AgentMessageChunk);
    thought.into_iter().chain(text).collect()
}

fn asked_for(call: &stored::ToolCall, workspace: &Workspace) -> SessionUpdate {
    let (tool, args) = (&call.name, &call.arguments);
    let told = ToolCall::new(call.id.to_string(), calls::title(tool, args))
        .name(tool.clone())
        .kind(calls::kind(tool, args))
        .status(ToolCallStatus::InProgress)
        .locations(workspace.locations(tool, args))
        .raw_input(args.clone());
    SessionUpdate::ToolCall(told)
}

fn result(said: &Message, call: &stored::ToolCall, workspace: &Workspace) -> SessionUpdate {
    let outcome = said.outcome.unwrap_or(ToolOutcome::Success);
    let text = said.content.clone().unwrap_or_default();
    let success = outcome == ToolOutcome::Success;
    let content = workspace.result(&call.name, &call.arguments, success, &text, &said.files);
    ended(&call.id, outcome, content, text)
}

/// Calls that have no result yet.
pub(super) fn open_calls(session: &SessionSnapshot) -> Vec<CallId> {
    let messages = || session.messages.iter();
    let has_result = |id: &CallId| messages().any(|it| it.tool_call_id.as_ref() == Some(id));
    let calls = messages()
        .flat_map(|it| &it.tool_calls)
        .map(|call| &call.id);
    calls.filter(|id| !has_result(id)).cloned().collect()
}
