//! Pieces of a request that both HTTP protocols write alike.

use serde_json::{Value, json};

use crate::protocol::tool::ToolSpec;

/// A tool as both protocols describe it.
pub(super) fn tool(spec: &ToolSpec) -> Value {
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
