use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

fn file(text: &str) -> (TempDir, McpServersFile) {
    let house = tempfile::tempdir().unwrap();
    let path = house.path().join("mcp.json");
    if !text.is_empty() {
        fs::write(&path, text).unwrap();
    }
    (house, McpServersFile::new(path))
}

fn draft(value: Value) -> McpDraft {
    serde_json::from_value(value).unwrap()
}

fn text(house: &TempDir) -> String {
    fs::read_to_string(house.path().join("mcp.json")).unwrap()
}

fn told(file: &McpServersFile, name: &str) -> Value {
    serde_json::to_value(file.entry(name).unwrap()).unwrap()
}

fn refusal(outcome: Result<(), NaviError>) -> (ErrorCode, String) {
    let error = outcome.unwrap_err();
    (error.code, error.message)
}

#[test]
fn a_server_is_added_changed_and_taken_out_and_every_other_byte_stays() {
    let before = "{\n\t\"theme\": \"dark\",\n\t\"mcpServers\": {\n\t\t\"b\": {\"command\": \"b\",   \"alwaysAllow\": [ 1e3 ]}\n\t},\n\t\"z\": 1\n}\n";
    let (house, file) = file(before);
    file.write(
        "a",
        &draft(json!({"command": "a", "args": ["x \"y\""], "env": {"K": "v"}})),
    )
    .unwrap();
    let added = "{\n\t\"theme\": \"dark\",\n\t\"mcpServers\": {\n\t\t\"b\": {\"command\": \"b\",   \"alwaysAllow\": [ 1e3 ]},\n\t\t\"a\": {\n\t\t\t\"command\": \"a\",\n\t\t\t\"args\": [\"x \\\"y\\\"\"],\n\t\t\t\"env\": {\n\t\t\t\t\"K\": \"v\"\n\t\t\t}\n\t\t}\n\t},\n\t\"z\": 1\n}\n";
    assert_eq!(text(&house), added);
    // What another program keeps in it stays.
    let version = told(&file, "b")["version"].clone();
    file.write("b", &draft(json!({"command": "c", "before": version})))
        .unwrap();
    assert!(text(&house).contains("{\"command\": \"c\",   \"alwaysAllow\": [ 1e3 ]}"));
    let version = told(&file, "a")["version"].clone();
    file.remove("a", version.as_str().unwrap()).unwrap();
    assert_eq!(
        text(&house),
        before.replace("\"command\": \"b\"", "\"command\": \"c\"")
    );
    file.restore("a", Ok(())).unwrap();
    assert_eq!(told(&file, "a")["args"], json!(["x \"y\""]));
    assert_eq!(refusal(file.restore("a", Ok(()))).0, ErrorCode::NotFound);
}

#[test]
fn what_is_wrong_is_refused_by_the_reader_and_nothing_is_written() {
    let (house, file) = file("");
    for (name, wrong, said) in [
        ("a b", json!({"command": "x"}), "the name must have"),
        ("", json!({"command": "x"}), "the name must have"),
        ("a", json!({}), "give either `command`"),
        ("a", json!({"command": " "}), "field `command`"),
        (
            "a",
            json!({"command": "x", "url": "http://x/"}),
            "give either `command`",
        ),
        ("a", json!({"url": "file:///x"}), "field `url`"),
        ("a", json!({"url": "http://x/[hidden]"}), "field `url`"),
        (
            "a",
            json!({"command": "x", "args": ["[hidden]"]}),
            "field `args`: write number 1",
        ),
        (
            "a",
            json!({"command": "x", "env": {"K": null}}),
            "field `env`: K needs a value",
        ),
        (
            "a",
            json!({"command": "x", "env": {"K": "${NOT_SET_ANYWHERE}"}}),
            "NOT_SET_ANYWHERE",
        ),
        (
            "a",
            json!({"command": "x", "timeout_seconds": 0}),
            "field `timeoutSeconds`",
        ),
        ("a", json!({"command": "x\u{0}"}), "NUL"),
        (
            "a",
            json!({"command": "x", "disabled": true, "timeout_seconds": 9999}),
            "field `timeoutSeconds`",
        ),
    ] {
        let (code, message) = refusal(file.write(name, &draft(wrong.clone())));
        assert!(
            code == ErrorCode::InvalidField && message.contains(said),
            "{wrong}: {message}"
        );
    }
    assert!(!house.path().join("mcp.json").exists());
}

#[test]
fn one_change_is_never_written_over_another() {
    let (_house, file) = file("");
    let server =
        |command: &str, before: &Value| draft(json!({"command": command, "before": before}));
    file.write("a", &server("one", &Value::Null)).unwrap();
    let seen = told(&file, "a")["version"].clone();
    assert_eq!(
        refusal(file.write("a", &server("two", &Value::Null))).0,
        ErrorCode::ChangeConflict
    );
    file.write("a", &server("two", &seen)).unwrap();
    assert_eq!(
        refusal(file.write("a", &server("three", &seen))).0,
        ErrorCode::ChangeConflict
    );
    assert_eq!(
        refusal(file.remove("a", seen.as_str().unwrap())).0,
        ErrorCode::ChangeConflict
    );
    assert_eq!(told(&file, "a")["command"], "two");
    // Two others at the same time: none is lost.
    std::thread::scope(|threads| {
        for name in ["b", "c", "d", "e"] {
            let (file, server) = (&file, &server);
            threads.spawn(move || file.write(name, &server(name, &Value::Null)).unwrap());
        }
    });
    for name in ["a", "b", "c", "d", "e"] {
        file.entry(name).unwrap();
    }
}

#[test]
fn a_file_that_its_reader_refuses_is_not_written_to() {
    for broken in [
        "{\"mcpServers\": {}, // mine\n}",
        "[]",
        "{\"mcpServers\": []}",
        "{\"mcpServers\": {\"a\": {}, \"a\": {}}}",
    ] {
        let (house, file) = file(broken);
        let (code, message) = refusal(file.write("a", &draft(json!({"command": "x"}))));
        assert!(
            code == ErrorCode::ChangeConflict && message.contains("mend it"),
            "{broken}: {message}"
        );
        assert_eq!(text(&house), broken);
    }
}

#[test]
fn secrets_are_never_told_and_stay_where_they_come_back_as_told() {
    let secret = "hunter2";
    let before = json!({"mcpServers": {
        "here": {
            "command": "npx", "args": ["-y", "far", "--api-key", secret, "--header", format!("Authorization: Bearer {secret}"), format!("--token={secret}"), "https://me:hunter2@x/"],
            "env": {"KEY": secret, "NUMBER": 4, "OTHER": "${OF_NAVI}"},
        },
        "far": {
            "serverUrl": format!("https://far.example/mcp/{secret}{secret}{secret}/x?key={secret}"),
            "headers": {"Authorization": format!("Bearer {secret}"), "X": "Bearer ${PATH}"},
        },
    }});
    let (house, file) = file(&before.to_string());
    let here = told(&file, "here");
    let far = told(&file, "far");
    assert!(
        !here.to_string().contains(secret) && !far.to_string().contains(secret),
        "{here} {far}"
    );
    assert_eq!(
        here["args"],
        json!([
            "-y",
            "far",
            "--api-key",
            "[hidden]",
            "--header",
            "Authorization:[hidden]",
            "--token=[hidden]",
            "https://[hidden]@x/"
        ])
    );
    assert_eq!(
        here["env"],
        json!({"KEY": null, "NUMBER": null, "OTHER": "${OF_NAVI}"})
    );
    assert_eq!(far["url"], "https://far.example/mcp/[hidden]/x?[hidden]");
    assert_eq!(
        far["headers"],
        json!({"Authorization": null, "X": "Bearer ${PATH}"})
    );

    let mut args = here["args"].clone();
    args.as_array_mut().unwrap().insert(0, json!("new"));
    file.write("here", &draft(json!({"command": "npx", "args": args, "env": {"KEY": null, "NUMBER": null}, "before": here["version"]}))).unwrap();
    let headers = json!({"Authorization": null});
    let elsewhere =
        json!({"url": "https://other.example/mcp", "headers": headers, "before": far["version"]});
    let (_, message) = refusal(file.write("far", &draft(elsewhere)));
    assert!(message.contains("Authorization needs a value"), "{message}");
    file.write(
        "far",
        &draft(json!({"url": far["url"], "headers": headers, "before": far["version"]})),
    )
    .unwrap();

    let written: Value = serde_json::from_str(&text(&house)).unwrap();
    let (old, new) = (&before["mcpServers"], &written["mcpServers"]);
    assert_eq!(
        new["here"]["args"].as_array().unwrap()[1..],
        old["here"]["args"].as_array().unwrap()[..]
    );
    assert_eq!(new["here"]["env"], json!({"KEY": secret, "NUMBER": 4}));
    assert_eq!(
        new["far"],
        json!({"url": old["far"]["serverUrl"], "headers": {"Authorization": old["far"]["headers"]["Authorization"]}})
    );
}

#[test]
fn a_hidden_header_goes_to_no_host_that_a_variable_makes() {
    let before = json!({"mcpServers": {
        "far": {"url": "https://good.example/mcp", "headers": {"Authorization": "Bearer hunter2"}},
    }});
    let (house, file) = file(&before.to_string());
    let version = told(&file, "far")["version"].clone();
    for url in [
        "https://evil.example${HOME}@good.example/mcp",
        "https://me@good.example/mcp",
        "https://good.example${NOT_SET_ANYWHERE:-.evil.example}/mcp",
        "https://${NOT_SET_ANYWHERE:-evil.example/}@good.example/mcp",
    ] {
        let headers = json!({"Authorization": null});
        let draft = draft(json!({"url": url, "headers": headers, "before": version}));
        let (_, message) = refusal(file.write("far", &draft));
        assert!(
            message.contains("Authorization needs a value"),
            "{url}: {message}"
        );
    }
    assert_eq!(text(&house), before.to_string());
}

#[test]
fn secrets_of_navis_own_are_put_into_nothing_from_here() {
    let (house, file) = file("");
    for reference in [
        "${NAVI_API_TOKEN}",
        "x ${env:OPENAI_API_KEY}",
        "${PATH}${DATABASE_URL:-none}",
    ] {
        for server in [
            json!({"command": reference}),
            json!({"command": "x", "args": [reference]}),
            json!({"command": "x", "env": {"K": reference}}),
            json!({"url": format!("https://far.example/{reference}")}),
            json!({"url": "https://far.example/", "headers": {"K": reference}}),
        ] {
            let (code, message) = refusal(file.write("a", &draft(server.clone())));
            assert!(
                code == ErrorCode::InvalidField && message.contains("is Navi's own"),
                "{server}: {message}"
            );
        }
    }
    assert!(!house.path().join("mcp.json").exists());
}

#[test]
fn a_server_that_is_switched_off_is_changed_without_its_variables() {
    let (house, file) = file("");
    for server in [
        json!({"command": "x", "env": {"K": "${NOT_SET_ANYWHERE}"}}),
        json!({"url": "${NOT_SET_ANYWHERE}/mcp"}),
        json!({"url": "https://${NOT_SET_ANYWHERE}/mcp"}),
        json!({"url": "https://far.example:${NOT_SET_ANYWHERE}/mcp"}),
    ] {
        let mut off = server.clone();
        off["disabled"] = json!(true);
        let before = file.entry("a").ok();
        off["before"] = before.map_or(Value::Null, |_| told(&file, "a")["version"].clone());
        file.write("a", &draft(off)).unwrap();
        let mut on = server;
        on["before"] = told(&file, "a")["version"].clone();
        let (_, message) = refusal(file.write("a", &draft(on)));
        assert!(message.contains("NOT_SET_ANYWHERE"), "{message}");
    }
    assert!(text(&house).contains("disabled"));
}

#[test]
fn what_is_put_back_is_as_it_was_and_no_more_than_may_be() {
    let (house, file) = file("{\"mcpServers\": {\"my server\": {\"command\": \"x\"}}}");
    let version = file.versions().remove("my_server").unwrap();
    assert_eq!(told(&file, "my_server")["version"], json!(version));
    file.remove("my_server", &version).unwrap();
    for n in 0..32 {
        let server = draft(json!({"command": "x"}));
        file.write(&format!("s{n}"), &server).unwrap();
    }
    let full = text(&house);
    let (_, message) = refusal(file.restore("my_server", Ok(())));
    assert!(message.contains("more than 32"), "{message}");
    assert_eq!(text(&house), full);
    let version = file.versions().remove("s0").unwrap();
    file.remove("s0", &version).unwrap();
    file.restore("my_server", Ok(())).unwrap();
    assert!(text(&house).contains("\"my server\""));
}

#[test]
fn what_shows_who_asks_is_not_written() {
    let (house, file) = file("");
    let server = draft(json!({"command": "x", "current_password": "hunter2hunter2"}));
    file.write("a", &server).unwrap();
    assert!(!text(&house).contains("hunter2"));
}
