//! Requests as Ollama's clients send them.

use std::collections::{HashMap, VecDeque};

use actix_web::http::header::HeaderMap;
use actix_web::web::Bytes;
use navi_actors::domain::demands::Demands;
use navi_actors::domain::input::validate_images;
use navi_actors::protocol::error::NaviError;
use navi_actors::protocol::ids::CallId;
use navi_actors::protocol::message::{Role, ToolCall};
use navi_actors::tools::lent::OfferedByProgram;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::lines::Shape;
use crate::access::Principal;
use crate::doors::answer::StopWords;
use crate::doors::asked::{self, Asked, MAX_OLLAMA_STOPS, SESSION, Terms, invalid};
use crate::http::App;
use crate::http::body;

/// A request, read.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) wanted: Wanted,
    pub(super) stops: StopWords,
    /// As the client named it.
    pub(super) model: String,
    /// SHA-256 of its bytes.
    pub(super) hash: [u8; 32],
    /// SHA-256 of whose it is and of its messages, with which the next request of the conversation
    /// begins. Clients give no ids to what came of calls: it is how their run is found.
    pub(super) conversation: [u8; 32],
}

/// What a client wants.
#[derive(Debug)]
pub(super) enum Wanted {
    /// That the model is loaded.
    Load,
    /// That it is let go.
    Unload,
    Answer(Box<Asked>),
}

/// What is read of a request to `/api/chat`; the rest is passed over.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "OllamaChatRequest")]
#[expect(dead_code, reason = "described here, and read as `Body`")]
pub(crate) struct ChatRequest {
    /// `navi` or `navi/PROFILE`, with or without `:latest`.
    model: String,
    /// The last one is what is to be answered: a message of the user's, results of tools, or an
    /// answer of the assistant's, which is gone on with. With none, or system messages alone,
    /// nothing is answered.
    messages: Option<Vec<Said>>,
    /// At most 512 KiB of names, descriptions and parameters together.
    tools: Option<Vec<Offered>>,
    /// Line by line unless it is false.
    stream: Option<bool>,
    /// What the answer has to be where it is text: `json`, or a JSON Schema of at most 64 KiB.
    format: Option<Value>,
    /// Of these `stop` is heeded, a text or up to 64: the answer ends before the first of them, and
    /// its run is stopped there.
    options: Option<Value>,
}

/// The same for `/api/generate`.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "OllamaGenerateRequest")]
#[expect(dead_code, reason = "described here, and read as `Body`")]
pub(crate) struct GenerateRequest {
    /// `navi` or `navi/PROFILE`, with or without `:latest`.
    model: String,
    /// At most 256 KiB, without NUL characters; a blank one goes with images alone. Without one,
    /// nothing is answered.
    prompt: Option<String>,
    /// At most 256 KiB.
    system: Option<String>,
    /// Base64.
    images: Option<Vec<String>>,
    /// Line by line unless it is false.
    stream: Option<bool>,
    /// What the answer has to be: `json`, or a JSON Schema of at most 64 KiB.
    format: Option<Value>,
    /// As in `/api/chat`.
    options: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Body {
    model: Option<String>,
    name: Option<String>,
    #[serde(default)]
    messages: Option<Vec<Value>>,
    prompt: Option<String>,
    system: Option<String>,
    images: Option<Vec<String>>,
    tools: Option<Vec<Offered>>,
    stream: Option<bool>,
    format: Option<Value>,
    options: Option<Value>,
    keep_alive: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "OllamaMessage")]
struct Said {
    /// `system`, `user`, `assistant` or `tool`; messages of others are passed over.
    role: String,
    /// System messages have at most 256 KiB together, and so has one of the user's; others have at
    /// most 1 MiB. The last one must hold something, and no NUL character where it is the user's.
    content: Option<String>,
    /// Base64.
    images: Option<Vec<String>>,
    /// The assistant's; passed over where another one has them.
    tool_calls: Option<Vec<Called>>,
    tool_call_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "OllamaToolCall")]
struct Called {
    id: Option<String>,
    function: Function,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "OllamaCalled")]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "OllamaTool")]
struct Offered {
    function: OfferedFunction,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "OllamaFunction")]
struct OfferedFunction {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
}

/// What `/api/show` is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "OllamaShowRequest")]
pub(crate) struct ShowRequest {
    /// `navi` or `navi/PROFILE`, with or without `:latest`.
    model: Option<String>,
    /// The same, where `model` is empty.
    name: Option<String>,
}

/// The model that `/api/show` is asked of.
///
/// # Errors
/// `invalid_json`, `invalid_field`.
pub(super) fn shown(bytes: &[u8]) -> Result<String, NaviError> {
    let show: ShowRequest = body::parse(bytes).map_err(|error| error.0)?;
    named(show.model, show.name)
}

/// The model of a request. Ollama's own clients may send both fields, and one of them empty.
fn named(model: Option<String>, name: Option<String>) -> Result<String, NaviError> {
    let model = model.filter(|model| !model.is_empty());
    model.or(name).ok_or_else(|| invalid("model is missing"))
}

impl Request {
    /// Reads a request's body.
    ///
    /// # Errors
    /// The first thing that is wrong, with where it stands.
    pub(super) async fn read(
        app: &App,
        who: Principal,
        headers: &HeaderMap,
        bytes: Bytes,
        shape: Shape,
    ) -> Result<Self, NaviError> {
        let session = headers.get(&SESSION).map(|name| name.as_bytes().to_vec());
        let reader = move |bytes: &[u8]| {
            let mut body = body::parse::<Body>(bytes)?;
            let model = named(body.model.take(), body.name.take())?;
            let begun = Begun::of(who, session.as_deref(), &model, &body);
            let messages = match shape {
                Shape::Chat => body.messages.take().unwrap_or_default(),
                Shape::Generate => Vec::new(),
            };
            let said = all(messages)?;
            Ok((body, model, said, begun, Sha256::digest(bytes).into()))
        };
        let (body, model, mut said, begun, hash) =
            body::read(bytes, reader).await.map_err(|error| error.0)?;
        // What is generated has no place for a call.
        let tools = body.tools.filter(|_| shape == Shape::Chat);
        let tools = tools.unwrap_or_default().into_iter().map(offered);
        let demands = Demands {
            form: asked::ollama_form(body.format.as_ref())?,
            ..Demands::default()
        };
        let stop = body.options.as_ref().and_then(|it| it.get("stop"));
        let stops = asked::stops(stop, MAX_OLLAMA_STOPS)?;
        let tools = asked::checked(tools.collect())?;
        let terms = Terms { tools, demands };
        let images = validate_images(body.images.unwrap_or_default())?;
        with_ids(app, who, &begun, &mut said);
        if shape == Shape::Generate {
            let system = body.system.filter(|text| !text.is_empty());
            said.extend(system.map(|text| asked::Said::text(Role::System, text)));
            let prompt = body.prompt.filter(|text| !text.is_empty());
            said.extend(prompt.map(|text| asked::Said {
                images,
                ..asked::Said::text(Role::User, text)
            }));
        }
        let wanted = if said.iter().all(|said| said.role == Role::System) {
            asked::profile(app, &model)?;
            if body.keep_alive.as_ref().is_some_and(is_no_time) {
                Wanted::Unload
            } else {
                Wanted::Load
            }
        } else {
            let streamed = body.stream.unwrap_or(true);
            let asked = Asked::of(app, model.clone(), said, terms, streamed)?;
            Wanted::Answer(Box::new(asked))
        };
        Ok(Self {
            wanted,
            stops,
            model,
            hash,
            conversation: begun.whole,
        })
    }
}

/// Whether a duration of Ollama's, in seconds or as text, is none.
fn is_no_time(duration: &Value) -> bool {
    match duration.as_str() {
        Some(text) => matches!(text, "0" | "0s" | "0m" | "0h"),
        None => duration.as_f64() == Some(0.0),
    }
}

/// What the conversation began with, in hashes.
struct Begun {
    /// With all messages of the request.
    whole: [u8; 32],
    /// With those before a message that has calls, by its place.
    calls: HashMap<usize, [u8; 32]>,
}

impl Begun {
    fn of(who: Principal, session: Option<&[u8]>, model: &str, body: &Body) -> Self {
        let mut hash = Sha256::new_with_prefix(who.user.0.as_bytes());
        for part in [session.unwrap_or_default(), model.as_bytes()] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        let mut calls = HashMap::new();
        let messages = body.messages.iter().flatten();
        let heard = messages.filter(|it| it["role"].as_str().and_then(role).is_some());
        for (at, message) in heard.enumerate() {
            // Clients leave out what is null, or do not.
            let field = |name| message.get(name).filter(|it| !it.is_null());
            if field("tool_calls").is_some() {
                calls.insert(at, hash.clone().finalize().into());
            }
            for name in ["role", "content", "images", "tool_calls"] {
                hash.update(field(name).map(Value::to_string).unwrap_or_default());
                hash.update([0]);
            }
        }
        Self {
            whole: hash.finalize().into(),
            calls,
        }
    }
}

/// Gives calls without ids, or with ids that the client made, those that we gave them, and to what
/// came of them. What came of calls that were cut away before is left out.
fn with_ids(app: &App, who: Principal, begun: &Begun, said: &mut Vec<asked::Said>) {
    let mut open: VecDeque<CallId> = VecDeque::new();
    // By the ids that the client made.
    let mut given: HashMap<CallId, CallId> = HashMap::new();
    for (at, message) in said.iter_mut().enumerate() {
        if !message.calls.is_empty() {
            let known = begun.calls.get(&at);
            let known = known.map(|key| app.requests.find_calls(who.user, key));
            let known = known.unwrap_or_default();
            // Of two conversations that began alike, the first that still waits.
            let waits =
                |calls: &&Vec<CallId>| calls.iter().any(|it| app.engine.lent_call_waits(it));
            let ours = known.iter().find(waits).or(known.last()).cloned();
            let mut ours = ours.unwrap_or_default().into_iter();
            for call in &mut message.calls {
                let ours = ours.next();
                if call.id.0.is_empty() {
                    call.id = ours.unwrap_or_else(CallId::new);
                } else if let Some(ours) = ours
                    && !known.iter().flatten().any(|it| *it == call.id)
                {
                    let theirs = std::mem::replace(&mut call.id, ours.clone());
                    given.insert(theirs, ours);
                }
            }
            open = message.calls.iter().map(|call| call.id.clone()).collect();
        } else if message.role == Role::Tool {
            let first = open.pop_front();
            let named = message.answers.take();
            let named = named.map(|id| given.get(&id).cloned().unwrap_or(id));
            message.answers = named.or(first);
        }
    }
    said.retain(|message| message.role != Role::Tool || message.answers.is_some());
}

fn all(messages: Vec<Value>) -> Result<Vec<asked::Said>, NaviError> {
    let said = (0..).zip(messages).filter_map(|(number, message)| {
        let read = serde_json::from_value(message);
        let read = read
            .map_err(|error| invalid(error.to_string()))
            .and_then(one);
        let read = read.map_err(|error| {
            NaviError::new(error.code, format!("messages[{number}]: {}", error.message))
        });
        read.transpose()
    });
    said.collect()
}

/// Whose a message is. Ollama's templates pass over roles that they do not know: Continue sends
/// what was thought as messages of one.
fn role(name: &str) -> Option<Role> {
    match name.to_ascii_lowercase().as_str() {
        "system" => Some(Role::System),
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "tool" => Some(Role::Tool),
        _ => None,
    }
}

/// What a message says; none where it is passed over.
fn one(said: Said) -> Result<Option<asked::Said>, NaviError> {
    let images = validate_images(said.images.unwrap_or_default())?;
    let calls = said.tool_calls.unwrap_or_default();
    asked::check_names(calls.iter().map(|call| call.function.name.as_str()))?;
    let Some(role) = role(&said.role) else {
        return Ok(None);
    };
    let text = said.content.unwrap_or_default();
    let (text, images, _) = asked::heard(role, text, images, Vec::new())?;
    let calls = calls.into_iter().filter(|_| role == Role::Assistant);
    Ok(Some(asked::Said {
        images,
        calls: calls
            .map(|Called { id, function }| ToolCall {
                id: CallId(id.unwrap_or_default()),
                name: function.name,
                arguments: function.arguments,
            })
            .collect(),
        answers: said.tool_call_id.filter(|id| !id.is_empty()).map(CallId),
        ..asked::Said::text(role, text)
    }))
}

fn offered(Offered { function }: Offered) -> OfferedByProgram {
    asked::offered(function.name, function.description, function.parameters)
}
