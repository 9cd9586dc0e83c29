//! Requests as OpenAI's Responses have them.

use actix_web::web::Bytes;
use navi_actors::domain::input::validate_images;
use navi_actors::protocol::error::NaviError;
use navi_actors::protocol::ids::CallId;
use navi_actors::protocol::message::{Role, ToolCall};
use navi_actors::tools::lent::OfferedByProgram;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::ids::{AskId, ResponseId};
use crate::doors::answer::SentFile;
use crate::doors::asked::{
    self, Said, Terms, Written, image_data, invalid, lacking, sent_file, untaken,
};
use crate::http::body;
use crate::http::error::ApiError;

/// How many items a request may have.
const MAX_ITEMS: usize = 10_000;

/// `POST /v1/responses`, as far as Navi heeds it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ResponseRequest {
    /// `navi`, or `navi/PROFILE`.
    model: String,
    /// What is said, and what came of calls. The last message must hold something, and no NUL
    /// character where it is the user's.
    input: Input,
    /// Heeded beside the profile's prompt.
    #[serde(default)]
    instructions: Option<String>,
    /// The response that this one goes on from.
    #[serde(default)]
    previous_response_id: Option<String>,
    /// The session: its id, or a word of the program's own.
    #[serde(default)]
    conversation: Option<Conversation>,
    /// Whether it is kept, in a session that the page shows; so it is where it is left out.
    #[serde(default)]
    store: Option<bool>,
    /// Whether the answer comes at once, and is asked for later.
    #[serde(default)]
    background: Option<bool>,
    #[serde(default)]
    stream: Option<bool>,
    /// Those of the type `function` are taken; others are passed over.
    #[serde(default)]
    #[schemars(with = "Option<Vec<Offered>>")]
    tools: Option<Vec<Value>>,
    /// Of `tools`: with `required`, or a function of them, the answer is a call.
    #[serde(default)]
    tool_choice: Option<Value>,
    /// Where it is false, a response ends with one call at most, and the next one comes after its
    /// result.
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    #[serde(default)]
    text: Option<TextWish>,
    /// Given back as it came.
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

/// How the answer is written.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ResponseText")]
struct TextWish {
    /// What the answer has to be where it is text; its schema has at most 64 KiB.
    #[serde(default)]
    format: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum Input {
    Text(String),
    // Each is read by itself, so that an error says where it stands.
    Items(#[schemars(with = "Vec<Item>")] Vec<Value>),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum Conversation {
    Id(String),
    Object { id: String },
}

/// A message, a call, what came of one, an answer to a request for approval, or a reference to an
/// item of a response before. What else there is is passed over.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ResponseInputItem")]
struct Item {
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
    #[serde(default)]
    output: Option<Content>,
    #[serde(default)]
    approval_request_id: Option<String>,
    #[serde(default)]
    approve: Option<bool>,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ResponseInputPart")]
struct Part {
    r#type: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    image_url: Option<String>,
    #[serde(default)]
    file_data: Option<String>,
    #[serde(default)]
    filename: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ResponseTool")]
struct Offered {
    r#type: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
}

/// A request, read.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) model: String,
    pub(super) instructions: Option<String>,
    pub(super) entries: Vec<Entry>,
    pub(super) previous: Option<ResponseId>,
    pub(super) conversation: Option<String>,
    pub(super) stores: bool,
    pub(super) background: bool,
    pub(super) streamed: bool,
    pub(super) terms: Terms,
    /// As they were sent, to be given back; of the tools those that are taken.
    pub(super) tools: Vec<Value>,
    pub(super) tool_choice: Value,
    pub(super) format: Value,
    pub(super) metadata: Map<String, Value>,
    /// SHA-256 of its bytes.
    pub(super) hash: [u8; 32],
}

/// An item of the input.
#[derive(Debug)]
pub(super) enum Entry {
    Said(Said),
    Reference(ResponseId, usize),
    Approval(Approval),
}

/// A person's answer to a request for approval, as the program passes it on.
#[derive(Debug)]
pub(super) struct Approval {
    pub(super) id: AskId,
    pub(super) approves: bool,
    pub(super) reason: Option<String>,
}

impl Request {
    /// Reads a request's body.
    ///
    /// # Errors
    /// The first thing that is wrong, with where it stands.
    pub(super) async fn read(bytes: Bytes) -> Result<Self, NaviError> {
        // With its files and images, which take their time.
        let reader = |bytes: &[u8]| {
            let mut body = body::parse::<ResponseRequest>(bytes)?;
            let input = std::mem::replace(&mut body.input, Input::Items(Vec::new()));
            let entries = entries(input).map_err(ApiError)?;
            let tools = functions(body.tools.take().unwrap_or_default()).map_err(ApiError)?;
            Ok((body, entries, tools, Sha256::digest(bytes).into()))
        };
        let read = body::read(bytes, reader).await;
        let (body, entries, tools, hash) = read.map_err(|error| error.0)?;
        let (tools, offered): (Vec<Value>, Vec<OfferedByProgram>) = tools.into_iter().unzip();
        let previous = body.previous_response_id.as_deref();
        let previous = previous.map(|id| ResponseId::read(id).ok_or_else(|| super::unknown(id)));
        let conversation = body.conversation.map(|it| match it {
            Conversation::Id(id) | Conversation::Object { id } => id,
        });
        if previous.is_some() && conversation.is_some() {
            return Err(invalid(
                "previous_response_id and conversation exclude each other",
            ));
        }
        let (stores, background) = (body.store, body.background.unwrap_or(false));
        if background && stores == Some(false) {
            return Err(invalid("background goes with store alone"));
        }
        let offered = asked::checked(offered)?;
        let format = body.text.and_then(|text| text.format);
        let mut terms = asked::chosen(body.tool_choice.as_ref(), offered, Written::Flat)?;
        terms.demands.form = asked::form(format.as_ref(), Written::Flat)?;
        terms.demands.one_by_one = body.parallel_tool_calls == Some(false);
        Ok(Self {
            model: body.model,
            instructions: body.instructions,
            entries,
            previous: previous.transpose()?,
            conversation,
            stores: stores.unwrap_or(true),
            background,
            streamed: body.stream.unwrap_or(false),
            terms,
            tools,
            tool_choice: body.tool_choice.unwrap_or_else(|| json!("auto")),
            format: format.unwrap_or_else(|| json!({"type": "text"})),
            metadata: body.metadata.unwrap_or_default(),
            hash,
        })
    }
}

/// What counts of an input.
fn entries(input: Input) -> Result<Vec<Entry>, NaviError> {
    let items = match input {
        Input::Text(text) => return Ok(vec![Entry::Said(Said::text(Role::User, text))]),
        Input::Items(items) => items,
    };
    if items.len() > MAX_ITEMS {
        return Err(invalid(format!("input may have {MAX_ITEMS} items at most")));
    }
    let entries = (0..).zip(items).map(|(number, item)| {
        entry(item).map_err(|error: NaviError| {
            NaviError::new(error.code, format!("input[{number}]: {}", error.message))
        })
    });
    let entries: Vec<Option<Entry>> = entries.collect::<Result<_, _>>()?;
    Ok(entries.into_iter().flatten().collect())
}

/// What of an item counts: none of those that tell what a server did by itself, whatever they hold.
fn entry(item: Value) -> Result<Option<Entry>, NaviError> {
    const COUNTED: [&str; 5] = [
        "message",
        "function_call",
        "function_call_output",
        "mcp_approval_response",
        "item_reference",
    ];
    let kind = item.get("type").and_then(Value::as_str);
    if kind.is_some_and(|kind| !COUNTED.contains(&kind)) {
        return Ok(None);
    }
    let item: Item = serde_json::from_value(item).map_err(|error| invalid(error.to_string()))?;
    let missing = |what: &str| invalid(format!("{what} is missing"));
    Ok(Some(match item.r#type.as_deref() {
        None | Some("message") => {
            let role = match item.role.as_deref() {
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                Some("system" | "developer") => Role::System,
                _ => {
                    return Err(invalid(
                        "a message's role must be user, assistant, system or developer",
                    ));
                }
            };
            let (text, images, files) = content(item.content)?;
            let (text, images, files) = asked::heard(role, text, images, files)?;
            let images = validate_images(images)?;
            Entry::Said(Said {
                images,
                files,
                ..Said::text(role, text)
            })
        }
        Some("function_call") => {
            let arguments = item.arguments.unwrap_or_default();
            let call = ToolCall {
                id: CallId(item.call_id.ok_or_else(|| missing("call_id"))?),
                name: item.name.ok_or_else(|| missing("name"))?,
                arguments: serde_json::from_str(&arguments).unwrap_or(Value::String(arguments)),
            };
            asked::check_names([call.name.as_str()].into_iter())?;
            Entry::Said(Said {
                calls: vec![call],
                ..Said::text(Role::Assistant, String::new())
            })
        }
        Some("function_call_output") => {
            let (text, images, files) = content(item.output)?;
            let (text, ..) = asked::heard(Role::Tool, text, images, files)?;
            Entry::Said(Said {
                answers: Some(CallId(item.call_id.ok_or_else(|| missing("call_id"))?)),
                ..Said::text(Role::Tool, text)
            })
        }
        Some("mcp_approval_response") => {
            let id = item.approval_request_id;
            let id = id.ok_or_else(|| missing("approval_request_id"))?;
            let unknown = || invalid(format!("{id:?} is no request for approval of Navi's"));
            Entry::Approval(Approval {
                id: AskId::read(&id).ok_or_else(unknown)?,
                approves: item.approve.ok_or_else(|| missing("approve"))?,
                reason: item.reason,
            })
        }
        Some("item_reference") => {
            let id = item.id.ok_or_else(|| missing("id"))?;
            match ResponseId::of_item(&id) {
                Some((response, at)) => Entry::Reference(response, at),
                // A request for approval, whose answer says what it was.
                None if AskId::read(&id).is_some() => return Ok(None),
                None => return Err(invalid(format!("{id:?} is no item of Navi's"))),
            }
        }
        Some(_) => return Ok(None),
    }))
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
            "input_text" | "output_text" | "text" => {
                texts.push(part.text.ok_or_else(|| lacking(&part.r#type, "text"))?);
            }
            "refusal" => texts.push(part.refusal.ok_or_else(|| lacking("refusal", "refusal"))?),
            "input_image" => {
                let url = part
                    .image_url
                    .ok_or_else(|| lacking("input_image", "image_url"))?;
                images.push(image_data(url)?);
            }
            "input_file" => {
                let data = part.file_data.ok_or_else(|| {
                    invalid("a file must come with its file_data; Navi keeps none by an id, and fetches none")
                })?;
                files.push(sent_file(part.filename, &data)?);
            }
            kind => {
                return Err(untaken(
                    kind,
                    "input_text, output_text, refusal, input_image and input_file",
                ));
            }
        }
    }
    Ok((texts.join("\n"), images, files))
}

/// The functions among tools, each as it was sent and as it is lent.
fn functions(tools: Vec<Value>) -> Result<Vec<(Value, OfferedByProgram)>, NaviError> {
    let mut functions = Vec::new();
    for (number, tool) in (0..).zip(tools) {
        let wrong = |reason: String| invalid(format!("tools[{number}]: {reason}"));
        let read = Offered::deserialize(&tool).map_err(|error| wrong(error.to_string()))?;
        if read.r#type != "function" {
            continue;
        }
        let name = read
            .name
            .ok_or_else(|| wrong("its name is missing".to_owned()))?;
        let offered = asked::offered(name, read.description, read.parameters);
        functions.push((tool, offered));
    }
    Ok(functions)
}
