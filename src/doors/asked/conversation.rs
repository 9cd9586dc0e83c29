//! What was said, as a program has it: what came before, and what is to be answered.

use navi_actors::domain::import::MAX_MESSAGES;
use navi_actors::domain::input::MAX_CONTENT_BYTES;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::CallId;
use navi_actors::protocol::import::ImportedMessage;
use navi_actors::protocol::message::{MessageState, Role};

use super::{Place, Said, SentFile, invalid};

/// What the model is told where only results came, and the run that wanted them is gone.
const GO_ON: &str = "The results of your calls are above. Go on.";
/// The same where they stand in the message itself.
const RESULTS: &str = "These are the results of your calls. Go on.";
/// What the model is told where its own answer came last.
const GO_ON_SAYING: &str = "Go on where your last answer ended.";
/// What is asked with pictures alone.
const SEE: &str = "(see the image)";
/// What is asked with files alone.
const READ: &str = "(see the file)";

/// A message of the user's.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) images: Vec<String>,
    pub(super) files: Vec<SentFile>,
}

/// What is to be answered.
#[derive(Debug)]
pub(super) enum Next {
    Message(Message),
    /// Results of the client's own tools; they stand at the history's end, too.
    Results(Vec<(CallId, String)>),
    /// The answer at the history's end is to be gone on with.
    Rest,
}

impl Next {
    /// The history, and the message that is sent behind it. A session has no history but its own:
    /// results whose run is gone stand in the message there.
    pub(super) fn into_message(
        self,
        history: Vec<ImportedMessage>,
        place: &Place,
    ) -> (Vec<ImportedMessage>, Message) {
        let text = match (self, place) {
            (Self::Message(message), _) => return (history, message),
            (Self::Rest, _) => GO_ON_SAYING.to_owned(),
            (Self::Results(_), Place::Request | Place::New) => GO_ON.to_owned(),
            (Self::Results(results), Place::Session(_)) => {
                let results = results.into_iter().map(|(_, text)| text);
                let text: Vec<String> =
                    std::iter::once(RESULTS.to_owned()).chain(results).collect();
                text.join("\n\n")
            }
        };
        let message = Message {
            text,
            ..Message::default()
        };
        (history, message)
    }
}

/// What the program wants heeded, what was said before, and what is to be answered.
pub(super) fn conversation(
    said: Vec<Said>,
) -> Result<(String, Vec<ImportedMessage>, Next), NaviError> {
    if said.len() > MAX_MESSAGES {
        return Err(invalid(format!(
            "there may be {MAX_MESSAGES} messages at most, and these are {}; leave out the oldest",
            said.len()
        )));
    }
    let mut instructions = Vec::new();
    let mut messages: Vec<ImportedMessage> = Vec::new();
    let mut files = Vec::new();
    for said in said {
        if said.role == Role::System {
            instructions.extend(Some(said.text).filter(|text| !text.trim().is_empty()));
            continue;
        }
        // Those of the last message are there to be read; the model read the others before.
        files = said.files;
        // Responses have each call as an item of its own: the results of those that were made
        // together stand behind the last of them.
        if said.role == Role::Assistant
            && said.text.is_empty()
            && said.images.is_empty()
            && let Some(before) = messages.last_mut()
            && before.role == Role::Assistant
        {
            before.tool_calls.extend(said.calls);
            continue;
        }
        messages.push(ImportedMessage {
            tool_calls: said.calls,
            tool_call_id: said.answers.filter(|_| said.role == Role::Tool),
            images: said.images,
            ..message(said.role, said.text)
        });
    }
    let is_answer = |message: &ImportedMessage| {
        let text = message.content.as_deref().unwrap_or_default();
        message.tool_calls.is_empty() && !text.trim().is_empty()
    };
    let next = match messages.last().map(|message| message.role) {
        Some(Role::User) => {
            let last = messages
                .pop()
                .unwrap_or_else(|| message(Role::User, String::new()));
            let text = last.content.unwrap_or_default();
            let instead = match (last.images.is_empty(), files.is_empty()) {
                (false, _) => SEE,
                (true, false) => READ,
                (true, true) => "",
            };
            let is_blank = text.trim().is_empty() && !instead.is_empty();
            Next::Message(Message {
                text: if is_blank { instead.to_owned() } else { text },
                images: last.images,
                files,
            })
        }
        Some(Role::Tool) => {
            let results = messages.iter().rev();
            let results = results.take_while(|message| message.role == Role::Tool);
            let results = results.filter_map(|message| {
                let text = message.content.clone().unwrap_or_default();
                Some((message.tool_call_id.clone()?, text))
            });
            Next::Results(results.collect())
        }
        Some(Role::Assistant) if messages.last().is_some_and(is_answer) => Next::Rest,
        _ => {
            return Err(invalid(
                "messages must end with what is to be answered: a message of the user's, results of tools, or an answer to go on with",
            ));
        }
    };
    let instructions = instructions.join("\n\n");
    if instructions.len() > MAX_CONTENT_BYTES {
        return Err(NaviError::new(
            ErrorCode::MessageTooLarge,
            format!("system messages may have {MAX_CONTENT_BYTES} bytes together at most"),
        ));
    }
    Ok((instructions, messages, next))
}

fn message(role: Role, text: String) -> ImportedMessage {
    ImportedMessage {
        role,
        content: Some(text),
        run_id: None,
        images: Vec::new(),
        files: Vec::new(),
        tool_calls: Vec::new(),
        tool_call_id: None,
        outcome: None,
        duration_ms: None,
        thinking: None,
        state: MessageState::Complete,
        is_plan: false,
        created_at: None,
    }
}
