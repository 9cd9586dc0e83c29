//! MCP servers that are added by the page: tried, written, changed, used and taken out.

use std::fs;
use std::path::Path;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::FakeModel;
use crate::person::Person;
use crate::server::{House, PATIENCE, Server, client};

fn fake_server(mode: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mcp_server.py");
    json!({"command": "python3", "args": [script, mode]})
}

fn with(draft: &Value, more: &Value) -> Value {
    let mut draft = draft.clone();
    let (into, more) = (draft.as_object_mut().unwrap(), more.as_object().unwrap());
    into.extend(more.clone());
    draft
}

async fn put(server: &Server, name: &str, draft: &Value) -> (u16, String) {
    let path = format!("/mcp/{name}");
    let (status, told) = server.call(Method::PUT, &path, Some(draft.clone())).await;
    (
        status.as_u16(),
        format!("{} {}", told["code"], told["message"]),
    )
}

async fn ready(server: &Server, name: &str) -> Value {
    let until = tokio::time::Instant::now() + 3 * PATIENCE;
    loop {
        let servers = server.get("/mcp").await;
        let mut all = servers.as_array().unwrap().iter();
        if let Some(found) = all.find(|it| it["name"] == name && it["state"] == "ready") {
            return found.clone();
        }
        assert!(tokio::time::Instant::now() < until, "{servers:#}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_server_is_tried_added_changed_and_taken_out_while_navi_runs() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let file = server.house().data_dir().join("mcp.json");
    let folders = server.get("/extensions").await;
    assert_eq!(folders["mcp_config"], json!(file));

    let draft = fake_server("well");
    let trial = server.post("/mcp/fake/try", draft.clone()).await;
    assert_eq!(trial["error"], Value::Null, "{trial}");
    let names = trial["tools"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["mcp__fake__echo", "mcp__fake__env"]);
    let broken = json!({"command": "/nowhere/at-all"});
    let trial = server.post("/mcp/fake/try", broken).await;
    let error = trial["error"].as_str().unwrap();
    assert!(error.contains("could not be started"), "{trial}");
    // Nothing was kept.
    assert!(!file.exists());
    assert_eq!(server.get("/mcp").await, json!([]));

    let secret = json!({"env": {"API_KEY": "hunter2hunter2"}});
    assert_eq!(put(&server, "fake", &with(&draft, &secret)).await.0, 204);
    ready(&server, "fake").await;
    let entry = server.get("/mcp/fake").await;
    assert_eq!(entry["env"], json!({"API_KEY": null}), "{entry}");
    assert_eq!(entry["file"], json!(file));

    // Another tab had it open as it was before: it is told so, and changes nothing.
    let kept = json!({"env": {"API_KEY": null}, "before": entry["version"]});
    let changed = with(&with(&draft, &kept), &json!({"tools": ["echo"]}));
    assert_eq!(put(&server, "fake", &changed).await.0, 204);
    let (status, told) = put(&server, "fake", &with(&draft, &kept)).await;
    assert!(status == 409 && told.contains("change_conflict"), "{told}");
    assert_eq!(
        ready(&server, "fake").await["tools"],
        json!(["mcp__fake__echo"])
    );
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let written = &written["mcpServers"]["fake"];
    assert_eq!(written["env"], json!({"API_KEY": "hunter2hunter2"}));
    assert_eq!(written["tools"], json!(["echo"]));

    let version = server.get("/mcp/fake").await["version"].clone();
    let path = |version: &str| format!("/mcp/fake?version={version}");
    let removal = server.call(Method::DELETE, &path("0"), None).await.0;
    assert_eq!(removal, StatusCode::CONFLICT);
    let removal = path(version.as_str().unwrap());
    let removed = server.call(Method::DELETE, &removal, None).await.0;
    assert_eq!(removed, StatusCode::NO_CONTENT);
    assert_eq!(server.get("/mcp").await, json!([]));
    let (restored, _) = server.call(Method::POST, "/mcp/fake/restore", None).await;
    assert_eq!(restored, StatusCode::NO_CONTENT);
    ready(&server, "fake").await;
}

#[tokio::test]
async fn two_tabs_that_add_servers_at_once_lose_neither() {
    let server = House::new(&[]).start();
    let off = json!({"command": "nothing", "disabled": true});
    let names = ["a", "b", "c", "d"];
    let put = |name| put(&server, name, &off);
    let all = tokio::join!(put("a"), put("b"), put("c"), put("d"));
    assert_eq!([all.0.0, all.1.0, all.2.0, all.3.0], [204; 4]);
    let text = fs::read_to_string(server.house().data_dir().join("mcp.json")).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    for name in names {
        assert_eq!(written["mcpServers"][name]["command"], "nothing", "{text}");
    }
    // The same one twice: one of them is told.
    let (one, other) = tokio::join!(put("e"), put("e"));
    let mut told = [one.0, other.0];
    told.sort_unstable();
    assert_eq!(told, [204, 409]);
}

#[tokio::test]
async fn a_wrong_server_is_refused_with_what_is_wrong() {
    let server = House::new(&[]).start();
    for (name, draft, words) in [
        ("a%20b", json!({"command": "x"}), "the name must have"),
        ("a", json!({"command": ""}), "field `command`"),
        (
            "a",
            json!({"command": "x", "url": "http://x/"}),
            "give either `command`",
        ),
        ("a", json!({"url": "not an address"}), "field `url`"),
        ("a", json!({"command": "x", "args": [1]}), ""),
        ("a", json!({"command": "x", "argz": []}), "argz"),
    ] {
        let (status, told) = put(&server, name, &draft).await;
        assert!(
            status == 400 && told.contains(words),
            "{draft}: {status} {told}"
        );
    }
    assert!(!server.house().data_dir().join("mcp.json").exists());
}

#[tokio::test]
async fn only_who_administers_adds_servers_and_the_record_says_who() {
    let server = House::new(&[("NAVI_ACCOUNTS", "on")]).start();
    let user = Person::join(&server, "Anna", "user").await;
    let admin = Person::join(&server, "Olha", "admin").await;
    let reader = admin.token_for(&server, &["read", "run"]).await;
    let draft = json!({"command": "nothing", "disabled": true});
    for path in ["/mcp/a", "/mcp/a/try"] {
        let method = || {
            if path.ends_with("try") {
                Method::POST
            } else {
                Method::PUT
            }
        };
        let (status, _) = user
            .call(&server, method(), path, Some(draft.clone()))
            .await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        let asked = client().request(method(), format!("{}{path}", server.url));
        let asked = asked
            .bearer_auth(&reader)
            .json(&draft)
            .send()
            .await
            .unwrap();
        assert_eq!(asked.status(), StatusCode::FORBIDDEN, "{path}");
    }
    let (status, _) = user.call(&server, Method::GET, "/mcp/a", None).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(!server.house().data_dir().join("mcp.json").exists());

    let (status, _) = admin
        .call(&server, Method::PUT, "/mcp/a", Some(draft))
        .await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let record = server.get("/api/record").await.to_string();
    assert!(record.contains("mcp_server_written"), "{record}");
}
