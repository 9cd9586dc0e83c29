//! Calls written as JSON objects.

use serde_json::{Map, Value};

use super::cursor::{Cursor, Read, Stop};
use crate::protocol::chat::RequestedCall;

/// Where the tool's name stands.
const NAME_KEYS: [&str; 4] = ["name", "tool", "tool_name", "function"];
/// Where its arguments stand.
const ARGUMENT_KEYS: [&str; 4] = ["arguments", "parameters", "args", "input"];
/// Around the call itself.
const WRAPPERS: [&str; 3] = ["function", "function_call", "tool_call"];
const LIST: &str = "tool_calls";
/// Beside the call, and without meaning for us.
const EXTRAS: [&str; 2] = ["id", "index"];
const TYPE: &str = "type";
const TYPES: [&str; 4] = ["function", "function_call", "tool_call", "tool_use"];

/// Takes one object or list, and the calls that it is.
pub(super) fn take_calls(cursor: &mut Cursor<'_>) -> Read<Vec<RequestedCall>> {
    let mut first = *cursor;
    if first.next_is("[")? {
        first.skip(1);
        first.skip_space();
    }
    check_first_key(first)?;
    calls_of(take_value(cursor)?).ok_or(Stop::Mismatch)
}

/// Takes an object that is the arguments of a call.
pub(super) fn take_arguments(cursor: &mut Cursor<'_>) -> Read<Value> {
    if !cursor.next_is("{")? {
        return Err(Stop::Mismatch);
    }
    take_value(cursor)
}

/// An object whose first key no call has is none: known long before the object ends.
fn check_first_key(mut object: Cursor<'_>) -> Read<()> {
    object.take("{")?;
    object.skip_space();
    object.take("\"")?;
    let keys = NAME_KEYS
        .into_iter()
        .chain(ARGUMENT_KEYS)
        .chain(WRAPPERS)
        .chain(EXTRAS)
        .chain([LIST, TYPE]);
    for key in keys {
        if object.rest().starts_with(&format!("{key}\"")) {
            return Ok(());
        }
        if key.starts_with(object.rest()) {
            return Err(Stop::Ended);
        }
    }
    Err(Stop::Mismatch)
}

fn take_value(cursor: &mut Cursor<'_>) -> Read<Value> {
    let mut values = serde_json::Deserializer::from_str(cursor.rest()).into_iter();
    match values.next() {
        None => Err(Stop::Ended),
        Some(Ok(value)) => {
            cursor.skip(values.byte_offset());
            Ok(value)
        }
        Some(Err(error)) if error.is_eof() || ends_in_a_number(cursor.rest()) => Err(Stop::Ended),
        Some(Err(_)) => Err(Stop::Mismatch),
    }
}

/// Whether the text only fails because it breaks off inside of a number, like `-` or `1e`:
/// serde_json calls that a wrong number, not an early end.
fn ends_in_a_number(text: &str) -> bool {
    let before = text
        .trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E'));
    before.len() < text.len()
        && serde_json::from_str::<Value>(&format!("{before}0")).is_err_and(|error| error.is_eof())
}

fn calls_of(value: Value) -> Option<Vec<RequestedCall>> {
    match value {
        Value::Array(items) if !items.is_empty() => items.into_iter().map(call_of).collect(),
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key(LIST) => match fields
            .remove(LIST)?
        {
            Value::Array(items) if !items.is_empty() => items.into_iter().map(call_of).collect(),
            _ => None,
        },
        object => Some(vec![call_of(object)?]),
    }
}

fn call_of(value: Value) -> Option<RequestedCall> {
    let Value::Object(mut fields) = value else {
        return None;
    };
    for extra in EXTRAS {
        fields.remove(extra);
    }
    if let Some(kind) = fields.remove(TYPE) {
        kind.as_str().filter(|kind| TYPES.contains(kind))?;
    }
    if fields.len() == 1 {
        let inner = WRAPPERS.iter().find_map(|key| fields.remove(*key))?;
        return call_of(inner);
    }
    let Value::String(name) = NAME_KEYS.iter().find_map(|key| fields.remove(*key))? else {
        return None;
    };
    let arguments = arguments_of(ARGUMENT_KEYS.iter().find_map(|key| fields.remove(*key))?)?;
    // Anything more, a description for one, makes it something else than a call.
    fields.is_empty().then_some(RequestedCall {
        name,
        arguments: Value::Object(arguments),
    })
}

fn arguments_of(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Null => Some(Map::new()),
        // The model repeats how the tool is described.
        Value::Object(fields)
            if fields.get(TYPE).is_some_and(|kind| kind == "object")
                && fields.get("properties").is_some_and(Value::is_object) =>
        {
            None
        }
        Value::Object(fields) => Some(fields),
        Value::String(text) => serde_json::from_str(&text).ok(),
        _ => None,
    }
}
