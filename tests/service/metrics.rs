//! `/metrics` from outside, read as strictly as the format is written
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{House, Server, TOKEN, client};

/// What was scraped: each sample by its name and labels as they stand.
#[derive(Debug)]
struct Scraped(BTreeMap<String, f64>);

impl Scraped {
    #[track_caller]
    fn value(&self, sample: &str) -> f64 {
        let value = self.0.get(sample);
        *value.unwrap_or_else(|| panic!("no {sample} in {:#?}", self.0))
    }

    /// The sum of the samples whose names and labels begin so.
    fn sum(&self, beginning: &str) -> f64 {
        let samples = self.0.iter();
        samples
            .filter(|(sample, _)| sample.starts_with(beginning))
            .map(|(_, value)| value)
            .sum()
    }

    /// Every series of a histogram, by what it measures and for whom.
    fn check_histogram(&self, name: &str) {
        let prefix = format!("{name}_bucket{{");
        let mut rising: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for (sample, count) in &self.0 {
            let Some(labels) = sample.strip_prefix(&prefix) else {
                continue;
            };
            let (before, le) = labels.split_once("le=\"").expect("a bound");
            let (le, after) = le.split_once('"').expect("its end");
            let of = format!("{before}{after}").replace(",}", "}");
            let bound: f64 = le.parse().expect("a number");
            let highest = rising.entry(of).or_insert((f64::NEG_INFINITY, 0.0));
            if bound > highest.0 {
                *highest = (bound, *count);
            }
        }
        for (of, (bound, count)) in rising {
            let labels = if of == "}" {
                String::new()
            } else {
                format!("{{{of}")
            };
            assert_eq!(bound, f64::INFINITY, "{name}{labels}");
            assert_eq!(count, self.value(&format!("{name}_count{labels}")));
            assert!(self.value(&format!("{name}_sum{labels}")) >= 0.0);
        }
    }
}

/// Reads the text, and fails on whatever the format does not allow.
fn parsed(text: &str) -> Scraped {
    assert!(text.ends_with('\n'));
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    let mut helped = BTreeSet::new();
    let mut family = "";
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').expect("words");
            assert!(!words.is_empty() && helped.insert(name), "{line}");
            continue;
        }
        if let Some(told) = line.strip_prefix("# TYPE ") {
            let (name, kind) = told.split_once(' ').expect("a type");
            assert!(helped.contains(name), "{line}: no HELP before it");
            assert!(types.insert(name, kind).is_none(), "{line}: twice");
            assert!(name.starts_with("navi_"), "{line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            family = name;
            continue;
        }
        assert!(!line.starts_with('#'), "{line}");
        let (sample, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = sample.split_once('{').unwrap_or((sample, "}"));
        let of_family = match types.get(family).copied() {
            Some("counter" | "gauge") => name == family,
            Some("histogram") => {
                let part = name.strip_prefix(family).unwrap_or("another");
                matches!(part, "_sum" | "_count" | "_bucket")
            }
            other => panic!("{line}: {other:?}"),
        };
        assert!(of_family, "{line}: beneath {family}");
        check_labels(labels);
        let value: f64 = value.parse().expect("a number");
        assert!(value.is_finite() && value >= 0.0, "{line}");
        assert!(
            samples.insert(sample.to_owned(), value).is_none(),
            "{line}: twice"
        );
    }
    let scraped = Scraped(samples);
    for (name, kind) in types {
        if kind == "histogram" {
            scraped.check_histogram(name);
        }
    }
    scraped
}

/// What follows the opening brace: closed lists, so nothing that would have to be escaped.
fn check_labels(labels: &str) {
    let inside = labels.strip_suffix('}').expect("a closing brace");
    for pair in inside.split(',').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').expect("a label");
        let value = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        let plain = |text: &str| {
            let mut bytes = text.bytes();
            !text.is_empty() && bytes.all(|b| b.is_ascii_alphanumeric() || b" _.+-".contains(&b))
        };
        assert!(plain(name) && value.is_some_and(plain), "{pair}");
    }
}

async fn scrape(server: &Server) -> Scraped {
    let request = client().get(format!("{}/metrics", server.url));
    let response = request.bearer_auth(TOKEN).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let kind = response.headers()["content-type"].to_str().unwrap();
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    parsed(&response.text().await.unwrap())
}

fn measured(model: &FakeModel) -> Server {
    House::new(&[("OLLAMA_HOST", &model.url()), ("NAVI_METRICS", "on")]).start()
}

fn finish(reason: &str, prompt_tokens: u32, completion_tokens: u32) -> Step {
    Step::Finish {
        reason: reason.to_owned(),
        prompt_tokens,
        completion_tokens,
    }
}

#[tokio::test]
async fn a_turn_with_a_tool_is_in_the_metrics() {
    let model = FakeModel::start();
    // A title takes no part in the sums.
    model.script(Reply::new([Step::Silence]).streamed(false).always());
    let list = Step::tool_call("todo", json!({"action": "list"}));
    model.script([list, finish("stop", 1000, 20)]);
    model.script([
        Step::hold("gate"),
        Step::text("nothing"),
        finish("stop", 1200, 3),
    ]);
    let server = measured(&model);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let messages = format!("/sessions/{session}/messages");
    let watched = async {
        tab.next_of("tool_call").await;
        model.wait_for(|chats| chats.len() == 2).await;
        let amid = scrape(&server).await;
        let goes = r#"navi_runs_in_progress{kind="foreground"}"#;
        assert_eq!(amid.value(goes), 1.0);
        assert_eq!(
            amid.value(r#"navi_model_calls_running{backend="ollama"}"#),
            1.0
        );
        assert_eq!(amid.value("navi_tabs_open"), 1.0);
        assert_eq!(amid.value("navi_sessions_live"), 1.0);
        model.release("gate");
    };
    let (answer, ()) = tokio::join!(
        server.post(&messages, json!({"content": "what is left?"})),
        watched
    );
    assert_eq!(answer["content"], "nothing");

    let scraped = scrape(&server).await;
    for (sample, expected) in [
        (r#"navi_runs_started_total{kind="foreground"}"#, 1.0),
        (r#"navi_runs_started_total{kind="subagent"}"#, 0.0),
        (
            r#"navi_runs_ended_total{kind="foreground",outcome="completed"}"#,
            1.0,
        ),
        (
            r#"navi_model_tokens_total{backend="ollama",kind="prompt"}"#,
            2200.0,
        ),
        (
            r#"navi_model_tokens_total{backend="ollama",kind="completion"}"#,
            23.0,
        ),
        (
            r#"navi_tool_call_seconds_count{tool="todo",outcome="success"}"#,
            1.0,
        ),
        (
            r#"navi_model_first_token_seconds_count{backend="ollama",lane="interactive"}"#,
            2.0,
        ),
        (
            r#"navi_model_call_seconds_count{backend="ollama",outcome="done"}"#,
            2.0,
        ),
        ("navi_turn_first_request_seconds_count", 1.0),
        (r#"navi_journal_commits_total{outcome="failed"}"#, 0.0),
        ("navi_messages_waiting", 0.0),
    ] {
        assert_eq!(scraped.value(sample), expected, "{sample}");
    }
    assert_eq!(scraped.sum("navi_runs_ended_total"), 1.0);
    assert_eq!(scraped.sum("navi_tool_call_seconds_count"), 1.0);
    assert!(scraped.value("navi_turn_first_request_seconds_sum") > 0.0);
    let commits = scraped.value(r#"navi_journal_commits_total{outcome="committed"}"#);
    assert!(commits > 0.0);
    // It is read after them, and one may come between.
    assert!(scraped.value("navi_journal_transaction_commits_sum") >= commits);
    assert!(scraped.value("navi_journal_transaction_seconds_count") >= 1.0);
    let memory = scraped.value("navi_process_resident_memory_bytes");
    assert!((1e6..1e11).contains(&memory), "{memory}");
    if server.house().variable("DATABASE_URL").is_none() {
        assert!(scraped.value("navi_database_bytes") > 4096.0);
    }
    model.assert_clean();
}

#[tokio::test]
async fn a_message_that_waits_is_in_the_metrics_until_its_turn() {
    let model = FakeModel::start();
    model.script([Step::text("one "), Step::hold("gate"), Step::text("two")]);
    let server = measured(&model);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "hello"}))
        .await;
    tab.next_of("stream_delta").await;
    tab.send(&json!({"type": "message", "content": "and then?", "mode": "queue"}))
        .await;
    tab.next_of("message_accepted").await;
    assert_eq!(scrape(&server).await.value("navi_messages_waiting"), 1.0);
    model.release("gate");
    tab.next_of("stream_end").await;
    tab.next_of("stream_end").await;
    let scraped = scrape(&server).await;
    assert_eq!(scraped.value("navi_messages_waiting"), 0.0);
    assert_eq!(
        scraped.value(r#"navi_runs_started_total{kind="foreground"}"#),
        2.0
    );
    assert_eq!(scraped.value("navi_turn_first_request_seconds_count"), 2.0);
}

#[tokio::test]
async fn mailboxes_and_threads_are_asked_all_the_time() {
    let model = FakeModel::start();
    let server = measured(&model);
    let session = server.new_session().await;
    // It is in memory while a tab watches it.
    let _tab = server.tab(&session, None).await;
    let wanted = [
        r#"navi_mailbox_wait_seconds_count{actor="root"}"#,
        r#"navi_mailbox_wait_seconds_count{actor="journal"}"#,
        r#"navi_mailbox_wait_seconds_count{actor="llm"}"#,
        r#"navi_mailbox_wait_seconds_count{actor="session"}"#,
        r#"navi_event_loop_lag_seconds_count{thread="sessions"}"#,
        r#"navi_event_loop_lag_seconds_count{thread="journal"}"#,
        r#"navi_event_loop_lag_seconds_count{thread="services"}"#,
        r#"navi_event_loop_lag_seconds_count{thread="runtime"}"#,
        r#"navi_event_loop_lag_seconds_count{thread="http"}"#,
    ];
    let asked = async {
        loop {
            let scraped = scrape(&server).await;
            if wanted.iter().all(|sample| scraped.0.contains_key(*sample)) {
                return;
            }
            // Nothing tells when they were.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let limit = crate::server::PATIENCE;
    tokio::time::timeout(limit, asked).await.expect("all asked");
}

#[tokio::test]
async fn metrics_are_for_those_who_may_come_in() {
    let server = House::new(&[("NAVI_METRICS", "on")]).start();
    let nobody = client().get(format!("{}/metrics", server.url));
    let refused = nobody.send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let text = refused.text().await.unwrap();
    assert!(!text.contains("navi_"), "{text}");
    let stranger = client().get(format!("{}/metrics", server.url));
    let refused = stranger.bearer_auth("another").send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let (status, _) = server.call(Method::POST, "/metrics", None).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    scrape(&server).await;
}

#[tokio::test]
async fn without_the_setting_there_are_no_metrics() {
    let server = House::new(&[]).start();
    let (status, body) = server.call(Method::GET, "/metrics", None).await;
    assert_eq!(
        (status, &body["code"]),
        (StatusCode::NOT_FOUND, &json!("not_found"))
    );
    let nobody = client().get(format!("{}/metrics", server.url));
    let status = nobody.send().await.unwrap().status();
    assert_eq!(status, StatusCode::NOT_FOUND);
}
