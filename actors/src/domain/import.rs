//! A conversation from a file, as a session can hold it: checked whole before anything is stored.
//!
//! Its words are text from outside, whoever they say they are of: nobody here heard the user say
//! them, and what tools gave back may have been written by anyone. So results are marked as such.
//! All ids are new: what is marked is marked by a word that is made of a call's id, which the
//! file's writer must not know.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};

use super::input::{self, MAX_CONTENT_BYTES, MAX_IMAGES, MAX_IMAGES_BYTES};
use super::{tags, title};
use crate::protocol::error::{ErrorCode, NaviError, invalid};
use crate::protocol::ids::{CallId, MessageId, RunId};
use crate::protocol::import::{ImportedMessage, ImportedSession, LeftOut};
use crate::protocol::message::{Message, Role, ToolCall};

/// The most messages of a conversation.
pub const MAX_MESSAGES: usize = 10_000;
/// The longest text that is not the user's, in bytes.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// The longest title, in characters; what is longer is cut.
const TITLE_CHARS: usize = 200;
/// The longest name of a tool, in characters.
pub const MAX_NAME_CHARS: usize = 128;

/// What is stored of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    pub title: String,
    pub tags: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub last_active: DateTime<Utc>,
    pub messages: Vec<Message>,
    pub left_out: LeftOut,
}

/// The conversation of a file that was read at `now`: no time in it is later.
///
/// # Errors
/// The first thing that is wrong, with the message in which it is.
pub fn conversation(file: ImportedSession, now: DateTime<Utc>) -> Result<Conversation, NaviError> {
    let count = file.messages.len();
    if count == 0 || count > MAX_MESSAGES {
        return Err(invalid(format!(
            "a conversation must have 1 to {MAX_MESSAGES} messages; this one has {count}"
        )));
    }
    let tags = tags::valid(&file.tags)?;
    let mut reader = Reader {
        created_at: within(file.created_at.unwrap_or(now), now),
        now,
        runs: HashMap::new(),
        run_id: RunId::new(),
        calls: HashMap::new(),
        left_out: LeftOut::default(),
    };
    let created_at = reader.created_at;
    let mut messages = Vec::with_capacity(count);
    for (number, message) in (1..).zip(file.messages) {
        messages.push(reader.read(message).map_err(|error| {
            NaviError::new(error.code, format!("message {number}: {}", error.message))
        })?);
    }
    let last_active = file.last_active.unwrap_or(reader.created_at);
    Ok(Conversation {
        title: titled(&file.title, &messages),
        tags,
        created_at,
        last_active: within(last_active, now),
        messages,
        left_out: reader.left_out,
    })
}

struct Reader {
    /// Of the message before.
    created_at: DateTime<Utc>,
    now: DateTime<Utc>,
    /// By the file's names of them.
    runs: HashMap<String, RunId>,
    run_id: RunId,
    /// Calls that have no result yet, by the file's names of them.
    calls: HashMap<CallId, ToolCall>,
    left_out: LeftOut,
}

impl Reader {
    fn read(&mut self, message: ImportedMessage) -> Result<Message, NaviError> {
        check(&message)?;
        let role = message.role;
        self.run_id = match message.run_id {
            Some(name) => *self.runs.entry(name).or_insert_with(RunId::new),
            None if role == Role::User => RunId::new(),
            None => self.run_id,
        };
        let created_at = message.created_at.unwrap_or(self.created_at);
        self.created_at = within(created_at, self.now);
        self.left_out.files += count(message.files.len());
        let read = Message {
            role,
            content: message.content,
            images: self.images(role, &message.images),
            tool_calls: message.tool_calls,
            outcome: message.outcome.filter(|_| role == Role::Tool),
            // No column holds a longer one.
            duration_ms: (message.duration_ms.filter(|_| role == Role::Tool))
                .map(|ms| ms.min(i64::MAX.unsigned_abs())),
            thinking: message.thinking.filter(|_| role == Role::Assistant),
            state: message.state,
            is_plan: message.is_plan && role == Role::Assistant,
            outside: role == Role::Tool,
            ..Message::assistant(MessageId::new(), self.run_id, self.created_at)
        };
        self.with_calls(read, message.tool_call_id)
    }

    /// Gives calls ids of our own, and a result that of its call.
    fn with_calls(
        &mut self,
        mut message: Message,
        answers: Option<CallId>,
    ) -> Result<Message, NaviError> {
        for call in &mut message.tool_calls {
            let name = std::mem::replace(&mut call.id, CallId::new());
            // Some servers count their calls anew in each reply: a result is of the last one.
            self.calls.insert(name, call.clone());
        }
        if let Some(name) = answers {
            let call = self.calls.remove(&name).ok_or_else(|| {
                invalid("a result must name a call of a message before, and each call has one")
            })?;
            message.tool_call_id = Some(call.id);
            message.name = Some(call.name);
        }
        Ok(message)
    }

    /// Those that a message may have.
    fn images(&mut self, role: Role, images: &[String]) -> Vec<String> {
        let most = if role == Role::Tool { 0 } else { MAX_IMAGES };
        let mut room = MAX_IMAGES_BYTES;
        let mut taken = Vec::new();
        for image in images {
            let image = input::decode(image, 1).ok();
            match image.filter(|bytes| bytes.len() <= room && taken.len() < most) {
                Some(bytes) => {
                    room -= bytes.len();
                    taken.push(STANDARD.encode(bytes));
                }
                None => self.left_out.images += 1,
            }
        }
        taken
    }
}

fn check(message: &ImportedMessage) -> Result<(), NaviError> {
    let role = message.role;
    if role == Role::System {
        return Err(invalid(
            "system messages are Navi's own; leave it out of the file",
        ));
    }
    if (role == Role::Tool) != message.tool_call_id.is_some() {
        return Err(invalid(
            "results of tools, and no other messages, must have a tool_call_id",
        ));
    }
    if role != Role::Assistant && !message.tool_calls.is_empty() {
        return Err(invalid("only the assistant may call tools"));
    }
    let most = if role == Role::User {
        MAX_CONTENT_BYTES
    } else {
        MAX_TEXT_BYTES
    };
    for text in [&message.content, &message.thinking].into_iter().flatten() {
        if text.len() > most {
            return Err(NaviError::new(
                ErrorCode::MessageTooLarge,
                format!("it has {} bytes and the limit is {most}", text.len()),
            ));
        }
    }
    let ids: HashSet<&CallId> = message.tool_calls.iter().map(|call| &call.id).collect();
    if ids.len() < message.tool_calls.len() {
        return Err(invalid("two of its calls have the same id"));
    }
    let mut names = message.tool_calls.iter().map(|call| call.name.chars());
    if !names.all(|name| (1..=MAX_NAME_CHARS).contains(&name.count())) {
        return Err(invalid(format!(
            "a tool's name must have 1 to {MAX_NAME_CHARS} characters"
        )));
    }
    Ok(())
}

fn titled(title: &str, messages: &[Message]) -> String {
    let title: String = title.trim().chars().take(TITLE_CHARS).collect();
    if !title.is_empty() {
        return title;
    }
    let mut asked = messages.iter().filter(|it| it.role == Role::User);
    let first = asked.find_map(|message| message.content.as_deref());
    title::from_text(first.unwrap_or_default())
}

fn within(at: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
    at.clamp(DateTime::UNIX_EPOCH, now)
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
