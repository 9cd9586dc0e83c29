//! What a program may demand of an answer in OpenAI's two protocols and in Ollama's: calls of its own
//! tools, the form of the text, and where it ends (`doors/asked`).

use serde_json::{Value, json};

use crate::doors::asked::MAX_STOP_CHARS;

/// `tool_choice` of Chat Completions. A tool's name is of this form.
pub(super) fn nested_choice(name: &Value) -> Value {
    let function = object(
        json!({"function": object(json!({"name": text(name)}), &["name"])}),
        &["function"],
    );
    let allowed = object(
        json!({"allowed_tools": allowed(&function)}),
        &["allowed_tools"],
    );
    choice(function, allowed)
}

/// The same of Responses.
pub(super) fn flat_choice(name: &Value) -> Value {
    let function = object(json!({"name": text(name)}), &["name"]);
    let allowed = allowed(&function);
    choice(function, allowed)
}

fn choice(function: Value, allowed: Value) -> Value {
    json!({"anyOf": [
        {"enum": ["none", "auto", "required", null]},
        of_type("function", function),
        of_type("allowed_tools", allowed),
    ]})
}

/// Some of the tools, of which a call may be demanded.
fn allowed(function: &Value) -> Value {
    let tools = json!({"type": "array", "minItems": 1, "items": function});
    let mode = json!({"enum": ["auto", "required"]});
    object(json!({"mode": mode, "tools": tools}), &["mode", "tools"])
}

/// Where a call of any tool is demanded there is one, as this says.
pub(super) fn with_tools(there: &Value) -> Value {
    let tools = json!({"type": "array", "allOf": [there]});
    json!({"anyOf": [
        {"properties": {"tool_choice": {"not": {"const": "required"}}}},
        {"properties": {"tools": tools}, "required": ["tools"]},
    ]})
}

/// `response_format` of Chat Completions.
pub(super) fn nested_format(name: &Value) -> Value {
    let wanted = object(json!({"json_schema": schema(name)}), &["json_schema"]);
    format(wanted)
}

/// `text.format` of Responses.
pub(super) fn flat_format(name: &Value) -> Value {
    format(schema(name))
}

fn format(wanted: Value) -> Value {
    let plain = json!({"type": {"enum": ["text", "json_object"]}});
    json!({"anyOf": [
        {"type": "null"},
        object(plain, &["type"]),
        of_type("json_schema", wanted),
    ]})
}

fn schema(name: &Value) -> Value {
    let mut named = name.clone();
    named["type"] = json!(["string", "null"]);
    let fields = json!({
        "name": named,
        "schema": {"type": "object"},
        "strict": {"type": ["boolean", "null"]},
    });
    object(fields, &["schema"])
}

/// `format` of Ollama.
pub(super) fn ollama_format() -> Value {
    json!({"anyOf": [{"enum": ["", "json", null]}, {"type": "object"}]})
}

/// `stop` of Chat Completions, and of Ollama's `options`.
pub(super) fn stops(most: usize) -> Value {
    let word = json!({"type": "string", "minLength": 1, "maxLength": MAX_STOP_CHARS});
    let words = json!({"type": "array", "maxItems": most, "items": word});
    json!({"anyOf": [{"type": "null"}, word, words]})
}

fn of_type(kind: &str, mut fields: Value) -> Value {
    fields["properties"]["type"] = json!({"const": kind});
    if let Some(required) = fields["required"].as_array_mut() {
        required.push(json!("type"));
    }
    fields
}

fn object(properties: Value, required: &[&str]) -> Value {
    let mut object = json!({"type": "object", "required": required});
    object["properties"] = properties;
    object
}

fn text(limit: &Value) -> Value {
    let mut limit = limit.clone();
    limit["type"] = json!("string");
    limit
}

/// A system message has text alone: no parts of these types.
pub(super) fn system_is_text(parts: &[&str]) -> Value {
    let part = json!({"properties": {"type": {"enum": parts}}, "required": ["type"]});
    json!({
        "properties": {
            "role": {"enum": ["system", "developer"]},
            "content": {"type": "array", "contains": part},
        },
        "required": ["role", "content"],
    })
}
