//! A model's arguments against a tool's schema: what can be put right without changing its
//! meaning is, and the rest becomes an error that a small model can act on.
//!
//! What is wrong with what [`super::schema::schema_of`] writes is told in our own words: types, enums,
//! required and unknown fields, ranges, lengths. The rest has those of `jsonschema`.

use itertools::Itertools as _;
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationError, Validator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use super::ToolResult;
use super::actions::{ActionFields, name_action};
use super::output::{shortened, shown, visible};

/// Floats up to this are exact integers.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// As many problems as are looked at.
const MAX_PROBLEMS: usize = 100;
/// As much of a problem that has no words of ours as the model is told.
const SHOWN_BYTES: usize = 300;

/// The arguments as an object that fits the schema, or what is wrong with them. Without a validator
/// of that schema it is not looked at.
pub(super) fn fit(
    schema: &Value,
    actions: &[ActionFields],
    validator: Option<&Validator>,
    arguments: &Value,
) -> Result<Value, String> {
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
    name_action(actions, &mut object);
    if let Some(validator) = validator {
        check(schema, validator, &object)?;
    }
    Ok(object)
}

/// Arguments that fit, as the type that the schema was made from.
pub(super) fn read<T: DeserializeOwned>(arguments: Value) -> ToolResult<T> {
    serde_json::from_value(arguments).map_err(|error| refusal!("the arguments do not fit: {error}"))
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
    // serde_json's line and column are from 1, the column in bytes.
    let lines = raw.split_inclusive('\n').map(str::len);
    let line_start: usize = lines.take(error.line().saturating_sub(1)).sum();
    let at = raw.floor_char_boundary((line_start + error.column()).min(raw.len()));
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

/// Puts right what models get wrong and what has only one reading: numbers, booleans, lists and
/// objects as strings, a single value for a list of one, null for a field that may be left out and
/// cannot be it.
fn repair(schema: &Value, value: &mut Value) {
    match (type_of(schema), &mut *value) {
        ("object", Value::Object(fields)) => {
            let required = schema["required"].as_array();
            let is_required =
                |name: &String| required.is_some_and(|all| all.iter().any(|it| it == name));
            fields.retain(|name, value| {
                !value.is_null() || is_required(name) || may_be_null(schema, name)
            });
            for (name, value) in fields.iter_mut() {
                repair(&schema["properties"][name.as_str()], value);
            }
        }
        ("object", Value::String(text)) if text.trim_start().starts_with('{') => {
            if let Ok(object @ Value::Object(_)) = serde_json::from_str(text) {
                *value = object;
                repair(schema, value);
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
                .filter(|f| number.is_f64() && f.fract() == 0.0);
            *value = match whole {
                Some(whole) if whole.abs() < MAX_EXACT_FLOAT => Value::from(whole as i64),
                // A schema takes it for an integer, and no integer holds it: it stays what it is
                // written as, and is refused.
                Some(_) => Value::String(number.to_string()),
                None => Value::Number(number.clone()),
            };
        }
        ("number", Value::String(text)) => {
            if let Ok(number @ Value::Number(_)) = serde_json::from_str(text.trim()) {
                *value = number;
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
            let meant = text.trim();
            let mut alike = choices(schema).filter(|choice| choice.eq_ignore_ascii_case(meant));
            // Of two that differ in capitals alone no other is meant than the one that is written.
            let only = alike.next().filter(|_| alike.next().is_none());
            let exact = choices(schema).find(|choice| *choice == meant);
            if let Some(choice) = exact.or(only) {
                *value = Value::String(choice.to_owned());
            }
        }
        _ => {}
    }
}

/// Whether null is a value of its own in this field of an object: it clears something.
fn may_be_null(schema: &Value, name: &str) -> bool {
    let Some(field) = schema["properties"].get(name) else {
        // In an object of any fields they are what is asked for.
        let knows_none = schema["properties"].as_object().is_none_or(Map::is_empty);
        let others = &schema["additionalProperties"];
        return *others != false && (knows_none || !others.is_null());
    };
    admits_null(field)
}

fn admits_null(schema: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let kind = &schema["type"];
    let kinds = kind.as_array().into_iter().flatten();
    let branches = ["anyOf", "oneOf"].map(|key| schema[key].as_array());
    is_null(kind)
        || kinds.into_iter().any(is_null)
        || schema["nullable"] == true
        || branches.into_iter().flatten().flatten().any(admits_null)
}

/// What is wrong with arguments, where something is: of the problems the one that helps most.
fn check(schema: &Value, validator: &Validator, arguments: &Value) -> Result<(), String> {
    let errors = validator.iter_errors(arguments).take(MAX_PROBLEMS);
    let errors: Vec<ValidationError<'_>> = errors.collect();
    // Unknown fields first: a field that is missing was often written under another name.
    let rank = |error: &&ValidationError<'_>| match error.kind() {
        Kind::AdditionalProperties { .. } => 0,
        Kind::Type { .. } => 1,
        Kind::Required { .. } => 3,
        _ => 2,
    };
    let Some(error) = errors.iter().min_by_key(rank) else {
        return Ok(());
    };
    let (value, at) = (error.instance(), error.instance_path());
    let path = shown(&path(at));
    let inner = |name: &str| match path.as_str() {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    // The schema whose word it is.
    let keyword = error.schema_path().as_str().rsplit_once('/');
    let of = keyword.and_then(|(of, _)| schema.pointer(of));
    let of = of.unwrap_or(&Value::Null);
    let has = || match value.as_str() {
        Some(text) => format!("characters, but has {}", text.chars().count()),
        None => format!("items, but has {}", value.as_array().map_or(0, Vec::len)),
    };
    Err(match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let name = unexpected.first().map_or("", String::as_str);
            unknown_field(&inner(name), name, of["properties"].as_object())
        }
        Kind::Type { .. } if of["type"].is_string() => format!(
            "`{path}` must be {}, but {} came",
            with_article(type_of(of)),
            described(value)
        ),
        Kind::Enum { .. } if of["enum"][0].is_string() => format!(
            "`{path}` must be one of {}, but {} came",
            listed(choices(of)),
            described(value)
        ),
        Kind::Minimum { limit } => format!("`{path}` must be at least {limit}, but {value} came"),
        Kind::Maximum { limit } => format!("`{path}` must be at most {limit}, but {value} came"),
        Kind::MinItems { limit } | Kind::MinLength { limit } => {
            format!("`{path}` must have at least {limit} {}", has())
        }
        Kind::MaxItems { limit } | Kind::MaxLength { limit } => {
            format!("`{path}` may have at most {limit} {}", has())
        }
        Kind::Required { .. } => {
            let missing = errors.iter().filter(|error| error.instance_path() == at);
            let missing = missing.filter_map(|error| match error.kind() {
                Kind::Required { property } => property.as_str(),
                _ => None,
            });
            let mut missing = missing.map(|name| {
                let meaning = of["properties"][name]["description"].as_str();
                let meaning = meaning.map(|it| format!(" ({})", it.trim_end_matches('.')));
                format!("`{}`{}", inner(name), meaning.unwrap_or_default())
            });
            format!("missing: {}", missing.join(", "))
        }
        _ if path.is_empty() => shortened(&error.to_string(), SHOWN_BYTES),
        _ => format!("`{path}`: {}", shortened(&error.to_string(), SHOWN_BYTES)),
    })
}

/// Where a value stands, as in `inner.words[1]`.
fn path(at: &Location) -> String {
    let mut path = String::new();
    for segment in at.segments() {
        match segment {
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
            LocationSegment::Property(name) if path.is_empty() => path.push_str(&name),
            LocationSegment::Property(name) => path.push_str(&format!(".{name}")),
        }
    }
    path
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

fn choices(schema: &Value) -> impl Iterator<Item = &str> {
    let choices = schema["enum"].as_array().into_iter().flatten();
    choices.filter_map(Value::as_str)
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
