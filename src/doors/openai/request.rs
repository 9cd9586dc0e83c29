//! Requests as OpenAI's clients send them.

use actix_web::web::Bytes;
use navi_actors::domain::input::validate_images;
use navi_actors::protocol::error::NaviError;
use navi_actors::protocol::ids::CallId;
use navi_actors::protocol::message::{Role, ToolCall};
use navi_actors::tools::lent::OfferedByProgram;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::doors::answer::{SentFile, StopWords};
use crate::doors::asked::{
    self, Asked, MAX_STOPS, Written, image_data, invalid, lacking, sent_file, untaken,
};
use crate::http::App;
use crate::http::body;
use crate::http::error::ApiError;

/// A request, read.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) asked: Asked,
    pub(super) stops: StopWords,
    /// Whether the last chunk tells what was used.
    pub(super) counts: bool,
    /// SHA-256 of its bytes.
    pub(super) hash: [u8; 32],
}

/// What is read of OpenAI's request; the rest is passed over.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ChatCompletionRequest {
    /// `navi` or `navi/PROFILE`.
    model: String,
    /// The last one is what is to be answered: a message of the user's, results of tools, or an
    /// answer of the assistant's, which is gone on with.
    messages: Vec<Said>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    /// At most 512 KiB of names, descriptions and parameters together.
    tools: Option<Vec<Offered>>,
    /// Of `tools`: with `required`, or a function of them, the answer is a call.
    tool_choice: Option<Value>,
    /// Where it is false, an answer ends with one call at most, and the next one comes after its
    /// result.
    parallel_tool_calls: Option<bool>,
    /// What the answer has to be where it is text; its schema has at most 64 KiB.
    response_format: Option<Value>,
    /// The answer ends before the first of these, and its run is stopped there: a text, or up to 4.
    stop: Option<Value>,
    /// Navi gives one answer.
    n: Option<u32>,
    /// What `tools` were before.
    functions: Option<Vec<Value>>,
    /// What `tool_choice` was before.
    function_call: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ChatCompletionMessage")]
struct Said {
    role: String,
    /// System messages have at most 256 KiB together, and so has one of the user's; others have at
    /// most 1 MiB. The last one must hold something, and no NUL character where it is the user's.
    content: Option<Content>,
    /// The assistant's; passed over where another one has them.
    #[serde(default)]
    tool_calls: Option<Vec<Called>>,
    /// The call of a message before whose result this is.
    tool_call_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ChatCompletionPart")]
struct Part {
    r#type: String,
    text: Option<String>,
    /// Of an answer that was none.
    refusal: Option<String>,
    image_url: Option<ImageUrl>,
    file: Option<SaidFile>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SaidFile {
    file_data: Option<String>,
    filename: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ImageUrl {
    url: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ChatCompletionToolCall")]
struct Called {
    id: String,
    function: Function,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ChatCompletionCalled")]
struct Function {
    name: String,
    #[serde(default)]
    arguments: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ChatCompletionTool")]
struct Offered {
    r#type: String,
    function: Option<OfferedFunction>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ChatCompletionFunction")]
struct OfferedFunction {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
}

impl Request {
    /// Reads a request's body.
    ///
    /// # Errors
    /// The first thing that is wrong, with where it stands.
    pub(super) async fn read(app: &App, bytes: Bytes) -> Result<Self, NaviError> {
        // With its files and images, which take their time.
        let reader = |bytes: &[u8]| {
            let mut body = body::parse::<ChatCompletionRequest>(bytes)?;
            let messages = std::mem::take(&mut body.messages);
            let said = (0..).zip(messages).map(|(number, message)| {
                said(message).map_err(|error: NaviError| {
                    let message = format!("messages[{number}]: {}", error.message);
                    ApiError::new(error.code, message)
                })
            });
            let said: Vec<asked::Said> = said.collect::<Result<_, _>>()?;
            Ok((body, said, Sha256::digest(bytes).into()))
        };
        let read = body::read(bytes, reader).await;
        let (body, said, hash) = read.map_err(|error| error.0)?;
        if body.n.is_some_and(|n| n != 1) {
            return Err(invalid("n must be 1: Navi gives one answer"));
        }
        if body
            .functions
            .is_some_and(|functions| !functions.is_empty())
        {
            return Err(invalid("functions cannot be taken: send them as `tools`"));
        }
        let choice = body.function_call.unwrap_or_default();
        if !(choice.is_null() || choice == "auto" || choice == "none") {
            return Err(invalid(
                "function_call cannot be taken: send functions as `tools`, and this as `tool_choice`",
            ));
        }
        let tools = body.tools.unwrap_or_default().into_iter().map(offered);
        let tools = asked::checked(tools.collect::<Result<_, _>>()?)?;
        let mut terms = asked::chosen(body.tool_choice.as_ref(), tools, Written::Nested)?;
        let format = body.response_format.as_ref();
        terms.demands.form = asked::form(format, Written::Nested)?;
        terms.demands.one_by_one = body.parallel_tool_calls == Some(false);
        let streamed = body.stream.unwrap_or(false);
        Ok(Self {
            asked: Asked::of(app, body.model, said, terms, streamed)?,
            stops: asked::stops(body.stop.as_ref(), MAX_STOPS)?,
            counts: (body.stream_options).is_some_and(|it| it.include_usage == Some(true)),
            hash,
        })
    }
}

fn said(said: Said) -> Result<asked::Said, NaviError> {
    let role = match said.role.as_str() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => {
            return Err(invalid(
                "role must be system, developer, user, assistant or tool",
            ));
        }
    };
    if role == Role::Tool && said.tool_call_id.is_none() {
        return Err(invalid("a result must have the tool_call_id of its call"));
    }
    let (text, images, files) = content(said.content)?;
    let (text, images, files) = asked::heard(role, text, images, files)?;
    let images = validate_images(images)?;
    let calls = said.tool_calls.unwrap_or_default();
    asked::check_names(calls.iter().map(|call| call.function.name.as_str()))?;
    let calls = calls.into_iter().filter(|_| role == Role::Assistant);
    Ok(asked::Said {
        role,
        text,
        images,
        files,
        calls: calls.map(call).collect(),
        answers: said.tool_call_id.map(CallId),
    })
}

fn call(called: Called) -> ToolCall {
    let Function { name, arguments } = called.function;
    ToolCall {
        id: CallId(called.id),
        name,
        arguments: serde_json::from_str(&arguments).unwrap_or(Value::String(arguments)),
    }
}

/// A message's text, its images, and its files.
fn content(content: Option<Content>) -> Result<(String, Vec<String>, Vec<SentFile>), NaviError> {
    let parts = match content {
        None => return Ok(Default::default()),
        Some(Content::Text(text)) => return Ok((text, Vec::new(), Vec::new())),
        Some(Content::Parts(parts)) => parts,
    };
    let (mut texts, mut images, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match part.r#type.as_str() {
            "text" | "input_text" | "output_text" => {
                texts.push(part.text.ok_or_else(|| lacking(&part.r#type, "text"))?);
            }
            "refusal" => texts.push(part.refusal.ok_or_else(|| lacking("refusal", "refusal"))?),
            "image_url" => {
                let url = part
                    .image_url
                    .ok_or_else(|| lacking("image_url", "image_url"))?;
                images.push(image_data(url.url)?);
            }
            "file" => {
                let file = part.file.and_then(|it| Some((it.filename, it.file_data?)));
                let (name, data) = file.ok_or_else(|| {
                    invalid("a file must come with its file_data; Navi keeps none by an id")
                })?;
                files.push(sent_file(name, &data)?);
            }
            kind => return Err(untaken(kind, "text, refusal, image_url and file")),
        }
    }
    Ok((texts.join("\n"), images, files))
}

fn offered(tool: Offered) -> Result<OfferedByProgram, NaviError> {
    let Some(function) = tool.function.filter(|_| tool.r#type == "function") else {
        return Err(invalid("tools must be of the type function"));
    };
    Ok(asked::offered(
        function.name,
        function.description,
        function.parameters,
    ))
}
