#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say so by failing"
)]

use serde_json::json;

use super::*;
use crate::protocol::profile::Profile;

fn profile(tools: &[&str], sections: &[&str]) -> Profile {
    serde_json::from_value(json!({
        "id": "test",
        "name": "Test",
        "description": "",
        "system_prompt": "",
        "enabled_tools": tools,
        "temperature": 0.5,
        "scratchpad_sections": sections,
    }))
    .unwrap()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn schemas_are_as_models_know_them() {
    for spec in Registry::builtin().all() {
        insta::assert_json_snapshot!(format!("spec_{}", spec.name), spec);
        let text = spec.parameters.to_string();
        for absent in ["$ref", "$defs", "format", "null", "anyOf", "oneOf"] {
            assert!(
                !text.contains(&format!("\"{absent}\"")),
                "{absent} in {text}"
            );
        }
        // The example of each is a call that passes.
        let example = &spec.parameters["examples"][0];
        let prepared = Registry::builtin().prepare(&spec.name, example, &names(&[&spec.name]));
        assert_eq!(&prepared.unwrap().args, example);
    }
}

#[test]
fn a_profile_gets_its_tools_in_order_and_unknown_names_are_told() {
    let profile = profile(
        &["scratchpad", "teleport", "todo", "scratchpad"],
        &["findings", "drafts"],
    );
    let audience = Audience {
        profile: &profile,
        agents: &[],
    };
    let enabled = Registry::builtin().enabled(&profile.enabled_tools, &audience);
    let found: Vec<&str> = enabled
        .specs
        .iter()
        .map(|spec| spec.name.as_str())
        .collect();
    assert_eq!(found, ["scratchpad", "todo"]);
    assert_eq!(enabled.unknown, ["teleport"]);
    assert_eq!(
        enabled.specs[0].parameters["properties"]["section"]["enum"],
        json!(["findings", "drafts"])
    );
}

#[test]
fn a_call_is_prepared_with_its_own_effect() {
    let registry = Registry::builtin();
    let allowed = names(&["filesystem"]);
    let read = json!("{\"action\":\"read\",\"path\":\"a.md\",\"start_line\":\"3\"}");
    let read = registry.prepare("filesystem", &read, &allowed).unwrap();
    assert_eq!(read.effect, Effect::Read);
    assert_eq!(
        read.args,
        json!({"action": "read", "path": "a.md", "start_line": 3})
    );
    let edit = json!({"action": "edit", "path": "a.md"});
    let edit = registry.prepare("filesystem", &edit, &allowed).unwrap();
    assert_eq!(edit.effect, Effect::Write);
}

#[test]
fn errors_tell_the_model_how_to_do_better() {
    let registry = Registry::builtin();
    let two = names(&["filesystem", "todo", "teleport"]);
    let read = json!({"action": "read", "path": "a.md"});
    let long = "x".repeat(500);
    let errors: Vec<String> = [
        ("file_system", &read, two.as_slice()),
        ("teleport", &read, &two),
        ("rm\nrf", &read, &two),
        (&long, &read, &two),
        ("scratchpad", &read, &two),
        ("todo", &read, &[]),
        ("filesystem", &json!({}), &two),
        ("filesystem", &json!({"action": "raed"}), &two),
        ("filesystem", &json!({"action": "read", "file": "x"}), &two),
        (
            "filesystem",
            &json!("{\"action\":\"write\",\"content\":\"abc"),
            &two,
        ),
        (
            "todo",
            &json!({"action": "add", "texts": [{"text": "x"}]}),
            &two,
        ),
    ]
    .into_iter()
    .map(|(name, arguments, allowed)| registry.prepare(name, arguments, allowed).unwrap_err().0)
    .collect();
    assert!(errors.iter().all(|error| error.len() < 500));
    insta::assert_snapshot!(errors.join("\n"));
}
