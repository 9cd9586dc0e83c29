//! The order of roles that a model's chat template takes.
//!
//! Navi sends a second system message for what she remembers (SPEC section 7). Some templates
//! refuse that: there may be one alone, or none at all; user and assistant must alternate;
//! nothing but the assistant may follow a tool's result. Such a model is asked again in an
//! order that every template takes, and from then on at once.

use std::borrow::Cow;
use std::collections::HashMap;

use parking_lot::Mutex;

use crate::protocol::chat::{ChatMessage, ChatRequest};
use crate::protocol::prompt::PromptMessage;

use super::LlmError;

/// Models that a server offers are few; past this none is remembered.
const MAX_MODELS: usize = 512;

/// What ends the assistant's turn where the user speaks right after a tool's result.
const SEEN: &str = "I have the results.";

/// What a model's template takes, from the most to the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Roles {
    #[default]
    Any,
    /// One system message, at the beginning, and strict turns after it.
    SystemFirst,
    /// As before, but the system message is the beginning of the first user message.
    NoSystem,
}

impl Roles {
    /// The request in an order that such a template takes. Only what stands last differs from
    /// one call of a run to the next, as without it: the backend's prefix cache goes on
    /// working.
    pub(super) fn arranged(self, request: &ChatRequest) -> Cow<'_, ChatRequest> {
        if self == Self::Any {
            return Cow::Borrowed(request);
        }
        let (system, mut messages) = parted(&request.messages);
        if !system.is_empty() {
            if self == Self::NoSystem {
                prepend(&mut messages, &system);
            } else {
                messages.insert(0, ChatMessage::System { content: system }.into());
            }
        }
        Cow::Owned(ChatRequest {
            messages,
            ..request.clone()
        })
    }

    /// The next order to try, given what came of this one. None where the outcome was no
    /// refusal of roles, or no other order is left.
    pub(super) fn after<T>(
        self,
        request: &ChatRequest,
        outcome: &Result<T, LlmError>,
    ) -> Option<Self> {
        let Err(LlmError::RolesRefused { message, .. }) = outcome else {
            return None;
        };
        let refused = self.arranged(request);
        let next = match self {
            Self::Any => [Self::SystemFirst, Self::NoSystem].as_slice(),
            Self::SystemFirst => [Self::NoSystem].as_slice(),
            Self::NoSystem => [].as_slice(),
        }
        .iter()
        .copied()
        .find(|roles| roles.arranged(request).messages != refused.messages)?;
        tracing::debug!(
            model = request.model,
            message,
            ?next,
            "the model's template refuses this order of roles; trying another"
        );
        Some(next)
    }
}

/// What each model of a backend takes, as far as it has shown. Kept for the process's life.
#[derive(Debug, Default)]
pub(super) struct RoleMemory(Mutex<HashMap<String, Roles>>);

impl RoleMemory {
    /// The order to begin with.
    pub(super) fn of(&self, model: &str) -> Roles {
        let known = self.0.lock();
        known.get(model).copied().unwrap_or_default()
    }

    /// The model took a request in this order.
    pub(super) fn learn(&self, model: &str, roles: Roles) {
        let mut known = self.0.lock();
        if known.get(model).copied().unwrap_or_default() != roles && known.len() < MAX_MODELS {
            known.insert(model.to_owned(), roles);
        }
    }
}

/// Whether a server's words say that the template takes no such order of roles.
pub(super) fn refuses_roles(message: &str) -> bool {
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
    let of_system = says(&[
        "system message",
        "system role",
        "'system' role",
        "role 'system'",
        "role system",
        "developer instruction",
    ]);
    says(&[
        "roles must alternate",
        "only user and assistant roles",
        "only user, assistant",
        "unexpected role",
        "expected last role",
        "roles must be in",
    ]) || (of_system
        && says(&[
            "must be at the beginning",
            "must be at the start",
            "must be first",
            "must be the first",
            "must come first",
            "only the first",
            "at most one",
            "only one",
            "multiple",
            "not supported",
            "unsupported",
            "not support",
            "not enabled",
        ]))
}

/// The system messages as one text, and the conversation with strict turns.
fn parted(messages: &[PromptMessage]) -> (String, Vec<PromptMessage>) {
    let mut system = String::new();
    let mut turns: Vec<ChatMessage> = Vec::new();
    for message in messages {
        match (&**message, turns.last_mut()) {
            (ChatMessage::System { content }, _) => join(&mut system, content),
            (
                ChatMessage::User { content, images },
                Some(ChatMessage::User {
                    content: before,
                    images: images_before,
                }),
            ) => {
                join(before, content);
                images_before.extend_from_slice(images);
            }
            (
                ChatMessage::Assistant {
                    content,
                    tool_calls,
                },
                Some(ChatMessage::Assistant {
                    content: before,
                    tool_calls: calls_before,
                }),
            ) if calls_before.is_empty() => {
                join(before, content);
                calls_before.extend_from_slice(tool_calls);
            }
            (ChatMessage::User { .. }, Some(ChatMessage::Tool { .. })) => {
                // To such a template the assistant's turn, which its call began, still goes on.
                turns.push(ChatMessage::Assistant {
                    content: SEEN.to_owned(),
                    tool_calls: Vec::new(),
                });
                turns.push(ChatMessage::clone(message));
            }
            (message, _) => turns.push(message.clone()),
        }
    }
    (system, turns.into_iter().map(Into::into).collect())
}

fn prepend(messages: &mut Vec<PromptMessage>, system: &str) {
    let first = messages.first_mut().map(PromptMessage::to_mut);
    if let Some(ChatMessage::User { content, .. }) = first {
        let asked = std::mem::take(content);
        system.clone_into(content);
        join(content, &asked);
    } else {
        messages.insert(0, user(system.to_owned()).into());
    }
}

fn user(content: String) -> ChatMessage {
    ChatMessage::User {
        content,
        images: Vec::new(),
    }
}

/// Adds a text to a text, a blank line between them.
fn join(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

#[cfg(test)]
#[path = "roles_tests.rs"]
mod tests;
