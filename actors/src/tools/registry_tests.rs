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

/// Settings with which every tool can be called but ssh, which its own tests look at.
fn everything() -> ToolConfig {
    let url = reqwest::Url::parse("http://127.0.0.1:9/").unwrap();
    ToolConfig {
        search: Some(crate::tools::web_search::SearchEngine::searxng(url.clone())),
        home_assistant: Some(crate::tools::home_assistant::HomeAssistantConfig {
            url,
            token: crate::tools::net::key::ApiKey::new("token".to_owned()).unwrap(),
        }),
        ..ToolConfig::default()
    }
}

#[test]
fn a_tool_that_is_not_set_up_is_offered_to_nobody() {
    let profile = profile(&["web_search", "web_fetch", "home_assistant", "ssh"], &[]);
    let audience = Audience {
        profile: &profile,
        agents: &[],
    };
    let registry = Registry::builtin(&ToolConfig::default());
    let enabled = registry.enabled(&profile.enabled_tools, &audience);
    assert_eq!(enabled.unknown, Vec::<String>::new());
    let offered: Vec<&str> = enabled.specs.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(offered, ["web_fetch"]);
    let error = registry
        .prepare("web_search", &json!({"query": "x"}), &profile.enabled_tools)
        .unwrap_err();
    assert!(error.0.contains("NAVI_SEARXNG_URL"), "{error}");
    let error = registry
        .prepare("ssh", &json!({}), &profile.enabled_tools)
        .unwrap_err();
    assert!(error.0.contains("SSH_HOSTS_FILE"), "{error}");
    let error = registry
        .prepare("nothing", &json!({}), &profile.enabled_tools)
        .unwrap_err();
    assert!(error.0.ends_with("the tools are web_fetch"), "{error}");
    let enabled = Registry::builtin(&everything()).enabled(&profile.enabled_tools, &audience);
    assert_eq!(enabled.specs.len(), 3);
}

#[test]
fn a_tool_that_nobody_allowed_is_told_as_one() {
    let registry = Registry::builtin(&ToolConfig::default());
    let registry = registry.with_unallowed(["disk_space".to_owned()]);
    let error = registry.prepare("disk_space", &json!({}), &names(&["todo"]));
    let error = error.unwrap_err();
    assert!(error.0.contains("POST /tools/disk_space/allow"), "{error}");
}

#[test]
fn schemas_are_as_models_know_them() {
    let registry = Registry::builtin(&everything());
    for spec in registry.all().filter(|spec| spec.name != "ssh") {
        insta::assert_json_snapshot!(format!("spec_{}", spec.name), spec);
        let text = spec.parameters.to_string();
        for absent in ["$ref", "$defs", "format", "null", "anyOf", "oneOf"] {
            assert!(
                !text.contains(&format!("\"{absent}\"")),
                "{absent} in {text}"
            );
        }
        assert!(registry.tools[&spec.name].validator().is_some());
        // The example of each is a call that passes.
        let example = &spec.parameters["examples"][0];
        let prepared = registry.prepare(&spec.name, example, &names(&[&spec.name]));
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
    let enabled =
        Registry::builtin(&ToolConfig::default()).enabled(&profile.enabled_tools, &audience);
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
    let registry = Registry::builtin(&ToolConfig::default());
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
    let registry = Registry::builtin(&ToolConfig::default());
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

#[test]
fn a_call_without_its_action_is_the_only_one_that_it_can_be() {
    let registry = Registry::builtin(&everything());
    let action_of = |tool: &str, args: Value| {
        let prepared = registry.prepare(tool, &args, &names(&[tool]));
        prepared.map(|call| call.args["action"].as_str().map(str::to_owned))
    };
    let taken = [
        ("terminal", json!({"command": "ls -la"}), "run"),
        ("terminal", json!("{\"command\": \"make\"}"), "run"),
        (
            "terminal",
            json!({"command": "make", "action": null, "id": null}),
            "run",
        ),
        (
            "terminal",
            json!({"action": "", "command": "make", "background": "true"}),
            "run",
        ),
        ("filesystem", json!({"path": "a", "content": "b"}), "write"),
        (
            "filesystem",
            json!({"path": "a", "old_text": "b", "new_text": "c"}),
            "edit",
        ),
        ("filesystem", json!({"path": "a", "to": "b"}), "move"),
        ("filesystem", json!({"path": "a", "start_line": 3}), "read"),
        ("todo", json!({"texts": ["read", "write"]}), "add"),
        ("todo", json!({"ids": [1], "status": "done"}), "mark"),
        (
            "home_assistant",
            json!({"service": "light.turn_on", "entity_id": "light.hall"}),
            "call_service",
        ),
    ];
    for (tool, args, action) in taken {
        let found = action_of(tool, args.clone());
        assert_eq!(found.unwrap().as_deref(), Some(action), "{tool} {args}");
    }
    let asked = [
        ("terminal", json!({})),
        ("terminal", json!({"id": 1})),
        ("terminal", json!({"command": "ls", "id": 1})),
        // It may be read, listed or deleted.
        ("filesystem", json!({"path": "a"})),
        ("filesystem", json!({"content": "b"})),
        ("filesystem", json!({"pattern": "*.md"})),
        ("scratchpad", json!({"section": "drafts", "text": "x"})),
        ("todo", json!({"ids": [1]})),
        ("home_assistant", json!({"entity_id": "light.hall"})),
    ];
    for (tool, args) in asked {
        let error = action_of(tool, args.clone()).unwrap_err();
        assert!(
            error.0.contains("missing: `action`"),
            "{tool} {args}: {error}"
        );
    }
}

#[test]
fn what_actions_take_is_what_the_schema_has() {
    for Known { tool, .. } in Registry::builtin(&everything()).tools.values() {
        let properties = tool.spec().parameters["properties"].clone();
        let declared: Vec<&str> = tool.actions().iter().map(|of| of.action).collect();
        let known = properties["action"]["enum"].as_array();
        let known: Vec<&str> = known
            .into_iter()
            .flatten()
            .flat_map(Value::as_str)
            .collect();
        assert_eq!(declared, known, "{}", tool.spec().name);
        if declared.is_empty() {
            continue;
        }
        let fields = tool.actions().iter();
        let mut fields: BTreeSet<&str> = fields
            .flat_map(|of| of.required.iter().chain(of.optional))
            .copied()
            .collect();
        fields.insert("action");
        let properties = properties.as_object().unwrap();
        let properties: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(fields, properties, "{}", tool.spec().name);
    }
}
