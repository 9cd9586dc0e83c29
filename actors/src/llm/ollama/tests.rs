use std::fs;

use futures_util::{StreamExt, future::ready};
use serde_json::json;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::llm::fake_model::{FakeModel, Step};
use crate::llm::fixture_tests::fixtures;
use crate::protocol::chat::{AnswerSchema, ChatDelta, ChatMessage, FinishReason, ReplyForm};
use crate::protocol::ids::CallId;
use crate::protocol::message::ToolCall;
use crate::protocol::offered::OfferedTools;
use crate::protocol::tool::{Effect, ToolSpec};

fn backend(url: &str) -> OllamaBackend {
    OllamaBackend::new(OllamaConfig::new(url, "fake")).unwrap()
}

pub(crate) fn request(content: &str) -> ChatRequest {
    ChatRequest {
        model: "fake".to_owned(),
        messages: vec![
            ChatMessage::User {
                content: content.to_owned(),
                images: Vec::new(),
            }
            .into(),
        ],
        tools: OfferedTools::default(),
        temperature: 0.7,
        think: true,
        context_window: 8192,
        max_output_tokens: None,
        streamed: true,
        form: None,
    }
}

/// A request with one of everything.
pub(crate) fn full_request() -> ChatRequest {
    let call = |id: &str, arguments: Value| ToolCall {
        id: CallId(id.to_owned()),
        name: "get_weather".to_owned(),
        arguments,
    };
    let result = |id: &str| ChatMessage::Tool {
        call_id: CallId(id.to_owned()),
        name: "get_weather".to_owned(),
        content: "cloudy".to_owned(),
    };
    ChatRequest {
        messages: [
            ChatMessage::System {
                content: "Be kind.".to_owned(),
            },
            ChatMessage::User {
                content: "What is this?".to_owned(),
                images: vec!["iVBORw0KGgoAAAAN".to_owned()],
            },
            ChatMessage::Assistant {
                content: String::new(),
                tool_calls: vec![
                    call("call_1", json!({"city": "Paris"})),
                    call("call_2", json!("{\"city\":")),
                ],
            },
            result("call_1"),
            result("call_2"),
            ChatMessage::Assistant {
                content: "Cloudy.".to_owned(),
                tool_calls: Vec::new(),
            },
        ]
        .map(Into::into)
        .into(),
        tools: vec![ToolSpec {
            name: "get_weather".to_owned(),
            description: "The weather in a city".to_owned(),
            parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
            effect: Effect::Read,
            time_limit_ms: 1000,
        }]
        .into(),
        max_output_tokens: Some(50),
        streamed: true,
        form: None,
        ..request("")
    }
}

pub(crate) async fn answer(
    backend: &dyn Backend,
    request: ChatRequest,
) -> Vec<Result<ChatDelta, LlmError>> {
    match backend.chat(request.into()).await {
        // Whether a call is told of while it is written is a matter of time.
        Ok(stream) => {
            stream
                .filter(|item| ready(*item != Ok(ChatDelta::Calling)))
                .collect()
                .await
        }
        Err(error) => vec![Err(error)],
    }
}

pub(crate) fn said(outcome: &[Result<ChatDelta, LlmError>]) -> String {
    let texts = outcome.iter().filter_map(|item| match item {
        Ok(ChatDelta::Text(text)) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_host_is_read_as_ollama_reads_it() {
    for (host, expected) in [
        ("http://localhost:11434", Some("http://localhost:11434/")),
        ("http://localhost:11434/", Some("http://localhost:11434/")),
        ("localhost", Some("http://localhost:11434/")),
        ("127.0.0.1:8080", Some("http://127.0.0.1:8080/")),
        ("example.com:80", Some("http://example.com/")),
        (":1234", Some("http://localhost:1234/")),
        ("0.0.0.0", Some("http://127.0.0.1:11434/")),
        ("[::]:11434", Some("http://[::1]:11434/")),
        (
            "https://example.com/ollama",
            Some("https://example.com/ollama"),
        ),
        ("https://example.com", Some("https://example.com/")),
        ("", None),
        ("ftp://example.com", None),
        ("http://bad host", None),
    ] {
        let url = base_url(host).map(|url| url.to_string());
        assert_eq!(url.as_deref(), expected, "{host}");
    }
}

#[test]
fn the_request_is_what_ollama_takes() {
    let full = full_request();
    let body = serde_json::to_value(request::body(&full, Think::On, "10m")).unwrap();
    insta::assert_json_snapshot!("request", body);
    let plain = request::body(&request("Hi"), Think::Off, "10m").fields;
    assert_eq!(plain["think"], json!(false));
    assert_eq!(
        plain["options"],
        json!({"num_ctx": 8192, "temperature": 0.7})
    );
    assert_eq!(plain.get("tools"), None);
    assert_eq!(
        request::body(&request("Hi"), Think::Unsaid, "10m")
            .fields
            .get("think"),
        None
    );
    let wanted = AnswerSchema {
        name: "city".to_owned(),
        schema: json!({"type": "object"}),
        strict: None,
    };
    for (form, format) in [
        (None, None),
        (Some(ReplyForm::Call), None),
        (Some(ReplyForm::Json), Some(json!("json"))),
        (
            Some(ReplyForm::Schema(wanted)),
            Some(json!({"type": "object"})),
        ),
    ] {
        let asked = ChatRequest {
            form,
            ..request("Hi")
        };
        let body = request::body(&asked, Think::Off, "10m").fields;
        assert_eq!(body.get("format").cloned(), format);
    }
}

#[tokio::test]
async fn a_call_streams_its_answer() {
    let fake = FakeModel::start();
    fake.script([
        Step::Thinking("Hm.".to_owned()),
        Step::text("Hel"),
        Step::text("lo"),
        Step::tool_call("todo", json!({"action": "list"})),
        Step::Finish {
            reason: "length".to_owned(),
            prompt_tokens: 7,
            completion_tokens: 3,
        },
    ]);
    let outcome = answer(&backend(&fake.url()), request("Hi")).await;
    insta::assert_debug_snapshot!(outcome);
    let chats = fake.chats();
    assert_eq!(chats.len(), 1);
    assert_eq!(chats[0].body["think"], json!(true));
    fake.assert_clean();
}

#[tokio::test]
async fn the_whole_request_keeps_the_rules() {
    let fake = FakeModel::start();
    answer(&backend(&fake.url()), full_request()).await;
    fake.assert_clean();
}

#[tokio::test]
async fn a_model_that_cannot_think_is_asked_again_without() {
    let fake = FakeModel::start();
    let refusal = r#"{"error":"\"fake\" does not support thinking"}"#;
    fake.script([Step::status(400, refusal)]);
    let backend = backend(&fake.url());
    let outcome = answer(&backend, request("Hi")).await;
    assert_eq!(said(&outcome), "You said: Hi");
    answer(&backend, request("Again")).await;
    let thinks: Vec<Option<Value>> = fake
        .chats()
        .iter()
        .map(|chat| chat.body.get("think").cloned())
        .collect();
    assert_eq!(thinks, [Some(json!(true)), None, Some(json!(false))]);
    fake.assert_clean();
}

#[tokio::test]
async fn a_second_refusal_is_told() {
    let fake = FakeModel::start();
    let refusal = r#"{"error":"\"fake\" does not support thinking"}"#;
    fake.script([Step::status(400, refusal)]);
    fake.script([Step::status(400, refusal)]);
    let outcome = answer(&backend(&fake.url()), request("Hi")).await;
    assert!(
        matches!(
            outcome.as_slice(),
            [Err(LlmError::Rejected { status: 400, .. })]
        ),
        "{outcome:?}"
    );
    assert_eq!(fake.chats().len(), 2);
}

#[tokio::test]
async fn thinking_is_not_asked_of_a_model_without_it() {
    let fake = FakeModel::start();
    fake.configure(crate::llm::fake_model::Config {
        capabilities: vec!["completion".to_owned()],
        ..Default::default()
    });
    let backend = backend(&fake.url());
    backend.probe().await;
    answer(&backend, request("Hi")).await;
    assert_eq!(fake.chats()[0].body["think"], json!(false));
}

#[tokio::test]
async fn a_broken_answer_says_how_it_broke() {
    let fake = FakeModel::start();
    let backend = backend(&fake.url());
    for (steps, expected) in [
        (
            vec![Step::text("a"), Step::Error("boom".to_owned())],
            LlmError::MidStream {
                message: "boom".to_owned(),
            },
        ),
        (vec![Step::text("a"), Step::Close], LlmError::EndedEarly),
        (vec![Step::text("a"), Step::End], LlmError::EndedEarly),
        (vec![Step::Begin, Step::Close], LlmError::EndedEarly),
    ] {
        fake.script(steps.clone());
        let outcome = answer(&backend, request("Hi")).await;
        assert_eq!(outcome.last(), Some(&Err(expected)), "{steps:?}");
    }
    fake.script([Step::text("a"), Step::Raw("<garbage>\n".to_owned())]);
    let outcome = answer(&backend, request("Hi")).await;
    assert!(
        matches!(outcome.last(), Some(Err(LlmError::Malformed { .. }))),
        "{outcome:?}"
    );
    fake.assert_clean();
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let fake = FakeModel::start();
    let backend = backend(&fake.url());
    fake.script([Step::text("a"), Step::Silence]);
    let mut stream = backend.chat(request("Hi").into()).await.unwrap();
    assert_eq!(
        stream.next().await,
        Some(Ok(ChatDelta::Text("a".to_owned())))
    );
    drop(stream);
    fake.wait_for(|chats| chats[0].closed_early_ms.is_some())
        .await;
}

#[tokio::test]
async fn dropping_a_call_without_headers_closes_the_connection() {
    let fake = FakeModel::start();
    let backend = backend(&fake.url());
    fake.script([Step::Silence]);
    let call = tokio::spawn(async move { backend.chat(request("Hi").into()).await.is_ok() });
    fake.wait_for(|chats| !chats.is_empty()).await;
    call.abort();
    fake.wait_for(|chats| chats[0].closed_early_ms.is_some())
        .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let backend = backend(&format!("http://127.0.0.1:{port}"));
    let outcome = answer(&backend, request("Hi")).await;
    let [Err(LlmError::Unreachable { reason, .. })] = outcome.as_slice() else {
        panic!("{outcome:?}");
    };
    assert_eq!(*reason, PhraseCode::ConnectionRefused.into());
    let probe = backend.probe().await;
    let trouble = probe.state.trouble().unwrap();
    assert_eq!(trouble.remedy, PhraseCode::StartOllama.into());
    assert_eq!(trouble.problem.code, PhraseCode::ServerSilent);
    let BackendState::Down {
        problem, remedy, ..
    } = probe.state
    else {
        panic!("{trouble:?}");
    };
    assert_eq!(problem, trouble.problem.to_string());
    assert!(remedy.contains("ollama serve"), "{remedy}");
}

#[tokio::test]
async fn refusals_of_a_server_are_understood() {
    let fake = FakeModel::start();
    let backend = backend(&fake.url());
    let unknown = ChatRequest {
        model: "nope".to_owned(),
        ..request("Hi")
    };
    let outcome = answer(&backend, unknown).await;
    assert!(
        matches!(outcome.as_slice(), [Err(LlmError::ModelNotFound { model, .. })] if model == "nope"),
        "{outcome:?}"
    );
    let headers = [("Retry-After".to_owned(), "2".to_owned())];
    fake.script([Step::Respond {
        status: 503,
        headers: headers.into(),
        body: r#"{"error":"server busy"}"#.to_owned(),
    }]);
    let outcome = answer(&backend, request("Hi")).await;
    let busy = LlmError::Busy {
        status: 503,
        message: "server busy".to_owned(),
        retry_after: Some(Duration::from_secs(2)),
    };
    assert_eq!(outcome, [Err(busy)]);
}

#[tokio::test]
async fn a_probe_trusts_show_over_tags_and_asks_each_model_once() {
    let server = MockServer::start().await;
    let file = |name: &str| fs::read(fixtures().join("ollama").join(name)).unwrap();
    let get = |at: &str, body: Vec<u8>| {
        Mock::given(method("GET"))
            .and(path(at.to_owned()))
            .respond_with(ResponseTemplate::new(200).set_body_raw(body, "application/json"))
    };
    get("/api/version", br#"{"version":"0.33.0-rc2"}"#.to_vec())
        .mount(&server)
        .await;
    get("/api/tags", file("tags.json"))
        .expect(2)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .and(path("/api/show"))
        .respond_with(
            ResponseTemplate::new(200).set_body_raw(file("show.json"), "application/json"),
        )
        .expect(2)
        .mount(&server)
        .await;
    let backend = backend(&server.uri());
    let first = backend.probe().await;
    insta::assert_debug_snapshot!(first);
    assert_eq!(backend.probe().await, first);
}

#[tokio::test]
async fn a_server_without_models_says_what_to_do() {
    let fake = FakeModel::start();
    fake.configure(crate::llm::fake_model::Config {
        models: Vec::new(),
        ..Default::default()
    });
    let probe = backend(&fake.url()).probe().await;
    let BackendState::Down { remedy, .. } = &probe.state else {
        panic!("{probe:?}");
    };
    assert_eq!(remedy, "run `ollama pull fake`");
    assert_eq!(probe.default_model, None);
}

#[tokio::test]
async fn the_finish_is_told_in_our_words() {
    let fake = FakeModel::start();
    let backend = backend(&fake.url());
    for (reason, expected) in [
        ("stop", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("unload", FinishReason::Other),
    ] {
        fake.script([Step::Finish {
            reason: reason.to_owned(),
            prompt_tokens: 0,
            completion_tokens: 0,
        }]);
        let outcome = answer(&backend, request("Hi")).await;
        let done = ChatDelta::Done {
            finish: expected,
            usage: None,
        };
        assert_eq!(outcome, [Ok(done)], "{reason}");
    }
}
