//! Pieces of a request that both HTTP protocols write alike.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::protocol::chat::{ChatMessage, ChatRequest};
use crate::protocol::offered::OfferedTools;
use crate::protocol::prompt::PromptMessage;
use crate::protocol::status::BackendKind;
use crate::protocol::tool::ToolSpec;

/// A request's body: few fields that can be looked at and changed, and a conversation of any
/// length that is written as it stands.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: &'a str,
    messages: Messages<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<&'a RawValue>,
    #[serde(flatten)]
    pub(super) fields: Map<String, Value>,
}

impl<'a> Body<'a> {
    /// `write` writes a message as servers of this kind read it; without a kind, as one of them alone
    /// does.
    pub(super) fn of(
        request: &'a ChatRequest,
        kind: Option<BackendKind>,
        write: fn(&ChatMessage) -> serde_json::Result<Box<RawValue>>,
        fields: Map<String, Value>,
    ) -> Self {
        Self {
            model: &request.model,
            messages: Messages {
                all: &request.messages,
                kind,
                write,
            },
            tools: described(&request.tools),
            fields,
        }
    }
}

/// A conversation as servers of one kind read it: each of its messages is written once for all calls
/// that have it.
#[derive(Debug)]
struct Messages<'a> {
    all: &'a [PromptMessage],
    kind: Option<BackendKind>,
    write: fn(&ChatMessage) -> serde_json::Result<Box<RawValue>>,
}

impl<'a> Messages<'a> {
    fn written(&self, message: &'a PromptMessage) -> Cow<'a, RawValue> {
        // A message always has a JSON text.
        let write = || (self.write)(message).unwrap_or_default();
        let Some(wanted) = self.kind else {
            return Cow::Owned(write());
        };
        let (kind, written) = message.made().written.get_or_init(|| (wanted, write()));
        if *kind == wanted {
            Cow::Borrowed(written)
        } else {
            Cow::Owned(write())
        }
    }
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.all.iter().map(|message| self.written(message)))
    }
}

/// Tools as both protocols describe them; none where there are none.
fn described(tools: &OfferedTools) -> Option<&RawValue> {
    if tools.is_empty() {
        return None;
    }
    let described = tools.made().described.get_or_init(|| {
        let all: Vec<Value> = tools.iter().map(tool).collect();
        // A JSON tree always has a text.
        to_raw_value(&all).unwrap_or_default()
    });
    Some(described)
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
        },
    })
}

/// Arguments as a backend's chat template can read them: templates fail on anything but an
/// object, so a call that was none is shown to the model as what it said.
pub(super) fn arguments_object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::String(raw) => serde_json::json!({ "invalid_arguments": raw }),
        other => serde_json::json!({ "invalid_arguments": other.to_string() }),
    }
}

/// 0.7 as 0.7, not as 0.699999988079071.
pub(super) fn decimal(value: f32) -> Value {
    value
        .to_string()
        .parse::<f64>()
        .map_or(Value::Null, Value::from)
}
