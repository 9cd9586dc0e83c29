//! JSON Schemas of arguments. Ours are made from Rust types, and plain enough for small models and
//! for the grammars that hold a model to them: no references, no formats, no unions with null.
//! Others come with a user's tool or from an MCP server.

use jsonschema::{Draft, PatternOptions, Validator};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::output::shortened;
use crate::protocol::chat::ReplyForm;
use crate::protocol::tool::{Effect, ToolSpec};

/// The largest schema of somebody else's, as JSON: it stands in every prompt.
pub(super) const MAX_BYTES: usize = 16 * 1024;

/// What a schema's patterns may come to when compiled.
const PATTERN_BYTES: usize = 1024 * 1024;

/// As much of a problem with a schema as is told.
const SHOWN_BYTES: usize = 300;

/// The schema of a tool's arguments.
///
/// Whole numbers of the type must be `u64` or carry a range: with its format gone, a schema
/// says nothing of a type's width.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(RecursiveTransform(simplify))
        .into_generator()
        .into_root_schema_for::<T>();
    // The type's own comment is for who reads the code; the model reads the tool's description.
    schema.remove("description");
    schema.to_value()
}

/// What a model is told of a tool that takes these arguments.
pub(super) fn spec_of<T: JsonSchema>(
    name: &str,
    description: &str,
    effect: Effect,
    time_limit_ms: u64,
) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: schema_of::<T>(),
        effect,
        time_limit_ms,
    }
}

fn simplify(schema: &mut Schema) {
    schema.remove("title");
    schema.remove("format");
    // What a field that was left out means stands in its description.
    schema.remove("default");
    // A field that may be left out is left out: null in its place is taken all the same
    // (see `arguments::repair`), but nobody needs to learn that it could be written.
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

/// As the model is told it: an object with properties, without what only says how to read it.
pub(super) fn as_told(mut schema: Map<String, Value>) -> Map<String, Value> {
    schema.remove("$schema");
    schema.remove("$id");
    schema.insert("type".to_owned(), Value::from("object"));
    let properties = schema.entry("properties");
    properties.or_insert_with(|| Value::Object(Map::new()));
    schema
}

/// Whether a text has the form that is demanded of it. A schema that cannot be read here demands
/// JSON, and no more.
///
/// # Errors
/// Why not.
pub(crate) fn fits(form: &ReplyForm, text: &str) -> Result<(), String> {
    let schema = match form {
        ReplyForm::Call => return Ok(()),
        ReplyForm::Json => &json!({"type": "object"}),
        ReplyForm::Schema(wanted) => &wanted.schema,
    };
    let value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    let Ok(validator) = validator(schema) else {
        return Ok(());
    };
    let problem = validator.iter_errors(&value).next();
    problem.map_or(Ok(()), |error| {
        Err(shortened(&error.to_string(), SHOWN_BYTES))
    })
}

/// Makes a check of a schema. Nothing is fetched: a reference to elsewhere is an error. Patterns
/// are those that match in linear time, since nobody vouches for them. An error says what is wrong
/// with the schema.
pub(super) fn validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .offline()
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES))
        .build(schema)
        .map_err(|error| shortened(&error.to_string(), SHOWN_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::chat::AnswerSchema;

    #[test]
    fn a_text_has_the_form_that_is_demanded_or_it_is_said_why_not() {
        let of = |schema: Value| {
            ReplyForm::Schema(AnswerSchema {
                name: "city".to_owned(),
                schema,
                strict: None,
            })
        };
        let city = of(json!({"type": "object", "required": ["city"]}));
        // What cannot be read here demands JSON alone.
        let odd = of(json!({"$ref": "https://example.com/schema"}));
        for (form, text, is_it) in [
            (&ReplyForm::Json, "{}", true),
            (&ReplyForm::Json, " {\"a\": 1}\n", true),
            (&ReplyForm::Json, "[]", false),
            (&ReplyForm::Json, "```json\n{}\n```", false),
            (&ReplyForm::Json, "Here: {}", false),
            (&city, r#"{"city": "Kyiv"}"#, true),
            (&city, "{}", false),
            (&odd, "[1]", true),
            (&odd, "one", false),
        ] {
            assert_eq!(fits(form, text).is_ok(), is_it, "{form:?} {text}");
        }
    }
}
