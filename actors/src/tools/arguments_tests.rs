use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::tools::schema::schema_of;
use crate::tools::schema::validator;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema and its reading are of interest")]
struct Everything {
    /// What to do.
    action: Action,
    name: Option<String>,
    #[serde(default)]
    count: u64,
    #[schemars(range(min = -1000, max = 1000))]
    offset: Option<i64>,
    ratio: Option<f64>,
    #[serde(default)]
    deep: bool,
    #[serde(default)]
    #[schemars(length(max = 3), inner(length(min = 1, max = 5)))]
    words: Vec<String>,
    #[serde(default)]
    #[schemars(inner(range(min = 1, max = 9)))]
    numbers: Vec<u32>,
    inner: Option<Inner>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Read,
    Write,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema and its reading are of interest")]
struct Inner {
    key: String,
}

fn fitted(arguments: &Value) -> Result<Value, String> {
    let schema = schema_of::<Everything>();
    let validator = validator(&schema)?;
    fit(&schema, &[], Some(&validator), arguments)
}

#[test]
fn the_schema_is_plain() {
    let schema = schema_of::<Everything>();
    insta::assert_json_snapshot!(schema);
    let text = schema.to_string();
    for absent in [
        "$ref", "$defs", "$schema", "format", "null", "anyOf", "oneOf",
    ] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
}

#[test]
fn what_has_one_reading_is_put_right() {
    for (given, taken) in [
        (json!("{\"action\":\"read\"}"), json!({"action": "read"})),
        (
            json!("{\n\t\"action\": \"read\",\n\"name\": \"a\\\\\"}"),
            json!({"action": "read", "name": "a\\"}),
        ),
        (
            json!("{\"action\":\"read\",\n\"name\":\"one\ntwo \\\"x\\\"\r\n\tthree\"}"),
            json!({"action": "read", "name": "one\ntwo \"x\"\r\n\tthree"}),
        ),
        (
            json!({"action": "Read ", "name": null, "inner": null}),
            json!({"action": "read"}),
        ),
        (
            json!({"action": "read", "count": " 12 ", "offset": "-3", "deep": "True"}),
            json!({"action": "read", "count": 12, "offset": -3, "deep": true}),
        ),
        (
            json!({"action": "read", "count": 5.0, "name": 2024}),
            json!({"action": "read", "count": 5, "name": "2024"}),
        ),
        (
            json!({"action": "read", "words": "one", "numbers": 2}),
            json!({"action": "read", "words": ["one"], "numbers": [2]}),
        ),
        (
            json!({"action": "read", "words": "[\"a\", \"b\"]", "numbers": "[1, 2]"}),
            json!({"action": "read", "words": ["a", "b"], "numbers": [1, 2]}),
        ),
        (
            json!({"action": "write", "numbers": ["1", 2.0], "inner": {"key": 1}}),
            json!({"action": "write", "numbers": [1, 2], "inner": {"key": "1"}}),
        ),
        (
            json!({"action": "write", "ratio": " 0.5 ", "inner": "{\"key\": \"x\"}"}),
            json!({"action": "write", "ratio": 0.5, "inner": {"key": "x"}}),
        ),
    ] {
        assert_eq!(fitted(&given), Ok(taken), "{given}");
    }
}

/// As a server of another hand describes its tools.
fn fitted_to(schema: &Value, arguments: &Value) -> Value {
    let validator = validator(schema).unwrap();
    fit(schema, &[], Some(&validator), arguments).unwrap()
}

#[test]
fn of_choices_that_differ_in_capitals_the_one_that_is_written_is_meant() {
    let schema = json!({"type": "object", "properties": {
        "interval": {"type": "string", "enum": ["1m", "1h", "1M"]},
    }});
    for (given, taken) in [("1M", "1M"), ("1m", "1m"), (" 1M ", "1M"), ("1H", "1h")] {
        let fitted = fitted_to(&schema, &json!({"interval": given}));
        assert_eq!(fitted["interval"], taken, "{given}");
    }
}

#[test]
fn a_null_that_clears_something_is_sent() {
    let text_or_null = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    let schema = json!({"type": "object", "properties": {
        "assignee": text_or_null,
        "due": {"type": ["string", "null"]},
        "title": {"type": "string"},
        "fields": {"type": "object", "additionalProperties": true},
        "any": {"type": "object"},
    }});
    let given = json!({
        "assignee": null, "due": null, "fields": {"due": null}, "any": {"due": null},
    });
    let mut more = given.clone();
    more["title"] = Value::Null;
    more["unknown"] = Value::Null;
    assert_eq!(fitted_to(&schema, &more), given);
}

#[test]
fn errors_name_the_field_what_is_expected_and_what_came() {
    let errors: Vec<String> = [
        json!(null),
        json!(""),
        json!([1]),
        json!("[1]"),
        json!("read the file"),
        json!("{\"action\": \"write\", \"name\": \"a long text that was cut o"),
        json!("{\"action\": \"read\", \"name\": \"a\" \"count\": 1}"),
        json!("{'action': 'read'}"),
        json!("{\"action\": \"read\",\n \"name\": \"звіт\u{7}\"}"),
        json!({"action": null}),
        json!({"action": "delete"}),
        json!({"action": 1}),
        json!({"action": "read", "count": "many"}),
        json!({"action": "read", "count": -1}),
        json!({"action": "read", "count": 1.5}),
        json!({"action": "read", "count": 1e30}),
        json!({"action": "read", "deep": "maybe"}),
        json!({"action": "read", "name": {"text": "x".repeat(500)}}),
        json!({"action": "read", "words": ["a", "b", "c", "d"]}),
        json!({"action": "read", "words": ["a", ""]}),
        json!({"action": "read", "words": ["a", ["b"]]}),
        json!({"action": "read", "numbers": [1, 10]}),
        json!({"action": "read", "inner": {}}),
        json!({"action": "read", "inner": {"kez": "x"}}),
        json!({"action": "read", "inner": {"key": "x", "kez": "x"}}),
        json!({"action": "read", "nam": "x"}),
        json!({"action": "read", "zzz\n": "x"}),
    ]
    .into_iter()
    .map(|given| fitted(&given).unwrap_err())
    .collect();
    assert!(errors.iter().all(|error| error.len() < 400));
    insta::assert_snapshot!(errors.join("\n"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0u32..12).prop_map(Value::from),
        "[a-z0-9\\[\\]\",. {}:-]{0,6}".prop_map(Value::from),
        Just(json!("read")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("key|name|[a-z]{1,3}", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_arguments() -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        Just("name"),
        Just("count"),
        Just("offset"),
        Just("ratio"),
        Just("deep"),
        Just("words"),
        Just("numbers"),
        Just("inner"),
    ];
    prop::collection::btree_map(names, any_json(), 0..3).prop_map(|fields| {
        let mut object = json!({"action": "read"});
        for (name, value) in fields {
            object[name] = value;
        }
        object
    })
}

proptest! {
    /// What the check lets pass, serde can read: the schema and the type say the same.
    #[test]
    fn what_fits_can_be_read(arguments in any_arguments()) {
        if let Ok(fitted) = fitted(&arguments) {
            let read = serde_json::from_value::<Everything>(fitted.clone());
            prop_assert!(read.is_ok(), "{:?} of {}", read, fitted);
        }
    }

    /// Fitting arguments stay as they are.
    #[test]
    fn fitting_twice_is_fitting_once(arguments in any_arguments()) {
        if let Ok(once) = fitted(&arguments) {
            prop_assert_eq!(fitted(&once), Ok(once));
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = fitted(&Value::String(text));
    }

    #[test]
    fn no_cut_of_json_makes_it_panic(at in 0usize..80) {
        let text = "{\"action\": \"write\", \"name\": \"зві\\u0442 \\\"x\\\"\", \"numbers\": [1, 2.5e3]}";
        let _ = fitted(&Value::from(&text[..text.floor_char_boundary(at)]));
    }
}
