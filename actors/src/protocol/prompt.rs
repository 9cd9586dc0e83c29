//! The messages of a call, shared by all calls that have the same.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::chat::ChatMessage;
use super::status::BackendKind;

/// A message of a prompt. Cheap to clone; what is made of it once is there for each further call. In
/// JSON a [`ChatMessage`].
#[derive(Clone)]
pub struct PromptMessage(Arc<Shared>);

struct Shared {
    message: ChatMessage,
    made: Made,
}

/// What is made of a message, as soon as somebody wants it.
#[derive(Debug, Default)]
pub struct Made {
    /// A guess at its tokens.
    pub tokens: OnceLock<u32>,
    /// What no vocabulary does with less, in twelfths of a token.
    pub least_units: OnceLock<u64>,
    /// A hash, and a size in tokens: see `domain::first_chunk`.
    pub part: OnceLock<(u64, u32)>,
    /// As a request to a server of this kind writes it.
    pub written: OnceLock<(BackendKind, Box<RawValue>)>,
    /// The SHA-256 of a system message's words, in hex.
    pub sha256: OnceLock<String>,
}

impl PromptMessage {
    /// A system message of these words.
    pub fn system(words: impl Into<String>) -> Self {
        let content = words.into();
        ChatMessage::System { content }.into()
    }

    /// The words of a system message; none of any other.
    #[must_use]
    pub fn system_words(&self) -> &str {
        match &**self {
            ChatMessage::System { content } => content,
            _ => "",
        }
    }

    #[must_use]
    pub fn made(&self) -> &Made {
        &self.0.made
    }

    /// The message, to be changed for this call alone.
    pub fn to_mut(&mut self) -> &mut ChatMessage {
        let shared = Arc::make_mut(&mut self.0);
        shared.made = Made::default();
        &mut shared.message
    }
}

/// Of a copy nothing is made yet: it is there to be changed.
impl Clone for Shared {
    fn clone(&self) -> Self {
        Self {
            message: self.message.clone(),
            made: Made::default(),
        }
    }
}

impl From<ChatMessage> for PromptMessage {
    fn from(message: ChatMessage) -> Self {
        Self(Arc::new(Shared {
            message,
            made: Made::default(),
        }))
    }
}

impl fmt::Debug for PromptMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0.message, f)
    }
}

impl Deref for PromptMessage {
    type Target = ChatMessage;

    fn deref(&self) -> &ChatMessage {
        &self.0.message
    }
}

impl PartialEq for PromptMessage {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl Serialize for PromptMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.message.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PromptMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ChatMessage::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for PromptMessage {
    fn inline_schema() -> bool {
        ChatMessage::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        ChatMessage::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        ChatMessage::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        ChatMessage::json_schema(generator)
    }
}
