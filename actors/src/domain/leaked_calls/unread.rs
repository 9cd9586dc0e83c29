//! Calls that a reply ends in and that [`super::parse`] does not take: with words before them, or
//! in a notation that nobody taught. They are not run, since what stands there may be an
//! example; but an answer that ends so is hardly one.

use serde_json::Value;

use super::MAX_BYTES;

/// Where such a call names its tool, with the arguments beside it.
const TOOL_KEYS: [&str; 5] = [
    "tool",
    "tool_name",
    "function",
    "function_name",
    "recipient_name",
];
/// The same, in objects of other kinds, too: there the arguments are an object of their own.
const NAME_KEY: &str = "name";
/// As deep as a call is wrapped.
const MAX_DEPTH: usize = 3;

/// What may follow a call at a reply's end.
const CLOSERS: [&str; 6] = ["```", "</tool_call>", "</function>", "]", "}", ";"];

/// Whether the reply ends in well-formed JSON that calls a known tool.
#[must_use]
pub fn ends_in_call(reply: &str, is_known: impl Fn(&str) -> bool) -> bool {
    if reply.len() >= MAX_BYTES {
        return false;
    }
    let mut rest = reply;
    while let Some(at) = rest.find('{') {
        rest = &rest[at..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                rest = &rest[values.byte_offset()..];
                if is_over(rest) && calls(&value, &is_known, MAX_DEPTH) {
                    return true;
                }
            }
            Some(Err(_)) | None => rest = &rest[1..],
        }
    }
    false
}

fn is_over(rest: &str) -> bool {
    let mut rest = rest.trim_start();
    while let Some(behind) = CLOSERS.iter().find_map(|closer| rest.strip_prefix(closer)) {
        rest = behind.trim_start();
    }
    rest.is_empty()
}

fn calls(value: &Value, is_known: &impl Fn(&str) -> bool, depth: usize) -> bool {
    if depth == 0 {
        return false;
    }
    match value {
        Value::Object(fields) => {
            let names = |key: &str| {
                let name = fields.get(key).and_then(Value::as_str);
                name.is_some_and(is_known)
            };
            let is_call = fields.len() > 1 && TOOL_KEYS.into_iter().any(names)
                || names(NAME_KEY) && fields.values().any(Value::is_object);
            is_call
                || fields
                    .values()
                    .any(|value| calls(value, is_known, depth - 1))
        }
        Value::Array(items) => items.iter().any(|item| calls(item, is_known, depth - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
