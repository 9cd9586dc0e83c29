//! A model's arguments against a tool's schema: what can be put right without changing its
//! meaning is, and the rest becomes an error that a small model can act on.
//!
//! The check covers what [`super::schema::schema_of`] writes: types, enums, required and unknown
//! fields, ranges, lengths. Keywords beyond those are not looked at.

use std::cmp::Ordering;

use itertools::Itertools as _;
use jsonschema::Validator;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use super::actions::{ActionFields, name_action};
use super::output::{shown, visible};
use super::{ToolError, extension_schema};

/// Floats up to this are exact integers.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// The arguments as an object that fits the schema, or what is wrong with them. For a schema that
/// says more than is looked at here, `whole` has the last word: what it finds wrong is told in our
/// own words where we see it too.
pub(super) fn fit(
    schema: &Value,
    actions: &[ActionFields],
    whole: Option<&Validator>,
    arguments: &Value,
) -> Result<Value, String> {
    let mut object = object(schema, arguments)?;
    name_action(actions, &mut object);
    let seen = check(schema, &object, "");
    match whole.map(|whole| extension_schema::check(whole, &object)) {
        None => seen?,
        Some(Ok(())) => {}
        Some(Err(problem)) => return Err(seen.err().unwrap_or(problem)),
    }
    Ok(object)
}

/// The arguments as an object, with what has only one reading put right.
fn object(schema: &Value, arguments: &Value) -> Result<Value, String> {
    let mut object = match arguments {
        // Calls without arguments come in all these forms.
        Value::Null => Value::Object(Map::new()),
        Value::String(raw) if raw.trim().is_empty() => Value::Object(Map::new()),
        Value::String(raw) => parse(raw)?,
        other => other.clone(),
    };
    refuse_if!(
        !object.is_object(),
        "the arguments must be one JSON object, but {} came",
        described(&object)
    );
    repair(schema, &mut object);
    Ok(object)
}

/// Arguments that fit, as the type that the schema was made from.
pub(super) fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments)
        .map_err(|error| ToolError(format!("the arguments do not fit: {error}")))
}

/// The value nearest in spelling, where one is near enough to be what was meant.
pub(super) fn nearest<'a>(
    wanted: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// Arguments that came as text: an object written as a string, or JSON that the backend could
/// not read, which is most often cut off by the output limit.
fn parse(raw: &str) -> Result<Value, String> {
    let parsed = serde_json::from_str(raw).or_else(|error| {
        // The first error tells more of what the model wrote.
        serde_json::from_str(&with_line_ends_escaped(raw)).map_err(|_| error)
    });
    let error = match parsed {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if error.is_eof() {
        let tail = &raw[raw.ceil_char_boundary(raw.len().saturating_sub(40))..];
        refuse!(
            "the arguments break off in the middle, after `{}`; send the whole JSON object, with shorter values if they were too long",
            visible(tail.trim_start())
        );
    }
    let at = byte_offset(raw, error.line(), error.column());
    let start = raw.floor_char_boundary(at.saturating_sub(30));
    let end = raw.ceil_char_boundary((at + 10).min(raw.len()));
    let mut reason = error.to_string();
    if let Some(position) = reason.rfind(" at line ") {
        reason.truncate(position);
    }
    Err(format!(
        "the arguments are no valid JSON: {reason} at character {}, near `{}`; send one JSON object, with \\n and \\\" escaped inside of strings",
        raw[..at].chars().count(),
        visible(&raw[start..end])
    ))
}

/// Small models write a text's line ends and tabs as they are instead of escaping them. Inside
/// of a JSON string those characters can mean nothing else.
fn with_line_ends_escaped(raw: &str) -> String {
    let mut escaped = String::with_capacity(raw.len());
    let mut in_string = false;
    let mut after_backslash = false;
    for c in raw.chars() {
        match c {
            '\n' | '\r' | '\t' if in_string && !after_backslash => {
                escaped.extend(c.escape_default());
            }
            _ => escaped.push(c),
        }
        in_string ^= c == '"' && !after_backslash;
        after_backslash = in_string && c == '\\' && !after_backslash;
    }
    escaped
}

/// Where serde_json's line and column (in bytes, both from 1) stand in the text.
fn byte_offset(raw: &str, line: usize, column: usize) -> usize {
    let line_start: usize = raw
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    raw.floor_char_boundary((line_start + column).min(raw.len()))
}

/// Puts right what models get wrong and what has only one reading: numbers and booleans as
/// strings, a single value for a list of one, null for a field that may be left out.
fn repair(schema: &Value, value: &mut Value) {
    match (type_of(schema), &mut *value) {
        ("object", Value::Object(fields)) => {
            let required = schema["required"].as_array();
            let is_required =
                |name: &String| required.is_some_and(|all| all.iter().any(|it| it == name));
            fields.retain(|name, value| !value.is_null() || is_required(name));
            for (name, value) in fields.iter_mut() {
                repair(&schema["properties"][name.as_str()], value);
            }
        }
        ("array", Value::Array(items)) => {
            for item in items {
                repair(&schema["items"], item);
            }
        }
        ("array", Value::String(text)) if text.trim_start().starts_with('[') => {
            if let Ok(items @ Value::Array(_)) = serde_json::from_str(text) {
                *value = items;
                repair(schema, value);
            }
        }
        ("array", Value::String(_) | Value::Number(_)) => {
            *value = Value::Array(vec![value.take()]);
            repair(schema, value);
        }
        ("integer", Value::String(text)) => {
            let text = text.trim();
            let number = text.parse::<u64>().map(Number::from);
            if let Ok(number) = number.or_else(|_| text.parse::<i64>().map(Number::from)) {
                *value = Value::Number(number);
            }
        }
        ("integer", Value::Number(number)) => {
            let whole = number
                .as_f64()
                .filter(|f| number.is_f64() && f.fract() == 0.0 && f.abs() < MAX_EXACT_FLOAT);
            if let Some(whole) = whole {
                *value = Value::from(whole as i64);
            }
        }
        ("boolean", Value::String(text)) => {
            if let Ok(flag) = text.trim().to_ascii_lowercase().parse::<bool>() {
                *value = Value::Bool(flag);
            }
        }
        ("string", Value::Number(number)) if !number.is_f64() => {
            *value = Value::String(number.to_string());
        }
        ("string", Value::String(text)) => {
            let choices = schema["enum"].as_array().into_iter().flatten();
            let choice = choices
                .filter_map(Value::as_str)
                .find(|choice| choice.eq_ignore_ascii_case(text.trim()));
            if let Some(choice) = choice {
                *value = Value::String(choice.to_owned());
            }
        }
        _ => {}
    }
}

fn check(schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let expected = type_of(schema);
    let fits = match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => true,
    };
    refuse_if!(
        !fits,
        "`{path}` must be {}, but {} came",
        with_article(expected),
        described(value)
    );
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        refuse!(
            "`{path}` must be one of {}, but {} came",
            listed(choices.iter().filter_map(Value::as_str)),
            described(value)
        );
    }
    check_bounds(schema, value, path)?;
    match value {
        Value::Object(fields) => check_fields(schema, fields, path),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            check(&schema["items"], item, &format!("{path}[{index}]"))
        }),
        _ => Ok(()),
    }
}

/// How many items or characters there are, or how large a number is.
fn check_bounds(schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let (size, [least, most], unit) = match value {
        Value::Array(items) => (items.len() as f64, ["minItems", "maxItems"], "items"),
        Value::String(text) => {
            let chars = text.chars().count();
            (chars as f64, ["minLength", "maxLength"], "characters")
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            (number, ["minimum", "maximum"], "")
        }
        _ => return Ok(()),
    };
    for (bound, beyond, may, at) in [
        (&schema[least], Ordering::Less, "must", "at least"),
        (&schema[most], Ordering::Greater, "may", "at most"),
    ] {
        let limit = bound.as_f64();
        if limit.and_then(|limit| size.partial_cmp(&limit)) == Some(beyond) {
            refuse_if!(
                value.is_number(),
                "`{path}` must be {at} {bound}, but {value} came"
            );
            refuse!("`{path}` {may} have {at} {bound} {unit}, but has {size}");
        }
    }
    Ok(())
}

fn check_fields(schema: &Value, fields: &Map<String, Value>, path: &str) -> Result<(), String> {
    let known = schema["properties"].as_object();
    let inner = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    // Unknown fields first: a field that is missing was often written under another name.
    for (name, value) in fields {
        match known.and_then(|known| known.get(name)) {
            Some(schema) => check(schema, value, &inner(name))?,
            None if schema["additionalProperties"] == Value::Bool(false) => {
                return Err(unknown_field(&inner(name), name, known));
            }
            None => {}
        }
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let missing = required
        .filter_map(Value::as_str)
        .filter(|name| !fields.contains_key(*name))
        .map(
            |name| match schema["properties"][name]["description"].as_str() {
                Some(meaning) => format!("`{}` ({})", inner(name), meaning.trim_end_matches('.')),
                None => format!("`{}`", inner(name)),
            },
        )
        .join(", ");
    refuse_if!(!missing.is_empty(), "missing: {missing}");
    Ok(())
}

fn unknown_field(path: &str, name: &str, known: Option<&Map<String, Value>>) -> String {
    let known = known.into_iter().flat_map(Map::keys);
    let known = known.map(String::as_str);
    let path = shown(path);
    match nearest(name, known.clone()) {
        Some(near) => format!("there is no field `{path}`; did you mean `{near}`?"),
        None => format!(
            "there is no field `{path}`; the fields are {}",
            listed(known)
        ),
    }
}

fn type_of(schema: &Value) -> &str {
    schema["type"].as_str().unwrap_or_default()
}

fn with_article(type_name: &str) -> String {
    match type_name {
        "object" | "array" | "integer" => format!("an {type_name}"),
        "boolean" => "true or false".to_owned(),
        _ => format!("a {type_name}"),
    }
}

/// A value that came, with its type, and short enough for an error.
fn described(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(flag) => return flag.to_string(),
        Value::Number(_) => "the number",
        Value::String(_) => "the string",
        Value::Array(_) => "the array",
        Value::Object(_) => "the object",
    };
    format!("{kind} {}", shown(&value.to_string()))
}

fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter().map(|name| format!("`{name}`"));
    names.join(", ")
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
