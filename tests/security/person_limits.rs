//! What is limited for each person, asked for by every door; and what is limited for all together,
//! taken by one.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use reqwest::{Method, Response, StatusCode, multipart};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::shares::{busy, says, session, several, waits_in_line};
use crate::fake_model::{FakeModel, Reply, Step};
use crate::person::{Person, answered};
use crate::server::{PATIENCE, Server, Socket, Told, client};

fn refused((status, said): (StatusCode, Value)) {
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{said}");
    assert!(said.to_string().contains("rate_limited"), "{said}");
}

fn done((status, said): (StatusCode, Value)) -> Value {
    assert!(status.is_success(), "{status} {said}");
    said
}

/// A question by Chat Completions, with this header.
async fn chat(
    server: &Server,
    person: &Person,
    content: &str,
    (name, value): (&str, &str),
) -> (StatusCode, Value) {
    let body = json!({"model": "navi", "messages": [{"role": "user", "content": content}]});
    let request = client().post(format!("{}/v1/chat/completions", server.url));
    let request = request.bearer_auth(&person.token).header(name, value);
    answered(request, Some(body)).await
}

#[tokio::test]
async fn conversations_that_programs_begin_beyond_the_most() {
    let (_model, server) = several(&[("NAVI_PERSON_SESSIONS", "1")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let named = |person, name| chat(&server, person, "hello", ("x-navi-session", name));
    let responds = |person: &Person| {
        let request = client().post(format!("{}/v1/responses", server.url));
        let request = request.bearer_auth(&person.token);
        answered(request, Some(json!({"model": "navi", "input": "hello"})))
    };
    done(named(&anna, "one").await);
    refused(named(&anna, "two").await);
    refused(responds(&anna).await);
    // The one that she has goes on, and what is there for one answer is none.
    done(named(&anna, "one").await);
    done(chat(&server, &anna, "hello", ("x-any", "thing")).await);
    done(responds(&borys).await);
    refused(responds(&borys).await);
    // So it does by a name that this process was never told.
    let server = server.crash_and_restart();
    done(chat(&server, &anna, "hello", ("x-navi-session", "one")).await);
    // One that comes back is one more.
    let held = done(anna.call(&server, Method::GET, "/sessions", None).await);
    let path = format!("/sessions/{}", held[0]["id"].as_str().unwrap());
    done(anna.call(&server, Method::DELETE, &path, None).await);
    session(&server, &anna).await;
    let restore = format!("{path}/restore");
    refused(anna.call(&server, Method::POST, &restore, None).await);
}

#[tokio::test]
async fn a_small_task_while_all_runs_of_its_person_wait() {
    let (model, server) = several(&[("NAVI_PERSON_RUNS", "1"), ("NAVI_CONSENT_MODE", "ask")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let write = json!({"action": "write", "path": "a.txt", "content": "x"});
    model.script([Step::tool_call("filesystem", write)]);
    let request = client().post(format!("{}/v1/responses", server.url));
    let body = json!({"model": "navi", "input": "write"});
    let asked = done(answered(request.bearer_auth(&anna.token), Some(body)).await);
    assert!(
        asked.to_string().contains("mcp_approval_request"),
        "{asked}"
    );
    // What the run waits for may be made of it.
    done(chat(&server, &anna, "tags", ("x-navi-task", "tags")).await);
}

/// Asks for the weather, which the program itself tells.
fn about_weather(messages: &Value) -> Value {
    let tool = json!({"type": "function", "function": {
        "name": "weather", "parameters": {"type": "object", "properties": {}},
    }});
    json!({"model": "navi", "messages": messages, "tools": [tool]})
}

#[tokio::test]
async fn a_run_that_waits_leaves_its_turn_to_others_of_its_person() {
    let (model, server) = several(&[("NAVI_PERSON_RUNS", "1"), ("NAVI_CONSENT_MODE", "ask")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let asks = async |body: Value| {
        let request = client().post(format!("{}/v1/chat/completions", server.url));
        done(answered(request.bearer_auth(&anna.token), Some(body)).await)
    };
    // For its program, which asks Navi in its turn.
    model.script([Step::tool_call("weather", json!({}))]);
    let question = json!({"role": "user", "content": "How is it?"});
    let waits = asks(about_weather(&json!([question]))).await;
    let called = &waits["choices"][0]["message"];
    let call = &called["tool_calls"][0]["id"];
    model.script([Step::text("It snows.")]);
    let own = done(chat(&server, &anna, "look outside", ("x-any", "thing")).await);
    let told = &own["choices"][0]["message"]["content"];
    assert_eq!(told, "It snows.");
    let result = json!({"role": "tool", "tool_call_id": call, "content": told});
    model.script([Step::text("Snow.")]);
    let end = asks(about_weather(&json!([question, called, result]))).await;
    assert_eq!(end["choices"][0]["message"]["content"], "Snow.");
    // For its person, and it goes on once nobody else of hers works.
    let (mut asked, mut busy) = in_line(&model, &server, &anna).await;
    model.release("gate");
    busy.next_of("stream_end").await;
    assert_eq!(asked.next_of("tool_call").await["success"], true);
    asked.next_of("stream_end").await;
}

/// A run whose call its person has allowed and that waits for their only turn, and the one that has
/// it until the gate is released.
async fn in_line(model: &FakeModel, server: &Server, person: &Person) -> (Socket, Socket) {
    let write = json!({"action": "write", "path": "a.txt", "content": "x"});
    model.script([Step::tool_call("filesystem", write)]);
    let (_, mut asking) = says(server, person, "write").await;
    let asked = asking.next_of("approval_requested").await;
    let held = Reply::new([Step::text("one "), Step::hold("gate"), Step::text("two")]);
    model.script(held.when("be busy"));
    let (_, mut busy) = busy(server, person).await;
    busy.next_of("stream_delta").await;
    let allow = json!({
        "type": "approve", "approval_id": asked["approval_id"], "decision": "once",
    });
    asking.send(&allow).await;
    assert!(waits_in_line(&mut asking).await);
    (asking, busy)
}

#[tokio::test]
async fn a_call_that_was_allowed_and_is_stopped_in_line_has_not_begun() {
    let (model, server) = several(&[("NAVI_PERSON_RUNS", "1"), ("NAVI_CONSENT_MODE", "ask")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let (mut asked, mut busy) = in_line(&model, &server, &anna).await;
    asked.send(&json!({"type": "stop"})).await;
    let ended = asked.next_of("tool_call").await;
    assert_eq!(ended["result"], "stopped by the user before it began");
    asked.next_of("stream_stopped").await;
    model.release("gate");
    busy.next_of("stream_end").await;
}

#[tokio::test]
async fn a_call_that_was_allowed_is_not_begun_by_a_service_that_goes_down() {
    let (model, server) = several(&[("NAVI_PERSON_RUNS", "1"), ("NAVI_CONSENT_MODE", "ask")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let (mut asked, _busy) = in_line(&model, &server, &anna).await;
    server.ask_to_end();
    let ended = asked.next_of("tool_call").await;
    assert_eq!(ended["result"], "not run: Navi went down before this began");
    asked.next_of("run_interrupted").await;
}

#[tokio::test]
async fn small_tasks_beyond_the_tokens_of_a_day() {
    let (_model, server) = several(&[("NAVI_PERSON_TOKENS_A_DAY", "1")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let by_header = |person| chat(&server, person, "tags", ("x-navi-task", "tags"));
    let by_words = |person| chat(&server, person, "### Task:\nA title.", ("x-any", "thing"));
    // Each counts as what a run uses does.
    done(by_header(&anna).await);
    refused(by_header(&anna).await);
    refused(by_words(&anna).await);
    let path = format!("/sessions/{}/messages", session(&server, &anna).await);
    let said = Some(json!({"content": "hello"}));
    refused(anna.call(&server, Method::POST, &path, said).await);
    done(chat(&server, &borys, "hello", ("x-any", "thing")).await);
    refused(by_words(&borys).await);
    let account = done(anna.call(&server, Method::GET, "/api/account", None).await);
    let used = &account["limits"]["used"]["tokens_a_day"];
    assert!(used.as_u64() >= Some(1), "{account}");
}

#[tokio::test]
async fn large_bodies_of_one_person_that_have_no_end() {
    let (_model, server) = several(&[("NAVI_SLOW_BODY_SECONDS", "10")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let path = format!("/sessions/{}/messages", session(&server, &anna).await);
    // One that is taken says nothing, and is refused for that.
    let asks = async |person: &Person, spaces: usize| {
        let request = client().post(format!("{}{path}", server.url));
        let request = request.header("content-type", "application/json");
        let body = format!("{{{}}}", " ".repeat(spaces));
        answered(request.bearer_auth(&person.token).body(body), None).await
    };
    let is_taken = |(status, _): (StatusCode, Value)| status == StatusCode::BAD_REQUEST;
    let large = 100 * 1024;
    assert!(is_taken(asks(&anna, large).await));
    let endless = (0..4).map(|_| {
        // Faster than what is given up for its pace.
        let pieces = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let piece = Bytes::from(vec![b' '; 64 * 1024]);
            Some((Ok::<_, io::Error>(piece), ()))
        });
        let request = client().post(format!("{}/v1/responses", server.url));
        let request = request.bearer_auth(&anna.token);
        tokio::spawn(request.body(reqwest::Body::wrap_stream(pieces)).send())
    });
    let endless: Vec<_> = endless.collect();
    let until = Instant::now() + PATIENCE;
    let told = loop {
        let told = asks(&anna, large).await;
        if !is_taken(told.clone()) {
            break told;
        }
        assert!(Instant::now() < until, "she may send as many as she likes");
    };
    refused(told);
    assert!(is_taken(asks(&anna, 0).await), "a small one waits for none");
    assert!(is_taken(asks(&borys, large).await));
    endless.iter().for_each(tokio::task::JoinHandle::abort);
    while !is_taken(asks(&anna, large).await) {
        assert!(Instant::now() < until, "their turns are not given back");
    }
}

/// A tab of whoever has this token.
async fn tab(server: &Server, session: &str, token: &str) -> Socket {
    let by = [("authorization", format!("Bearer {token}"))];
    let path = format!("/ws/sessions/{session}");
    server.socket_with(&path, &by).await.expect("a tab")
}

/// A part of a message that goes on.
fn part(code: Data, bytes: usize) -> Message {
    Message::Frame(Frame::message(vec![b'x'; bytes], OpCode::Data(code), false))
}

/// Whether a text of so many bytes is taken, and refused for being no JSON; if not, what the tab is
/// closed with.
async fn takes(tab: &mut Socket, bytes: usize) -> Result<(), u16> {
    tab.try_send_raw(Message::text("x".repeat(bytes))).await;
    loop {
        match tab.next().await {
            Told::Frame(frame) if frame["code"] == "invalid_json" => return Ok(()),
            Told::Frame(_) => {}
            Told::Closed(code) => return Err(code),
        }
    }
}

#[tokio::test]
async fn large_messages_on_sockets_that_have_no_end() {
    let (_model, server) = several(&[("NAVI_SLOW_BODY_SECONDS", "10")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let (hers, his) = (
        session(&server, &anna).await,
        session(&server, &borys).await,
    );
    // More than comes in one piece.
    let large = 1024 * 1024;
    let mut endless = Vec::new();
    for _ in 0..4 {
        let mut tab = tab(&server, &hers, &anna.token).await;
        endless.push(tokio::spawn(async move {
            let mut next = part(Data::Text, large);
            while tab.try_send_raw(next).await {
                // Faster than what is given up for its pace.
                tokio::time::sleep(Duration::from_millis(100)).await;
                next = part(Data::Continue, 16 * 1024);
            }
        }));
    }
    let until = Instant::now() + PATIENCE;
    let refused = loop {
        // Each sends one alone: no flood is what it is closed for.
        let mut fifth = tab(&server, &hers, &anna.token).await;
        if let Err(code) = takes(&mut fifth, large).await {
            break code;
        }
        assert!(Instant::now() < until, "she may begin as many as she likes");
    };
    assert_eq!(refused, 1008);
    let mut other = tab(&server, &hers, &anna.token).await;
    let small = takes(&mut other, 1).await;
    assert_eq!(small, Ok(()), "a small one waits for none");
    let mut foreign = tab(&server, &his, &borys.token).await;
    assert_eq!(takes(&mut foreign, large).await, Ok(()));
    endless.iter().for_each(tokio::task::JoinHandle::abort);
    let until = Instant::now() + PATIENCE;
    loop {
        let mut next = tab(&server, &hers, &anna.token).await;
        if takes(&mut next, large).await.is_ok() {
            break;
        }
        assert!(Instant::now() < until, "their turns are not given back");
    }
}

#[tokio::test]
async fn much_on_the_socket_of_a_token_that_sends_no_message() {
    let (_model, server) = several(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let hers = session(&server, &anna).await;
    let read = anna.token_for(&server, &["read"]).await;
    let (half, whole) = (part(Data::Text, 600 << 10), part(Data::Text, 1200 << 10));
    for parts in [vec![whole], vec![half, part(Data::Continue, 600 << 10)]] {
        let mut tab = tab(&server, &hers, &read).await;
        for part in parts {
            tab.try_send_raw(part).await;
        }
        assert_eq!(tab.closed().await, 1009);
    }
}

/// The secret of a new link to this conversation.
async fn link(server: &Server, person: &Person, session: &str) -> String {
    let path = format!("/sessions/{session}/links");
    let made = person.call(server, Method::POST, &path, Some(json!({})));
    let made = done(made.await);
    let link = made["link"].as_str().unwrap();
    link.rsplit_once('/').unwrap().1.to_owned()
}

#[tokio::test]
async fn links_that_take_the_tabs_of_others() {
    let (_model, server) = several(&[("NAVI_PERSON_TABS", "4")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let hers = session(&server, &anna).await;
    let follow = async |secret: &str| -> Response {
        let request = client().get(format!("{}/api/shared/events", server.url));
        request.header("x-navi-link", secret).send().await.unwrap()
    };
    let mut open = Vec::new();
    for _ in 0..4 {
        // A link has a quarter of what all of them have together.
        let secret = link(&server, &anna, &hers).await;
        let first = follow(&secret).await;
        assert_eq!(first.status(), StatusCode::OK);
        open.push(first);
        let second = follow(&secret).await;
        assert_eq!(second.status(), StatusCode::TOO_MANY_REQUESTS);
    }
    let fifth = link(&server, &anna, &hers).await;
    let fifth = follow(&fifth).await;
    assert_eq!(fifth.status(), StatusCode::TOO_MANY_REQUESTS);
    // She has all of her tabs.
    let by = [("authorization", format!("Bearer {}", anna.token))];
    let path = format!("/ws/sessions/{hers}");
    let mut open_tabs = Vec::new();
    for _ in 0..4 {
        open_tabs.push(server.socket_with(&path, &by).await.expect("a tab"));
    }
    drop(open);
}

/// Begins a session of an older revision of MCP.
async fn mcp_session(server: &Server, person: &Person) -> String {
    let begin = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    });
    let request = client().post(format!("{}/api/mcp", server.url));
    let request = request.bearer_auth(&person.token).json(&begin);
    let request = request.header("accept", "application/json, text/event-stream");
    let begun = request.send().await.unwrap();
    assert_eq!(begun.status(), StatusCode::OK);
    let session = begun.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    // Its stream ends with the answer.
    begun.text().await.unwrap();
    session
}

#[tokio::test]
async fn sessions_of_mcp_that_end_those_of_others() {
    let (_model, server) = several(&[]);
    let borys = Person::join(&server, "Borys", "user").await;
    let guest = Person::join(&server, "Vira", "guest").await;
    let leave = async |person: &Person, session: &str| {
        let request = client().delete(format!("{}/api/mcp", server.url));
        let request = request.bearer_auth(&person.token);
        let request = request.header("mcp-session-id", session);
        let request = request.header("mcp-protocol-version", "2025-11-25");
        request.send().await.unwrap().status()
    };
    let his = mcp_session(&server, &borys).await;
    let first = mcp_session(&server, &guest).await;
    for _ in 0..64 {
        mcp_session(&server, &guest).await;
    }
    assert_eq!(leave(&guest, &first).await, StatusCode::NOT_FOUND);
    assert_eq!(leave(&borys, &his).await, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn lent_tools_that_drop_those_of_others() {
    let (model, server) = several(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let (hers, his) = (
        session(&server, &anna).await,
        session(&server, &borys).await,
    );
    let lend = async |person: &Person, session: &str, client_id: &str| {
        let tool = json!({
            "name": "weather", "description": "The weather.", "effect": "read",
            "parameters": {"type": "object", "properties": {}},
        });
        let body = json!({"client_id": client_id, "tools": [tool]});
        let path = format!("/sessions/{session}/lent");
        done(person.call(&server, Method::POST, &path, Some(body)).await);
    };
    lend(&borys, &his, "his").await;
    lend(&anna, &hers, "first").await;
    for n in 0..64 {
        lend(&anna, &hers, &format!("hers-{n}")).await;
    }
    for (person, session, client_id, has_it) in
        [(&borys, &his, "his", true), (&anna, &hers, "first", false)]
    {
        let before = model.chats().len();
        let by = [("authorization", format!("Bearer {}", person.token))];
        let path = format!("/ws/sessions/{session}");
        let mut tab = server.socket_with(&path, &by).await.unwrap();
        tab.send(&json!({"type": "message", "content": "hello", "client_id": client_id}))
            .await;
        tab.next_of("stream_end").await;
        let offered = model.chats().split_off(before);
        let offered = offered.iter().any(|chat| {
            let tools = chat.body["tools"].to_string();
            tools.contains("\"weather\"")
        });
        assert_eq!(offered, has_it, "{client_id}");
    }
}

/// More than the two ends of a connection keep for each other.
const LARGE: usize = 48 << 20;

#[tokio::test]
async fn archives_that_their_people_read_slowly() {
    let (_model, server) = several(&[]);
    let take = async |person: &Person| -> Response {
        let request = client().get(format!("{}/api/account/archive", server.url));
        let request = request.bearer_auth(&person.token);
        request.send().await.unwrap()
    };
    let mut slow = Vec::new();
    for name in ["Anna", "Borys"] {
        let person = Person::join(&server, name, "user").await;
        let path = format!("/sessions/{}/files", session(&server, &person).await);
        let part = multipart::Part::bytes(vec![0; LARGE]).file_name("large.bin");
        let form = multipart::Form::new().part("file", part);
        let request = client().post(format!("{}{path}", server.url));
        let request = request.bearer_auth(&person.token).multipart(form);
        done(answered(request, None).await);
        let archive = take(&person).await;
        assert_eq!(archive.status(), StatusCode::OK);
        // One each.
        let again = take(&person).await;
        assert_eq!(again.status(), StatusCode::TOO_MANY_REQUESTS);
        slow.push((person, archive));
    }
    let vira = Person::join(&server, "Vira", "guest").await;
    let hers = take(&vira).await;
    assert_eq!(hers.status(), StatusCode::OK);
    assert!(hers.bytes().await.unwrap().starts_with(b"PK"));
    // Who gives up may begin anew.
    let (anna, archive) = slow.swap_remove(0);
    drop(archive);
    let until = Instant::now() + PATIENCE;
    while take(&anna).await.status() != StatusCode::OK {
        assert!(Instant::now() < until, "her place is taken yet");
    }
}
