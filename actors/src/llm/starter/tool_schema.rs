//! What the model is told of its tools, and the JSON schemas that a call and an answer of a demanded
//! form must meet.
//!
//! The tools are listed as Hermes lists them, which many small models were taught. How to call one,
//! and when, is said in words of our own: Qwen2.5-Coder has the token `<tool_call>` in its
//! template and still writes fenced JSON when it is told to use it, at least sometimes. A mark
//! that is plain text it takes from an example.

use serde_json::{Map, Value, json};

use crate::protocol::chat::ReplyForm;
use crate::protocol::tool::ToolSpec;

/// What a call begins with. Everything before it is text for the user.
pub(super) const CALL_BEGINS: &str = "[TOOL_CALL]";
const CALL_ENDS: &str = "[/TOOL_CALL]";

/// What models of the Hermes kind begin a call with, whatever they are told.
pub(super) const TAUGHT_CALL_BEGINS: &str = "<tool_call>";

/// Said last, where a small model heeds it most. The example's function is no tool of anybody's.
const HOW_TO_CALL: &str = "\
    A call is written as [TOOL_CALL]{\"name\": <function-name>, \"arguments\": <args-json-object>}[/TOOL_CALL] \
    with nothing around it, for example:\n\
    [TOOL_CALL]{\"name\": \"look_up_word\", \"arguments\": {\"word\": \"owl\"}}[/TOOL_CALL]\n\n\
    Call a function only where the request needs one. Otherwise, and once the result is there, \
    answer the user in plain text.";

/// How llguidance writes the JSON: as models write it, on one line, so that what separates
/// values is forced and costs no model pass.
const ITEM_SEPARATOR: &str = ", ";
const KEY_SEPARATOR: &str = ": ";

/// The part of the system prompt that explains the tools. The same tools give the same bytes,
/// so that the prompt's prefix stays. What tools say of themselves goes through `quote`: no
/// special token of the template is theirs to say.
pub(super) fn explain(tools: &[ToolSpec], quote: impl Fn(&str) -> String) -> String {
    let mut text = String::from(
        "# Tools\n\n\
        You may call one or more functions to assist with the user query.\n\n\
        You are provided with function signatures within <tools></tools> XML tags:\n\
        <tools>",
    );
    for tool in tools {
        let signature = json!({
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": plain(&tool.parameters),
            },
        });
        text.push('\n');
        text.push_str(&quote(&spaced(&signature)));
    }
    text.push_str("\n</tools>\n\n");
    text.push_str(HOW_TO_CALL);
    text
}

/// An earlier call as the model wrote it.
pub(super) fn marked_call(call: &str) -> String {
    format!("{CALL_BEGINS}{call}{CALL_ENDS}")
}

/// A call's result as the model was taught to read it.
pub(super) fn marked_result(result: &str) -> String {
    format!("<tool_response>\n{result}\n</tool_response>")
}

/// The schema of one call of any of the tools. `loose` names those whose own schema cannot be
/// made into a grammar: their arguments may be any object.
pub(super) fn call_schema(tools: &[ToolSpec], loose: &[&str]) -> Value {
    let mut definitions = Map::new();
    let mut calls = Vec::with_capacity(tools.len());
    for tool in tools {
        let parameters = if loose.contains(&tool.name.as_str()) {
            any_object().into()
        } else {
            hoisted(tool, &mut definitions)
        };
        calls.push(call_of(&tool.name, &parameters));
    }
    let mut schema = Map::new();
    schema.insert("anyOf".to_owned(), calls.into());
    schema.insert("$defs".to_owned(), definitions.into());
    guided(schema)
}

/// The schema of an answer that has this form; none where the form is no JSON text.
pub(super) fn answer_schema(form: &ReplyForm) -> Option<Value> {
    let schema = match form {
        ReplyForm::Call => return None,
        ReplyForm::Json => any_object(),
        ReplyForm::Schema(wanted) => wanted.schema.as_object().cloned().unwrap_or_default(),
    };
    Some(guided(schema))
}

/// What an answer is held to whose own schema no grammar can say.
pub(super) fn any_answer() -> Value {
    guided(Map::new())
}

fn any_object() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), "object".into())])
}

fn guided(mut schema: Map<String, Value>) -> Value {
    let guidance = json!({
        "item_separator": ITEM_SEPARATOR,
        "key_separator": KEY_SEPARATOR,
        "whitespace_flexible": false,
        "coerce_one_of": true,
        "lenient": true,
    });
    schema.insert("x-guidance".to_owned(), guidance);
    schema.into()
}

/// A call as the grammar lets the model write it.
pub(super) fn written_call(name: &str, arguments: &Value) -> String {
    format!(
        "{{\"name\"{KEY_SEPARATOR}{}{ITEM_SEPARATOR}\"arguments\"{KEY_SEPARATOR}{}}}",
        Value::from(name),
        spaced(arguments)
    )
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
        return any_object().into();
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
        let arguments = &schema["anyOf"][0]["properties"]["arguments"];
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
    fn tools_are_listed_as_models_were_taught_and_the_mark_is_shown_in_an_example() {
        let tool = tool(json!({"type": "object", "title": "T", "properties": {}}));
        let text = explain(&[tool], |words| words.replace("Keeps", "Kept"));
        let (listed, told) = text.split_once("\n\nA call").unwrap();
        assert_eq!(
            listed,
            "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n\
            You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n\
            {\"type\": \"function\", \"function\": {\"name\": \"to-do\", \"description\": \"Kept steps.\", \
            \"parameters\": {\"type\": \"object\", \"properties\": {}}}}\n</tools>"
        );
        let example = written_call("look_up_word", &json!({"word": "owl"}));
        assert!(told.contains(&marked_call(&example)), "{told}");
    }

    #[test]
    fn earlier_calls_are_written_as_the_grammar_writes_them() {
        assert_eq!(
            written_call("todo", &json!({"a": [1, "x"], "b": {}})),
            r#"{"name": "todo", "arguments": {"a": [1, "x"], "b": {}}}"#
        );
    }
}
