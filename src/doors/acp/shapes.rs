//! Messages, calls and plans in the protocol's form.

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, MessageId, Plan, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, SessionUpdate, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use navi_actors::protocol::ids::{self, CallId, PartId};
use navi_actors::protocol::message::ToolOutcome;
use navi_actors::protocol::plan::PlanStep;
use navi_actors::protocol::todo::{TodoItem, TodoStatus};
use serde_json::Value;

/// A user's message, a chunk a block.
pub(super) fn message(message_id: ids::MessageId, blocks: Vec<ContentBlock>) -> Vec<SessionUpdate> {
    let id = message_id.to_string();
    let chunks = blocks.into_iter().map(|block| {
        SessionUpdate::UserMessageChunk(
            ContentChunk::new(block).message_id(MessageId::from(id.clone())),
        )
    });
    chunks.collect()
}

/// What a user said, with images in base64.
pub(super) fn said(content: String, images: Vec<String>) -> Vec<ContentBlock> {
    let images = images.into_iter().map(|data| {
        let kind = match data.as_bytes() {
            [b'/', b'9', b'j', ..] => "image/jpeg",
            [b'R', b'0', b'l', ..] => "image/gif",
            [b'U', b'k', b'l', ..] => "image/webp",
            _ => "image/png",
        };
        ContentBlock::Image(ImageContent::new(data, kind))
    });
    let text = (!content.is_empty()).then(|| ContentBlock::from(content));
    text.into_iter().chain(images).collect()
}

/// A piece of text, with the message that it is of.
pub(super) fn chunk(text: String, part: &PartId) -> ContentChunk {
    let message = part.0.split('.').next().unwrap_or_default();
    ContentChunk::new(ContentBlock::from(text)).message_id(MessageId::from(message.to_owned()))
}

pub(super) fn changed(call: &CallId, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.to_string(), fields))
}

pub(super) fn ended(
    call: &CallId,
    outcome: ToolOutcome,
    content: Vec<ToolCallContent>,
    result: String,
) -> SessionUpdate {
    let status = match outcome {
        ToolOutcome::Success => ToolCallStatus::Completed,
        ToolOutcome::Failed
        | ToolOutcome::Stopped
        | ToolOutcome::OutcomeUnknown
        | ToolOutcome::Interrupted => ToolCallStatus::Failed,
    };
    let fields = ToolCallUpdateFields::new()
        .status(status)
        .content(content)
        .raw_output(Value::String(result));
    changed(call, fields)
}

/// The list of steps. What was left out, or failed, has no status of its own in the protocol.
pub(super) fn plan(items: &[TodoItem]) -> SessionUpdate {
    let entries = items.iter().map(|item| {
        let (status, how) = match item.status {
            TodoStatus::Pending => (PlanEntryStatus::Pending, ""),
            TodoStatus::InProgress => (PlanEntryStatus::InProgress, ""),
            TodoStatus::Done => (PlanEntryStatus::Completed, ""),
            TodoStatus::Failed => (PlanEntryStatus::Completed, " (failed)"),
            TodoStatus::Skipped => (PlanEntryStatus::Completed, " (skipped)"),
        };
        let text = format!("{}{how}", item.text);
        PlanEntry::new(text, PlanEntryPriority::Medium, status)
    });
    SessionUpdate::Plan(Plan::new(entries.collect()))
}

pub(super) fn plan_of(steps: &[PlanStep]) -> SessionUpdate {
    let entries = steps.iter().map(|step| {
        let (medium, pending) = (PlanEntryPriority::Medium, PlanEntryStatus::Pending);
        PlanEntry::new(step.text.clone(), medium, pending)
    });
    SessionUpdate::Plan(Plan::new(entries.collect()))
}
