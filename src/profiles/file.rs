//! One profile's file: what may stand in it.

use navi_actors::protocol::profile::Profile;
use navi_actors::protocol::status::BackendKind;
use serde_json::{Map, Value};

/// A profile from its file's text, or the field and the reason why not.
pub(super) fn parse(text: &str) -> Result<Profile, String> {
    let fields: Map<String, Value> =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    check_fields(&fields)?;
    let profile: Profile =
        serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())?;
    check_ranges(&profile)?;
    Ok(profile)
}

/// Compares the fields with the profile's own schema: `flatten` lets serde neither refuse an
/// unknown field nor name a mistyped one.
fn check_fields(fields: &Map<String, Value>) -> Result<(), String> {
    let schema = schemars::schema_for!(Profile);
    let Some(known) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (name, value) in fields {
        let Some(field) = known.get(name) else {
            let near = known
                .keys()
                .map(|known| (strsim::jaro_winkler(name, known), known))
                .filter(|(similarity, _)| *similarity > 0.8)
                .max_by(|(a, _), (b, _)| a.total_cmp(b))
                .map(|(_, known)| format!("; did you mean `{known}`?"));
            return Err(format!(
                "field `{name}` is unknown{}",
                near.unwrap_or_default()
            ));
        };
        if !has_type(value, field) {
            return Err(format!(
                "field `{name}`: expected {}, found {value}",
                type_names(field)
            ));
        }
    }
    Ok(())
}

fn types(field: &Value) -> Vec<&str> {
    match field.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn type_names(field: &Value) -> String {
    let names: Vec<&str> = types(field)
        .into_iter()
        .filter_map(|name| match name {
            "string" => Some("a text"),
            "boolean" => Some("true or false"),
            "integer" => Some("a whole number that is not negative"),
            "number" => Some("a number"),
            "array" => Some("a list of texts"),
            _ => None,
        })
        .collect();
    names.join(" or ")
}

fn has_type(value: &Value, field: &Value) -> bool {
    types(field).into_iter().any(|name| match name {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_u64().is_some_and(|n| u32::try_from(n).is_ok()),
        "number" => value.is_number(),
        "array" => value
            .as_array()
            .is_some_and(|items| items.iter().all(Value::is_string)),
        _ => false,
    })
}

/// Whether a profile may be called so; a file may, too.
pub(super) fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

fn check_ranges(profile: &Profile) -> Result<(), String> {
    let wrong = |field: &str, reason: &str| Err(format!("field `{field}`: {reason}"));
    if !is_id(&profile.id) {
        return wrong("id", "1 to 64 of a-z, 0-9, _ and - are expected");
    }
    if profile.name.trim().is_empty() || profile.name.chars().count() > 100 {
        return wrong("name", "1 to 100 characters are expected");
    }
    if profile.system_prompt.trim().is_empty() {
        return wrong("system_prompt", "it is empty");
    }
    if !(0.0..=2.0).contains(&profile.temperature) {
        return wrong("temperature", "a number from 0 to 2 is expected");
    }
    if !(1..=1000).contains(&profile.max_iterations) {
        return wrong("max_iterations", "a number from 1 to 1000 is expected");
    }
    let backend = profile.llm_backend.as_deref();
    if backend.is_some_and(|name| BackendKind::named(name).is_none()) {
        return wrong("llm_backend", "ollama, openai or starter is expected");
    }
    if profile
        .model
        .as_ref()
        .is_some_and(|model| model.trim().is_empty())
    {
        return wrong("model", "it is empty; leave it out for the default model");
    }
    if profile.flags.goal_anchoring_interval == 0 {
        return wrong("goal_anchoring_interval", "at least 1 is expected");
    }
    if profile.flags.anti_stall_threshold == 0 {
        return wrong("anti_stall_threshold", "at least 1 is expected");
    }
    let sections = &profile.scratchpad_sections;
    if sections.len() > 32
        || sections
            .iter()
            .any(|name| name.trim().is_empty() || name.chars().count() > 64)
    {
        return wrong(
            "scratchpad_sections",
            "up to 32 names of 1 to 64 characters are expected",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minimal(extra: &str) -> String {
        format!(
            "id = \"own\"\nname = \"Own\"\ndescription = \"\"\nsystem_prompt = \"Help.\"\n\
             enabled_tools = []\ntemperature = 0.5\n{extra}\n"
        )
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_field_and_the_reason() {
        for (extra, expected) in [
            (
                "temperatur = 1",
                "field `temperatur` is unknown; did you mean `temperature`?",
            ),
            (
                "max_iterations = \"x\"",
                "field `max_iterations`: expected a whole number",
            ),
            (
                "max_iterations = 0",
                "field `max_iterations`: a number from 1",
            ),
            (
                "max_iterations = -1",
                "field `max_iterations`: expected a whole number",
            ),
            (
                "planning_enabled = \"yes\"",
                "field `planning_enabled`: expected true or false",
            ),
            (
                "scratchpad_sections = [1]",
                "field `scratchpad_sections`: expected a list of texts",
            ),
            ("llm_backend = \"x\"", "field `llm_backend`: ollama"),
            ("anti_stall_threshold = 0", "field `anti_stall_threshold`"),
            ("model = 3", "field `model`: expected a text"),
        ] {
            let reason = parse(&minimal(extra)).unwrap_err();
            assert!(reason.contains(expected), "{extra}: {reason}");
        }
        let reason = parse("id = \"x\"").unwrap_err();
        assert!(reason.contains("missing field"), "{reason}");
        let reason = parse(&minimal("").replace("0.5", "3")).unwrap_err();
        assert!(reason.contains("field `temperature`"), "{reason}");
        let reason = parse(&minimal("").replace("\"own\"", "\"../x\"")).unwrap_err();
        assert!(reason.contains("field `id`"), "{reason}");
    }

    #[test]
    fn a_sections_name_is_measured_in_characters() {
        let named = |chars| {
            parse(&minimal(&format!(
                "scratchpad_sections = [{:?}]",
                "ж".repeat(chars)
            )))
        };
        assert!(named(64).is_ok());
        let reason = named(65).unwrap_err();
        assert!(reason.contains("1 to 64 characters"), "{reason}");
    }
}
