use std::fs;

use serde_json::{Value, json};
use wiremock::matchers::{header, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::domain::context::overflow::Overflow;
use crate::llm::fake_model::{Config, FakeModel, Recorded, Step};
use crate::llm::fixture_tests::fixtures;
use crate::llm::ollama::request::{Think, body as ollama_body};
use crate::llm::ollama::tests::{answer, full_request, request, said};
use crate::protocol::chat::{AnswerSchema, ChatDelta, ChatMessage, FinishReason, ReplyForm};
use crate::protocol::ids::CallId;
use crate::protocol::message::ToolCall;

const DONE: ChatDelta = ChatDelta::Done {
    finish: FinishReason::Stop,
    usage: None,
};

fn config(url: &str) -> OpenAiConfig {
    OpenAiConfig {
        base_url: url.to_owned(),
        api_key: Some("secret-key".to_owned()),
        default_model: None,
    }
}

fn backend(url: &str) -> OpenAiBackend {
    OpenAiBackend::new(config(url)).unwrap()
}

#[test]
fn what_was_written_for_one_kind_of_server_or_before_a_change_is_not_sent() {
    let base = Url::parse("http://localhost/v1").unwrap();
    let openai = |request: &ChatRequest| json!(request::body(request, Flavour::Plain, &base));
    let ollama = |request: &ChatRequest| json!(ollama_body(request, Think::Unsaid, "5m"));
    let (mut one, other) = (full_request(), full_request());
    let (as_openai, as_ollama) = (openai(&one), ollama(&other));
    assert_eq!((openai(&other), ollama(&one)), (as_openai, as_ollama));

    let before = one.clone();
    one.messages[0] = ChatMessage::System {
        content: "Be brief.".to_owned(),
    }
    .into();
    if let ChatMessage::User { content, .. } = one.messages[1].to_mut() {
        content.push('!');
    }
    let (changed, same) = (openai(&one), openai(&before));
    assert_eq!(changed["messages"][0]["content"], "Be brief.");
    assert_ne!(changed["messages"][1], same["messages"][1]);
    assert_eq!(changed["messages"][2], same["messages"][2]);
    assert_eq!(same, openai(&full_request()));
}

#[test]
fn the_request_is_what_the_api_takes() {
    let base = Url::parse("http://localhost/v1").unwrap();
    let full = full_request();
    let body = request::body(&full, Flavour::Plain, &base);
    insta::assert_json_snapshot!("request", serde_json::to_value(body).unwrap());
    let asked = request("Hi");
    let llama = request::body(&asked, Flavour::LlamaCpp, &base).fields;
    assert_eq!(
        llama["chat_template_kwargs"],
        json!({"enable_thinking": true})
    );
    assert_eq!(llama["return_progress"], json!(true));
    let hosted = Url::parse("https://api.openai.com/v1").unwrap();
    let body = request::body(&full, Flavour::Plain, &hosted).fields;
    assert_eq!(body["max_completion_tokens"], json!(50));
    assert_eq!(body.get("max_tokens"), None);
}

#[test]
fn a_hosted_service_is_told_by_its_own_switch_whether_to_think() {
    let asked = |think| crate::protocol::chat::ChatRequest {
        think,
        ..request("Hi")
    };
    for (base, on, off) in [
        (
            "https://api.deepseek.com/v1",
            json!({"thinking": {"type": "enabled"}}),
            json!({"thinking": {"type": "disabled"}}),
        ),
        (
            "https://openrouter.ai/api/v1",
            json!({"reasoning": {"enabled": true}}),
            json!({"reasoning": {"enabled": false}}),
        ),
        (
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            json!({"enable_thinking": true}),
            json!({"enable_thinking": false}),
        ),
        ("https://notdeepseek.com/v1", json!({}), json!({})),
    ] {
        for (think, wanted) in [(true, on), (false, off)] {
            let url = Url::parse(base).unwrap();
            let mut body = request::body(&asked(think), Flavour::Plain, &url).fields;
            body.retain(|field, _| {
                ["thinking", "reasoning", "enable_thinking"].contains(&field.as_str())
            });
            assert_eq!(Value::from(body), wanted, "{base}");
        }
    }
}

#[test]
fn what_needs_its_reasoning_beside_calls_does_not_think_there() {
    let thinks = |base: &str, asked: &ChatRequest| {
        let url = Url::parse(base).unwrap();
        let body = request::body(asked, Flavour::Plain, &url).fields;
        body["thinking"]["type"] == json!("enabled")
    };
    let bare = ChatRequest {
        think: true,
        ..request("Hi")
    };
    let called = ChatRequest {
        think: true,
        tools: bare.tools.clone(),
        ..full_request()
    };
    let offered = ChatRequest {
        tools: full_request().tools,
        ..bare.clone()
    };
    for base in [
        "https://api.deepseek.com/v1",
        "https://api.moonshot.ai/v1",
        "https://api.moonshot.cn/v1",
        "https://api.kimi.com/coding/v1",
    ] {
        let thinking = [&bare, &offered, &called].map(|asked| thinks(base, asked));
        assert_eq!(thinking, [true, false, false], "{base}");
    }
}

#[test]
fn a_model_that_signs_its_calls_is_sent_them_with_what_it_takes_for_any_signature() {
    let asked = |model: &str| ChatRequest {
        model: model.to_owned(),
        ..full_request()
    };
    let (new, old) = (asked("models/gemini-3-pro"), asked("gemini-2.5-pro"));
    let signature = |base: &str, asked: &ChatRequest| {
        let url = Url::parse(base).unwrap();
        let body = json!(request::body(asked, Flavour::Plain, &url));
        body["messages"][2]["tool_calls"][0]["extra_content"].clone()
    };
    let google = "https://generativelanguage.googleapis.com/v1beta/openai";
    let any = json!({"google": {"thought_signature": "skip_thought_signature_validator"}});
    assert_eq!(signature("http://localhost/v1", &new), Value::Null);
    assert_eq!(signature(google, &new), any);
    assert_eq!(signature("http://localhost/v1", &new), Value::Null);
    assert_eq!(signature(google, &old), Value::Null);
}

#[test]
fn what_a_reply_has_to_be_is_said_as_such_servers_have_it() {
    let schema = AnswerSchema {
        name: "city".to_owned(),
        schema: json!({"type": "object"}),
        strict: Some(true),
    };
    let wanted = json!({"name": "city", "schema": {"type": "object"}, "strict": true});
    for (form, expected) in [
        (ReplyForm::Call, json!({"tool_choice": "required"})),
        (
            ReplyForm::Json,
            json!({"response_format": {"type": "json_object"}}),
        ),
        (
            ReplyForm::Schema(schema),
            json!({"response_format": {"type": "json_schema", "json_schema": wanted}}),
        ),
    ] {
        let asked = crate::protocol::chat::ChatRequest {
            form: Some(form),
            ..request("Hi")
        };
        let url = Url::parse("http://localhost/v1").unwrap();
        let mut body = request::body(&asked, Flavour::Plain, &url).fields;
        body.retain(|field, _| ["response_format", "tool_choice"].contains(&field.as_str()));
        for field in body.keys() {
            let refusal = format!("`{field}` is not supported");
            let dispensable = request::dispensable_field(&body, &refusal);
            assert_eq!(dispensable, Some(field.as_str()));
        }
        assert_eq!(Value::from(body), expected);
    }
}

#[test]
fn the_key_is_never_shown() {
    let backend = backend("http://localhost:8080");
    let shown = format!("{backend:?} {:?}", backend.config);
    assert!(!shown.contains("secret-key"), "{shown}");
}

#[test]
fn a_key_that_cannot_be_one_is_refused() {
    let broken = OpenAiConfig {
        api_key: Some("two\nlines".to_owned()),
        ..config("http://localhost")
    };
    assert!(matches!(
        OpenAiBackend::new(broken),
        Err(LlmError::NotReady { .. })
    ));
    assert!(matches!(
        OpenAiBackend::new(config("::")),
        Err(LlmError::NotReady { .. })
    ));
}

#[tokio::test]
async fn a_call_streams_its_answer() {
    let fake = FakeModel::start();
    fake.script([
        Step::Prefill { read: 3, total: 9 },
        Step::Thinking("Hm.".to_owned()),
        Step::text("Hel"),
        Step::text("lo"),
        Step::tool_call("todo", json!({"action": "list", "wo": "ü"})),
        Step::tool_call("todo", json!({})),
    ]);
    let outcome = answer(&backend(&fake.url()), request("Hi")).await;
    insta::assert_debug_snapshot!(outcome);
    let chats = fake.chats();
    let sent = |name: &str| chats[0].headers.iter().find(|(known, _)| known == name);
    assert_eq!(sent("authorization").unwrap().1, "Bearer secret-key");
    assert_eq!(sent("accept-encoding"), None);
    fake.assert_clean();
}

#[tokio::test]
async fn the_whole_request_keeps_the_rules() {
    let fake = FakeModel::start();
    answer(&backend(&fake.url()), full_request()).await;
    fake.assert_clean();
}

/// Answers with this body, in place of a stream.
fn raw(body: &str) -> Step {
    let headers = [("content-type".to_owned(), "text/event-stream".to_owned())];
    Step::Respond {
        status: 200,
        headers: headers.into(),
        body: body.to_owned(),
    }
}

const HI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

#[tokio::test]
async fn an_end_is_known_in_its_forms() {
    let fake = FakeModel::start();
    let backend = backend(&fake.url());
    let hi = Ok(ChatDelta::Text("Hi".to_owned()));
    for (body, expected) in [
        (format!("{HI}{STOP}data: [DONE]\n\n"), Ok(DONE)),
        (format!("{HI}{STOP}"), Ok(DONE)),
        (format!("{HI}data: [DONE]\n\n"), Ok(DONE)),
        (HI.to_owned(), Err(LlmError::EndedEarly)),
        (format!("{HI}{STOP}data: {{\"choi"), Ok(DONE)),
        (format!("{HI}: ping\n\ndata: null\n\ndata:\n\n{STOP}"), Ok(DONE)),
        (
            format!("{HI}data: {{\"error\":\"boom\"}}\n\n"),
            Err(LlmError::MidStream {
                message: "boom".to_owned(),
            }),
        ),
        (
            format!("{HI}event: error\ndata: {{\"message\":\"boom\"}}\n\n"),
            Err(LlmError::MidStream {
                message: "boom".to_owned(),
            }),
        ),
        (
            format!("{HI}data: {{\"choices\":[{{\"error\":{{\"message\":\"boom\"}},\"finish_reason\":\"error\"}}]}}\n\n"),
            Err(LlmError::MidStream {
                message: "boom".to_owned(),
            }),
        ),
        (
            r#"{"object":"chat.completion","choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#.to_owned(),
            Ok(DONE),
        ),
    ] {
        fake.script([raw(&body)]);
        let outcome = answer(&backend, request("Hi")).await;
        assert_eq!(outcome, [hi.clone(), expected], "{body}");
    }
}

#[tokio::test]
async fn an_error_before_the_first_word_is_what_it_says() {
    let fake = FakeModel::start();
    let backend = backend(&fake.url());
    for (body, expected) in [
        (
            r#"{"error":{"code":429,"message":"later"}}"#,
            LlmError::Busy {
                status: 429,
                message: "later".to_owned(),
                retry_after: None,
            },
        ),
        (
            r#"{"error":{"code":400,"message":"no"}}"#,
            LlmError::Rejected {
                status: 400,
                message: "no".to_owned(),
            },
        ),
        (
            r#"{"error":{"message":"maximum context length is 8"}}"#,
            LlmError::ContextOverflow {
                message: "maximum context length is 8".to_owned(),
                told: Overflow {
                    window: Some(8),
                    prompt: None,
                },
            },
        ),
    ] {
        fake.script([raw(body)]);
        assert_eq!(
            answer(&backend, request("Hi")).await,
            [Err(expected.clone())]
        );
        fake.script([raw(&format!("data: {body}\n\n"))]);
        assert_eq!(answer(&backend, request("Hi")).await, [Err(expected)]);
    }
}

#[tokio::test]
async fn a_refusal_within_an_answer_is_heeded_as_any_other() {
    for refusal in [
        "event: error\ndata: {\"error\":{\"message\":\"Conversation roles must alternate\"}}\n\n",
        "event: error\ndata: {\"status_code\":400,\"message\":\"temperature is not supported\"}\n\n",
        "data: {\"error\":{\"code\":400,\"message\":\"temperature is not supported\"}}\n\n",
    ] {
        let fake = FakeModel::start();
        fake.script([raw(refusal)]);
        let mut asked = request("Hi");
        let led = ChatMessage::System {
            content: "Be kind.".to_owned(),
        };
        asked.messages.insert(0, led.into());
        let outcome = answer(&backend(&fake.url()), asked).await;
        let end = outcome.last().unwrap().as_ref().map(drop);
        assert_eq!(end, Ok(()), "{refusal}");
        assert_eq!(fake.chats().len(), 2, "{refusal}");
    }
}

#[tokio::test]
async fn a_server_that_keeps_the_connection_open_after_its_answer_does_not_hold_it() {
    let fake = FakeModel::start();
    let backend = backend(&fake.url());
    fake.script([Step::Raw(format!("{HI}{STOP}")), Step::Silence]);
    let outcome = answer(&backend, request("Hi")).await;
    assert_eq!(outcome, [Ok(ChatDelta::Text("Hi".to_owned())), Ok(DONE)]);
    fake.wait_for(|chats| chats[0].closed_early_ms.is_some())
        .await;
}

#[tokio::test]
async fn reasoning_in_tags_is_reasoning() {
    let fake = FakeModel::start();
    fake.script(["<thi", "nk>a", "b</", "think>\n\nc"].map(Step::text));
    let outcome = answer(&backend(&fake.url()), request("Hi")).await;
    assert_eq!(said(&outcome), "c");
    assert!(
        outcome.contains(&Ok(ChatDelta::Thinking("a".to_owned()))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_field_that_a_server_refuses_is_left_out() {
    for (field, status, refusal) in [
        (
            "stream_options",
            400,
            r#"{"error":{"message":"Unrecognized request argument supplied: stream_options"}}"#,
        ),
        (
            "chat_template_kwargs",
            400,
            r#"{"object":"error","message":"chat_template is not supported for Mistral tokenizers.","code":400}"#,
        ),
        (
            "stream_options",
            422,
            r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options","include_usage"],"msg":"Extra inputs are not permitted","input":true}]},"code":null}"#,
        ),
    ] {
        let fake = FakeModel::start();
        fake.script([Step::status(status, refusal)]);
        let backend = backend(&fake.url());
        let vllm = Flavour::Vllm as u8;
        backend.flavour.store(vllm, Ordering::Relaxed);
        for _ in 0..2 {
            let outcome = answer(&backend, request("Hi")).await;
            assert_eq!(said(&outcome), "You said: Hi");
        }
        let has_field = |chat: &Recorded| chat.body.get(field).is_some();
        let sent: Vec<bool> = fake.chats().iter().map(has_field).collect();
        assert_eq!(sent, [true, false, false], "it is sent once: {refusal}");
    }
}

#[test]
fn a_refused_field_is_known_by_what_servers_call_it() {
    let asked = request("Hi");
    let named = |base: &str, flavour, refusal: &str| {
        let url = Url::parse(base).unwrap();
        let body = request::body(&asked, flavour, &url).fields;
        request::dispensable_field(&body, refusal)
    };
    let (local, router) = ("http://localhost/v1", "https://openrouter.ai/api/v1");
    let mandatory = "Reasoning is mandatory for this endpoint and cannot be disabled.";
    assert_eq!(named(router, Flavour::Plain, mandatory), Some("reasoning"));
    let kwargs = "Kwargs ['enable_thinking'] are not supported";
    let sent = Some("chat_template_kwargs");
    assert_eq!(named(local, Flavour::Vllm, kwargs), sent);
    assert_eq!(named(local, Flavour::Plain, kwargs), None);
}

#[tokio::test]
async fn a_limit_goes_by_the_name_that_a_server_asks_for() {
    let fake = FakeModel::start();
    let refusal = r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}"#;
    fake.script([Step::status(400, refusal)]);
    let backend = backend(&fake.url());
    let asked = || ChatRequest {
        max_output_tokens: Some(50),
        ..request("Hi")
    };
    for _ in 0..2 {
        let outcome = answer(&backend, asked()).await;
        assert_eq!(said(&outcome), "You said: Hi");
    }
    let limits = |chat: &Recorded| {
        let body = &chat.body;
        json!([body.get("max_tokens"), body.get("max_completion_tokens")])
    };
    let sent: Vec<Value> = fake.chats().iter().map(limits).collect();
    let (old, new) = (json!([50, null]), json!([null, 50]));
    assert_eq!(sent, [old, new.clone(), new]);
}

#[tokio::test]
async fn a_model_that_takes_no_images_is_told_of_them() {
    for (status, refusal) in [
        (
            400,
            r#"{"error":{"message":"Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text` at line 1 column 99"}}"#,
        ),
        (
            404,
            r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#,
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"}}"#,
        ),
    ] {
        let fake = FakeModel::start();
        fake.script([Step::status(status, refusal)]);
        let backend = backend(&fake.url());
        for _ in 0..2 {
            let outcome = answer(&backend, full_request()).await;
            assert_eq!(
                outcome.last().unwrap().as_ref().map(drop),
                Ok(()),
                "{refusal}"
            );
        }
        let shows = |chat: &Recorded| chat.body.to_string().contains("image_url");
        let sent: Vec<bool> = fake.chats().iter().map(shows).collect();
        assert_eq!(sent, [true, false, false], "{refusal}");
        let told = fake.chats()[1].body.to_string();
        assert!(told.contains("this model takes no images"), "{told}");
    }
    // One image is wrong, and not the model.
    let fake = FakeModel::start();
    let refusal = r#"{"error":{"message":"Invalid base64 image_url."}}"#;
    fake.script([Step::status(400, refusal)]);
    let outcome = answer(&backend(&fake.url()), full_request()).await;
    assert!(
        matches!(outcome.as_slice(), [Err(LlmError::Rejected { .. })]),
        "{outcome:?}"
    );
}

#[test]
fn calls_have_ids_that_every_server_takes() {
    let call = |id: &str| ToolCall {
        id: CallId(id.to_owned()),
        name: "files".to_owned(),
        arguments: json!({}),
    };
    let calls = [
        call(&CallId::new().to_string()),
        call("call_of-another.program"),
    ];
    let result = |call: &ToolCall| ChatMessage::Tool {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: "done".to_owned(),
    };
    let mut asked = request("Hi");
    let called = ChatMessage::Assistant {
        content: String::new(),
        tool_calls: calls.to_vec(),
    };
    asked.messages.push(called.into());
    asked
        .messages
        .extend(calls.iter().map(|it| result(it).into()));
    let base = Url::parse("http://localhost/v1").unwrap();
    let body = json!(request::body(&asked, Flavour::Plain, &base));
    let [.., called, first, second] = body["messages"].as_array().unwrap().as_slice() else {
        panic!("{body}");
    };
    let made: Vec<&str> = [0, 1]
        .map(|at| called["tool_calls"][at]["id"].as_str().unwrap())
        .into();
    // Mistral's: "must be a-z, A-Z, 0-9, with a length of 9".
    let is_taken = |id: &&str| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    assert!(made.iter().all(is_taken) && made[0] != made[1], "{made:?}");
    assert_eq!(
        [&first["tool_call_id"], &second["tool_call_id"]],
        [made[0], made[1]]
    );
}

#[tokio::test]
async fn what_is_wrong_with_one_programs_form_is_left_out_of_that_request_alone() {
    let fake = FakeModel::start();
    let refusal = r#"{"error":{"message":"Invalid schema for response_format 'city': In context=('properties', 'temperature'): no"}}"#;
    fake.script([Step::status(400, refusal)]);
    let backend = backend(&fake.url());
    let asked = || crate::protocol::chat::ChatRequest {
        form: Some(ReplyForm::Schema(AnswerSchema {
            name: "city".to_owned(),
            schema: json!({"type": "object", "properties": {"temperature": {}}}),
            strict: Some(true),
        })),
        temperature: 0.5,
        ..request("Hi")
    };
    for _ in 0..2 {
        answer(&backend, asked()).await;
    }
    let has = |field: &str| -> Vec<bool> {
        let chats = fake.chats();
        let sent = chats.iter().map(|chat| chat.body.get(field).is_some());
        sent.collect()
    };
    assert_eq!(has("response_format"), [true, false, true]);
    assert_eq!(has("temperature"), [true, true, true]);
}

#[tokio::test]
async fn a_refusal_that_names_nothing_to_leave_out_is_told() {
    let fake = FakeModel::start();
    fake.script([Step::status(400, r#"{"error":{"message":"no"}}"#)]);
    let outcome = answer(&backend(&fake.url()), request("Hi")).await;
    assert!(
        matches!(
            outcome.as_slice(),
            [Err(LlmError::Rejected { status: 400, .. })]
        ),
        "{outcome:?}"
    );
    assert_eq!(fake.chats().len(), 1);
}

#[tokio::test]
async fn a_wrong_key_is_told_without_repeating_it() {
    let fake = FakeModel::start();
    fake.script([Step::status(
        401,
        r#"{"error":{"message":"Incorrect API key provided: secret-key"}}"#,
    )]);
    let backend = backend(&fake.url());
    let outcome = answer(&backend, request("Hi")).await;
    let [Err(error @ LlmError::Unauthorized { .. })] = outcome.as_slice() else {
        panic!("{outcome:?}");
    };
    assert!(!error.to_string().contains("secret-key"), "{error}");
    fake.configure(Config {
        api_key: Some("another".to_owned()),
        ..Config::default()
    });
    let probe = backend.probe().await;
    let BackendState::Down { remedy, .. } = probe.state else {
        panic!("{probe:?}");
    };
    assert!(remedy.contains("OPENAI_API_KEY"), "{remedy}");
}

#[tokio::test]
async fn neither_key_nor_conversation_follows_a_redirect_to_another_server() {
    let elsewhere = FakeModel::start();
    let fake = FakeModel::start();
    let location = format!("{}/v1/chat/completions", elsewhere.url());
    for status in [301, 302, 307, 308] {
        fake.script([Step::Respond {
            status,
            headers: [("Location".to_owned(), location.clone())].into(),
            body: String::new(),
        }]);
        let outcome = answer(&backend(&fake.url()), request("Hi")).await;
        assert!(
            matches!(outcome.as_slice(), [Err(LlmError::Rejected { .. })]),
            "{outcome:?}"
        );
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_within_the_server_is_followed() {
    let server = MockServer::start().await;
    Mock::given(path("/v1/chat/completions"))
        .respond_with(
            ResponseTemplate::new(308).insert_header("location", "/api/v1/chat/completions"),
        )
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .and(path("/api/v1/chat/completions"))
        .and(header("authorization", "Bearer secret-key"))
        .respond_with(ResponseTemplate::new(200).set_body_string(format!("{HI}{STOP}")))
        .mount(&server)
        .await;
    let outcome = answer(&backend(&server.uri()), request("Hi")).await;
    assert_eq!(said(&outcome), "Hi", "{outcome:?}");
}

#[tokio::test]
async fn a_query_of_the_base_url_goes_with_each_request_and_is_not_shown() {
    let server = MockServer::start().await;
    for (at, body) in [
        ("/d/chat/completions", format!("{HI}{STOP}")),
        ("/d/models", r#"{"data":[{"id":"m"}]}"#.to_owned()),
    ] {
        Mock::given(path(at))
            .and(query_param("api-version", "2024-10-21"))
            .respond_with(ResponseTemplate::new(200).set_body_string(body))
            .mount(&server)
            .await;
    }
    let base = format!("{}/d?api-version=2024-10-21&api-key=sesame", server.uri());
    let backend = backend(&base);
    assert_eq!(backend.probe().await.state, BackendState::Ready);
    let outcome = answer(&backend, request("Hi")).await;
    assert_eq!(said(&outcome), "Hi", "{outcome:?}");
    assert_eq!(backend.address(), format!("{}/d", server.uri()));
    let shown = format!("{backend:?} {:?}", backend.config);
    assert!(!shown.contains("sesame"), "{shown}");
    let echo = ResponseTemplate::new(401).set_body_string("no key is called sesame");
    let refused = Mock::given(path("/wrong/v1/models")).respond_with(echo);
    refused.mount(&server).await;
    let backend = self::backend(&format!("{}/wrong/v1?api-key=sesame", server.uri()));
    let told = format!("{:?}", backend.probe().await);
    assert!(!told.contains("sesame"), "{told}");
}

#[tokio::test]
async fn a_compressed_body_is_refused() {
    let fake = FakeModel::start();
    fake.script([Step::Respond {
        status: 200,
        headers: [("Content-Encoding".to_owned(), "gzip".to_owned())].into(),
        body: "nothing of the kind".to_owned(),
    }]);
    let outcome = answer(&backend(&fake.url()), request("Hi")).await;
    assert!(
        matches!(outcome.as_slice(), [Err(LlmError::Malformed { .. })]),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_probe_reads_what_servers_tell_of_their_models() {
    let server = MockServer::start().await;
    for (folder, name) in [("openai", "models"), ("ollama", "v1_models")] {
        server.reset().await;
        let body = fs::read(fixtures().join(folder).join(format!("{name}.json"))).unwrap();
        Mock::given(path("/v1/models"))
            .respond_with(ResponseTemplate::new(200).set_body_raw(body, "application/json"))
            .mount(&server)
            .await;
        Mock::given(path("/props"))
            .respond_with(ResponseTemplate::new(200).set_body_string(r#"{"total_slots":4}"#))
            .mount(&server)
            .await;
        insta::assert_debug_snapshot!(name, backend(&server.uri()).probe().await);
    }
}

#[tokio::test]
async fn a_probe_tells_every_state_apart() {
    let server = MockServer::start().await;
    let loading = r#"{"error":{"message":"Loading model"}}"#;
    let embedding = r#"{"data":[{"id":"text-embedding-m"}]}"#;
    for (status, body, expected, with_model) in [
        (503, loading, "Loading", "Loading"),
        (404, "404 page not found", "Down", "Ready"),
        (400, "a header is required", "Down", "Ready"),
        (400, "API key not valid", "Down", "Down"),
        (405, "", "Down", "Ready"),
        (501, "", "Down", "Ready"),
        (500, "", "Down", "Down"),
        (401, "", "Down", "Down"),
        (403, "", "Down", "Down"),
        (200, "<html>", "Down", "Down"),
        (200, r#"{"data":[]}"#, "Down", "Ready"),
        (200, embedding, "Down", "Ready"),
        (200, r#"{"hello":"world"}"#, "Down", "Ready"),
        (200, r#"{"data":[{"id":"m"}]}"#, "Ready", "Ready"),
    ] {
        server.reset().await;
        Mock::given(path("/v1/models"))
            .respond_with(ResponseTemplate::new(status).set_body_string(body))
            .mount(&server)
            .await;
        let configured = OpenAiConfig {
            default_model: Some("m".to_owned()),
            ..config(&server.uri())
        };
        for (config, expected) in [(config(&server.uri()), expected), (configured, with_model)] {
            let backend = OpenAiBackend::new(config).unwrap();
            let state = format!("{:?}", backend.probe().await.state);
            assert!(state.starts_with(expected), "{status} {body}: {state}");
        }
    }
}

#[test]
fn anthropic_is_asked_for_its_models_as_its_own_api_is() {
    let sent = |base: &str, name: &str| {
        let url = Url::parse(base).unwrap();
        let request = backend(base).list_request(&url).build().unwrap();
        let value = request.headers().get(name)?;
        Some(value.to_str().unwrap().to_owned())
    };
    let (theirs, another) = ("https://api.anthropic.com/v1", "https://example.com/v1");
    let key = sent(theirs, "x-api-key");
    assert_eq!(key.as_deref(), Some("secret-key"));
    let version = sent(theirs, "anthropic-version");
    assert_eq!(version.as_deref(), Some("2023-06-01"));
    assert_eq!(sent(another, "x-api-key"), None);
}

#[tokio::test]
async fn llama_cpp_is_asked_for_its_progress_once_it_is_known() {
    let server = MockServer::start().await;
    let models = fs::read(fixtures().join("openai/models.json")).unwrap();
    Mock::given(path("/v1/models"))
        .respond_with(ResponseTemplate::new(200).set_body_raw(models, "application/json"))
        .mount(&server)
        .await;
    Mock::given(path("/v1/chat/completions"))
        .respond_with(ResponseTemplate::new(200).set_body_string(format!("{HI}{STOP}")))
        .mount(&server)
        .await;
    let backend = backend(&server.uri());
    answer(&backend, request("Hi")).await;
    backend.probe().await;
    answer(&backend, request("Hi")).await;
    let requests = server.received_requests().await.unwrap();
    let progress: Vec<bool> = requests
        .iter()
        .filter(|request| request.url.path().ends_with("completions"))
        .map(|request| request.body_json::<Value>().unwrap()["return_progress"] == json!(true))
        .collect();
    assert_eq!(progress, [false, true]);
}
