//! A message of the conversation as a context has it.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::protocol::message::Message;
use crate::protocol::prompt::PromptMessage;

/// A message that is never changed any more, with what a prompt says of it. Cheap to clone; all
/// clones are one.
#[derive(Clone)]
pub struct ContextMessage(Arc<Shared>);

struct Shared {
    message: Arc<Message>,
    said: OnceLock<PromptMessage>,
}

impl ContextMessage {
    /// What a prompt says of it, where that depends on nothing else: made once. None where that is
    /// nothing.
    pub(super) fn said(
        &self,
        make: impl FnOnce() -> Option<PromptMessage>,
    ) -> Option<PromptMessage> {
        if let Some(said) = self.0.said.get() {
            return Some(said.clone());
        }
        let made = make()?;
        Some(self.0.said.get_or_init(|| made).clone())
    }
}

impl From<Message> for ContextMessage {
    fn from(message: Message) -> Self {
        Arc::new(message).into()
    }
}

impl From<Arc<Message>> for ContextMessage {
    fn from(message: Arc<Message>) -> Self {
        Self(Arc::new(Shared {
            message,
            said: OnceLock::new(),
        }))
    }
}

impl fmt::Debug for ContextMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0.message, f)
    }
}

impl Deref for ContextMessage {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.0.message
    }
}

impl Borrow<Message> for ContextMessage {
    fn borrow(&self) -> &Message {
        self
    }
}

impl PartialEq for ContextMessage {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
