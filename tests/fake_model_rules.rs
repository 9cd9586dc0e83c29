//! The fake model server itself: what it lets pass, what it tells off, and how it is driven
//! from other languages. What it streams is tested by the backends that read it.

use crate::fake_model::{self, FakeModel, Reply, Step, Template};
use reqwest::Client;
use serde_json::{Value, json};

fn client() -> Client {
    // A second one in the same process is refused, which changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

async fn post(fake: &FakeModel, path: &str, body: &Value) -> String {
    let url = format!("{}{path}", fake.url());
    let response = client().post(url).json(body).send().await.unwrap();
    response.text().await.unwrap()
}

async fn get(fake: &FakeModel, path: &str) -> Value {
    let url = format!("{}{path}", fake.url());
    client()
        .get(url)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap()
}

fn chat(messages: &Value) -> Value {
    json!({"model": "fake", "messages": messages})
}

fn ollama_call(name: &str) -> Value {
    json!({"function": {"name": name, "arguments": {}}})
}

fn ollama_result(name: &str) -> Value {
    json!({"role": "tool", "tool_name": name, "content": "ok"})
}

#[tokio::test]
async fn each_broken_rule_is_told() {
    let user = json!({"role": "user", "content": "Hi"});
    let system = json!({"role": "system", "content": "Note"});
    let calls = json!({"role": "assistant", "content": "", "tool_calls": [ollama_call("a"), ollama_call("b")]});
    let (a, b) = (ollama_result("a"), ollama_result("b"));
    for (what, messages, violations) in [
        ("in order", json!([user, calls, a, b, system]), 0),
        ("twice in order", json!([user, calls, a, b, calls, a, b]), 0),
        ("swapped", json!([user, calls, b, a]), 2),
        ("one missing", json!([user, calls, a]), 1),
        ("both missing", json!([user, calls, user]), 2),
        ("one too many", json!([user, calls, a, b, b]), 1),
        ("something between", json!([user, calls, a, system, b]), 2),
        ("a result of nothing", json!([user, a]), 1),
        (
            "an unknown role",
            json!([{"role": "narrator", "content": "x"}]),
            1,
        ),
        ("nothing at all", json!([]), 1),
        (
            "an assistant without words",
            json!([user, {"role": "assistant", "content": ""}, user]),
            1,
        ),
    ] {
        let fake = FakeModel::start();
        let answer = post(&fake, "/api/chat", &chat(&messages)).await;
        let found = fake.violations();
        assert_eq!(found.len(), violations, "{what}: {found:?}");
        assert_eq!(answer.contains("error"), violations > 0, "{what}: {answer}");
    }
}

#[tokio::test]
async fn ids_and_arguments_are_checked_in_openais_way() {
    let call = |id: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": "a", "arguments": arguments}});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "ok"});
    let assistant =
        |call: Value| json!({"role": "assistant", "content": null, "tool_calls": [call]});
    for (what, messages, violations) in [
        (
            "right",
            json!([assistant(call("1", json!("{}"))), result("1")]),
            0,
        ),
        (
            "another id",
            json!([assistant(call("1", json!("{}"))), result("2")]),
            1,
        ),
        (
            "an object",
            json!([assistant(call("1", json!({}))), result("1")]),
            1,
        ),
        (
            "broken JSON",
            json!([assistant(call("1", json!("{"))), result("1")]),
            1,
        ),
        (
            "an id used twice",
            json!([
                assistant(call("1", json!("{}"))),
                result("1"),
                assistant(call("1", json!("{}"))),
                result("1")
            ]),
            1,
        ),
    ] {
        let fake = FakeModel::start();
        post(&fake, "/v1/chat/completions", &chat(&messages)).await;
        let found = fake.violations();
        assert_eq!(found.len(), violations, "{what}: {found:?}");
    }
}

#[tokio::test]
async fn what_is_offered_is_checked() {
    let user = json!([{"role": "user", "content": "Hi"}]);
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    for (what, extra, violations) in [
        ("two tools", json!({"tools": [tool("a"), tool("b-2_c")]}), 0),
        ("one twice", json!({"tools": [tool("a"), tool("a")]}), 1),
        ("a dotted name", json!({"tools": [tool("a.b")]}), 1),
        ("no name", json!({"tools": [tool("")]}), 1),
        (
            "counts beside a stream",
            json!({"stream": true, "stream_options": {}}),
            0,
        ),
        (
            "counts beside a whole answer",
            json!({"stream": false, "stream_options": {}}),
            1,
        ),
    ] {
        let fake = FakeModel::start();
        let mut body = chat(&user);
        for (key, value) in extra.as_object().unwrap() {
            body[key] = value.clone();
        }
        post(&fake, "/v1/chat/completions", &body).await;
        let found = fake.violations();
        assert_eq!(found.len(), violations, "{what}: {found:?}");
    }
}

#[tokio::test]
#[should_panic(expected = "bad requests")]
async fn a_broken_rule_fails_the_test() {
    let fake = FakeModel::start();
    post(&fake, "/api/chat", &chat(&json!([]))).await;
    fake.assert_clean();
}

#[tokio::test]
#[should_panic(expected = "never asked for")]
async fn a_script_that_was_not_used_fails_the_test() {
    let fake = FakeModel::start();
    fake.script([Step::text("Hello?")]);
    fake.assert_clean();
}

#[tokio::test]
async fn a_script_waits_for_the_call_that_it_is_for() {
    let fake = FakeModel::start();
    fake.script(Reply::new([Step::text("for blue")]).when("blue"));
    fake.script(Reply::new([Step::text("for tools")]).with_tools(true));
    let ask = |text: &str| chat(&json!([{"role": "user", "content": text}]));
    assert!(post(&fake, "/api/chat", &ask("red")).await.contains("You "));
    let mut tools = ask("red");
    tools["tools"] = json!([{"type": "function", "function": {"name": "t"}}]);
    assert!(post(&fake, "/api/chat", &tools).await.contains("for tools"));
    assert!(
        post(&fake, "/api/chat", &ask("blue"))
            .await
            .contains("for blue")
    );
    fake.assert_clean();
}

#[tokio::test]
async fn scripts_tell_the_kinds_of_calls_apart() {
    let fake = FakeModel::start();
    let say = |text: &str| Reply::new([Step::text(text)]);
    fake.script(say("for whole answers").streamed(false).always());
    fake.script(say("for the plan").streamed(false).temperature(0.3));
    fake.script(say("for the child").system("You are a subagent"));
    fake.script(say("for the note").last("3 left"));
    let user = json!({"role": "user", "content": "Hi"});
    let system = |text: &str| json!({"role": "system", "content": text});
    let whole = |body: Value| {
        let mut body = body;
        body["stream"] = json!(false);
        body
    };
    let mut plan = whole(chat(&json!([user])));
    plan["options"] = json!({"temperature": 0.3});
    let child = chat(&json!([system("You are a subagent."), user]));
    let noted = chat(&json!([system("You are Navi."), user, system("3 left")]));
    let title = whole(chat(&json!([user])));
    for (body, expected) in [
        (&noted, "for the note"),
        (&title, "for whole answers"),
        (&child, "for the child"),
        (&plan, "for the plan"),
        (&plan, "for whole answers"),
        (&child, "You "),
    ] {
        let answer = post(&fake, "/api/chat", body).await;
        assert!(answer.contains(expected), "{answer}, not {expected}");
    }
    fake.assert_clean();
}

#[tokio::test]
async fn a_whole_answer_is_one_document_of_the_same_steps() {
    let fake = FakeModel::start();
    let mut body = chat(&json!([{"role": "user", "content": "Hi"}]));
    body["stream"] = json!(false);
    for path in ["/api/chat", "/v1/chat/completions"] {
        let steps = [
            Step::Thinking("Hm.".to_owned()),
            Step::text("one "),
            Step::hold(path),
            Step::text("two"),
            Step::tool_call("t", json!({"a": 1})),
        ];
        fake.script(Reply::new(steps).streamed(false));
        let before = fake.chats().len();
        let release = async {
            fake.wait_for(|chats| chats.len() > before).await;
            assert_eq!(fake.chats()[before].finished_ms, None);
            fake.release(path);
        };
        let (answer, ()) = tokio::join!(post(&fake, path, &body), release);
        let document: Value = serde_json::from_str(&answer).unwrap();
        let (message, thinking, arguments) = if path == "/api/chat" {
            (&document["message"], "thinking", json!({"a": 1}))
        } else {
            let message = &document["choices"][0]["message"];
            (message, "reasoning_content", json!("{\"a\":1}"))
        };
        assert_eq!(message["content"], json!("one two"));
        assert_eq!(message[thinking], json!("Hm."));
        assert_eq!(message["tool_calls"][0]["function"]["arguments"], arguments);
    }
    fake.assert_clean();
}

#[tokio::test]
async fn navis_own_calls_are_not_steered_by_the_users_words() {
    let fake = FakeModel::start();
    let user = json!({"role": "user", "content": "silence"});
    let prompt = json!({"role": "system", "content": "Reply DIRECT where it is simple."});
    for (messages, expected) in [
        (json!([user]), "You said: silence"),
        (json!([prompt, user]), "\"DIRECT\""),
    ] {
        let mut body = chat(&messages);
        body["stream"] = json!(false);
        let answer = post(&fake, "/api/chat", &body).await;
        assert!(answer.contains(expected), "{answer}");
    }
}

#[tokio::test]
async fn templates_refuse_what_they_do_not_take() {
    let system = json!({"role": "system", "content": "S"});
    let user = json!({"role": "user", "content": "Hi"});
    let calls = json!({"role": "assistant", "content": "", "tool_calls": [ollama_call("a")]});
    let (result, answer) = (
        ollama_result("a"),
        json!({"role": "assistant", "content": "Yes."}),
    );
    let plain = json!([system, user, calls, result, answer, user]);
    let late = json!([system, user, system]);
    let two = json!([user, user]);
    let after = json!([user, calls, result, user]);
    let bare = json!([user, answer, user]);
    for (template, taken, refused) in [
        (Template::Any, vec![&plain, &late, &two, &after], vec![]),
        (
            Template::SystemFirst,
            vec![&plain, &two, &after],
            vec![&late],
        ),
        (
            Template::Alternating,
            vec![&plain, &bare],
            vec![&late, &two, &after],
        ),
        (Template::NoSystem, vec![&bare], vec![&plain, &late, &two]),
    ] {
        let fake = FakeModel::start();
        fake.configure(fake_model::Config {
            models: vec!["fake".to_owned()],
            template,
            ..Default::default()
        });
        let answers = taken.iter().map(|it| (it, false));
        for (messages, refuses) in answers.chain(refused.iter().map(|it| (it, true))) {
            let answer = post(&fake, "/api/chat", &chat(messages)).await;
            assert_eq!(
                answer.contains("Jinja"),
                refuses,
                "{template:?}, {messages}: {answer}"
            );
        }
        fake.assert_clean();
    }
}

#[tokio::test]
async fn a_user_can_ask_it_for_a_tool() {
    let fake = FakeModel::start();
    let tools = json!([{"type": "function", "function": {"name": "todo"}}]);
    let user =
        json!({"role": "user", "content": "think\nuse the tool: todo {\"action\": \"list\"}"});
    let mut body = chat(&json!([user]));
    body["tools"] = tools;
    let answer = post(&fake, "/api/chat", &body).await;
    assert!(answer.contains("\"thinking\":\"Let \""), "{answer}");
    assert!(answer.contains("\"name\":\"todo\""), "{answer}");
    body["messages"] = json!([
        user,
        {"role": "assistant", "content": "", "tool_calls": [ollama_call("todo")]},
        ollama_result("todo"),
    ]);
    let answer = post(&fake, "/api/chat", &body).await;
    assert!(
        answer.contains("said: ") && answer.contains("\"ok\""),
        "{answer}"
    );
    fake.assert_clean();
}

#[tokio::test]
async fn it_can_be_driven_over_http() {
    let fake = FakeModel::start();
    let script =
        json!({"steps": [{"text": "one "}, {"hold": "gate"}, {"text": "two"}], "when": "Hi"});
    post(&fake, "/control/script", &script).await;
    let user = json!([{"role": "user", "content": "Hi"}]);
    let body = chat(&user);
    let held = post(&fake, "/v1/chat/completions", &body);
    let release = async {
        fake.wait_for(|chats| !chats.is_empty()).await;
        assert_eq!(
            get(&fake, "/control/requests").await[0]["finished_ms"],
            Value::Null
        );
        post(&fake, "/control/release/gate", &json!({})).await;
    };
    let (answer, ()) = tokio::join!(held, release);
    assert!(
        answer.contains("two") && answer.ends_with("data: [DONE]\n\n"),
        "{answer}"
    );
    fake.wait_for(|chats| chats[0].finished_ms.is_some()).await;
    let bad = post(&fake, "/control/script", &json!({"steps": [{"dance": 1}]})).await;
    assert!(bad.contains("unknown variant `dance`"), "{bad}");
    post(&fake, "/control/config", &json!({"models": []})).await;
    assert!(post(&fake, "/api/chat", &body).await.contains("not found"));
    post(&fake, "/control/reset", &json!({})).await;
    assert_eq!(get(&fake, "/control/requests").await, json!([]));
    assert_eq!(get(&fake, "/control/violations").await, json!([]));
}

#[tokio::test]
async fn a_client_that_leaves_is_seen() {
    let fake = FakeModel::start();
    fake.script([Step::Silence]);
    let url = format!("{}/api/chat", fake.url());
    let body = chat(&json!([{"role": "user", "content": "Hi"}]));
    let call = tokio::spawn(client().post(url).json(&body).send());
    fake.wait_for(|chats| !chats.is_empty()).await;
    assert_eq!(fake.chats()[0].closed_early_ms, None);
    call.abort();
    fake.wait_for(|chats| chats[0].closed_early_ms.is_some())
        .await;
}
