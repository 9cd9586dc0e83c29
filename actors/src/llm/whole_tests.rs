//! Whole answers and strict templates, by both HTTP backends alike.

use serde_json::{Value, json};

use super::fake_model::{Config, FakeModel, Reply, Step, Template};
use super::ollama::tests::{answer, full_request, request, said};
use super::ollama::{OllamaBackend, OllamaConfig};
use super::openai::{OpenAiBackend, OpenAiConfig};
use super::{Backend, LlmError};
use crate::protocol::chat::{
    ChatDelta, ChatMessage, ChatRequest, FinishReason, RequestedCall, Usage,
};

/// Both of them towards one server.
fn backends(fake: &FakeModel) -> [Box<dyn Backend>; 2] {
    let config = OpenAiConfig {
        base_url: fake.url(),
        api_key: None,
        default_model: None,
    };
    [
        Box::new(OllamaBackend::new(OllamaConfig::new(fake.url(), "fake")).unwrap()),
        Box::new(OpenAiBackend::new(config).unwrap()),
    ]
}

fn whole(content: &str) -> ChatRequest {
    ChatRequest {
        streamed: false,
        ..request(content)
    }
}

fn finish() -> Step {
    Step::Finish {
        reason: "stop".to_owned(),
        prompt_tokens: 7,
        completion_tokens: 3,
    }
}

fn done() -> ChatDelta {
    ChatDelta::Done {
        finish: FinishReason::Stop,
        usage: Some(Usage {
            prompt_tokens: 7,
            completion_tokens: 3,
            cached_tokens: None,
        }),
    }
}

#[tokio::test]
async fn a_whole_answer_becomes_the_same_deltas() {
    let fake = FakeModel::start();
    for backend in backends(&fake) {
        fake.script(
            Reply::new([
                Step::Thinking("Hm.".to_owned()),
                Step::text("Hel"),
                Step::text("lo"),
                Step::tool_call("todo", json!({"action": "list"})),
                finish(),
            ])
            .streamed(false),
        );
        let outcome = answer(backend.as_ref(), whole("Hi")).await;
        let expected = [
            Ok(ChatDelta::Thinking("Hm.".to_owned())),
            Ok(ChatDelta::Text("Hello".to_owned())),
            Ok(ChatDelta::ToolCall(RequestedCall {
                name: "todo".to_owned(),
                arguments: json!({"action": "list"}),
            })),
            Ok(done()),
        ];
        assert_eq!(outcome, expected, "{:?}", backend.kind());
    }
    for chat in fake.chats() {
        assert_eq!(chat.body["stream"], json!(false));
        assert_eq!(chat.body.get("stream_options"), None);
    }
    fake.assert_clean();
}

#[tokio::test]
async fn reasoning_in_tags_is_no_part_of_a_whole_answer() {
    let fake = FakeModel::start();
    for backend in backends(&fake) {
        for (sent, expected) in [
            ("<think>a</think>\n\nb", "b"),
            ("<think>a</think>", ""),
            ("<think>a", ""),
        ] {
            fake.script(Reply::new([Step::text(sent), finish()]).streamed(false));
            let outcome = answer(backend.as_ref(), whole("Hi")).await;
            assert_eq!(said(&outcome), expected, "{sent}");
            assert_eq!(
                outcome.first(),
                Some(&Ok(ChatDelta::Thinking("a".to_owned())))
            );
            assert_eq!(outcome.last(), Some(&Ok(done())));
        }
    }
}

/// A server that streams to those who want a whole answer, and the other way round.
#[tokio::test]
async fn an_answer_of_the_other_kind_is_taken() {
    let line = r#"{"message":{"content":"Hi"},"done":false}"#;
    let last = r#"{"message":{"content":""},"done":true,"prompt_eval_count":7,"eval_count":3}"#;
    let ollama = [
        format!("{line}\n{last}\n"),
        format!("data: {line}\n\ndata: {last}\n\n"),
        "{\n \"message\": {\"content\": \"Hi\"},\n \"done\": true,\n \"prompt_eval_count\": 7, \"eval_count\": 3\n}".to_owned(),
    ];
    let usage = r#""usage":{"prompt_tokens":7,"completion_tokens":3}"#;
    let chunk =
        format!(r#"{{"choices":[{{"delta":{{"content":"Hi"}},"finish_reason":"stop"}}],{usage}}}"#);
    let completion = format!(r#"{{"choices":[{{"message":{{"content":"Hi"}}}}],{usage}}}"#);
    let openai = [
        format!("data: {chunk}\n\ndata: [DONE]\n\n"),
        format!("{chunk}\n"),
        format!("\n\n  {completion}"),
    ];
    let fake = FakeModel::start();
    for (backend, bodies) in backends(&fake).iter().zip([ollama, openai]) {
        for body in bodies {
            for streamed in [false, true] {
                fake.script(
                    Reply::new([Step::Respond {
                        status: 200,
                        headers: [("content-type".to_owned(), "text/plain".to_owned())].into(),
                        body: body.clone(),
                    }])
                    .streamed(streamed),
                );
                let asked = ChatRequest {
                    streamed,
                    ..request("Hi")
                };
                let outcome = answer(backend.as_ref(), asked).await;
                let hi = ChatDelta::Text("Hi".to_owned());
                assert_eq!(outcome, [Ok(hi), Ok(done())], "{streamed}: {body}");
            }
        }
    }
}

#[tokio::test]
async fn a_whole_answer_that_breaks_says_how() {
    let fake = FakeModel::start();
    for backend in backends(&fake) {
        let server = LlmError::Server {
            status: 500,
            message: "boom".to_owned(),
        };
        let in_answer = LlmError::MidStream {
            message: "boom".to_owned(),
        };
        for (step, expected) in [
            (Step::End, LlmError::EndedEarly),
            (Step::Close, LlmError::EndedEarly),
            (Step::Error("boom".to_owned()), server),
            (Step::Raw(r#"{"error":"boom"}"#.to_owned()), in_answer),
        ] {
            fake.script(Reply::new([Step::text("Hello there"), step.clone()]).streamed(false));
            let outcome = answer(backend.as_ref(), whole("Hi")).await;
            assert_eq!(outcome, [Err(expected)], "{:?}, {step:?}", backend.kind());
        }
    }
    fake.assert_clean();
}

#[tokio::test]
async fn a_server_that_only_streams_is_asked_for_a_stream() {
    let fake = FakeModel::start();
    let refusal = r#"{"error":{"message":"This model only support stream mode, please enable the stream parameter"}}"#;
    fake.script(Reply::new([Step::status(400, refusal)]).streamed(false));
    let [_, openai] = backends(&fake);
    let outcome = answer(openai.as_ref(), whole("Hi")).await;
    assert_eq!(said(&outcome), "You said: Hi");
    let streamed: Vec<Value> = fake
        .chats()
        .iter()
        .map(|chat| chat.body["stream"].clone())
        .collect();
    assert_eq!(streamed, [json!(false), json!(true)]);
}

/// A conversation of somebody who is remembered.
fn remembered() -> ChatRequest {
    let mut request = full_request();
    let asked = ChatMessage::User {
        content: "And now?".to_owned(),
        images: Vec::new(),
    };
    request.messages.push(asked.into());
    let memory = ChatMessage::System {
        content: "## What I remember".to_owned(),
    };
    request.messages.insert(1, memory.into());
    request
}

#[tokio::test]
async fn a_strict_template_gets_its_order_and_from_then_on_at_once() {
    for (template, first, then) in [
        (Template::SystemFirst, 2, 1),
        (Template::Alternating, 2, 1),
        (Template::NoSystem, 3, 1),
        (Template::Any, 1, 1),
    ] {
        let fake = FakeModel::start();
        fake.configure(Config {
            template,
            ..Config::default()
        });
        for backend in backends(&fake) {
            for calls in [first, then] {
                let before = fake.chats().len();
                let outcome = answer(backend.as_ref(), remembered()).await;
                assert!(
                    matches!(outcome.last(), Some(Ok(ChatDelta::Done { .. }))),
                    "{template:?}: {outcome:?}"
                );
                assert_eq!(fake.chats().len() - before, calls, "{template:?}");
            }
            let body = fake.chats().pop().unwrap().body;
            let messages = body["messages"].as_array().unwrap();
            let systems = messages.iter().filter(|it| it["role"] == "system").count();
            let taken = match template {
                Template::Any => 2,
                Template::SystemFirst | Template::Alternating => 1,
                Template::NoSystem => 0,
            };
            assert_eq!(systems, taken, "{template:?}: {body}");
        }
        fake.assert_clean();
    }
}

#[tokio::test]
async fn a_template_that_takes_no_order_is_told_of() {
    let fake = FakeModel::start();
    let refusal = r#"{"error":"Conversation roles must alternate"}"#;
    for backend in backends(&fake) {
        for _ in 0..3 {
            fake.script([Step::status(400, refusal)]);
        }
        let outcome = answer(backend.as_ref(), remembered()).await;
        assert!(
            matches!(
                outcome.as_slice(),
                [Err(LlmError::RolesRefused { status: 400, .. })]
            ),
            "{outcome:?}"
        );
        fake.assert_clean();
        // Nothing was learnt from that.
        fake.script([Step::text("fine")]);
        answer(backend.as_ref(), remembered()).await;
        let last = fake.chats().pop().unwrap();
        let messages = last.body["messages"].as_array().unwrap();
        assert_eq!(messages[1]["role"], json!("system"));
    }
}
