//! Requests as OpenAI's clients send them, read whole before anything begins.

use actix_web::web::Bytes;
use navi_actors::domain::input::MAX_CONTENT_BYTES;
use navi_actors::engine::LentByProgram;
use navi_actors::protocol::chat::ChatMessage;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::CallId;
use navi_actors::protocol::import::ImportedMessage;
use navi_actors::protocol::message::{MessageState, Role, ToolCall};
use navi_actors::tools::lent::OfferedByProgram;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::doors::answer::Place;
use crate::http::App;
use crate::http::body;

/// The most tools that a program may lend, and what they may come to together.
const MAX_TOOLS: usize = 128;
const MAX_TOOLS_BYTES: usize = 512 * 1024;
/// What Open WebUI's requests for titles, tags and their like begin with.
const TASK: &str = "### Task:";
/// What the model is told where only results came, and the run that wanted them is gone.
const GO_ON: &str = "The results of your calls are above. Go on.";
/// The same where they stand in the message itself.
const RESULTS: &str = "These are the results of your calls. Go on.";
/// What is asked with pictures alone.
const SEE: &str = "(see the image)";

/// A request, read.
#[derive(Debug)]
pub(super) struct Asked {
    /// As the client named it.
    pub(super) model: String,
    pub(super) profile_id: Option<String>,
    pub(super) history: Vec<ImportedMessage>,
    pub(super) next: Next,
    pub(super) lent: LentByProgram,
    pub(super) streamed: bool,
    /// Whether the last chunk tells what was used.
    pub(super) counts: bool,
}

/// What is to be answered.
#[derive(Debug)]
pub(super) enum Next {
    Message {
        text: String,
        images: Vec<String>,
    },
    /// Results of the client's own tools; they stand at the history's end, too.
    Results(Vec<(CallId, String)>),
}

impl Next {
    /// The history, and the message that is sent behind it. A session has no history but its own:
    /// results whose run is gone stand in the message there.
    pub(super) fn into_message(
        self,
        history: Vec<ImportedMessage>,
        place: &Place,
    ) -> (Vec<ImportedMessage>, String, Vec<String>) {
        match (self, place) {
            (Self::Message { text, images }, _) => (history, text, images),
            (Self::Results(_), Place::Request) => (history, GO_ON.to_owned(), Vec::new()),
            (Self::Results(results), Place::Session(_)) => {
                let results = results.into_iter().map(|(_, text)| text);
                let text: Vec<String> =
                    std::iter::once(RESULTS.to_owned()).chain(results).collect();
                (history, text.join("\n\n"), Vec::new())
            }
        }
    }
}

#[derive(Debug, Deserialize)]
struct Body {
    model: String,
    messages: Vec<Said>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    tools: Option<Vec<Offered>>,
    tool_choice: Option<Value>,
    n: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Said {
    role: String,
    content: Option<Content>,
    #[serde(default)]
    tool_calls: Option<Vec<Called>>,
    tool_call_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    r#type: String,
    text: Option<String>,
    image_url: Option<ImageUrl>,
}

#[derive(Debug, Deserialize)]
struct ImageUrl {
    url: String,
}

#[derive(Debug, Deserialize)]
struct Called {
    id: String,
    function: Function,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: String,
}

#[derive(Debug, Deserialize)]
struct Offered {
    r#type: String,
    function: Option<OfferedFunction>,
}

#[derive(Debug, Deserialize)]
struct OfferedFunction {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
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
            format!("there is no model {shown:?} here; GET /v1/models lists those that there are"),
        )
    })
}

impl Asked {
    /// Reads a request's body, and makes its hash.
    ///
    /// # Errors
    /// The first thing that is wrong, with where it stands.
    pub(super) async fn read(app: &App, bytes: Bytes) -> Result<(Self, [u8; 32]), NaviError> {
        let reader = |bytes: &[u8]| Ok((body::parse::<Body>(bytes)?, Sha256::digest(bytes).into()));
        let (body, hash) = body::read(bytes, reader).await.map_err(|error| error.0)?;
        Ok((Self::of(app, body)?, hash))
    }

    fn of(app: &App, body: Body) -> Result<Self, NaviError> {
        let profile_id = profile(app, &body.model)?;
        if body.n.is_some_and(|n| n != 1) {
            return Err(invalid("n must be 1: Navi gives one answer"));
        }
        let is_without = body.tool_choice == Some(json!("none"));
        let tools = body.tools.filter(|_| !is_without).unwrap_or_default();
        let tools = offered(tools)?;
        let (instructions, history, next) = conversation(body.messages)?;
        Ok(Self {
            model: body.model,
            profile_id,
            history,
            next,
            lent: LentByProgram {
                instructions,
                tools,
            },
            streamed: body.stream.unwrap_or(false),
            counts: (body.stream_options).is_some_and(|it| it.include_usage == Some(true)),
        })
    }

    /// Whether it is a small task beside a conversation, by its words.
    pub(super) fn is_task(&self) -> bool {
        let Next::Message { text, .. } = &self.next else {
            return false;
        };
        self.history.is_empty() && self.lent.tools.is_empty() && text.starts_with(TASK)
    }

    /// All of it as a model is sent it.
    pub(super) fn into_chat(self) -> Vec<ChatMessage> {
        let (history, content, images) = self.next.into_message(self.history, &Place::Request);
        let system = Some(self.lent.instructions).filter(|text| !text.is_empty());
        let system = system.map(|content| ChatMessage::System { content });
        let before = history.into_iter().filter_map(|message| {
            let content = message.content.unwrap_or_default();
            match message.role {
                Role::User => Some(ChatMessage::User {
                    content,
                    images: message.images,
                }),
                Role::Assistant => Some(ChatMessage::Assistant {
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

/// What the client wants heeded, what was said before, and what is to be answered.
fn conversation(said: Vec<Said>) -> Result<(String, Vec<ImportedMessage>, Next), NaviError> {
    let mut instructions = Vec::new();
    let mut messages = Vec::new();
    for (number, said) in said.into_iter().enumerate() {
        let at = |error: NaviError| {
            NaviError::new(error.code, format!("messages[{number}]: {}", error.message))
        };
        let role = match said.role.as_str() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => {
                return Err(at(invalid(
                    "role must be system, developer, user, assistant or tool",
                )));
            }
        };
        let (text, images) = content(said.content).map_err(at)?;
        if role == Role::System {
            instructions.extend(Some(text).filter(|text| !text.trim().is_empty()));
            continue;
        }
        let tool_calls = said.tool_calls.unwrap_or_default().into_iter();
        messages.push(ImportedMessage {
            tool_calls: tool_calls.map(call).collect(),
            tool_call_id: said.tool_call_id.filter(|_| role == Role::Tool).map(CallId),
            images,
            ..message(role, text)
        });
    }
    let next = match messages.last().map(|message| message.role) {
        Some(Role::User) => {
            let last = messages
                .pop()
                .unwrap_or_else(|| message(Role::User, String::new()));
            let text = last.content.unwrap_or_default();
            let is_blank = text.trim().is_empty() && !last.images.is_empty();
            Next::Message {
                text: if is_blank { SEE.to_owned() } else { text },
                images: last.images,
            }
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

fn call(called: Called) -> ToolCall {
    let Function { name, arguments } = called.function;
    ToolCall {
        id: CallId(called.id),
        name,
        arguments: serde_json::from_str(&arguments).unwrap_or(Value::String(arguments)),
    }
}

/// A message's text, and its images.
fn content(content: Option<Content>) -> Result<(String, Vec<String>), NaviError> {
    let parts = match content {
        None => return Ok(Default::default()),
        Some(Content::Text(text)) => return Ok((text, Vec::new())),
        Some(Content::Parts(parts)) => parts,
    };
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in parts {
        match (part.r#type.as_str(), part.text, part.image_url) {
            ("text" | "input_text" | "output_text", Some(text), _) => texts.push(text),
            ("image_url", _, Some(ImageUrl { url })) if url.starts_with("data:") => {
                images.push(url);
            }
            ("image_url", ..) => {
                return Err(invalid(
                    "image_url must be a data: URL with the image in base64; Navi fetches none",
                ));
            }
            (kind, ..) => {
                let kind: String = kind.chars().take(40).collect();
                return Err(invalid(format!(
                    "parts of the type {kind:?} cannot be taken; text and image_url can"
                )));
            }
        }
    }
    Ok((texts.join("\n"), images))
}

fn offered(tools: Vec<Offered>) -> Result<Vec<OfferedByProgram>, NaviError> {
    if tools.len() > MAX_TOOLS {
        return Err(invalid(format!("tools may be {MAX_TOOLS} at most")));
    }
    let mut bytes = 0;
    let mut taken = Vec::new();
    for tool in tools {
        let Some(function) = tool.function.filter(|_| tool.r#type == "function") else {
            return Err(invalid("tools must be of the type function"));
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if function.name.is_empty()
            || function.name.len() > 64
            || !function.name.chars().all(is_name)
        {
            return Err(invalid(
                "a tool's name must have 1 to 64 letters, digits, _ or -",
            ));
        }
        let parameters = function.parameters.filter(|it| !it.is_null());
        let parameters = parameters.unwrap_or(json!({"type": "object", "properties": {}}));
        if !parameters.is_object() {
            return Err(invalid(
                "a tool's parameters must be a JSON Schema of an object",
            ));
        }
        let description = function.description.unwrap_or_default();
        bytes += function.name.len() + description.len() + parameters.to_string().len();
        if bytes > MAX_TOOLS_BYTES {
            return Err(invalid(format!(
                "tools may have {MAX_TOOLS_BYTES} bytes together at most"
            )));
        }
        taken.push(OfferedByProgram {
            name: function.name,
            description,
            parameters,
        });
    }
    Ok(taken)
}

fn invalid(message: impl Into<String>) -> NaviError {
    NaviError::new(ErrorCode::InvalidField, message)
}
