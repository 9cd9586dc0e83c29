//! How a request is put down, and made again.

use std::collections::BTreeMap;
use std::io;

use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Prompt;
use super::prefix::Head;
use crate::domain::context::{CallOptions, CallSetup, ContextMessage, Conversation};
use crate::domain::files::FileViews;
use crate::domain::history::ContextState;
use crate::protocol::chat::ChatRequest;
use crate::protocol::ids::MessageId;
use crate::protocol::offered::OfferedTools;
use crate::protocol::prompt::PromptMessage;

/// A text that many requests share, by its SHA-256 in hex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub sha256: String,
    /// Cheap to clone: a call has it for as long as it takes.
    pub body: ByteString,
}

/// How a request is made again. What stands in it as text of 64 digits names a [`Part`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Recipe {
    /// Of the session's conversation: from the start of its context to a message.
    Conversation {
        framed: Framed,
        /// [`ContextState`].
        context: String,
        last: Option<MessageId>,
    },
    /// Of a subagent's conversation: all that it had by then.
    Own { framed: Framed },
    /// A question beside any conversation, message by message.
    Question {
        /// Without its messages.
        request: ChatRequest,
        messages: Vec<String>,
    },
}

/// A [`CallSetup`] with its long parts elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Framed {
    system: String,
    tools: String,
    notes: Vec<String>,
    options: CallOptions,
}

/// What a recipe is carried out with.
#[derive(Clone, Debug, Default)]
pub struct Ingredients {
    /// Bodies by their SHA-256.
    pub parts: BTreeMap<String, String>,
    /// The conversation, as far as the recipe names it.
    pub messages: Vec<ContextMessage>,
    pub files: FileViews,
}

/// Gathers parts.
#[derive(Debug, Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn add(&mut self, body: String) -> String {
        let sha256 = digest(&body);
        self.add_known(sha256, body.into())
    }

    fn add_known(&mut self, sha256: String, body: ByteString) -> String {
        if self.0.iter().all(|part| part.sha256 != sha256) {
            self.0.push(Part {
                sha256: sha256.clone(),
                body,
            });
        }
        sha256
    }

    fn add_system(&mut self, system: &PromptMessage) -> String {
        let words = system.system_words();
        let sha256 = system.made().sha256.get_or_init(|| digest(words));
        self.add_known(sha256.clone(), words.into())
    }

    fn add_tools(&mut self, tools: &OfferedTools) -> String {
        let kept = tools.made().kept.get_or_init(|| {
            let json = tools.json().get();
            (digest(json), json.into())
        });
        self.add_known(kept.0.clone(), kept.1.clone())
    }

    fn add_json<T: Serialize>(&mut self, value: &T) -> serde_json::Result<String> {
        Ok(self.add(serde_json::to_string(value)?))
    }
}

impl Recipe {
    /// How a call of the session's own is made again.
    ///
    /// # Errors
    /// Where something has no JSON form.
    pub fn of_conversation(
        frame: CallSetup,
        context: &ContextState,
        last: Option<MessageId>,
        request: &ChatRequest,
    ) -> serde_json::Result<Prompt> {
        let mut parts = Parts::default();
        let context = parts.add_json(context)?;
        let framed = Framed::new(frame, &mut parts);
        let recipe = Self::Conversation {
            framed,
            context,
            last,
        };
        recipe.prompt(parts, request)
    }

    /// How a call of a subagent is made again.
    ///
    /// # Errors
    /// As [`Recipe::of_conversation`].
    pub fn of_own(frame: CallSetup, request: &ChatRequest) -> serde_json::Result<Prompt> {
        let mut parts = Parts::default();
        let framed = Framed::new(frame, &mut parts);
        Self::Own { framed }.prompt(parts, request)
    }

    /// How a question beside the conversation is made again.
    ///
    /// # Errors
    /// As [`Recipe::of_conversation`].
    pub fn of_question(request: &ChatRequest) -> serde_json::Result<Prompt> {
        let mut parts = Parts::default();
        let messages = request.messages.iter();
        let messages = messages.map(|message| parts.add_json(message));
        let messages = messages.collect::<serde_json::Result<_>>()?;
        let without = ChatRequest {
            messages: Vec::new(),
            ..request.clone()
        };
        let recipe = Self::Question {
            request: without,
            messages,
        };
        recipe.prompt(parts, request)
    }

    fn prompt(&self, parts: Parts, request: &ChatRequest) -> serde_json::Result<Prompt> {
        Ok(Prompt {
            recipe: serde_json::to_string(self)?,
            parts: parts.0,
            sha256: seal(request)?,
        })
    }

    /// The parts that it names.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Conversation {
                framed, context, ..
            } => vec![&framed.system, &framed.tools, context],
            Self::Own { framed } => vec![&framed.system, &framed.tools],
            Self::Question { messages, .. } => messages.iter().map(String::as_str).collect(),
        }
    }

    /// How the context of the conversation stood; none where it is of no conversation of the
    /// session, or the part is missing.
    #[must_use]
    pub fn context(&self, parts: &BTreeMap<String, String>) -> Option<ContextState> {
        match self {
            Self::Conversation { context, .. } => serde_json::from_str(parts.get(context)?).ok(),
            Self::Own { .. } | Self::Question { .. } => None,
        }
    }

    /// What stood before the conversation itself. None for a question beside it, and where a part
    /// is missing, or is not what the recipe takes it for.
    #[must_use]
    pub fn head(&self, parts: &BTreeMap<String, String>) -> Option<Head> {
        let (framed, context) = match self {
            Self::Conversation { framed, .. } => (framed, self.context(parts)?),
            Self::Own { framed } => (framed, ContextState::default()),
            Self::Question { .. } => return None,
        };
        let setup = framed.setup(parts)?;
        Some(Head {
            system: framed.system.clone(),
            tools: framed.tools.clone(),
            tokens: setup.parts(&Conversation::of(&context, &[])),
            noted: !setup.notes.is_empty(),
            options: setup.options,
            context,
        })
    }

    /// The last message of the session's conversation that it had.
    #[must_use]
    pub fn last(&self) -> Option<MessageId> {
        match self {
            Self::Conversation { last, .. } => *last,
            Self::Own { .. } | Self::Question { .. } => None,
        }
    }

    /// Takes what was remembered of the user out of the parts: the request is made without it.
    pub fn leave_memory_out(&self, parts: &mut BTreeMap<String, String>) {
        let Self::Conversation { context: name, .. } = self else {
            // A subagent and a question beside the conversation are told nothing of it.
            return;
        };
        let without = self.context(parts).map(|state| ContextState {
            memory: None,
            ..state
        });
        match without.and_then(|state| serde_json::to_string(&state).ok()) {
            Some(body) => parts.insert(name.clone(), body),
            // Then there is no request.
            None => parts.remove(name),
        };
    }

    /// The request. None where a part is missing, or is not what the recipe takes it for.
    #[must_use]
    pub fn request(&self, with: &Ingredients) -> Option<ChatRequest> {
        match self {
            Self::Conversation { framed, .. } => {
                let state = self.context(&with.parts)?;
                framed.request(&state, with)
            }
            Self::Own { framed } => framed.request(&ContextState::default(), with),
            Self::Question { request, messages } => {
                let messages = messages.iter();
                let messages = messages
                    .map(|name| serde_json::from_str(with.parts.get(name)?).ok())
                    .collect::<Option<Vec<PromptMessage>>>()?;
                Some(ChatRequest {
                    messages,
                    ..request.clone()
                })
            }
        }
    }
}

impl Framed {
    fn new(frame: CallSetup, parts: &mut Parts) -> Self {
        Self {
            tools: parts.add_tools(&frame.tools),
            system: parts.add_system(&frame.system),
            notes: frame.notes,
            options: frame.options,
        }
    }

    fn setup(&self, parts: &BTreeMap<String, String>) -> Option<CallSetup> {
        Some(CallSetup {
            system: PromptMessage::system(parts.get(&self.system)?.as_str()),
            tools: serde_json::from_str(parts.get(&self.tools)?).ok()?,
            notes: self.notes.clone(),
            options: self.options.clone(),
        })
    }

    fn request(&self, state: &ContextState, with: &Ingredients) -> Option<ChatRequest> {
        let frame = self.setup(&with.parts)?;
        let messages = with.messages.iter().cloned();
        let messages: Vec<_> = messages.map(|message| state.as_decided(message)).collect();
        let conversation = Conversation::of(state, &messages).with_files(&with.files);
        Some(frame.request(&conversation).request)
    }
}

fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

/// SHA-256 of a request, in hex.
///
/// # Errors
/// Where it has no JSON form.
pub fn seal(request: &ChatRequest) -> serde_json::Result<String> {
    struct Into(Sha256);
    impl io::Write for Into {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // Images can make it megabytes: it is never held as text.
    let mut digest = Into(Sha256::new());
    let mut buffered = io::BufWriter::new(&mut digest);
    serde_json::to_writer(&mut buffered, request)?;
    io::Write::flush(&mut buffered).map_err(serde_json::Error::io)?;
    drop(buffered);
    Ok(hex::encode(digest.0.finalize()))
}
