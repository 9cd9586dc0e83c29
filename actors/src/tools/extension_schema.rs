//! What checks arguments against a schema, and schemas that Navi did not write: a user tool's, an
//! MCP server's.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value};

use super::output::shortened;

/// The largest schema of somebody else's, as JSON: it stands in every prompt.
pub(super) const MAX_BYTES: usize = 16 * 1024;

/// What a schema's patterns may come to when compiled.
const PATTERN_BYTES: usize = 1024 * 1024;

/// As much of a problem with a schema as is told.
const SHOWN_BYTES: usize = 300;

/// As the model is told it: an object with properties, without what only says how to read it.
pub(super) fn as_told(mut schema: Map<String, Value>) -> Map<String, Value> {
    schema.remove("$schema");
    schema.remove("$id");
    schema.insert("type".to_owned(), Value::from("object"));
    schema
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    schema
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
