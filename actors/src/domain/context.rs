//! What the model is sent (SPEC section 7).

use std::sync::Arc;

use crate::protocol::chat::{ChatMessage, ChatRequest};
use crate::protocol::message::{Message, MessageState, Role};
use crate::protocol::profile::Profile;
use crate::protocol::status::ModelInfo;
use crate::protocol::tool::ToolSpec;

/// What the model is told after a reply of its own that was cut off.
const CUT_OFF: &str = "[cut off here]";

/// The system message: persona, a line `---`, the profile's prompt.
#[must_use]
pub fn system_message(persona: &str, system_prompt: &str) -> String {
    let (persona, prompt) = (persona.trim(), system_prompt.trim());
    match (persona.is_empty(), prompt.is_empty()) {
        (true, _) => prompt.to_owned(),
        (false, true) => persona.to_owned(),
        (false, false) => format!("{persona}\n---\n{prompt}"),
    }
}

/// The messages of one model call: system, then the conversation with any system message
/// stripped. Grows only at its end while the conversation does.
#[must_use]
pub fn assemble(system: &str, conversation: &[Arc<Message>], notes: &[String]) -> Vec<ChatMessage> {
    let mut messages = Vec::with_capacity(conversation.len() + notes.len() + 1);
    if !system.is_empty() {
        messages.push(ChatMessage::System {
            content: system.to_owned(),
        });
    }
    messages.extend(conversation.iter().filter_map(|m| to_chat(m)));
    messages.extend(notes.iter().map(|note| ChatMessage::System {
        content: note.clone(),
    }));
    messages
}

fn to_chat(message: &Message) -> Option<ChatMessage> {
    let content = message.content.clone().unwrap_or_default();
    match message.role {
        Role::System => None,
        Role::User => Some(ChatMessage::User {
            content,
            images: message.images.clone(),
        }),
        Role::Assistant => {
            let content = match message.state {
                MessageState::Complete => content,
                // Reasoning alone is nothing that the model could go on from.
                _ if content.is_empty() => return None,
                MessageState::Stopped | MessageState::Interrupted | MessageState::Failed => {
                    format!("{content} {CUT_OFF}")
                }
            };
            Some(ChatMessage::Assistant {
                content,
                tool_calls: message.tool_calls.clone(),
            })
        }
        Role::Tool => Some(ChatMessage::Tool {
            call_id: message.tool_call_id.clone()?,
            name: message.name.clone().unwrap_or_default(),
            content,
        }),
    }
}

/// What a call offers beside the conversation.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// Empty where the model may not call tools.
    pub tools: Vec<ToolSpec>,
    /// The run's transient notes; they stand last and are not stored.
    pub notes: Vec<String>,
    /// The window to ask for, in tokens.
    pub context_window: u32,
    pub think: bool,
}

/// The request of one model call.
#[must_use]
pub fn request(
    profile: &Profile,
    persona: &str,
    conversation: &[Arc<Message>],
    model: &ModelInfo,
    offer: &Offer,
) -> ChatRequest {
    let system = system_message(persona, &profile.system_prompt);
    ChatRequest {
        messages: assemble(&system, conversation, &offer.notes),
        model: model.name.clone(),
        tools: if model.tools == Some(false) {
            Vec::new()
        } else {
            offer.tools.clone()
        },
        temperature: profile.temperature,
        think: offer.think && profile.flags.think_enabled && model.thinking != Some(false),
        context_window: window(model, offer.context_window),
        max_output_tokens: None,
    }
}

/// The run's transient notes, as far as the conversation calls for them.
#[must_use]
pub fn notes(conversation: &[Arc<Message>], offer_tools: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let cut_off = conversation
        .last()
        .is_some_and(|last| last.role == Role::Assistant && last.state != MessageState::Complete);
    if cut_off {
        notes.push("Your last answer was cut off. Go on from where it stopped.".to_owned());
    }
    if !offer_tools {
        notes.push(
            "The limit of this task is reached. Say briefly what is done and what is not; call no tools."
                .to_owned(),
        );
    }
    notes
}

/// The window that a call gets: what is asked for, within what the model was made for.
#[must_use]
pub fn window(model: &ModelInfo, asked: u32) -> u32 {
    model.context_window.map_or(asked, |most| most.min(asked))
}

/// A guess at the tokens of a text where the backend counts nothing: about four bytes each.
#[must_use]
pub fn estimate_tokens(messages: &[ChatMessage]) -> u32 {
    let bytes: usize = messages
        .iter()
        .map(|message| match message {
            ChatMessage::System { content } | ChatMessage::User { content, .. } => content.len(),
            ChatMessage::Assistant {
                content,
                tool_calls,
            } => {
                content.len()
                    + tool_calls
                        .iter()
                        .map(|call| call.name.len() + call.arguments.to_string().len())
                        .sum::<usize>()
            }
            ChatMessage::Tool { content, .. } => content.len(),
        })
        .sum();
    u32::try_from(bytes / 4).unwrap_or(u32::MAX)
}
