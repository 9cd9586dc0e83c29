//! The table of who may what, as `docs/people.md` prints it.

use std::fmt::Write as _;

use navi_actors::domain::permissions::Action;
use navi_actors::protocol::command::ClientFrame;
use serde_json::{Value, json};

use super::all_endpoints;
use super::openapi::events_schema;
use crate::access::role_name;
use crate::doors::mcp::tool_actions;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/people.md");
const BEGIN: &str = "<!-- the table: begin -->\n";
const END: &str = "<!-- the table: end -->\n";

/// One of each frame.
fn frames() -> Vec<Value> {
    let id = "0190a0b0-0000-7000-8000-000000000001";
    vec![
        json!({"type": "message", "content": "x"}),
        json!({"type": "stop"}),
        json!({"type": "continue"}),
        json!({"type": "withdraw", "message_id": id}),
        json!({"type": "edit_queued", "message_id": id, "content": "x"}),
        json!({"type": "approve", "approval_id": id, "decision": "once"}),
        json!({"type": "resolve_call", "call_id": "c", "decision": "skip"}),
        json!({"type": "edit_plan", "edit": "add", "text": "x"}),
        json!({"type": "ping"}),
    ]
}

fn row(what: &str, action: Option<Action>) -> String {
    match action.map(Action::needs) {
        None => format!("| `{what}` | everybody | – |\n"),
        Some(needs) => format!(
            "| `{what}` | {} | `{}` |\n",
            role_name(needs.role),
            needs.scope.name()
        ),
    }
}

fn table() -> String {
    let mut text = "| what | role | scope |\n| --- | --- | --- |\n".to_owned();
    let mut rows: Vec<(String, String)> = Vec::new();
    for endpoint in all_endpoints() {
        for (method, action) in endpoint.methods() {
            let what = format!("{method} {}", endpoint.path());
            let key = format!("{} {method}", endpoint.path());
            rows.push((key, row(&what, *action)));
        }
    }
    rows.sort();
    rows.iter().for_each(|(_, row)| text.push_str(row));
    for frame in frames() {
        let name = frame["type"].as_str().unwrap().to_owned();
        let frame: ClientFrame = serde_json::from_value(frame).unwrap();
        write!(
            text,
            "{}",
            row(&format!("frame {name}"), Action::of_frame(&frame))
        )
        .unwrap();
    }
    for (name, action) in tool_actions() {
        text.push_str(&row(&format!("tool {name}"), Some(action)));
    }
    text
}

#[test]
fn the_document_prints_the_table() {
    let text = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (known, after) = rest.split_once(END).unwrap();
    let now = table();
    if std::env::var_os("NAVI_WRITE_WIRE").is_some() {
        std::fs::write(PAGE, format!("{before}{BEGIN}{now}{END}{after}")).unwrap();
        return;
    }
    assert!(
        known == now,
        "docs/people.md prints another table: run this test with NAVI_WRITE_WIRE=1, and read what changed"
    );
}

#[test]
fn every_frame_has_a_row() {
    let schema = events_schema();
    let variants = schema["$defs"]["ClientFrame"]["oneOf"].as_array().unwrap();
    let types = variants.iter().map(|it| &it["properties"]["type"]["const"]);
    let mut types: Vec<&str> = types.map(|it| it.as_str().unwrap()).collect();
    let mut known = frames();
    known.sort_by_key(|frame| frame["type"].to_string());
    types.sort_unstable();
    let known: Vec<&str> = known
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, known);
}
