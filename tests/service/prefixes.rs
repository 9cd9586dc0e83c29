//! What of a request a model had read with the call before it, and what broke that.

use std::fs;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{Config, FakeModel, Reply, Step};
use crate::server::{House, Server, Socket};

/// Stands in the question for a summary.
const SUMMARY: &str = "<conversation>";

fn finish(prompt_tokens: u32) -> Step {
    Step::Finish {
        reason: "stop".to_owned(),
        prompt_tokens,
        completion_tokens: 5,
    }
}

/// Has the model answer words, after a prompt of so many tokens.
async fn turn(model: &FakeModel, tab: &mut Socket, words: &str, prompt_tokens: u32) {
    model.script(Reply::new([Step::text("Yes."), finish(prompt_tokens)]).when(words));
    tab.send(&json!({"type": "message", "content": words}))
        .await;
    tab.next_of("stream_end").await;
}

/// What became of the beginning of the newest run's first call.
async fn newest(server: &Server, session: &str) -> Value {
    let listed = server.get(&format!("/sessions/{session}/runs")).await;
    let run = listed["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let details = server.get(&format!("/runs/{run}")).await;
    let mut calls = details["calls"].as_array().unwrap().iter();
    let call = calls.find(|call| call["kind"] == "turn");
    call.unwrap()["prefix"].clone()
}

#[tokio::test]
async fn what_broke_the_prefix_of_a_call_is_told() {
    let model = FakeModel::start();
    model.configure(Config {
        models: vec!["fake:latest".to_owned(), "other:latest".to_owned()],
        ..Config::default()
    });
    let server = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("OLLAMA_DEFAULT_MODEL", "fake:latest"),
        ("CONTEXT_KEEP_RECENT", "1"),
    ])
    .start();
    let table = "currency = \"EUR\"\n[[price]]\nmodel = \"*\"\nprompt = 1000000\ncompletion = 0\n";
    fs::write(server.house().data_dir().join("prices.toml"), table).unwrap();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;

    turn(&model, &mut tab, "hello", 20_000).await;
    assert_eq!(newest(&server, &session).await, Value::Null, "none before");
    turn(&model, &mut tab, "thanks", 20_100).await;
    let whole =
        json!({"broken_by": null, "kept_tokens": 20_000, "read_again_tokens": 0, "counted": false});
    assert_eq!(newest(&server, &session).await, whole);

    // The memory's summary stands as it stood when the context was built.
    let fact = Some(json!({"value": "Lviv"}));
    let put = server.call(Method::PUT, "/memory/facts/places/home", fact);
    assert_eq!(put.await.0, StatusCode::OK);
    turn(&model, &mut tab, "good morning", 20_200).await;
    let kept = newest(&server, &session).await;
    assert_eq!(kept["broken_by"], Value::Null, "{kept}");

    // What is compressed is built anew, with the memory as it is by then.
    model.script(
        Reply::new([Step::text("- they said hello")])
            .streamed(false)
            .last(SUMMARY),
    );
    turn(&model, &mut tab, "hello", 60_000).await;
    tab.next_of("context_compressed").await;
    turn(&model, &mut tab, "thanks", 20_000).await;
    let memory = newest(&server, &session).await;
    assert_eq!(memory["broken_by"], "memory", "{memory}");
    let again = memory["read_again_tokens"].as_f64().unwrap();
    assert!(again > 0.0 && memory["kept_tokens"].as_u64() > Some(0));
    assert_eq!(memory["cost"], json!({"amount": again, "currency": "EUR"}));
    assert!(memory["read_again_ms"].is_u64(), "{memory}");

    let path = format!("/sessions/{session}");
    for (change, piece) in [
        (json!({"model": "other:latest"}), "model"),
        (json!({"profile_id": "server_admin"}), "system"),
    ] {
        let (status, body) = server.call(Method::PATCH, &path, Some(change)).await;
        assert!(status.is_success(), "{body}");
        turn(&model, &mut tab, "thanks", 20_000).await;
        let broken = newest(&server, &session).await;
        assert_eq!(broken["broken_by"], piece, "{broken}");
        assert!(broken["read_again_tokens"].as_u64() > Some(0), "{broken}");
    }

    let shown = server.get(&path).await;
    let mut asked = shown["messages"].as_array().unwrap().iter().rev();
    let last = asked.find(|message| message["role"] == "user").unwrap();
    let edit = json!({"message_id": last["id"], "content": "good evening"});
    model.script(Reply::new([Step::text("Yes."), finish(20_000)]).when("good evening"));
    server.post(&format!("{path}/branches"), edit).await;
    tab.next_of("stream_end").await;
    let edited = newest(&server, &session).await;
    assert_eq!(edited["broken_by"], "message", "{edited}");
    assert_eq!(edited["read_again_tokens"], 0, "{edited}");
    assert!(edited["kept_tokens"].as_u64() > Some(19_000), "{edited}");
    model.assert_clean();
}

/// The end of an answer, as a server sends it that keeps what it read.
fn counted(prompt_tokens: u32, cached_tokens: u32) -> Vec<Step> {
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let usage = json!({
        "prompt_tokens": prompt_tokens,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    });
    let usage = json!({"choices": [], "usage": usage});
    vec![
        Step::text("Yes."),
        Step::Raw(format!("data: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n")),
        Step::End,
    ]
}

#[tokio::test]
async fn what_a_server_kept_is_told_as_it_counts_and_costs_its_own_price() {
    let model = FakeModel::start();
    let server = House::new(&[("OPENAI_BASE_URL", &format!("{}/v1", model.url()))]).start();
    let table =
        "currency = \"EUR\"\n[[price]]\nmodel = \"*\"\nprompt = 100\ncached = 10\ncompletion = 0\n";
    fs::write(server.house().data_dir().join("prices.toml"), table).unwrap();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    for (words, prompt, cached, expected) in [
        ("hello", 20_000, 0, Value::Null),
        (
            "thanks",
            21_000,
            19_968,
            json!({"broken_by": null, "kept_tokens": 19_968, "read_again_tokens": 0, "counted": true}),
        ),
    ] {
        model.script(Reply::new(counted(prompt, cached)).when(words));
        tab.send(&json!({"type": "message", "content": words}))
            .await;
        tab.next_of("stream_end").await;
        assert_eq!(newest(&server, &session).await, expected);
    }
    model.script(Reply::new(counted(22_000, 0)).when("good morning"));
    tab.send(&json!({"type": "message", "content": "good morning"}))
        .await;
    tab.next_of("stream_end").await;
    let lost = newest(&server, &session).await;
    assert_eq!(lost["broken_by"], "server", "{lost}");
    assert_eq!(lost["read_again_tokens"], 21_000, "{lost}");
    let listed = server.get(&format!("/sessions/{session}/runs")).await;
    let cost = |of: &Value| of["cost"]["amount"].as_f64().unwrap();
    let of_run = cost(&listed["runs"][1]);
    let expected = (1_032.0 * 100.0 + 19_968.0 * 10.0) / 1e6;
    assert!((of_run - expected).abs() < 1e-9, "{listed}");
    assert!(cost(&listed["today"]) >= cost(&listed["spent"]));
    let all: f64 = [0, 1, 2].map(|run| cost(&listed["runs"][run])).iter().sum();
    assert!((cost(&listed["spent"]) - all).abs() < 1e-9, "{listed}");
}
