//! What a collector is sent (docs/observing.md), over a real socket.

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::{Value, json};

use crate::collector::{Collector, Kept, Manner, attributes};
use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{House, Server};

fn traced(model: &FakeModel, collector: &Collector) -> House {
    // A title takes no part.
    model.script(Reply::new([Step::Silence]).streamed(false).always());
    House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("NAVI_OTLP_ENDPOINT", &collector.url()),
    ])
}

fn finish(reason: &str, prompt_tokens: u32, completion_tokens: u32) -> Step {
    Step::Finish {
        reason: reason.to_owned(),
        prompt_tokens,
        completion_tokens,
    }
}

async fn ask(server: &Server, session: &str, content: &str) -> Value {
    let path = format!("/sessions/{session}/messages");
    server.post(&path, json!({"content": content})).await
}

/// The spans of a trace, of which the root is one.
fn of_trace<'a>(kept: &'a Kept, root: &Span) -> Vec<&'a Span> {
    let spans = kept.spans.iter();
    spans
        .filter(|span| span.trace_id == root.trace_id)
        .collect()
}

/// A run's id as its trace's.
fn trace_id(run_id: &Value) -> Vec<u8> {
    let run_id: uuid::Uuid = run_id.as_str().unwrap().parse().unwrap();
    run_id.as_bytes().to_vec()
}

fn ended(kept: &Kept, runs: usize) -> bool {
    kept.named("invoke_agent").len() == runs
}

#[tokio::test]
async fn a_turn_with_a_tool_is_a_trace() {
    let (model, collector) = (FakeModel::start(), Collector::start(Manner::Takes).await);
    let house = traced(&model, &collector).with(&[("NAVI_OTLP_HEADERS", "x-team = blue, x-b=c=d")]);
    let list = Step::tool_call("todo", json!({"action": "list"}));
    model.script([list, finish("stop", 1000, 20)]);
    model.script([Step::text("nothing at all"), finish("length", 1200, 3)]);
    let server = house.start();
    let session = server.new_session().await;
    let answer = ask(&server, &session, "what is left to do?").await;
    let kept = collector.when(|kept| ended(kept, 1)).await;

    let run = kept.only("invoke_agent navi");
    assert_eq!(run.trace_id, trace_id(&answer["run_id"]));
    assert_eq!(run.parent_span_id, Vec::<u8>::new());
    assert!(run.links.is_empty());
    let told = attributes(run);
    for (name, expected) in [
        ("gen_ai.operation.name", json!("invoke_agent")),
        ("gen_ai.agent.name", json!("navi")),
        ("gen_ai.conversation.id", json!(session)),
        ("gen_ai.provider.name", json!("ollama")),
        ("gen_ai.request.model", json!("fake:latest")),
        ("gen_ai.usage.input_tokens", json!(2200)),
        ("gen_ai.usage.output_tokens", json!(23)),
        ("navi.outcome", json!("limited")),
        ("navi.iterations", json!(2)),
    ] {
        assert_eq!(told.get(name), Some(&expected), "{name}: {told:#?}");
    }

    let chats = kept.named("chat fake:latest");
    assert_eq!(chats.len(), 2);
    let (host, port) = model
        .url()
        .rsplit_once(':')
        .map(|(host, port)| (host.to_owned(), port.to_owned()))
        .unwrap();
    for (chat, (reason, read, said)) in chats
        .iter()
        .zip([("tool_calls", 1000, 20), ("length", 1200, 3)])
    {
        assert_eq!(chat.kind, SpanKind::Client as i32);
        let told = attributes(chat);
        for (name, expected) in [
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.provider.name", json!("ollama")),
            ("gen_ai.request.model", json!("fake:latest")),
            ("gen_ai.request.stream", json!(true)),
            ("gen_ai.conversation.id", json!(session)),
            ("gen_ai.response.finish_reasons", json!([reason])),
            ("gen_ai.usage.input_tokens", json!(read)),
            ("gen_ai.usage.output_tokens", json!(said)),
            ("server.address", json!(host.trim_start_matches("http://"))),
            ("server.port", json!(port.parse::<u16>().unwrap())),
            ("navi.outcome", json!("done")),
            ("navi.lane", json!("interactive")),
        ] {
            assert_eq!(told.get(name), Some(&expected), "{name}: {told:#?}");
        }
        let first = told["gen_ai.response.time_to_first_chunk"]
            .as_f64()
            .unwrap();
        let nanos = chat.end_time_unix_nano - chat.start_time_unix_nano;
        assert!(first > 0.0 && first * 1e9 <= nanos as f64 + 1.0, "{first}");
    }

    let tool = kept.only("execute_tool todo");
    let told = attributes(tool);
    assert_eq!(told["gen_ai.operation.name"], "execute_tool");
    assert_eq!(told["gen_ai.tool.name"], "todo");
    assert_eq!(told["gen_ai.tool.type"], "function");
    assert!(
        told["gen_ai.tool.call.id"]
            .as_str()
            .unwrap()
            .starts_with("call_")
    );
    assert_eq!(told["navi.outcome"], "success");
    assert!(chats[0].end_time_unix_nano <= tool.start_time_unix_nano);
    assert!(tool.end_time_unix_nano <= chats[1].start_time_unix_nano);

    let commits = kept.named("COMMIT");
    // The message with the run's start, the reply with the call, its result, the answer.
    assert!(commits.len() >= 3, "{commits:#?}");
    let system = if house.variable("DATABASE_URL").is_some() {
        "postgresql"
    } else {
        "sqlite"
    };
    for commit in &commits {
        assert_eq!(attributes(commit)["db.system.name"], system);
    }
    // The model is asked once its message is durable.
    assert!(commits[0].end_time_unix_nano <= chats[0].start_time_unix_nano);

    for span in of_trace(&kept, run) {
        let parent = if span.span_id == run.span_id {
            &[][..]
        } else {
            &run.span_id
        };
        assert_eq!(span.parent_span_id, parent, "{span:#?}");
        assert!(
            span.start_time_unix_nano >= run.start_time_unix_nano,
            "{span:#?}"
        );
        assert_eq!(span.status.clone().unwrap_or_default().code, 0, "{span:#?}");
    }
    assert_eq!(of_trace(&kept, run).len(), kept.spans.len());

    assert_eq!(kept.resource["service.name"], "navi");
    assert!(kept.resource.contains_key("service.version"));
    for head in &kept.heads {
        assert!(head.starts_with("POST /v1/traces "), "{head}");
        assert!(
            head.contains("x-team: blue\r\n") && head.contains("x-b: c=d\r\n"),
            "{head}"
        );
    }
    for body in &kept.bodies {
        let body = String::from_utf8_lossy(body);
        for said in ["what is left", "nothing at all", "action"] {
            assert!(!body.contains(said), "{said}");
        }
    }
    model.assert_clean();
}

#[tokio::test]
async fn a_subagents_run_links_to_the_call_that_sent_it_out() {
    let (model, collector) = (FakeModel::start(), Collector::start(Manner::Takes).await);
    let spawn = Step::tool_call("spawn_agent", json!({"task": "count the files"}));
    model.script(Reply::new([spawn]).when("how many"));
    model.script(Reply::new([Step::text("one file")]).when("count the files"));
    model.script(Reply::new([Step::text("just one")]).when("how many"));
    let server = traced(&model, &collector).start();
    let session = server.new_session().await;
    let answer = ask(&server, &session, "how many are there?").await;
    let kept = collector.when(|kept| ended(kept, 2)).await;

    let call = kept.only("execute_tool spawn_agent");
    let parent_trace = trace_id(&answer["run_id"]);
    assert_eq!(call.trace_id, parent_trace);
    let runs = kept.named("invoke_agent");
    let (parents, children): (Vec<&Span>, Vec<&Span>) = runs
        .into_iter()
        .partition(|run| run.trace_id == parent_trace);
    let (parent, child) = (parents[0], children[0]);
    assert!(parent.links.is_empty());
    let [link] = child.links.as_slice() else {
        panic!("{child:#?}");
    };
    assert_eq!(
        (&link.trace_id, &link.span_id),
        (&call.trace_id, &call.span_id)
    );
    let of_child = of_trace(&kept, child);
    let chats = of_child
        .iter()
        .filter(|span| span.name.starts_with("chat "));
    assert_eq!(chats.count(), 1, "{of_child:#?}");
    assert_eq!(
        attributes(child)["gen_ai.conversation.id"],
        session.as_str()
    );
    assert_eq!(attributes(child)["gen_ai.request.model"], "fake:latest");
}

#[tokio::test]
async fn a_run_that_was_killed_has_its_span_and_the_one_after_it_a_link() {
    let (model, collector) = (FakeModel::start(), Collector::start(Manner::Takes).await);
    model.script([Step::text("I was about to"), Step::hold("never")]);
    let server = traced(&model, &collector).start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "hello"}))
        .await;
    tab.next_of("stream_delta").await;
    let server = server.crash_and_restart();
    let mut tab = server.tab(&session, None).await;
    model.script([Step::text("say this")]);
    tab.send(&json!({"type": "continue"})).await;
    tab.next_of("stream_end").await;
    let kept = collector.when(|kept| ended(kept, 2)).await;

    let [killed, next] = kept.named("invoke_agent")[..] else {
        panic!("{:#?}", kept.spans);
    };
    let told = attributes(killed);
    assert_eq!(told["navi.outcome"], "interrupted");
    assert_eq!(told["error.type"], "run_interrupted");
    assert_eq!(
        killed.status.clone().unwrap().code,
        StatusCode::Error as i32
    );
    assert!(killed.links.is_empty());
    let [link] = next.links.as_slice() else {
        panic!("{next:#?}");
    };
    assert_eq!(
        (&link.trace_id, &link.span_id),
        (&killed.trace_id, &killed.span_id)
    );
    assert_ne!(next.trace_id, killed.trace_id);
    assert_eq!(attributes(next)["navi.outcome"], "completed");
}

#[tokio::test]
async fn each_request_to_a_model_is_told_and_what_became_of_it() {
    let (model, collector) = (FakeModel::start(), Collector::start(Manner::Takes).await);
    let private = "the diary of Ada";
    model.script([Step::status(503, private)]);
    model.script([Step::text("here")]);
    model.script([Step::status(400, private)]);
    let server = traced(&model, &collector).start();
    let session = server.new_session().await;
    assert_eq!(
        ask(&server, &session, "are you there?").await["content"],
        "here"
    );
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "hello"}))
        .await;
    tab.next_of("error").await;
    let kept = collector.when(|kept| ended(kept, 2)).await;

    let [well, ill] = kept.named("invoke_agent")[..] else {
        panic!("{:#?}", kept.spans);
    };
    assert_eq!(attributes(well)["navi.outcome"], "completed");
    assert_eq!(attributes(ill)["error.type"], "run_failed");
    let chats = kept.named("chat ").into_iter().map(attributes);
    let errors: Vec<Option<Value>> = chats
        // The others are for titles.
        .filter(|chat| chat["gen_ai.request.stream"] == true)
        .map(|mut chat| chat.remove("error.type"))
        .collect();
    let expected = [
        Some(json!("backend_busy")),
        None,
        Some(json!("backend_error")),
    ];
    assert_eq!(errors, expected);
    for body in &kept.bodies {
        assert!(!String::from_utf8_lossy(body).contains(private));
    }
}

#[tokio::test]
async fn a_collector_that_hangs_keeps_nobody_waiting() {
    let (model, collector) = (FakeModel::start(), Collector::start(Manner::Hangs).await);
    model.script(Reply::new([Step::text("here")]).always());
    let mut server = traced(&model, &collector).start();
    let session = server.new_session().await;
    ask(&server, &session, "hello").await;
    let mut hanging = collector.when(|kept| !kept.heads.is_empty()).await;
    // Whoever waits for it waits for its limit, and there is the next request. On a machine that is
    // busy an answer may take as long.
    for left in (0..5).rev() {
        assert_eq!(ask(&server, &session, "still?").await["content"], "here");
        let now = collector.now();
        if now.heads.len() == hanging.heads.len() {
            break;
        }
        assert_ne!(left, 0, "each of them waited");
        hanging = now;
    }
    server.ask_to_end();
    assert!(server.ended().await.success());
    let said = server.said();
    let told = said.matches("does not take traces").count();
    assert!(told <= 1, "{said}");
    assert!(
        said.contains("the last traces could not be sent in time"),
        "{said}"
    );
}

#[tokio::test]
async fn what_is_left_is_sent_before_the_end() {
    // It has a second for that: not enough on a machine that is too busy, and then that is told.
    for _ in 0..5 {
        let (model, collector) = (FakeModel::start(), Collector::start(Manner::Takes).await);
        model.script([Step::text("here")]);
        let mut server = traced(&model, &collector).start();
        let session = server.new_session().await;
        ask(&server, &session, "hello").await;
        server.ask_to_end();
        assert!(server.ended().await.success());
        if !server.said().contains("traces") {
            assert_eq!(collector.now().named("invoke_agent").len(), 1);
            return;
        }
    }
    panic!("never in time");
}
