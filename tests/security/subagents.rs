//! Attacks by and on subagents.

use std::net::{IpAddr, Ipv4Addr};

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::site::{Site, page};
use super::talking;
use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::House;

fn spawn(task: &str, profile: &str) -> Step {
    Step::tool_call("spawn_agent", json!({"task": task, "profile_id": profile}))
}

#[tokio::test]
async fn a_forged_id() {
    let (model, server) = talking(&[]);
    model.script(vec![spawn("say nothing", "secretary")]);
    model.script(Reply::new([Step::Silence]).when("say nothing"));
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "go"})).await;
    let started = tab.next_of("subagent_started").await;
    let child = started["run_id"].as_str().unwrap();
    let other = server.new_session().await;
    for (session, run) in [
        (&other, child),
        (&session, "00000000-0000-7000-8000-000000000000"),
    ] {
        let stop = format!("/sessions/{session}/subagents/{run}/stop");
        let (_, answer) = server.call(Method::POST, &stop, None).await;
        assert_eq!(answer["stopped"], false, "{stop}: {answer}");
        let events = format!("/sessions/{session}/runs/{run}/events");
        let (status, _) = server.call(Method::GET, &events, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{events}");
    }
    let stop = format!("/sessions/{session}/subagents/{child}/stop");
    let (_, answer) = server.call(Method::POST, &stop, None).await;
    assert_eq!(answer["stopped"], true, "{answer}");
    let finished = tab.next_of("subagent_finished").await;
    assert_eq!(finished["run_id"], child);
}

/// It can start helpers, and nothing else.
const NARROW: &str = r#"
id = "narrow"
name = "Narrow"
description = "Starts helpers"
system_prompt = "You start helpers."
enabled_tools = ["spawn_agent"]
temperature = 0.5
planning_enabled = false
"#;

#[tokio::test]
async fn more_rights_than_the_parent() {
    let site = Site::start(IpAddr::V4(Ipv4Addr::LOCALHOST), |_| page("<p>hello</p>")).await;
    let model = FakeModel::start();
    let house = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("NAVI_CONSENT_MODE", "auto"),
        ("NAVI_FETCH_ALLOWED_HOSTS", "127.0.0.1"),
    ]);
    let profiles = house.data_dir().join("profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    std::fs::write(profiles.join("narrow.toml"), NARROW).unwrap();
    let server = house.start();
    // The child's own profile would let it: with the whole one as its parent it may.
    for (parent, allowed) in [("narrow", false), ("secretary", true)] {
        let created = server
            .post("/sessions", json!({"profile_id": parent}))
            .await;
        let session = created["session_id"].as_str().unwrap();
        model.script(vec![spawn(&format!("read it for {parent}"), "secretary")]);
        let fetch = Step::tool_call("web_fetch", json!({"url": site.url("/")}));
        model.script(Reply::new([fetch]).when(&format!("read it for {parent}")));
        let mut tab = server.tab(session, None).await;
        tab.send(&json!({"type": "message", "content": "go"})).await;
        let call = tab.next_of("tool_call").await;
        assert_eq!(
            (&call["tool"], &call["success"]),
            (&json!("web_fetch"), &json!(allowed)),
            "{call}"
        );
        let text = call["result"].as_str().unwrap();
        assert_eq!(text.contains("more than the one who started"), !allowed);
        tab.next_of("stream_end").await;
    }
    assert_eq!(site.requests().len(), 1);
}
