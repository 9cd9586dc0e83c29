//! What a program asks, in no protocol's terms: read whole before anything begins.

use std::time::Duration;

use actix_web::http::header::{HeaderMap, USER_AGENT};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use navi_actors::domain::import::MAX_NAME_CHARS;
use navi_actors::domain::input::{self, MAX_CONTENT_BYTES, MAX_IMAGES};
use navi_actors::engine::LentByProgram;
use navi_actors::protocol::chat::ChatMessage;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::CallId;
use navi_actors::protocol::import::ImportedMessage;
use navi_actors::protocol::message::{MessageState, Role, ToolCall};
use navi_actors::tools::lent::OfferedByProgram;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::answer::{Answer, Approvals, Place, Question, SentFile};
use crate::access::Principal;
use crate::http::App;

/// The session that the conversation is in, by its id or by a word of the program's own.
pub(super) const SESSION: &str = "x-navi-session";
/// Says that this is no conversation but a small task beside one: a title, tags.
const TASK: &str = "x-navi-task";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// How often OpenAI's clients have tried before.
const RETRY_COUNT: &str = "x-stainless-retry-count";
/// The longest name of a session, or key, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 256;
/// A person who stops an answer that streams closes the connection, and no client asks for that
/// again by itself.
const STREAM_PATIENCE: Duration = Duration::from_secs(1);
/// OpenAI's clients wait up to 8 s before they try again.
const RETRY_PATIENCE: Duration = Duration::from_secs(10);
/// The most tools that a program may lend, and what they may come to together.
pub(crate) const MAX_TOOLS: usize = 128;
pub(crate) const MAX_TOOLS_BYTES: usize = 512 * 1024;
/// What Open WebUI's requests for titles, tags and their like begin with.
const TASK_WORDS: &str = "### Task:";
/// What it puts before a person's question where it adds what it found in documents.
const QUESTION_WORDS: &str = "### Task:\nRespond to the user query";
/// What the model is told where only results came, and the run that wanted them is gone.
const GO_ON: &str = "The results of your calls are above. Go on.";
/// The same where they stand in the message itself.
const RESULTS: &str = "These are the results of your calls. Go on.";
/// What is asked with pictures alone.
const SEE: &str = "(see the image)";
/// What is asked with files alone.
const READ: &str = "(see the file)";

/// A request, read.
#[derive(Debug)]
pub(super) struct Asked {
    /// As the client named it.
    pub(super) model: String,
    pub(super) profile_id: Option<String>,
    history: Vec<ImportedMessage>,
    next: Next,
    lent: LentByProgram,
    pub(super) streamed: bool,
}

/// How a request is to be answered.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) place: Place,
    pub(super) approvals: Approvals,
    /// The request's SHA-256.
    pub(super) hash: [u8; 32],
}

/// A message as a program has it.
#[derive(Debug)]
pub(super) struct Said {
    /// `system` for what the program itself wants heeded.
    pub(super) role: Role,
    pub(super) text: String,
    /// Base64, with or without a `data:` prefix.
    pub(super) images: Vec<String>,
    pub(super) files: Vec<SentFile>,
    pub(super) calls: Vec<ToolCall>,
    /// The call whose result this is.
    pub(super) answers: Option<CallId>,
}

/// A message of the user's.
#[derive(Debug, Default)]
struct Message {
    text: String,
    images: Vec<String>,
    files: Vec<SentFile>,
}

/// What is to be answered.
#[derive(Debug)]
enum Next {
    Message(Message),
    /// Results of the client's own tools; they stand at the history's end, too.
    Results(Vec<(CallId, String)>),
}

impl Next {
    /// The history, and the message that is sent behind it. A session has no history but its own:
    /// results whose run is gone stand in the message there.
    fn into_message(
        self,
        history: Vec<ImportedMessage>,
        place: &Place,
    ) -> (Vec<ImportedMessage>, Message) {
        let text = match (self, place) {
            (Self::Message(message), _) => return (history, message),
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

/// The profile that a model's name stands for; none where that is the default.
///
/// # Errors
/// `model_unknown`.
pub(super) fn profile(app: &App, model: &str) -> Result<Option<String>, NaviError> {
    let wanted = model.strip_suffix(":latest").unwrap_or(model);
    if wanted == "navi" {
        return Ok(None);
    }
    let profiles = app.engine.profiles();
    let named = wanted.strip_prefix("navi/");
    let found = named.and_then(|id| profiles.into_iter().find(|profile| profile.id == id));
    found.map(|profile| Some(profile.id)).ok_or_else(|| {
        let shown: String = model.chars().take(100).collect();
        NaviError::new(
            ErrorCode::ModelUnknown,
            format!("there is no model {shown:?} here; there are navi, and navi/PROFILE for each profile"),
        )
    })
}

impl Asked {
    /// `tools` are [`checked`].
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(super) fn of(
        app: &App,
        model: String,
        said: Vec<Said>,
        tools: Vec<OfferedByProgram>,
        streamed: bool,
    ) -> Result<Self, NaviError> {
        let profile_id = profile(app, &model)?;
        let (instructions, history, next) = conversation(said)?;
        Ok(Self {
            model,
            profile_id,
            history,
            next,
            lent: LentByProgram {
                instructions,
                tools,
            },
            streamed,
        })
    }

    /// The same, with this said before all of it.
    pub(super) fn behind(mut self, mut before: Vec<ImportedMessage>) -> Self {
        before.append(&mut self.history);
        Self {
            history: before,
            ..self
        }
    }

    /// Refuses what Navi asks herself, whose model server was set to her own address.
    ///
    /// # Errors
    /// `invalid_field`.
    pub(super) fn refuse_own(headers: &HeaderMap) -> Result<(), NaviError> {
        let agent = headers.get(USER_AGENT).and_then(|it| it.to_str().ok());
        if agent.is_some_and(|agent| agent.starts_with("navi/")) {
            return Err(invalid(
                "this comes from Navi herself: OLLAMA_HOST and OPENAI_BASE_URL must name a model server, not Navi",
            ));
        }
        Ok(())
    }

    /// Whether it is a small task beside a conversation, by its headers or its words.
    ///
    /// # Errors
    /// A header that names nothing.
    pub(super) fn is_task_by(&self, headers: &HeaderMap) -> Result<bool, NaviError> {
        Ok(named(headers, TASK)?.is_some() || self.is_task())
    }

    /// The run that answers, begun or joined. `hash` is the request's SHA-256.
    ///
    /// # Errors
    /// What is wrong with it; nothing was begun then.
    pub(super) async fn answer(
        self,
        app: &App,
        who: Principal,
        headers: &HeaderMap,
        hash: [u8; 32],
    ) -> Result<Answer, NaviError> {
        let place = session_of(headers)?.map_or(Place::Request, Place::Session);
        let asked = Way {
            place,
            approvals: Approvals::OnThePage,
            hash,
        };
        self.answer_by(app, who, headers, asked).await
    }

    /// The same, where the program says more of how it wants to be answered.
    ///
    /// # Errors
    /// What is wrong with it; nothing was begun then.
    pub(super) async fn answer_by(
        self,
        app: &App,
        who: Principal,
        headers: &HeaderMap,
        Way {
            place,
            approvals,
            hash,
        }: Way,
    ) -> Result<Answer, NaviError> {
        let key = named(headers, IDEMPOTENCY_KEY)?;
        let tries = headers.get(RETRY_COUNT).and_then(|it| it.to_str().ok());
        let again = key.is_some() || tries.is_some_and(|tries| tries != "0");
        let patience = if self.streamed {
            STREAM_PATIENCE
        } else {
            RETRY_PATIENCE
        };
        if let Next::Results(results) = &self.next
            && let Some(answer) = Answer::going_on(app, who, results, approvals, patience).await?
        {
            return Ok(answer);
        }
        self.end_open_calls(app, who, &place).await;
        let (history, message) = self.next.into_message(self.history, &place);
        let question = Question {
            profile_id: self.profile_id,
            place,
            history,
            text: message.text,
            images: message.images,
            files: message.files,
            lent: self.lent,
            approvals,
            hash: key.map_or(hash, |key| Sha256::digest(key).into()),
            again,
            patience,
        };
        Answer::of(app, who, question).await
    }

    /// Whether it is a small task beside a conversation, by its words.
    fn is_task(&self) -> bool {
        let Next::Message(Message { text, .. }) = &self.next else {
            return false;
        };
        let is_task = text.starts_with(TASK_WORDS) && !text.starts_with(QUESTION_WORDS);
        is_task && self.history.is_empty() && self.lent.tools.is_empty()
    }

    /// A person went on, in place of the run whose calls these results, right before the message,
    /// are of: they are told to it, and one that nobody sees is stopped.
    async fn end_open_calls(&self, app: &App, who: Principal, place: &Place) {
        let Next::Message(_) = &self.next else {
            return;
        };
        let newest = self.history.iter().rev();
        for said in newest.take_while(|said| said.role == Role::Tool) {
            let Some(call) = &said.tool_call_id else {
                continue;
            };
            let Some((session, _)) = app.engine.run_of_lent_call(who.user, call).await else {
                continue;
            };
            if !app.engine.lent_call_waits(call) {
                continue;
            }
            if matches!(place, Place::Request | Place::New) {
                // It may have ended by itself.
                let _ = app.engine.stop(who.user, session).await;
            } else {
                let result = said.content.clone().unwrap_or_default();
                app.engine.answer_lent_call(call, result);
            }
        }
    }

    /// All of it as a model is sent it.
    pub(super) fn into_chat(self) -> Vec<ChatMessage> {
        let (history, message) = self.next.into_message(self.history, &Place::Request);
        let (content, images) = (message.text, message.images);
        let system = Some(self.lent.instructions).filter(|text| !text.is_empty());
        let system = system.map(|content| ChatMessage::System { content });
        let before = history.into_iter().filter_map(|message| {
            let content = message.content.unwrap_or_default();
            match message.role {
                Role::User => Some(ChatMessage::User {
                    content,
                    images: message.images,
                }),
                // Model servers refuse one that says nothing, as one that only called.
                Role::Assistant => (!content.is_empty()).then_some(ChatMessage::Assistant {
                    content,
                    tool_calls: Vec::new(),
                }),
                Role::System | Role::Tool => None,
            }
        });
        let last = ChatMessage::User { content, images };
        system.into_iter().chain(before).chain([last]).collect()
    }
}

/// What the program wants heeded, what was said before, and what is to be answered.
fn conversation(said: Vec<Said>) -> Result<(String, Vec<ImportedMessage>, Next), NaviError> {
    let mut instructions = Vec::new();
    let mut messages = Vec::new();
    let mut files = Vec::new();
    for said in said {
        if said.role == Role::System {
            instructions.extend(Some(said.text).filter(|text| !text.trim().is_empty()));
            continue;
        }
        // Those of the last message are there to be read; the model read the others before.
        files = said.files;
        messages.push(ImportedMessage {
            tool_calls: said.calls,
            tool_call_id: said.answers.filter(|_| said.role == Role::Tool),
            images: said.images,
            ..message(said.role, said.text)
        });
    }
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
        _ => {
            return Err(invalid(
                "messages must end with what is to be answered: a message of the user's, or results of tools",
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

/// Checks the images of a message, wherever it stands: one that is none would be left out of what
/// was said before, and nobody would know.
///
/// # Errors
/// `too_many_images`, `invalid_image`, `image_too_large`.
pub(super) fn check_images(images: &[String]) -> Result<(), NaviError> {
    if images.len() > MAX_IMAGES {
        return Err(NaviError::new(
            ErrorCode::TooManyImages,
            format!(
                "the message has {} images and the limit is {MAX_IMAGES}",
                images.len()
            ),
        ));
    }
    for (number, image) in (1..).zip(images) {
        input::decode(image, number)?;
    }
    Ok(())
}

/// Checks the names of tools that were called.
///
/// # Errors
/// `invalid_field`.
pub(super) fn check_names<'a>(mut names: impl Iterator<Item = &'a str>) -> Result<(), NaviError> {
    if names.all(|name| (1..=MAX_NAME_CHARS).contains(&name.chars().count())) {
        return Ok(());
    }
    Err(invalid(format!(
        "a call must name its tool in 1 to {MAX_NAME_CHARS} characters"
    )))
}

/// Checks what a program lends.
///
/// # Errors
/// `invalid_field`.
pub(super) fn checked(tools: Vec<OfferedByProgram>) -> Result<Vec<OfferedByProgram>, NaviError> {
    if tools.len() > MAX_TOOLS {
        return Err(invalid(format!("tools may be {MAX_TOOLS} at most")));
    }
    let mut bytes = 0;
    for tool in &tools {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !(1..=64).contains(&tool.name.len()) || !tool.name.chars().all(is_name) {
            return Err(invalid(
                "a tool's name must have 1 to 64 letters, digits, _ or -",
            ));
        }
        if !tool.parameters.is_object() {
            return Err(invalid(
                "a tool's parameters must be a JSON Schema of an object",
            ));
        }
        bytes += tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
    }
    if bytes > MAX_TOOLS_BYTES {
        return Err(invalid(format!(
            "tools may have {MAX_TOOLS_BYTES} bytes together at most"
        )));
    }
    Ok(tools)
}

/// A file, of a `data:` URL or of base64 alone.
///
/// # Errors
/// `invalid_field`.
pub(super) fn sent_file(name: Option<String>, data: &str) -> Result<SentFile, NaviError> {
    let (head, base64) = match data.strip_prefix("data:") {
        Some(url) => url.split_once(',').unwrap_or((url, "")),
        None => ("base64", data),
    };
    let base64 = base64.trim_end_matches('=');
    let content = STANDARD_NO_PAD.decode(base64).ok();
    let content = content.filter(|content| head.ends_with("base64") && !content.is_empty());
    let content = content.ok_or_else(|| invalid("a file's data must be base64, or a data: URL"))?;
    Ok(SentFile {
        name: name.unwrap_or_else(|| "file".to_owned()),
        content: content.into(),
    })
}

/// The parameters of a tool that takes none.
pub(super) fn no_parameters() -> Value {
    json!({"type": "object", "properties": {}})
}

/// The session that the header names.
///
/// # Errors
/// It names nothing.
pub(super) fn session_of(headers: &HeaderMap) -> Result<Option<String>, NaviError> {
    named(headers, SESSION)
}

/// A header that names something.
fn named(headers: &HeaderMap, name: &str) -> Result<Option<String>, NaviError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or("\0").trim();
    if text.is_empty() {
        return Ok(None);
    }
    checked_name(name, text).map(Some)
}

/// A word that names something, from the field of this name.
///
/// # Errors
/// `invalid_field`.
pub(super) fn checked_name(field: &str, text: &str) -> Result<String, NaviError> {
    let is_seen = |c: char| c == ' ' || c.is_ascii_graphic();
    if !(1..=MAX_NAME_BYTES).contains(&text.len()) || !text.chars().all(is_seen) {
        return Err(invalid(format!(
            "{field} must have 1 to {MAX_NAME_BYTES} ASCII characters that can be seen"
        )));
    }
    Ok(text.to_owned())
}

pub(super) fn invalid(message: impl Into<String>) -> NaviError {
    NaviError::new(ErrorCode::InvalidField, message)
}
