//! What runs used and cost, over REST.

use std::fs;

use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{House, Server};

const TABLE: &str = r#"
currency = "EUR"
[[price]]
model = "fake*"
prompt = 2.5
completion = 10
"#;

fn finish(prompt_tokens: u32, completion_tokens: u32) -> Step {
    Step::Finish {
        reason: "stop".to_owned(),
        prompt_tokens,
        completion_tokens,
    }
}

fn says(text: &str, prompt_tokens: u32, completion_tokens: u32) -> Vec<Step> {
    vec![Step::text(text), finish(prompt_tokens, completion_tokens)]
}

/// The run that answered.
async fn ask(server: &Server, session: &str, content: &str) -> String {
    let path = format!("/sessions/{session}/messages");
    let answer = server.post(&path, json!({"content": content})).await;
    answer["run_id"].as_str().unwrap().to_owned()
}

async fn spent(server: &Server, run: &str) -> Value {
    server.get(&format!("/runs/{run}")).await["spent"].clone()
}

#[track_caller]
fn check(spent: &Value, prompt_tokens: u32, completion_tokens: u32, cost: f64) {
    assert_eq!(spent["prompt_tokens"], prompt_tokens, "{spent}");
    assert_eq!(spent["completion_tokens"], completion_tokens, "{spent}");
    let amount = spent["cost"]["amount"].as_f64().unwrap();
    assert!((amount - cost).abs() < 1e-9, "{spent}");
    assert_eq!(spent["cost"]["currency"], "EUR");
}

#[tokio::test]
async fn a_run_its_session_and_its_day_cost_what_the_table_says() {
    let model = FakeModel::start();
    model.script(Reply::new([Step::Silence]).streamed(false).always());
    let spawn = Step::tool_call("spawn_agent", json!({"task": "count the files"}));
    model.script(Reply::new([spawn, finish(100, 10)]).when("how many"));
    model.script(Reply::new(says("one file", 1000, 20)).when("count the files"));
    model.script(Reply::new(says("just one", 200, 10)).when("how many"));
    model.script(Reply::new(says("hello", 400, 4)).when("in the same"));
    model.script(Reply::new(says("hello", 800, 8)).when("in another"));
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let (session, other) = (server.new_session().await, server.new_session().await);
    let run = ask(&server, &session, "how many are there?").await;
    ask(&server, &session, "one in the same").await;
    ask(&server, &other, "and one in another").await;

    let free = spent(&server, &run).await;
    assert_eq!(free["run"]["prompt_tokens"], 1300);
    assert_eq!(free["run"].get("cost"), None, "nobody said what it costs");

    let file = server.house().data_dir().join("prices.toml");
    fs::write(&file, TABLE).unwrap();
    let costs = spent(&server, &run).await;
    check(&costs["run"], 1300, 40, (1300.0 * 2.5 + 400.0) / 1e6);
    check(&costs["session"], 1700, 44, (1700.0 * 2.5 + 440.0) / 1e6);
    check(&costs["day"], 2500, 52, (2500.0 * 2.5 + 520.0) / 1e6);
    let listed = server.get(&format!("/sessions/{session}/runs")).await;
    assert_eq!(listed["spent"], costs["session"]);

    // What is wrong changes nothing, and is told once.
    fs::write(&file, TABLE.replace("2.5", "two")).unwrap();
    assert_eq!(spent(&server, &run).await, costs);
    assert_eq!(spent(&server, &run).await, costs);
    let said = server.said();
    assert_eq!(said.matches("prices.toml").count(), 1, "{said}");
    assert!(said.contains("line 5"), "{said}");
    fs::write(&file, TABLE.replace("2.5", "5")).unwrap();
    let costs = spent(&server, &run).await;
    check(&costs["run"], 1300, 40, (1300.0 * 5.0 + 400.0) / 1e6);
}
