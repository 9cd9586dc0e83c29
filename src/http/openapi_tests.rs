use navi_actors::protocol::error::ErrorCode;

use super::super::error;
use super::*;

fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("$ref", Value::String(target)) => found.push(target),
                    (_, value) => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn every_reference_leads_somewhere(document: &Value) {
    let mut found = Vec::new();
    references(document, &mut found);
    assert!(!found.is_empty());
    for target in found {
        let pointer = target.strip_prefix('#').unwrap();
        let schema = document.pointer(pointer);
        assert!(schema.is_some(), "{target} leads nowhere");
        let to_itself = json!({"$ref": target});
        assert_ne!(schema, Some(&to_itself), "{target} is only itself");
    }
}

#[test]
fn both_documents_are_whole() {
    every_reference_leads_somewhere(&openapi());
    every_reference_leads_somewhere(&events_schema());
}

#[test]
fn every_limit_has_its_place_and_every_operation_its_own_name() {
    let mut document = generated();
    assert_eq!(stated::state(&mut document), Vec::<String>::new());
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    let mut names: Vec<&str> = operations
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
}

/// What the page's types are made from (`web/types.mjs`).
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/web/state/wire.json");

#[test]
fn the_page_has_the_schemas_that_are_served() {
    let mut schemas = Schemas::under("/$defs");
    rest(&mut schemas);
    sockets(&mut schemas);
    let served = json!({"$defs": schemas.finish()});
    if std::env::var_os("NAVI_WRITE_WIRE").is_some() {
        let text = serde_json::to_string_pretty(&served).unwrap();
        std::fs::write(PAGE, text + "\n").unwrap();
    }
    let known: Value = serde_json::from_str(&std::fs::read_to_string(PAGE).unwrap()).unwrap();
    assert!(
        known == served,
        "web/state/wire.json is of other schemas: run this test with NAVI_WRITE_WIRE=1, then `npm run types` in web/"
    );
}

#[test]
fn a_type_that_is_told_and_taken_is_one() {
    let mut schemas = Schemas::under("/$defs");
    rest(&mut schemas);
    sockets(&mut schemas);
    let told = schemas.telling.take_definitions(true);
    for (name, taken) in schemas.taking.take_definitions(true) {
        if let Some(told) = told.get(&name) {
            assert_eq!(told, &taken, "{name}");
        }
    }
}

#[test]
fn every_operation_says_how_it_fails() {
    let document = openapi();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 15);
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            let public = operation.get("security").is_some();
            let told = operation["responses"].get("401").is_some();
            assert!(public || told, "{method} {path}");
        }
    }
}

#[test]
fn what_streams_where_it_is_asked_to_says_as_what() {
    let document = openapi();
    let asks = |operation: &Value| {
        let body = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        let body = body.as_str().and_then(|it| it.strip_prefix('#'));
        let body = body.and_then(|it| document.pointer(it));
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        body.is_some_and(|it| it["properties"].get("stream").is_some())
            || parameters.into_iter().any(|it| it["name"] == "stream")
    };
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if asks(operation) {
                let kinds = operation["responses"]["200"]["content"].as_object();
                let kinds: Vec<&String> = kinds.unwrap().keys().collect();
                assert_eq!(kinds.len(), 2, "{method} {path}: {kinds:?}");
                found.push(path.as_str());
            }
        }
    }
    let all = [
        "/api/chat",
        "/api/generate",
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/responses/{response_id}",
    ];
    assert!(all.iter().all(|path| found.contains(path)), "{found:?}");
}

#[test]
fn where_programs_send_messages_the_headers_that_count_are_named() {
    let document = openapi();
    for path in [
        "/api/chat",
        "/api/generate",
        "/v1/chat/completions",
        "/v1/responses",
    ] {
        let parameters = &document["paths"][path]["post"]["parameters"];
        let parameters = parameters.as_array().unwrap().iter();
        let mut names: Vec<&str> = parameters.map(|it| it["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        let all = ["Idempotency-Key", "X-Navi-Session", "X-Navi-Task"];
        assert_eq!(names, all, "{path}");
    }
}

#[test]
fn every_error_code_has_a_status_that_the_document_names() {
    let document = openapi();
    let told = &document["paths"]["/sessions"]["get"]["responses"];
    let codes = &document["components"]["schemas"]["ErrorCode"];
    let mut names: Vec<String> = Vec::new();
    for list in [codes.get("enum"), codes.get("oneOf")]
        .into_iter()
        .flatten()
    {
        for item in list.as_array().unwrap() {
            match item.get("const").or(Some(item)) {
                Some(Value::String(name)) => names.push(name.clone()),
                _ => names.extend(
                    item["enum"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|n| n.as_str().unwrap().to_owned()),
                ),
            }
        }
    }
    assert!(names.len() > 30, "{codes}");
    for name in names {
        let code: ErrorCode = serde_json::from_value(Value::from(name.clone())).unwrap();
        let status = error::status(code).as_u16().to_string();
        assert!(
            told.get(&status).is_some() || status == "405",
            "{name}: {status}"
        );
    }
}
