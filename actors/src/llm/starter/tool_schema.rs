//! What the model is told of its tools, and the one JSON schema that its reply must meet.

use serde_json::{Map, Value, json};

use crate::protocol::tool::ToolSpec;

/// The pseudo-tool by which a model that must answer with a call says something.
pub(super) const REPLY: &str = "reply";

/// How llguidance writes the JSON: as models write it, on one line, so that what separates
/// values is forced and costs no model pass.
const ITEM_SEPARATOR: &str = ", ";
const KEY_SEPARATOR: &str = ": ";

/// The part of the system prompt that explains the tools. The same tools give the same bytes,
/// so that the prompt's prefix stays.
pub(super) fn explain(tools: &[ToolSpec]) -> String {
    let mut text = String::from(
        "# How you act\n\
        You act by answering with exactly one JSON object that calls one tool:\n\
        {\"name\": <tool>, \"arguments\": {…}}\n\
        The result comes back to you, and you go on, one call at a time. Call tools only when \
        the request needs them. When you have what the user wants, or need to ask, or only \
        chat, call `reply`; its text is what the user reads.\n\
        Tools:\n",
    );
    for tool in offered(tools) {
        let line = json!({
            "name": tool.name,
            "description": tool.description,
            "parameters": plain(&tool.parameters),
        });
        text.push_str(&line.to_string());
        text.push('\n');
    }
    let reply = json!({
        "name": REPLY,
        "description": "Say something to the user, in Markdown. This ends your turn.",
        "parameters": reply_parameters(),
    });
    text.push_str(&reply.to_string());
    text
}

/// The schema of one call of any of the tools. `loose` names those whose own schema cannot be
/// made into a grammar: their arguments may be any object.
pub(super) fn call_schema(tools: &[ToolSpec], loose: &[&str]) -> Value {
    let mut definitions = Map::new();
    let mut calls = vec![call_of(REPLY, &reply_parameters())];
    for tool in offered(tools) {
        let parameters = if loose.contains(&tool.name.as_str()) {
            json!({"type": "object"})
        } else {
            hoisted(tool, &mut definitions)
        };
        calls.push(call_of(&tool.name, &parameters));
    }
    json!({
        "anyOf": calls,
        "$defs": definitions,
        "x-guidance": {
            "item_separator": ITEM_SEPARATOR,
            "key_separator": KEY_SEPARATOR,
            "whitespace_flexible": false,
            "coerce_one_of": true,
            "lenient": true,
        },
    })
}

/// A call as the grammar lets the model write it.
pub(super) fn written_call(name: &str, arguments: &Value) -> String {
    format!(
        "{{\"name\"{KEY_SEPARATOR}{}{ITEM_SEPARATOR}\"arguments\"{KEY_SEPARATOR}{}}}",
        Value::from(name),
        spaced(arguments)
    )
}

/// An answer to the user as the grammar lets the model write it.
pub(super) fn written_reply(text: &str) -> String {
    written_call(REPLY, &json!({ "text": text }))
}

/// A tool that bears the pseudo-tool's name cannot be told from it and is left out.
fn offered(tools: &[ToolSpec]) -> impl Iterator<Item = &ToolSpec> {
    tools.iter().filter(|tool| tool.name != REPLY)
}

fn reply_parameters() -> Value {
    json!({
        "type": "object",
        "properties": {"text": {"type": "string", "minLength": 1}},
        "required": ["text"],
        "additionalProperties": false,
    })
}

fn call_of(name: &str, parameters: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": parameters},
        "required": ["name", "arguments"],
        "additionalProperties": false,
    })
}

/// The tool's schema with its definitions moved to the common root, where its references
/// still find them.
fn hoisted(tool: &ToolSpec, definitions: &mut Map<String, Value>) -> Value {
    let mut schema = plain(&tool.parameters);
    let prefix: String = tool
        .name
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '_'
            }
        })
        .chain("__".chars())
        .collect();
    let Some(object) = schema.as_object_mut() else {
        return json!({"type": "object"});
    };
    let own: Vec<(String, Value)> = ["$defs", "definitions"]
        .iter()
        .filter_map(|key| object.remove(*key))
        .filter_map(|own| match own {
            Value::Object(own) => Some(own),
            _ => None,
        })
        .flatten()
        .collect();
    // A small model invents arguments where the schema leaves room for them.
    let composed = ["$ref", "allOf", "anyOf", "oneOf"];
    if object.contains_key("properties") && !composed.iter().any(|key| object.contains_key(*key)) {
        object
            .entry("additionalProperties")
            .or_insert(Value::Bool(false));
    }
    point_to_root(&mut schema, &prefix);
    for (name, mut definition) in own {
        point_to_root(&mut definition, &prefix);
        definitions.insert(format!("{prefix}{name}"), definition);
    }
    schema
}

fn point_to_root(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                match value {
                    Value::String(target) if key == "$ref" => {
                        let name = target
                            .strip_prefix("#/$defs/")
                            .or_else(|| target.strip_prefix("#/definitions/"));
                        if let Some(name) = name {
                            *target = format!("#/$defs/{prefix}{name}");
                        }
                    }
                    other => point_to_root(other, prefix),
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| point_to_root(item, prefix)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The schema without what says nothing to a model and costs tokens.
fn plain(schema: &Value) -> Value {
    match schema {
        Value::Object(object) => {
            let is_annotation = |key: &str, value: &Value| match key {
                "$schema" | "format" => value.is_string(),
                "title" => value.is_string(),
                "default" => value.is_null(),
                _ => false,
            };
            object
                .iter()
                .filter(|(key, value)| !is_annotation(key, value))
                .map(|(key, value)| (key.clone(), plain(value)))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

/// JSON with the grammar's separators, so that an earlier call reads as it was written and the
/// cache of what the model read still fits.
fn spaced(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let members: Vec<String> = object
                .iter()
                .map(|(key, value)| {
                    format!(
                        "{}{KEY_SEPARATOR}{}",
                        Value::from(key.as_str()),
                        spaced(value)
                    )
                })
                .collect();
            format!("{{{}}}", members.join(ITEM_SEPARATOR))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(spaced).collect();
            format!("[{}]", items.join(ITEM_SEPARATOR))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tool::Effect;

    fn tool(parameters: Value) -> ToolSpec {
        ToolSpec {
            name: "to-do".to_owned(),
            description: "Keeps steps.".to_owned(),
            parameters,
            effect: Effect::Write,
            time_limit_ms: 1000,
        }
    }

    #[test]
    fn references_find_their_definitions_at_the_common_root() {
        let tool = tool(json!({
            "$schema": "x",
            "type": "object",
            "properties": {"title": {"type": "string", "title": "T"}, "step": {"$ref": "#/$defs/Step"}},
            "$defs": {"Step": {"anyOf": [{"$ref": "#/$defs/Step"}, {"type": "null"}]}},
        }));
        let schema = call_schema(&[tool], &[]);
        let arguments = &schema["anyOf"][1]["properties"]["arguments"];
        assert_eq!(
            *arguments,
            json!({
                "type": "object",
                "properties": {"title": {"type": "string"}, "step": {"$ref": "#/$defs/to_do__Step"}},
                "additionalProperties": false,
            })
        );
        assert_eq!(
            schema["$defs"],
            json!({"to_do__Step": {"anyOf": [{"$ref": "#/$defs/to_do__Step"}, {"type": "null"}]}})
        );
    }

    #[test]
    fn a_tool_may_not_pass_for_the_reply() {
        let mut impostor = tool(json!({"type": "object"}));
        impostor.name = REPLY.to_owned();
        let schema = call_schema(std::slice::from_ref(&impostor), &[]);
        assert_eq!(schema["anyOf"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            explain(&[impostor]).matches("\"name\":\"reply\"").count(),
            1
        );
    }

    #[test]
    fn earlier_calls_are_written_as_the_grammar_writes_them() {
        assert_eq!(
            written_call("todo", &json!({"a": [1, "x"], "b": {}})),
            r#"{"name": "todo", "arguments": {"a": [1, "x"], "b": {}}}"#
        );
        assert_eq!(
            written_reply("say \"hi\"\n"),
            r#"{"name": "reply", "arguments": {"text": "say \"hi\"\n"}}"#
        );
    }
}
