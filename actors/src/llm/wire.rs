//! Pieces of a request that both HTTP protocols write alike.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::protocol::chat::{ChatMessage, ChatRequest};
use crate::protocol::offered::OfferedTools;
use crate::protocol::tool::ToolSpec;

/// A request's body: few fields that can be looked at and changed, and a conversation of any
/// length that is written as it stands.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a, M> {
    pub(super) model: &'a str,
    pub(super) messages: Vec<M>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<&'a RawValue>,
    #[serde(flatten)]
    pub(super) fields: Map<String, Value>,
}

impl<'a, M> Body<'a, M> {
    pub(super) fn of(
        request: &'a ChatRequest,
        message: impl Fn(&'a ChatMessage) -> M,
        fields: Map<String, Value>,
    ) -> Self {
        Self {
            model: &request.model,
            messages: request.messages.iter().map(message).collect(),
            tools: described(&request.tools),
            fields,
        }
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
