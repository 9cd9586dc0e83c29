//! The body of `/chat/completions`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use reqwest::Url;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::llm::LlmError;
use crate::llm::wire::{Body, arguments_object, decimal};
use crate::protocol::chat::{ChatMessage, ChatRequest, ReplyForm};
use crate::protocol::ids::CallId;
use crate::protocol::message::ToolCall;
use crate::protocol::prompt::PromptMessage;
use crate::protocol::status::BackendKind;

use super::models::Flavour;

/// Fields that only make an answer better: a server that refuses one is asked without it.
/// Those that a program's words stand in come first: a refusal repeats them, whatever they say.
const DISPENSABLE: [&str; 10] = [
    "response_format",
    "tool_choice",
    "stream_options",
    "temperature",
    "reasoning_effort",
    "chat_template_kwargs",
    "return_progress",
    "enable_thinking",
    "thinking",
    "reasoning",
];

/// The limit of an answer, as most servers call it.
pub(super) const LIMIT: &str = "max_tokens";
/// The same, as OpenAI's newer models do, wherever they are reached, and no others.
const NEW_LIMIT: &str = "max_completion_tokens";

/// Gives the limit its new name. Whether it had the other one.
pub(super) fn rename_limit(body: &mut Map<String, Value>) -> bool {
    let limit = body.remove(LIMIT);
    let had_one = limit.is_some();
    body.extend(limit.map(|limit| (NEW_LIMIT.to_owned(), limit)));
    had_one
}

/// Whether a refusal asks for the limit's new name.
pub(super) fn wants_new_limit(message: &str) -> bool {
    message.contains(NEW_LIMIT)
}

/// Whether a refusal of it is one of the server's, and not of what this request has in it.
pub(super) fn is_refused_for_all(field: &str, request: &ChatRequest) -> bool {
    match field {
        "response_format" => !matches!(request.form, Some(ReplyForm::Schema(_))),
        _ => true,
    }
}

/// The same request always becomes the same bytes: the backend's prefix cache lives on it.
pub(super) fn body<'a>(request: &'a ChatRequest, flavour: Flavour, base: &Url) -> Body<'a> {
    let fields = fields(request, flavour, base);
    if wants_signatures(&request.model, base) {
        Body::of(request, None, signed, fields)
    } else {
        Body::of(request, Some(BackendKind::Openai), written, fields)
    }
}

/// Whether a model refuses calls without the signatures that it gave them, as Gemini does from its
/// third version on (ai.google.dev/gemini-api/docs/thought-signatures).
fn wants_signatures(model: &str, base: &Url) -> bool {
    let is_older = ["gemini-1", "gemini-2"]
        .iter()
        .any(|older| model.contains(older));
    is_of(base, "googleapis.com") && model.contains("gemini") && !is_older
}

fn written(of: &ChatMessage) -> serde_json::Result<Box<RawValue>> {
    to_raw_value(&message(of))
}

/// The same for such a model: in the place of signatures, which are not kept, stands what it takes
/// for any.
fn signed(of: &ChatMessage) -> serde_json::Result<Box<RawValue>> {
    let mut signed = message(of);
    if let OpenAiMessage::Assistant { tool_calls, .. } = &mut signed {
        for call in tool_calls {
            call["extra_content"] =
                json!({ "google": { "thought_signature": "skip_thought_signature_validator" } });
        }
    }
    to_raw_value(&signed)
}

fn fields(request: &ChatRequest, flavour: Flavour, base: &Url) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("stream".to_owned(), request.streamed.into());
    if request.streamed {
        // Beside a whole answer it is an error; there the counts are always told.
        body.insert(
            "stream_options".to_owned(),
            json!({ "include_usage": true }),
        );
    }
    body.insert("temperature".to_owned(), decimal(request.temperature));
    if let Some(limit) = request.max_output_tokens {
        body.insert(LIMIT.to_owned(), limit.into());
        if base.host_str() == Some("api.openai.com") {
            rename_limit(&mut body);
        }
    }
    body.extend(request.form.as_ref().map(form));
    match flavour {
        Flavour::LlamaCpp => {
            if request.streamed {
                body.insert("return_progress".to_owned(), true.into());
            }
            body.insert("chat_template_kwargs".to_owned(), thinking(request.think));
        }
        Flavour::Vllm => {
            body.insert("chat_template_kwargs".to_owned(), thinking(request.think));
        }
        Flavour::Plain => {
            if let Some((field, value)) = hosted_thinking(request, base) {
                body.insert(field.to_owned(), value);
            } else if let Some(effort) = reasoning_effort(&request.model, request.think) {
                body.insert("reasoning_effort".to_owned(), effort.into());
            }
        }
    }
    body
}

/// What the reply has to be. Whoever asked looks at it, too: a server that does not know this is
/// asked without it.
fn form(form: &ReplyForm) -> (String, Value) {
    let (name, value) = match form {
        ReplyForm::Call => ("tool_choice", "required".into()),
        ReplyForm::Json => ("response_format", json!({ "type": "json_object" })),
        ReplyForm::Schema(wanted) => (
            "response_format",
            json!({ "type": "json_schema", "json_schema": wanted }),
        ),
    };
    (name.to_owned(), value)
}

/// How a hosted service that has a switch of its own is told whether to think
/// (api-docs.deepseek.com/guides/thinking_mode, platform.moonshot.ai, docs.z.ai,
/// openrouter.ai/docs/use-cases/reasoning-tokens,
/// alibabacloud.com/help/model-studio/deep-thinking, docs.siliconflow.com).
fn hosted_thinking(request: &ChatRequest, base: &Url) -> Option<(&'static str, Value)> {
    let of = |domain: &str| is_of(base, domain);
    if ["deepseek.com", "moonshot.ai", "moonshot.cn", "kimi.com"]
        .into_iter()
        .any(of)
    {
        // While they think they refuse calls without the reasoning that led to them, which is
        // not sent back.
        let calls = |message: &PromptMessage| matches!(&**message, ChatMessage::Assistant { tool_calls, .. } if !tool_calls.is_empty());
        let has_calls = !request.tools.is_empty() || request.messages.iter().any(calls);
        Some(("thinking", switch(request.think && !has_calls)))
    } else if of("z.ai") || of("bigmodel.cn") {
        Some(("thinking", switch(request.think)))
    } else if of("openrouter.ai") {
        Some(("reasoning", json!({ "enabled": request.think })))
    } else if of("aliyuncs.com") || of("siliconflow.cn") || of("siliconflow.com") {
        // Whole answers are given only without it.
        let think = request.think && request.streamed;
        Some(("enable_thinking", think.into()))
    } else {
        None
    }
}

fn is_of(base: &Url, domain: &str) -> bool {
    let name = base.host_str().and_then(|host| host.strip_suffix(domain));
    name.is_some_and(|name| name.is_empty() || name.ends_with('.'))
}

fn switch(think: bool) -> Value {
    json!({ "type": if think { "enabled" } else { "disabled" } })
}

/// How much a model that reasons is to do so; none for one that is not known to
/// (platform.openai.com/docs/guides/reasoning). What a model knows as its least differs.
fn reasoning_effort(model: &str, think: bool) -> Option<&'static str> {
    // Gateways put the maker's name before it.
    let name = model.rsplit('/').next().unwrap_or(model);
    let least = if name.starts_with("gpt-5.") {
        "none"
    } else if name.starts_with("gpt-5") {
        "minimal"
    } else if ["o1", "o3", "o4", "gpt-oss"]
        .iter()
        .any(|family| name.starts_with(family))
    {
        "low"
    } else {
        return None;
    };
    (!name.contains("-chat")).then_some(if think { "medium" } else { least })
}

/// The field that a refusal names, if the request can do without it.
pub(super) fn dispensable_field(body: &Map<String, Value>, message: &str) -> Option<&'static str> {
    let message = message.to_lowercase();
    let named = |field: &str| match field {
        // By what it is handed on as, or by what stands in it.
        "chat_template_kwargs" => {
            message.contains("chat_template") || message.contains("enable_thinking")
        }
        _ => message.contains(field),
    };
    DISPENSABLE
        .into_iter()
        .find(|field| body.contains_key(*field) && named(field))
}

/// How an image stands in a message.
pub(super) const IMAGE: &str = "image_url";

/// Whether a refusal says that the model takes no images at all, to a request with some. That one
/// of them will not do says nothing of the model.
pub(super) fn refuses_images(request: &ChatRequest, error: &LlmError) -> bool {
    const WORDS: [&str; 8] = [
        "unknown variant `image_url`",
        "'image_url' is not supported",
        "image input",
        "support image",
        "at most 0 image",
        "not a multimodal model",
        "content must be a string",
        "mmproj",
    ];
    let LlmError::Rejected { message, .. } = error else {
        return false;
    };
    let message = message.to_lowercase();
    let shows = |message: &PromptMessage| matches!(&**message, ChatMessage::User { images, .. } if !images.is_empty());
    request.messages.iter().any(shows) && WORDS.iter().any(|words| message.contains(words))
}

/// Whether the request asks for a stream.
pub(super) fn is_streamed(body: &Map<String, Value>) -> bool {
    body.get("stream").and_then(Value::as_bool) == Some(true)
}

/// Whether a refusal says that the server only streams, to a request for a whole answer.
pub(super) fn wants_streams(body: &Map<String, Value>, message: &str) -> bool {
    !is_streamed(body) && message.to_lowercase().contains("stream")
}

fn thinking(think: bool) -> Value {
    json!({ "enable_thinking": think })
}

/// A message as it stands in the body.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum OpenAiMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        /// Some servers refuse an empty text beside calls; null is in the specification.
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Value>,
    },
    Tool {
        tool_call_id: String,
        content: &'a str,
    },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(&'a str),
    Parts(Vec<Value>),
}

fn message(message: &ChatMessage) -> OpenAiMessage<'_> {
    match message {
        ChatMessage::System { content } => OpenAiMessage::System { content },
        ChatMessage::User { content, images } if images.is_empty() => OpenAiMessage::User {
            content: UserContent::Text(content),
        },
        ChatMessage::User { content, images } => {
            let text = (!content.is_empty()).then(|| json!({ "type": "text", "text": content }));
            let images = images
                .iter()
                .map(|image| json!({ "type": IMAGE, IMAGE: { "url": data_url(image) } }));
            let parts: Vec<Value> = text.into_iter().chain(images).collect();
            OpenAiMessage::User {
                content: UserContent::Parts(parts),
            }
        }
        ChatMessage::Assistant {
            content,
            tool_calls,
        } => OpenAiMessage::Assistant {
            content: (tool_calls.is_empty() || !content.is_empty()).then_some(content),
            tool_calls: tool_calls.iter().map(call).collect(),
        },
        ChatMessage::Tool {
            call_id, content, ..
        } => OpenAiMessage::Tool {
            tool_call_id: wire_id(call_id),
            content,
        },
    }
}

fn call(call: &ToolCall) -> Value {
    json!({
        "id": wire_id(&call.id),
        "type": "function",
        "function": {
            "name": call.name,
            "arguments": arguments_object(&call.arguments).to_string(),
        },
    })
}

/// A call's id as every server takes it: templates of Mistral's models refuse any that is not of
/// nine letters and digits.
fn wire_id(id: &CallId) -> String {
    let mut short = hex::encode(&Sha256::digest(id.to_string())[..5]);
    short.truncate(9);
    short
}

fn data_url(base64: &str) -> String {
    format!("data:{};base64,{base64}", mime_type(base64))
}

/// The type of an image, by its first bytes.
fn mime_type(base64: &str) -> &'static str {
    // 16 characters hold 12 bytes: as much as the longest signature needs.
    let head = base64.get(..16).unwrap_or(base64).trim_end_matches('=');
    let bytes = STANDARD_NO_PAD.decode(head).unwrap_or_default();
    match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => "image/webp",
        [b'B', b'M', ..] => "image/bmp",
        [
            _,
            _,
            _,
            _,
            b'f',
            b't',
            b'y',
            b'p',
            b'a',
            b'v',
            b'i',
            b'f',
            ..,
        ] => "image/avif",
        // JPEG, and what is unknown: the server looks for itself or says no.
        _ => "image/jpeg",
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn a_model_that_reasons_is_told_how_much() {
        for (model, on, off) in [
            ("gpt-5.1", Some("medium"), Some("none")),
            ("openai/gpt-5-mini", Some("medium"), Some("minimal")),
            ("o3", Some("medium"), Some("low")),
            ("gpt-oss:20b", Some("medium"), Some("low")),
            ("gpt-5-chat-latest", None, None),
            ("gpt-4o", None, None),
            ("olmo", None, None),
        ] {
            assert_eq!(reasoning_effort(model, true), on, "{model}");
            assert_eq!(reasoning_effort(model, false), off, "{model}");
        }
    }

    #[test]
    fn an_image_is_known_by_its_first_bytes() {
        let cases: [(&[u8], &str); 7] = [
            (b"\x89PNG\r\n\x1a\n....", "image/png"),
            (b"GIF89a..", "image/gif"),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", "image/webp"),
            (b"\xff\xd8\xff\xe0....", "image/jpeg"),
            (b"BM......", "image/bmp"),
            (b"\0\0\0\x20ftypavif", "image/avif"),
            (b"GI", "image/jpeg"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(mime_type(&STANDARD.encode(bytes)), expected, "{bytes:?}");
        }
        assert_eq!(mime_type("not base64!"), "image/jpeg");
        assert_eq!(mime_type("ééééééééééé"), "image/jpeg");
    }
}
