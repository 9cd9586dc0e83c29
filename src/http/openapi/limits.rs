//! What fields and parameters may hold, which their types do not say: lengths, ranges, and what a
//! text is made of. The numbers are those of the code that checks them, and `./check --only fuzz`
//! sends what is just inside and what is just outside.
//!
//! Lengths count characters, as JSON Schema does. Where the limit is one of bytes, a text of ASCII
//! alone may be as long as it says.

use std::ops::RangeInclusive;

use navi_actors::domain::consent::MAX_NOTE_CHARS;
use navi_actors::domain::files::MAX_FILES;
use navi_actors::domain::import::{MAX_MESSAGES, MAX_NAME_CHARS, MAX_TEXT_BYTES};
use navi_actors::domain::input::{
    MAX_CLIENT_ID_CHARS, MAX_CONTENT_BYTES, MAX_IMAGES, MAX_MODEL_CHARS,
};
use navi_actors::domain::memory::{MAX_KEY_CHARS, MAX_VALUE_CHARS};
use navi_actors::domain::names;
use navi_actors::domain::sharing::MAX_LINK_DAYS;
use navi_actors::domain::tags::{MAX_TAGS, TAG_CHARS};
use navi_actors::domain::todo::MAX_TEXT_CHARS;
use navi_actors::engine::{MAX_LOG_PAGE, TITLE_CHARS};
use navi_actors::protocol::limits::{FILES_MB, RUNS, SESSIONS, TABS, TOKENS_A_DAY, UPLOADS};
use navi_actors::tools::mcp::{MAX_NAME, MAX_TIME};
use navi_actors::tools::net::MAX_URL_BYTES;
use serde_json::{Value, json};

use super::characters::{CONTROL, HIDDEN, MOVING, SPACE, UNSEEN};
use super::demanded;
use crate::access::passkeys::MAX_NAME_CHARS as MAX_PASSKEY_NAME_CHARS;
use crate::access::{
    MAX_INVITATION_DAYS, MAX_PASSWORD_CHARS, MAX_TOKEN_DAYS, MAX_TOKEN_NAME_CHARS,
    MIN_PASSWORD_CHARS,
};
use crate::doors::asked::{MAX_NAME_BYTES, MAX_OLLAMA_STOPS, MAX_STOPS, MAX_TOOLS};
use crate::http::model_server::{MAX_ADDRESS_CHARS, MAX_API_KEY_CHARS};
use crate::mcp_servers::draft::{MAX_BYTES as MAX_MCP_BYTES, MAX_ITEMS};
use crate::settings::page_keys;

/// The longest path in a workspace, in bytes.
const MAX_PATH_BYTES: usize = 1_024;
/// What a profile's id is made of, and its length.
const ID: &str = "^[a-z0-9_-]{1,64}$";
/// A page's cursor over a run's events.
const CURSOR: &str = r"^[0-9]{1,18}\.[0-9]{1,18}$";
/// A header that names something.
const SEEN_ASCII: &str = "^[ -~]*$";
/// A key or category of the memory has a letter or a digit in it.
const NAMING: &str = r"[\p{L}\p{N}]";
/// How the base64 of a PNG, a JPEG, a GIF or a WebP begins.
const IMAGE: &str = "(?:iVBORw0KGg[o-r][A-Za-z0-9+/]|/9j/|R0lGODdh|R0lGODlh|UklGR[g-v][A-Za-z0-9+/]{4}[BFJNRVZdhlptx159]XRUJQ)";
/// How it goes on, with or without what fills up its end.
const BASE64: &str =
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw](?:==)?|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=?)?$";
/// A name, with or without a tag or a port, as a part of the name of one of Ollama's models.
const PART: &str = "[A-Za-z0-9][A-Za-z0-9._-]{0,79}(?::[A-Za-z0-9][A-Za-z0-9._-]{0,79})?";
/// A path that stays in its workspace: nobody's home, and without `..`.
const INNER: &str = r"(?!(?:\./+)*~(?:/|$))(?!(?:.*/)?\.\.(?:/|$))";
/// A path that does not mean a directory.
const OF_A_FILE: &str = r"(?!(?:.*/)?\.$)";

/// What is said of a field, by its place under the schemas; `*` is each of a list.
pub(super) fn of_fields() -> Vec<(&'static str, Value)> {
    let id = json!({"pattern": ID, "minLength": 1, "maxLength": 64});
    let step = line(MAX_TEXT_CHARS, MOVING);
    let tags = json!({"maxItems": MAX_TAGS});
    let image = json!({"pattern": format!("^(?:data:[^,]*;base64,)?{IMAGE}{BASE64}")});
    let images = json!({"maxItems": MAX_IMAGES});
    let sent_text = json!({"maxLength": MAX_TEXT_BYTES});
    let call_name = json!({"minLength": 1, "maxLength": MAX_NAME_CHARS});
    let tool = json!({"pattern": "^[A-Za-z0-9_-]+$", "minLength": 1, "maxLength": 64});
    let tools = json!({"maxItems": MAX_TOOLS});
    let client_id = json!({"minLength": 1, "maxLength": MAX_CLIENT_ID_CHARS, "pattern": format!("^[^{CONTROL}]*$")});
    let note = format!("^[{SPACE}]*(?:{}[{SPACE}]*)?$", words(MOVING));
    let version = json!({"pattern": "^[0-9a-f]{64}$"});
    let ollama_options = json!({"properties": {"stop": demanded::stops(MAX_OLLAMA_STOPS)}});
    let address = json!({"minLength": 1, "maxLength": MAX_ADDRESS_CHARS});
    let key = json!({"maxLength": MAX_API_KEY_CHARS, "pattern": "^[!-~]*$"});
    let password = json!({"minLength": MIN_PASSWORD_CHARS, "maxLength": MAX_PASSWORD_CHARS});
    vec![
        ("PlainInput/content", said()),
        ("PlainInput/images", images.clone()),
        ("PlainInput/images/items", image.clone()),
        (
            "PlainInput/files",
            json!({"maxItems": MAX_FILES, "uniqueItems": true}),
        ),
        ("PlainInput/client_id", client_id.clone()),
        ("LentTools/client_id", client_id.clone()),
        ("LentTools/lender", client_id),
        ("LentTools/tools", tools.clone()),
        ("OfferedByProgram/name", tool.clone()),
        ("OfferedByProgram/parameters", json!({"type": "object"})),
        ("NewBranch/content", said()),
        ("NewSessionRequest/model", model()),
        ("NewSessionRequest/profile_id", id.clone()),
        ("SessionChange", something()),
        ("SessionChange/model", model()),
        ("SessionChange/profile_id", id),
        (
            "SessionChange/title",
            json!({"minLength": 1, "maxLength": TITLE_CHARS, "pattern": format!("[^{SPACE}]")}),
        ),
        ("SessionChange/tags", tags.clone()),
        ("SessionChange/tags/items", tag()),
        ("PlanEdit/oneOf/*/text", step),
        ("ImportedSession/tags", tags),
        ("ImportedSession/tags/items", tag()),
        (
            "ImportedSession/messages",
            json!({"minItems": 1, "maxItems": MAX_MESSAGES}),
        ),
        ("ImportedMessage", roles()),
        ("ImportedMessage/content", sent_text.clone()),
        ("ImportedMessage/thinking", sent_text),
        (
            "ImportedMessage/tool_calls/items",
            json!({"type": "object", "properties": {"name": call_name}}),
        ),
        (
            "RestDecision",
            json!({"enum": ["allow", "once", "always", "deny", "never"]}),
        ),
        (
            "ApprovalDecision/note",
            json!({"maxLength": MAX_NOTE_CHARS, "pattern": note}),
        ),
        ("ApprovalDecision", reasons()),
        (
            "FactChange/value",
            json!({"minLength": 1, "maxLength": MAX_VALUE_CHARS, "pattern": format!("[^{SPACE}{CONTROL}]")}),
        ),
        (
            "McpDraft/command",
            json!({"minLength": 1, "maxLength": MAX_MCP_BYTES, "pattern": format!("[^{SPACE}]")}),
        ),
        ("McpDraft/args", json!({"maxItems": MAX_ITEMS})),
        ("McpDraft/tools", json!({"maxItems": MAX_ITEMS})),
        ("McpDraft/env", json!({"maxProperties": MAX_ITEMS})),
        ("McpDraft/headers", json!({"maxProperties": MAX_ITEMS})),
        (
            "McpDraft/timeout_seconds",
            json!({"minimum": 1, "maximum": MAX_TIME}),
        ),
        (
            "PullRequest/name",
            json!({"pattern": format!("^[{SPACE}]*{PART}(?:/{PART}){{0,2}}[{SPACE}]*$")}),
        ),
        (
            "SettingsChange/changes",
            json!({"minProperties": 1, "propertyNames": {"enum": page_keys().collect::<Vec<_>>()}}),
        ),
        ("SettingsChange/version", version.clone()),
        ("SettingsUndo/version", version.clone()),
        ("ModelServerChoice/version", version),
        ("ModelServerChoice/base_url", address.clone()),
        ("ModelServerChoice/api_key", key.clone()),
        ("ModelServerChoice/model", model()),
        ("ModelServerTrial/base_url", address),
        ("ModelServerTrial/api_key", key),
        ("NewTokenRequest/name", line(MAX_TOKEN_NAME_CHARS, CONTROL)),
        ("NewTokenRequest/scopes", json!({"minItems": 1})),
        (
            "NewTokenRequest/days",
            json!({"minimum": 1, "maximum": MAX_TOKEN_DAYS}),
        ),
        (
            "NewInvitation/days",
            json!({"minimum": 1, "maximum": MAX_INVITATION_DAYS}),
        ),
        (
            "NewLink/days",
            json!({"minimum": 1, "maximum": MAX_LINK_DAYS}),
        ),
        ("LimitsChange/runs", within(&RUNS)),
        ("LimitsChange/uploads", within(&UPLOADS)),
        ("LimitsChange/sessions", within(&SESSIONS)),
        ("LimitsChange/files_mb", within(&FILES_MB)),
        ("LimitsChange/tokens_a_day", within(&TOKENS_A_DAY)),
        ("LimitsChange/tabs", within(&TABS)),
        // One that is named twice is granted once.
        ("PersonChange/powers", json!({"uniqueItems": false})),
        ("UsersPowers/users", json!({"uniqueItems": false})),
        ("SignInRequest", one_of_two("password", "recovery_code")),
        (
            "NewPasskeyRequest/name",
            line(MAX_PASSKEY_NAME_CHARS, CONTROL),
        ),
        ("PasskeyChange/name", line(MAX_PASSKEY_NAME_CHARS, CONTROL)),
        ("AcceptRequest/name", line(names::MAX_CHARS, UNSEEN)),
        ("AcceptRequest/password", password.clone()),
        ("AccountChangeRequest/name", line(names::MAX_CHARS, UNSEEN)),
        ("AccountChangeRequest/password", password),
        ("ChatCompletionRequest/messages", json!({"minItems": 1})),
        (
            "ChatCompletionRequest",
            demanded::with_tools(&json!({"minItems": 1})),
        ),
        ("ChatCompletionRequest/stop", demanded::stops(MAX_STOPS)),
        ("ChatCompletionRequest/n", json!({"enum": [1, null]})),
        ("ChatCompletionRequest/functions", json!({"maxItems": 0})),
        (
            "ChatCompletionRequest/function_call",
            json!({"enum": ["auto", "none", null]}),
        ),
        (
            "ChatCompletionRequest/tool_choice",
            demanded::nested_choice(&tool),
        ),
        (
            "ChatCompletionRequest/response_format",
            demanded::nested_format(&tool),
        ),
        ("ChatCompletionRequest/tools", tools.clone()),
        (
            "ChatCompletionTool",
            json!({"required": ["type", "function"]}),
        ),
        ("ChatCompletionTool/type", json!({"const": "function"})),
        ("ChatCompletionTool/function", json!({"type": "object"})),
        ("ChatCompletionFunction/name", tool.clone()),
        (
            "ChatCompletionFunction/parameters",
            json!({"type": ["object", "null"]}),
        ),
        ("ChatCompletionMessage", answers()),
        (
            "ChatCompletionMessage/role",
            json!({"enum": ["system", "developer", "user", "assistant", "tool"]}),
        ),
        ("ChatCompletionPart", part()),
        ("ChatCompletionCalled/name", call_name.clone()),
        ("ResponseRequest", goings_on()),
        ("ResponseRequest/tools", tools.clone()),
        ("ResponseRequest/tool_choice", demanded::flat_choice(&tool)),
        ("ResponseText/format", demanded::flat_format(&tool)),
        (
            "ResponseRequest/previous_response_id",
            json!({"pattern": "^resp_[0-9a-f]{64}_[0-9]{1,9}$"}),
        ),
        ("ResponseInputItem", item(&call_name)),
        ("ResponseInputPart", response_part()),
        ("ResponseTool", response_tool(&tool)),
        ("OllamaChatRequest/format", demanded::ollama_format()),
        ("OllamaGenerateRequest/format", demanded::ollama_format()),
        ("OllamaChatRequest/options", ollama_options.clone()),
        ("OllamaGenerateRequest/options", ollama_options),
        ("OllamaChatRequest/tools", tools),
        ("OllamaGenerateRequest/images", images.clone()),
        (
            "OllamaMessage",
            json!({"anyOf": [
                {"properties": {"role": {"not": {"pattern": "^[Ss][Yy][Ss][Tt][Ee][Mm]$"}}}},
                {"properties": {"images": {"maxItems": 0}}},
            ]}),
        ),
        ("OllamaMessage/images", images),
        ("OllamaGenerateRequest/images/items", image.clone()),
        (
            "OllamaMessage/role",
            json!({"anyOf": [
                {"enum": ["system", "user", "assistant", "tool"]},
                {"type": "string"},
            ]}),
        ),
        ("OllamaMessage/images/items", image),
        ("OllamaShowRequest", either("model", "name")),
        ("OllamaFunction/name", tool),
        (
            "OllamaFunction/parameters",
            json!({"type": ["object", "null"]}),
        ),
        ("OllamaCalled/name", call_name),
    ]
}

fn within<T: serde::Serialize>(range: &RangeInclusive<T>) -> Value {
    json!({"minimum": range.start(), "maximum": range.end()})
}

/// A text in at least one of two fields.
fn either(one: &str, other: &str) -> Value {
    let with =
        |there: &str| json!({"required": [there], "properties": {there: {"type": "string"}}});
    json!({"anyOf": [with(one), with(other)]})
}

/// A text in one of two fields, and nothing in the other.
fn one_of_two(one: &str, other: &str) -> Value {
    let with = |there: &str, lacking: &str| {
        json!({
            "required": [there],
            "properties": {there: {"type": "string"}, lacking: {"type": "null"}},
        })
    };
    json!({"oneOf": [with(one, other), with(other, one)]})
}

/// The same of a parameter, by what stands in front of its paths.
pub(super) fn of_parameters() -> Vec<(&'static str, &'static str, Value)> {
    // At most 32 names of at most 255 bytes, none of them empty, so that it is not absolute either.
    let names = format!(r"[^/\\{MOVING}]{{1,255}}(?:/+[^/\\{MOVING}]{{1,255}}){{0,31}}");
    let directory = format!("^(?:{INNER}{names}/*)?$");
    let directory = json!({"maxLength": MAX_PATH_BYTES, "pattern": directory});
    let file = format!("^{INNER}{OF_A_FILE}{names}$");
    let file = json!({"minLength": 1, "maxLength": MAX_PATH_BYTES, "pattern": file});
    let name = json!({"minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": NAMING});
    let header = json!({"maxLength": MAX_NAME_BYTES, "pattern": SEEN_ASCII});
    vec![
        (
            "/agents/profiles/{id}/file",
            "id",
            json!({"pattern": ID, "minLength": 1, "maxLength": 64}),
        ),
        (
            "/mcp/",
            "name",
            json!({"pattern": "^[A-Za-z0-9_-]+$", "minLength": 1, "maxLength": MAX_NAME}),
        ),
        (
            "/consent/log",
            "limit",
            json!({"minimum": 1, "maximum": MAX_LOG_PAGE}),
        ),
        (
            "/sessions/{session_id}/remote-image",
            "url",
            json!({"pattern": "^https?://", "minLength": 8, "maxLength": MAX_URL_BYTES}),
        ),
        ("/sessions/{session_id}/workspace", "path", directory),
        ("/sessions/{session_id}/workspace/", "path", file),
        (
            "/sessions/{session_id}/runs/{run_id}/events",
            "cursor",
            json!({"pattern": CURSOR}),
        ),
        ("/memory/facts/", "category", name.clone()),
        ("/memory/facts/", "key", name),
        ("/runs/{run_id}/calls/", "n", json!({"minimum": 1})),
        ("/v1/chat/completions", "X-Navi-Session", header.clone()),
        ("/v1/chat/completions", "X-Navi-Task", header.clone()),
        ("/v1/chat/completions", "Idempotency-Key", header.clone()),
        ("/v1/responses", "X-Navi-Session", header.clone()),
        ("/v1/responses", "X-Navi-Task", header.clone()),
        ("/v1/responses", "Idempotency-Key", header.clone()),
        ("/api/chat", "X-Navi-Session", header.clone()),
        ("/api/chat", "X-Navi-Task", header.clone()),
        ("/api/chat", "Idempotency-Key", header.clone()),
        ("/api/generate", "X-Navi-Session", header.clone()),
        ("/api/generate", "X-Navi-Task", header.clone()),
        ("/api/generate", "Idempotency-Key", header),
    ]
}

/// A change of a session changes something; only a model may be taken back by null.
fn something() -> Value {
    let changed =
        |name: &str, of: &str| json!({"required": [name], "properties": {name: {"type": of}}});
    json!({"anyOf": [
        {"required": ["model"]},
        changed("title", "string"),
        changed("profile_id", "string"),
        changed("tags", "array"),
        changed("archived", "boolean"),
    ]})
}

/// What only one that speaks has: calls the assistant, results the tools.
fn roles() -> Value {
    let none = json!({"maxItems": 0});
    let user = json!({"maxLength": MAX_CONTENT_BYTES});
    json!({"oneOf": [
        {"properties": {
            "role": {"const": "user"}, "content": user, "thinking": user,
            "tool_calls": none, "tool_call_id": {"type": "null"},
        }},
        {"properties": {"role": {"const": "assistant"}, "tool_call_id": {"type": "null"}}},
        {
            "properties": {"role": {"const": "tool"}, "tool_calls": none, "tool_call_id": {"type": "string"}},
            "required": ["tool_call_id"],
        },
    ]})
}

/// A result names its call, and a system message is text.
fn answers() -> Value {
    json!({
        "anyOf": [
            {"properties": {"role": {"enum": ["system", "developer", "user", "assistant"]}}},
            {"properties": {"tool_call_id": {"type": "string"}}, "required": ["tool_call_id"]},
        ],
        "not": demanded::system_is_text(&["image_url", "file"]),
    })
}

/// A part of a message: its text, or an image or a file that stands in it.
fn part() -> Value {
    let url = format!("^data:[^,]*;base64,{IMAGE}{BASE64}");
    let mut data = file();
    data["type"] = json!("string");
    json!({"anyOf": [
        {
            "properties": {"type": {"enum": ["text", "input_text", "output_text"]}, "text": {"type": "string"}},
            "required": ["text"],
        },
        {
            "properties": {"type": {"const": "refusal"}, "refusal": {"type": "string"}},
            "required": ["refusal"],
        },
        {
            "properties": {
                "type": {"const": "image_url"},
                "image_url": {"type": "object", "properties": {"url": {"pattern": url}}},
            },
            "required": ["image_url"],
        },
        {
            "properties": {
                "type": {"const": "file"},
                "file": {"type": "object", "properties": {"file_data": data}, "required": ["file_data"]},
            },
            "required": ["file"],
        },
    ]})
}

/// A file of a message, with what it holds.
fn file() -> Value {
    json!({"pattern": format!("^(?:data:[^,]*;base64,)?(?=[A-Za-z0-9+/]){BASE64}")})
}

/// Where a response is: behind another one, or in a conversation; in the background only where it
/// is kept. Where a call is demanded, there is a tool.
fn goings_on() -> Value {
    json!({"allOf": [
        {"not": {
            "properties": {
                "previous_response_id": {"type": "string"},
                "conversation": {"type": ["string", "object"]},
            },
            "required": ["previous_response_id", "conversation"],
        }},
        {"not": {
            "properties": {"background": {"const": true}, "store": {"const": false}},
            "required": ["background", "store"],
        }},
        demanded::with_tools(&json!({"contains": {
            "properties": {"type": {"const": "function"}},
            "required": ["type"],
        }})),
    ]})
}

/// An item of a response's input, by its type; what is of no type of these is passed over.
fn item(name: &Value) -> Value {
    let named = json!([
        "message",
        "function_call",
        "function_call_output",
        "mcp_approval_response",
        "item_reference"
    ]);
    let of = |kind: &str, fields: Value, required: &[&str]| {
        let mut properties = fields;
        properties["type"] = json!({"const": kind});
        json!({"properties": properties, "required": required})
    };
    let roles = json!({"enum": ["user", "assistant", "system", "developer"]});
    let system = demanded::system_is_text(&["input_image", "input_file"]);
    let text = json!({"type": "string"});
    let mut called = name.clone();
    called["type"] = json!("string");
    json!({"anyOf": [
        {"properties": {"type": {"enum": ["message", null]}, "role": roles}, "required": ["role"]},
        of("function_call", json!({"call_id": text, "name": called}), &["type", "call_id", "name"]),
        of("function_call_output", json!({"call_id": text}), &["type", "call_id"]),
        of(
            "mcp_approval_response",
            json!({
                "approval_request_id": {"type": "string", "pattern": "^mcpr_[0-9a-f]{64}_[0-9a-f]{32}$"},
                "approve": {"type": "boolean"},
            }),
            &["type", "approval_request_id", "approve"],
        ),
        of(
            "item_reference",
            json!({"id": {"type": "string", "pattern": "^[a-z]{2,4}_[0-9a-f]{64}_[0-9]{1,9}_[0-9]{1,9}$"}}),
            &["type", "id"],
        ),
        {"properties": {"type": {"type": "string", "not": {"enum": named}}}, "required": ["type"]},
    ], "not": system})
}

/// A part of an item: its text, an image or a file.
fn response_part() -> Value {
    let url = format!("^data:[^,]*;base64,{IMAGE}{BASE64}");
    let mut data = file();
    data["type"] = json!("string");
    json!({"anyOf": [
        {
            "properties": {
                "type": {"enum": ["input_text", "output_text", "text"]},
                "text": {"type": "string"},
            },
            "required": ["text"],
        },
        {
            "properties": {"type": {"const": "refusal"}, "refusal": {"type": "string"}},
            "required": ["refusal"],
        },
        {
            "properties": {"type": {"const": "input_image"}, "image_url": {"type": "string", "pattern": url}},
            "required": ["image_url"],
        },
        {
            "properties": {"type": {"const": "input_file"}, "file_data": data},
            "required": ["file_data"],
        },
    ]})
}

/// A tool of the program's own; what is none is passed over.
fn response_tool(name: &Value) -> Value {
    let mut named = name.clone();
    named["type"] = json!("string");
    json!({"anyOf": [
        {
            "properties": {
                "type": {"const": "function"},
                "name": named,
                "parameters": {"type": ["object", "null"]},
            },
            "required": ["name"],
        },
        {"properties": {"type": {"not": {"const": "function"}}}},
    ]})
}

/// A reason goes with a denial alone.
fn reasons() -> Value {
    let blank = format!("^[{SPACE}]*$");
    json!({"anyOf": [
        {"properties": {"decision": {"enum": ["deny", "never"]}}},
        {"properties": {"note": {"pattern": blank}}},
    ]})
}

/// A message: something to read, and no NUL.
fn said() -> Value {
    let pattern = format!(r"^(?![\u0020{UNSEEN}]*$)[^\u0000]+$");
    json!({"minLength": 1, "maxLength": MAX_CONTENT_BYTES, "pattern": pattern})
}

/// A model's name, all of which can be seen.
fn model() -> Value {
    let pattern = format!(r"^(?!\u0020*$)[^{UNSEEN}]+$");
    json!({"minLength": 1, "maxLength": MAX_MODEL_CHARS, "pattern": pattern})
}

fn tag() -> Value {
    let pattern = format!("^(?![{SPACE}]*$)[^{HIDDEN}]+$");
    json!({"minLength": 1, "maxLength": TAG_CHARS, "pattern": pattern})
}

/// A line of words without some characters, but for white space around it.
fn line(most: usize, without: &str) -> Value {
    let pattern = format!("^[{SPACE}]*{}[{SPACE}]*$", words(without));
    json!({"minLength": 1, "maxLength": most, "pattern": pattern})
}

fn words(without: &str) -> String {
    format!("[^{SPACE}{without}](?:[^{without}]*[^{SPACE}{without}])?")
}
