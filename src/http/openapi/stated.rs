//! The document as the code generates it, brought to say all that the code checks.

use serde_json::{Map, Value};

use super::limits;

/// Requests whose body may be left out.
const MAY_BE_BARE: [&str; 6] = [
    "/api/account/recovery-codes",
    "/api/account/sign-ons",
    "/api/people/{person_id}/reset",
    "/api/sign-on",
    "/sessions",
    "/sessions/{session_id}/pin",
];
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// States it of a whole document. Gives the limits whose places it did not find.
pub(super) fn state(document: &mut Value) -> Vec<String> {
    let mut lost = Vec::new();
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        for (place, limit) in limits::of_fields() {
            if set_field(schemas, place, &limit) == 0 {
                lost.push(place.to_owned());
            }
        }
    }
    let limits = limits::of_parameters();
    let mut found = vec![false; limits.len()];
    for (path, operations) in document["paths"].as_object_mut().into_iter().flatten() {
        for method in METHODS {
            let Some(operation) = operations.get_mut(method) else {
                continue;
            };
            bodies(operation, MAY_BE_BARE.contains(&path.as_str()));
            let parameters = operation.get_mut("parameters");
            let parameters = parameters.and_then(Value::as_array_mut);
            for parameter in parameters.into_iter().flatten() {
                never_null(&mut parameter["schema"]);
                for ((at, name, limit), found) in limits.iter().zip(&mut found) {
                    let is_there = path == at || (at.ends_with('/') && path.starts_with(at));
                    if is_there && parameter["name"] == *name {
                        merge(&mut parameter["schema"], limit);
                        *found = true;
                    }
                }
            }
        }
    }
    let places = limits.into_iter().zip(found).filter(|(_, found)| !found);
    lost.extend(places.map(|((at, name, _), _)| format!("{at} {name}")));
    ranges(document);
    lost
}

/// A body must be there. utoipa says so of none whose schema has a name.
fn bodies(operation: &mut Value, may_be_bare: bool) {
    if let Some(body) = operation.get_mut("requestBody") {
        body["required"] = Value::Bool(!may_be_bare);
    }
}

/// What a parameter holds is text: it is there, or it is not.
fn never_null(schema: &mut Value) {
    let kinds = schema["type"].as_array();
    let kind = kinds.and_then(|kinds| kinds.iter().find(|kind| **kind != "null"));
    if let Some(kind) = kind.cloned() {
        schema["type"] = kind;
    }
}

/// Whole numbers have the range of the type that they are read into.
fn ranges(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            whole(fields);
            fields.values_mut().for_each(ranges);
        }
        Value::Array(items) => items.iter_mut().for_each(ranges),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn whole(schema: &mut Map<String, Value>) {
    let positive = schema.get("minimum").and_then(Value::as_i64) >= Some(0);
    // utoipa calls a `u32` an `int32` that is not negative.
    let (format, least, most): (_, i64, u64) = match schema.get("format").and_then(Value::as_str) {
        Some("uint8") => ("uint8", 0, u8::MAX.into()),
        Some("uint16") => ("uint16", 0, u16::MAX.into()),
        Some("uint32") => ("uint32", 0, u32::MAX.into()),
        Some("int32") if positive => ("uint32", 0, u32::MAX.into()),
        Some("uint" | "uint64") => ("uint64", 0, u64::MAX),
        Some("int64") if positive => ("uint64", 0, u64::MAX),
        Some("int32") => ("int32", i32::MIN.into(), i32::MAX.unsigned_abs().into()),
        Some("int64") => ("int64", i64::MIN, i64::MAX.unsigned_abs()),
        _ => return,
    };
    schema.insert("format".to_owned(), Value::from(format));
    schema
        .entry("minimum")
        .or_insert_with(|| Value::from(least));
    schema.entry("maximum").or_insert_with(|| Value::from(most));
}

/// Says it of a field. How many there are at this place.
fn set_field(schemas: &mut Map<String, Value>, place: &str, limit: &Value) -> usize {
    let mut path = place.split('/');
    let schema = path.next().and_then(|name| schemas.get_mut(name));
    let rest: Vec<&str> = path.collect();
    schema.map_or(0, |schema| set(schema, &rest, limit))
}

fn set(schema: &mut Value, path: &[&str], limit: &Value) -> usize {
    let Some((first, rest)) = path.split_first() else {
        merge(schema, limit);
        return 1;
    };
    match *first {
        "*" => {
            let each = schema.as_array_mut().into_iter().flatten();
            each.map(|schema| set(schema, rest, limit)).sum()
        }
        "items" | "oneOf" => schema
            .get_mut(*first)
            .map_or(0, |schema| set(schema, rest, limit)),
        field => schema
            .pointer_mut(&format!("/properties/{field}"))
            .map_or(0, |schema| set(schema, rest, limit)),
    }
}

fn merge(schema: &mut Value, limit: &Value) {
    let limit = limit.as_object().cloned().unwrap_or_default();
    match schema {
        Value::Object(schema) => schema.extend(limit),
        // Anything at all, so far.
        other => *other = Value::Object(limit),
    }
}
