//! The messages of one call, put in their order and made whole.

use super::notes::{self, Notes, disarmed};
use super::tokens::message_tokens;
use super::{ContextMessage, Conversation};
use crate::domain::cut::cut_middle;
use crate::domain::files::{self, FileViews};
use crate::domain::outside;
use crate::domain::turns;
use crate::protocol::chat::ChatMessage;
use crate::protocol::context::ContextParts;
use crate::protocol::message::{Message, MessageState, Role, ToolCall};
use crate::protocol::prompt::PromptMessage;

/// What the model is told after a reply of its own that was cut off.
const CUT_OFF: &str = "[cut off here]";

/// What it is told of a call that nothing is known about.
const NO_RESULT: &str =
    "failed: no result of this call was kept; check what it did before you repeat it";

/// Stands where a conversation would begin with the assistant's words: many chat templates and
/// servers take none that doesn't begin with the user's.
const EARLIER_LEFT_OUT: &str = "(The conversation before this is left out here.)";

/// Stands last where an assistant's message would: servers take that for the beginning of the
/// answer, and go on in mid-text or refuse it.
const GO_ON: &str = "Go on from here: do what comes next.";

/// What is said of images that tools gave back: they come as a message of the user's, which is
/// the only one that may carry any with every provider.
const IMAGES_OF_TOOLS: &str = "images that the calls above gave back, not from the user";

/// How the memory of the user is headed.
const MEMORY_HEADING: &str = "## What I remember about the user";

/// The messages of one call, in their parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assembled {
    /// What is never left out: system, memory, summary, and a plan that stands nowhere else.
    pub(super) head: Vec<PromptMessage>,
    /// The conversation by turns, oldest first.
    pub(super) turns: Vec<Vec<PromptMessage>>,
    /// The newest plan where it stands in one of the turns: which, and its message.
    pub(super) plan: Option<(usize, PromptMessage)>,
    pub(super) notes: Option<Notes>,
}

impl Assembled {
    /// All of it, in order.
    #[must_use]
    pub fn into_messages(self) -> Vec<PromptMessage> {
        let turns = self.turns.into_iter().flatten();
        let mut messages: Vec<_> = self.head.into_iter().chain(turns).collect();
        if let Some(notes) = self.notes {
            notes.put(&mut messages);
        }
        messages
    }

    /// What a model gets that sees no images: that there were some.
    pub(super) fn without_images(&mut self) {
        let turns = self.turns.iter_mut().flatten();
        hide_images(self.head.iter_mut().chain(turns));
    }

    /// The tokens of the head, by what its messages are for.
    pub(super) fn head_tokens(&self) -> ContextParts {
        let mut parts = ContextParts::default();
        for message in &self.head {
            let part = match &**message {
                ChatMessage::System { content } if content.starts_with(MEMORY_HEADING) => {
                    &mut parts.memory
                }
                ChatMessage::System { .. } => &mut parts.system,
                _ => &mut parts.summary,
            };
            *part = part.saturating_add(message_tokens(message));
        }
        parts
    }

    /// Puts the assistant's words into the head.
    pub(super) fn add_to_head(&mut self, message: PromptMessage) {
        self.begin_with_user();
        self.head.push(message);
    }

    fn begin_with_user(&mut self) {
        let mut head = self.head.iter();
        if !head.any(|message| matches!(**message, ChatMessage::User { .. })) {
            let left_out = ChatMessage::User {
                content: EARLIER_LEFT_OUT.to_owned(),
                images: Vec::new(),
            };
            self.head.push(left_out.into());
        }
    }
}

/// Says of images that there were some, instead of showing them.
pub fn hide_images<'a>(messages: impl IntoIterator<Item = &'a mut PromptMessage>) {
    for message in messages {
        let shows = matches!(&**message, ChatMessage::User { images, .. } if !images.is_empty());
        if shows && let ChatMessage::User { content, images } = message.to_mut() {
            let images = std::mem::take(images).len();
            let what = if images == 1 {
                "An image came".to_owned()
            } else {
                format!("{images} images came")
            };
            content.push_str(&format!(
                "\n[{what} with this that you cannot see: this model takes no images. Say so where it matters.]"
            ));
        }
    }
}

/// Puts together what the model is sent, with each tool result cut to `result_limit` bytes.
///
/// Whatever is stored, what comes out is what every provider takes: each call has exactly one
/// result, right after the message that made it and in the order of the calls; a result without
/// its call, and a message that says nothing, are left away; the conversation begins with the
/// user and doesn't end with the assistant.
///
/// Each message depends on itself alone, and a call's result on what follows up to the next
/// assistant message: so all but the notes only grows while the conversation does.
#[must_use]
pub fn assemble(
    system: &str,
    conversation: &Conversation<'_>,
    result_limit: usize,
    notes: &[String],
) -> Assembled {
    let system = PromptMessage::system(system);
    assemble_behind(&system, conversation, result_limit, notes)
}

/// The same behind a system message that is there.
pub(super) fn assemble_behind(
    system: &PromptMessage,
    conversation: &Conversation<'_>,
    result_limit: usize,
    notes: &[String],
) -> Assembled {
    let mut assembled = Assembled::default();
    if !system.system_words().is_empty() {
        assembled.head.push(system.clone());
    }
    let memory = conversation.memory.map_or("", str::trim);
    if !memory.is_empty() {
        let content = format!("{MEMORY_HEADING}\n\n{}", disarmed(memory));
        assembled.head.push(PromptMessage::system(content));
    }
    let none = FileViews::new();
    let said = Said {
        files: conversation.files.unwrap_or(&none),
        limit: result_limit,
    };
    let summary = conversation.summary.and_then(|summary| said.words(summary));
    assembled.head.extend(summary.map(PromptMessage::from));
    let messages = conversation.messages;
    if let Some(plan) = conversation.plan
        && messages.iter().all(|message| message.id != plan.message_id)
    {
        let planned = ChatMessage::Assistant {
            content: plan.text.clone(),
            tool_calls: Vec::new(),
        };
        assembled.add_to_head(planned.into());
    }
    add_turns(&mut assembled, messages, said);
    let last = assembled.turns.last().and_then(|turn| turn.last());
    let last = last.or(assembled.head.last());
    let last = last.map(|last| &**last);
    assembled.notes = if notes.is_empty() && matches!(last, Some(ChatMessage::Assistant { .. })) {
        Notes::new(conversation, &[GO_ON.to_owned()])
    } else {
        Notes::new(conversation, notes)
    };
    assembled
}

/// What messages are said with.
#[derive(Clone, Copy)]
struct Said<'a> {
    files: &'a FileViews,
    /// Of a tool's result, and of the texts of a message's files, in bytes.
    limit: usize,
}

fn add_turns(assembled: &mut Assembled, messages: &[ContextMessage], said_with: Said<'_>) {
    let mut before: Option<&Message> = None;
    for (index, message) in messages.iter().enumerate() {
        let begins = turns::begins(message, before);
        before = Some(message);
        // What says nothing begins no turn either: each begins with the user's words.
        let Some(said) = said_with.told(message) else {
            continue;
        };
        if assembled.turns.is_empty() && message.role == Role::Assistant {
            assembled.begin_with_user();
        }
        if begins || assembled.turns.is_empty() {
            assembled.turns.push(Vec::new());
        }
        if message.is_plan {
            assembled.plan = Some((assembled.turns.len() - 1, said.clone()));
        }
        if let Some(turn) = assembled.turns.last_mut() {
            turn.push(said);
            turn.extend(said_with.results(message, &messages[index + 1..]));
        }
    }
}

impl Said<'_> {
    /// The results of a message's calls, one each, in order, and after them the images that
    /// they gave back: a result itself is text. A message that came in while the tools ran may
    /// stand among the results; the next assistant message was made with all of them known.
    fn results(self, message: &Message, after: &[ContextMessage]) -> Vec<PromptMessage> {
        if message.tool_calls.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<&ContextMessage> = after
            .iter()
            .take_while(|message| message.role != Role::Assistant)
            .filter(|message| message.role == Role::Tool)
            .collect();
        let (mut told, mut names, mut images) = (Vec::new(), Vec::new(), Vec::new());
        for call in &message.tool_calls {
            let at = found
                .iter()
                .position(|result| result.tool_call_id.as_ref() == Some(&call.id));
            let Some(found) = at.map(|at| found.remove(at)) else {
                told.push(result(call, NO_RESULT.to_owned()).into());
                continue;
            };
            for (file, image) in files::images(found, self.files) {
                names.push(file.name.as_str());
                images.push(image.to_string());
            }
            let content = found.content.as_deref().unwrap_or_default();
            let tell = || {
                let content = cut_middle(content, self.limit);
                let content = if found.outside {
                    outside::mark(&call.id, &content)
                } else {
                    content
                };
                result(call, disarmed(&content).into_owned()).into()
            };
            // One that is cut depends on the window.
            told.extend(if content.len() > self.limit {
                Some(tell())
            } else {
                found.said(|| Some(tell()))
            });
        }
        if !images.is_empty() {
            let shown = ChatMessage::User {
                content: format!("[{IMAGES_OF_TOOLS}: {}]", names.join(", ")),
                images,
            };
            told.push(shown.into());
        }
        told
    }

    /// A message of the user or the assistant as the model sees it; none where it says nothing.
    /// Results come with the message that called for them.
    fn told(self, message: &ContextMessage) -> Option<PromptMessage> {
        let make = || self.words(message).map(PromptMessage::from);
        match message.role {
            Role::System | Role::Tool => None,
            // What is known of files changes, and images are too large to stand there twice.
            _ if !message.files.is_empty() || !message.images.is_empty() => make(),
            Role::User | Role::Assistant => message.said(make),
        }
    }

    fn words(self, message: &Message) -> Option<ChatMessage> {
        let content = message.content.clone().unwrap_or_default();
        match message.role {
            Role::System | Role::Tool => None,
            Role::User
                if content.is_empty() && message.images.is_empty() && message.files.is_empty() =>
            {
                None
            }
            Role::User => {
                let of_files =
                    files::images(message, self.files).map(|(_, image)| image.to_string());
                let content = files::with_files(&content, message, self.files, self.limit);
                let content = disarmed(&content);
                let content = match notes::author(message) {
                    Some(author) => format!("{author}\n{content}"),
                    None => content.into_owned(),
                };
                Some(ChatMessage::User {
                    content,
                    images: message.images.iter().cloned().chain(of_files).collect(),
                })
            }
            // Reasoning alone is nothing that the model could go on from.
            Role::Assistant if content.is_empty() && message.tool_calls.is_empty() => None,
            Role::Assistant => Some(ChatMessage::Assistant {
                content: match message.state {
                    MessageState::Stopped | MessageState::Interrupted | MessageState::Failed
                        if !content.is_empty() =>
                    {
                        format!("{content} {CUT_OFF}")
                    }
                    _ => content,
                },
                tool_calls: message.tool_calls.clone(),
            }),
        }
    }
}

fn result(call: &ToolCall, content: String) -> ChatMessage {
    ChatMessage::Tool {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content,
    }
}
