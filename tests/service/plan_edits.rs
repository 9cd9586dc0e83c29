//! A person changes the list of steps, from any tab and over REST, and the model is told.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{House, Server, Socket, Told};

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

/// The model wants a plan, and writes this one.
fn plans(model: &FakeModel, plan: &str) {
    let questions = ["You sort a user's request", "You write the plan"];
    for (system, text) in questions.into_iter().zip(["Work.\nREFLECT: no", plan]) {
        let reply = Reply::new([Step::text(text)]).streamed(false);
        model.script(reply.system(system));
    }
}

const PLAN: &str = "1. Read the notes - SELF\n2. Write the letter - SELF\n3. Send it - SELF";

fn edit(kind: &str, id: u32) -> Value {
    json!({"type": "edit_plan", "edit": kind, "id": id})
}

fn mark(id: u32, status: &str) -> Step {
    let arguments = json!({"action": "mark", "ids": [id], "status": status});
    Step::tool_call("todo", arguments)
}

/// A run with a plan whose model has begun to speak, and waits.
async fn planned(model: &FakeModel, server: &Server) -> (String, Socket) {
    plans(model, PLAN);
    let list = Step::tool_call("todo", json!({"action": "list"}));
    model.script([Step::text("I begin. "), Step::hold("gate"), list]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "write the letter"}))
        .await;
    tab.next_of("stream_delta").await;
    (session, tab)
}

/// The list as an event told it, or as a request was answered: ids, texts and what is said of
/// them.
fn shown(told: &Value) -> String {
    let item = |item: &Value| {
        let held = if item["held"] == true { " held" } else { "" };
        let how = item["edited"]["how"].as_str().unwrap_or("-");
        let (text, status) = (item["text"].as_str(), item["status"].as_str());
        format!(
            "{} {} {}{held} {how}",
            item["id"],
            text.unwrap(),
            status.unwrap()
        )
    };
    let items = told["items"].as_array().unwrap().iter();
    items.map(item).collect::<Vec<_>>().join(", ")
}

/// What stands last in each request that asks for an answer, from this one on.
fn told(model: &FakeModel, from: usize) -> Vec<String> {
    let chats = model.chats().into_iter().map(|chat| chat.body);
    let streamed = chats.filter(|body| body["stream"] == true);
    let last = |body: Value| {
        let last = body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        last.as_str().unwrap().to_owned()
    };
    streamed.skip(from).map(last).collect()
}

async fn patch(server: &Server, session: &str, body: Value) -> (StatusCode, Value) {
    let path = format!("/sessions/{session}/plan");
    server.call(Method::PATCH, &path, Some(body)).await
}

#[tokio::test]
async fn steps_are_changed_from_any_tab_and_the_model_is_told() {
    let (model, server) = talking();
    let (session, mut one) = planned(&model, &server).await;
    let mut two = server.tab(&session, None).await;
    two.next_of("plan_ready").await;
    one.send(&edit("skip", 1)).await;
    two.send(&json!({"type": "edit_plan", "edit": "add", "text": "Ask Olha", "before": 2}))
        .await;
    for tab in [&mut one, &mut two] {
        let last = loop {
            let told = tab.next_of("todo_updated").await;
            // Whoever is first.
            if told["items"][0]["edited"].is_object() && told["items"][1]["id"] == 4 {
                break told;
            }
        };
        assert_eq!(
            shown(&last),
            "1 Read the notes skipped skipped, 4 Ask Olha pending added, 2 Write the letter pending -, 3 Send it pending -"
        );
        assert_eq!(last["run_id"], Value::Null);
    }
    two.send(&edit("hold", 3)).await;
    one.next_of("todo_updated").await;
    model.script([mark(3, "in_progress")]);
    model.script([Step::text("The letter is there, and not sent.")]);
    model.release("gate");
    let frames = one.until("stream_end").await;

    let said = told(&model, 0);
    assert!(!said[0].contains("Skipped"), "{}", said[0]);
    for told in &said[1..3] {
        for line in [
            "Skipped, leave out: 1 \"Read the notes\".",
            "Held, do not begin before the user releases it: 3 \"Send it\".",
            "where only held steps are left, tell the user so and end your turn",
            "Added: 4 \"Ask Olha\".",
            "Open steps in their order: 4, 2, 3 (held).",
        ] {
            assert!(told.contains(line), "{line}\n{told}");
        }
        assert_eq!(told.matches("[plan] What the user says").count(), 1);
    }
    // The list says so too, and the step that is held is not begun.
    let calls = frames.iter().filter(|frame| frame["type"] == "tool_call");
    let results: Vec<&str> = calls.map(|it| it["result"].as_str().unwrap()).collect();
    assert!(results[0].contains("1. [skipped by the user] Read the notes"));
    assert!(results[0].contains("3. [pending, held by the user] Send it"));
    assert!(results[1].contains("the user holds step 3"), "{results:?}");
    assert!(frames.iter().all(|frame| frame["type"] != "todo_updated"));

    // What is held is told in the next turn, what was told already is not.
    one.send(&json!({"type": "message", "content": "thanks"}))
        .await;
    one.next_of("stream_end").await;
    let next = told(&model, 3).pop().unwrap();
    assert!(next.contains("Held, do not begin") && !next.contains("Skipped"));
    let (status, list) = patch(&server, &session, json!({"edit": "release", "id": 3})).await;
    assert_eq!(
        (status, &list["items"][3]["held"]),
        (StatusCode::OK, &Value::Null)
    );
    model.script([mark(3, "done")]);
    one.send(&json!({"type": "message", "content": "yes"}))
        .await;
    let frames = one.until("stream_end").await;
    let next = told(&model, 4);
    assert!(next[0].contains("Released, may be done now: 3"), "{next:?}");
    let list = frames.iter().rfind(|frame| frame["type"] == "todo_updated");
    assert!(shown(list.unwrap()).ends_with("3 Send it done released"));
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["todo"], list.unwrap()["items"]);
    model.assert_clean();
}

#[tokio::test]
async fn steps_are_changed_over_rest_where_no_run_goes_and_the_next_turn_is_told() {
    let (model, server) = talking();
    let session = server.new_session().await;
    // From the beginning: the first change may be there before this tab is.
    let mut tab = server.tab(&session, Some(0)).await;
    for (body, then) in [
        (json!({"edit": "add", "text": "dig"}), "1 dig pending added"),
        (
            json!({"edit": "add", "text": "look", "before": 1}),
            "2 look pending added, 1 dig pending added",
        ),
        (
            json!({"edit": "move", "id": 2}),
            "1 dig pending added, 2 look pending added",
        ),
        (
            json!({"edit": "rewrite", "id": 1, "text": "dig deep"}),
            "1 dig deep pending added, 2 look pending added",
        ),
        (
            json!({"edit": "skip", "id": 2}),
            "1 dig deep pending added, 2 look skipped skipped",
        ),
        (
            json!({"edit": "restore", "id": 2}),
            "1 dig deep pending added, 2 look pending restored",
        ),
        (
            json!({"edit": "hold", "id": 1}),
            "1 dig deep pending held added, 2 look pending restored",
        ),
    ] {
        let (status, answer) = patch(&server, &session, body).await;
        assert_eq!((status, shown(&answer).as_str()), (StatusCode::OK, then));
        let told = tab.next_of("todo_updated").await;
        assert_eq!(told["items"], answer["items"]);
    }
    tab.send(&json!({"type": "message", "content": "hello"}))
        .await;
    tab.next_of("stream_end").await;
    let said = told(&model, 0).pop().unwrap();
    assert!(said.contains("Added: 1 \"dig deep\"."), "{said}");
    assert!(said.contains("To be done after all: 2 \"look\"."), "{said}");

    // A plan that comes keeps what its user put there.
    plans(&model, "1. Buy seeds - SELF\n2. LOOK - SELF");
    model.script([Step::text("done")]);
    tab.send(&json!({"type": "message", "content": "plan a garden"}))
        .await;
    let list = tab.next_of("todo_updated").await;
    assert_eq!(
        shown(&list),
        "1 Buy seeds pending -, 2 LOOK pending restored, 3 dig deep pending held added"
    );
    tab.next_of("stream_end").await;
    let said = told(&model, 1).pop().unwrap();
    assert!(said.contains("Added: 3 \"dig deep\"."), "{said}");
    model.assert_clean();
}

#[tokio::test]
async fn an_edit_that_cannot_be_made_is_refused_and_changes_nothing() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    patch(&server, &session, json!({"edit": "add", "text": "dig"})).await;
    let before = server.get(&format!("/sessions/{session}")).await;
    let long = "x".repeat(501);
    let mut tab = server.tab(&session, None).await;
    let mut other = server.tab(&session, None).await;
    for (body, status, code) in [
        (json!({}), 400, "invalid_field"),
        (json!({"edit": "drop", "id": 1}), 400, "invalid_field"),
        (json!({"edit": "skip"}), 400, "invalid_field"),
        (json!({"edit": "skip", "id": "1"}), 400, "invalid_field"),
        (json!({"edit": "add", "text": " "}), 400, "invalid_field"),
        (
            json!({"edit": "add", "text": "a\u{0}"}),
            400,
            "invalid_field",
        ),
        (json!({"edit": "add", "text": long}), 400, "invalid_field"),
        (json!({"edit": "rewrite", "id": 1}), 400, "invalid_field"),
        (
            json!({"edit": "move", "id": 1, "before": 7}),
            404,
            "not_found",
        ),
        (json!({"edit": "skip", "id": 7}), 404, "not_found"),
    ] {
        let (found, error) = patch(&server, &session, body.clone()).await;
        assert_eq!(
            (found.as_u16(), &error["code"]),
            (status, &json!(code)),
            "{body}"
        );
        let mut frame = body;
        frame["type"] = json!("edit_plan");
        frame["client_id"] = json!("mine");
        tab.send(&frame).await;
        let error = tab.next_of("error").await;
        assert_eq!(
            (&error["code"], &error["client_id"], error.get("seq")),
            (&json!(code), &json!("mine"), None)
        );
    }
    // Nobody else hears of it, and another user's session is not found.
    other.send(&json!({"type": "ping"})).await;
    let Told::Frame(frame) = other.next().await else {
        panic!("the other tab is closed")
    };
    assert_eq!(frame["type"], "pong");
    let (status, error) = patch(
        &server,
        "00000000-0000-7000-8000-000000000000",
        json!({"edit": "skip", "id": 1}),
    )
    .await;
    assert_eq!(
        (status, &error["code"]),
        (StatusCode::NOT_FOUND, &json!("session_not_found"))
    );
    let after = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(
        (&after["todo"], &after["last_seq"]),
        (&before["todo"], &before["last_seq"])
    );
    // A step that is over is no more to be changed.
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    patch(&server, &session, json!({"edit": "add", "text": "dig"})).await;
    model.script([mark(1, "done")]);
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "hello"}))
        .await;
    tab.next_of("stream_end").await;
    for kind in ["skip", "hold", "move", "restore"] {
        let (status, error) = patch(&server, &session, json!({"edit": kind, "id": 1})).await;
        assert_eq!(
            (status, &error["code"]),
            (StatusCode::CONFLICT, &json!("change_conflict")),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn a_kill_between_an_edit_and_the_next_call_costs_neither_the_edit_nor_its_telling() {
    let (model, server) = talking();
    let (session, mut tab) = planned(&model, &server).await;
    tab.send(&edit("skip", 2)).await;
    let list = tab.next_of("todo_updated").await;
    drop(tab);
    let server = server.crash_and_restart();
    let path = format!("/sessions/{session}");
    assert_eq!(server.get(&path).await["todo"], list["items"]);
    let mut tab = server.tab(&session, None).await;
    tab.send(&edit("hold", 3)).await;
    tab.send(&json!({"type": "continue"})).await;
    tab.next_of("stream_end").await;
    let said = told(&model, 1);
    assert!(said[0].contains("Skipped, leave out: 2"), "{said:?}");
    assert!(said[0].contains("Held, do not begin"), "{said:?}");
    model.assert_clean();
}
