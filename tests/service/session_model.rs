//! Which model and which profile answer in a session, as a person chose them.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{Config, FakeModel, Reply, Step};
use crate::server::{House, Server, Socket};

/// A profile without a model of its own, and one with.
fn profiles(house: &House) {
    let folder = house.data_dir().join("profiles");
    std::fs::create_dir_all(&folder).unwrap();
    for (id, model) in [("bare", ""), ("own", "model = \"own:1b\"\n")] {
        let text = format!(
            "id = \"{id}\"\nname = \"{id}\"\ndescription = \"x\"\nsystem_prompt = \"x\"\n\
             enabled_tools = [\"spawn_agent\"]\ntemperature = 0.5\nplanning_enabled = false\n{model}"
        );
        std::fs::write(folder.join(format!("{id}.toml")), text).unwrap();
    }
}

/// A server with these models, the first of which is the default, and a session of `bare`.
async fn talking() -> (FakeModel, Server, String) {
    let model = FakeModel::start();
    model.configure(having(&["small:1b", "big:7b", "own:1b"]));
    let settings = [
        ("OLLAMA_HOST", &*model.url()),
        ("OLLAMA_DEFAULT_MODEL", "small:1b"),
    ];
    let house = House::new(&settings);
    profiles(&house);
    let server = house.start();
    let created = server
        .post("/sessions", json!({"profile_id": "bare"}))
        .await;
    let session = created["session_id"].as_str().unwrap().to_owned();
    (model, server, session)
}

fn having(models: &[&str]) -> Config {
    Config {
        models: models.iter().map(|name| (*name).to_owned()).collect(),
        ..Config::default()
    }
}

async fn change(server: &Server, session: &str, change: Value) -> (StatusCode, Value) {
    let path = format!("/sessions/{session}");
    server.call(Method::PATCH, &path, Some(change)).await
}

/// The model that is told at the start of the next run, which comes to its end.
async fn answers(tab: &mut Socket, content: &str) -> Value {
    tab.send(&json!({"type": "message", "content": content}))
        .await;
    let start = tab.next_of("stream_start").await;
    tab.next_of("stream_end").await;
    start["model"].clone()
}

#[tokio::test]
async fn the_model_that_was_chosen_answers_from_the_next_run_on() {
    let (model, server, session) = talking().await;
    let mut tab = server.tab(&session, None).await;
    let mut other = server.tab(&session, None).await;
    assert_eq!(answers(&mut tab, "one").await, "small:1b");
    // A run that goes keeps the model that it began with.
    model.script(vec![Step::text("I "), Step::hold("end"), Step::text("say")]);
    tab.send(&json!({"type": "message", "content": "two"}))
        .await;
    assert_eq!(tab.next_of("stream_start").await["model"], "small:1b");
    tab.next_of("stream_delta").await;
    let (status, changed) = change(&server, &session, json!({"model": "big:7b"})).await;
    assert_eq!(
        (status, &changed["model"]),
        (StatusCode::OK, &json!("big:7b"))
    );
    for tab in [&mut tab, &mut other] {
        let told = tab.next_of("model_changed").await;
        assert_eq!(
            (&told["model"], told.get("run_id")),
            (&json!("big:7b"), None)
        );
    }
    model.release("end");
    tab.next_of("stream_end").await;
    assert_eq!(answers(&mut tab, "three").await, "big:7b");
    let asked = model.chats();
    let asked = asked.iter().rfind(|it| it.last_user_text() == "three");
    assert_eq!(asked.unwrap().body["model"], "big:7b");

    let server = server.crash_and_restart();
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["model"], "big:7b");
    let mut tab = server.tab(&session, None).await;
    assert_eq!(answers(&mut tab, "four").await, "big:7b");
    let context = server.get(&format!("/sessions/{session}/context")).await;
    assert_eq!(context["model"], "big:7b");
    change(&server, &session, json!({"model": null})).await;
    assert_eq!(tab.next_of("model_changed").await["model"], Value::Null);
    assert_eq!(answers(&mut tab, "five").await, "small:1b");
    assert!(server.get("/sessions").await[0].get("model").is_none());
}

#[tokio::test]
async fn a_session_is_made_with_a_model_and_one_that_is_gone_is_told() {
    let (model, server, _) = talking().await;
    // It was installed a moment ago.
    model.configure(having(&["small:1b", "big:7b", "gone:3b"]));
    let mut made = Vec::new();
    for chosen in ["big:7b", "gone:3b"] {
        let new = json!({"profile_id": "bare", "model": chosen});
        let created = server.post("/sessions", new).await;
        let session = created["session_id"].as_str().unwrap().to_owned();
        assert_eq!(
            server.get(&format!("/sessions/{session}")).await["model"],
            chosen
        );
        made.push(session);
    }
    model.configure(having(&["small:1b", "big:7b"]));
    // Every model server is asked before one is refused, unless that was done a moment ago.
    let is_known = async || {
        let status = server.get("/api/status").await.to_string();
        status.contains("gone:3b")
    };
    while is_known().await {
        let new = json!({"model": "never:1b"});
        let (status, _) = server.call(Method::POST, "/sessions", Some(new)).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
    let expected = [("big:7b", 0), ("small:1b", 1)];
    for (session, (answering, told)) in made.iter().zip(expected) {
        let mut tab = server.tab(session, None).await;
        tab.send(&json!({"type": "message", "content": "hi"})).await;
        let frames = tab.until("stream_end").await;
        let start = frames.iter().find(|it| it["type"] == "stream_start");
        assert_eq!(start.unwrap()["model"], answering);
        let notices = frames.iter().filter(|it| it["code"] == "model_missing");
        let notices: Vec<_> = notices.map(|it| it["message"].to_string()).collect();
        assert_eq!(notices.len(), told, "{notices:?}");
        assert!(
            notices
                .iter()
                .all(|it| it.contains("gone:3b that was chosen"))
        );
    }
}

#[tokio::test]
async fn a_subagent_has_the_sessions_model_unless_its_profile_names_one() {
    let (model, server, session) = talking().await;
    change(&server, &session, json!({"model": "big:7b"})).await;
    let spawn = |task: &str, profile: &str| {
        Step::tool_call("spawn_agent", json!({"task": task, "profile_id": profile}))
    };
    for (profile, expected) in [("bare", "big:7b"), ("own", "own:1b")] {
        let task = format!("look as {profile}");
        model.script(Reply::new([spawn(&task, profile)]).when(&format!("send {profile}")));
        let mut tab = server.tab(&session, None).await;
        assert_eq!(
            answers(&mut tab, &format!("send {profile}")).await,
            "big:7b"
        );
        let asked = model.chats();
        let asked = asked.iter().find(|it| it.last_user_text().contains(&task));
        assert_eq!(asked.unwrap().body["model"], expected, "{profile}");
    }
}

#[tokio::test]
async fn a_person_changes_the_profile_of_an_open_conversation() {
    let (_model, server, session) = talking().await;
    let mut tab = server.tab(&session, None).await;
    answers(&mut tab, "one").await;
    let (_, changed) = change(
        &server,
        &session,
        json!({"profile_id": "own", "title": "Talk"}),
    )
    .await;
    assert_eq!(
        (&changed["profile_id"], &changed["title"]),
        (&json!("own"), &json!("Talk"))
    );
    let told = tab.next_of("profile_switched").await;
    assert_eq!(
        (&told["profile_id"], told.get("run_id")),
        (&json!("own"), None)
    );
    tab.send(&json!({"type": "message", "content": "two"}))
        .await;
    let start = tab.next_of("stream_start").await;
    assert_eq!(
        (&start["profile_id"], &start["model"]),
        (&json!("own"), &json!("own:1b"))
    );
}

#[tokio::test]
async fn a_model_that_no_server_has_is_refused_and_one_that_may_be_there_is_taken() {
    let (model, server, session) = talking().await;
    let new = json!({"model": "nobody:1b"});
    let made = server.call(Method::POST, "/sessions", Some(new)).await;
    let wish = json!({"model": "nobody:1b", "title": "no"});
    for (status, error) in [made, change(&server, &session, wish).await] {
        assert_eq!(
            (status, &error["code"]),
            (StatusCode::NOT_FOUND, &json!("model_unknown"))
        );
        let said = error["message"].as_str().unwrap();
        assert!(said.contains("small:1b, big:7b, own:1b"), "{said}");
    }
    let list = server.get("/sessions").await;
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["title"], "");
    // Of a server that is away nobody knows what it has.
    let nowhere = ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let both = [("OLLAMA_HOST", &*model.url()), nowhere];
    let away = House::new(&both).start();
    let new = json!({"model": "nobody:1b"});
    let created = away.post("/sessions", new).await;
    let path = format!("/sessions/{}", created["session_id"].as_str().unwrap());
    assert_eq!(away.get(&path).await["model"], "nobody:1b");
}

#[tokio::test]
async fn what_cannot_be_chosen_changes_nothing() {
    let (_model, server, session) = talking().await;
    let long = "x".repeat(501);
    for (wish, code) in [
        (json!({}), "invalid_field"),
        (json!({"model": ""}), "invalid_field"),
        (json!({"model": " "}), "invalid_field"),
        (json!({"model": long, "title": "no"}), "invalid_field"),
        (json!({"model": "a\nb", "title": "no"}), "invalid_field"),
        (json!({"model": "a\u{202e}b"}), "invalid_field"),
        (json!({"model": 3}), "invalid_field"),
        (json!({"title": "", "model": "big:7b"}), "invalid_field"),
        (
            json!({"profile_id": "nobody", "model": "big:7b"}),
            "unknown_profile",
        ),
        (json!({"backend": "ollama"}), "invalid_field"),
    ] {
        let (status, error) = change(&server, &session, wish.clone()).await;
        assert_eq!(
            (status, &error["code"]),
            (StatusCode::BAD_REQUEST, &json!(code)),
            "{wish}"
        );
    }
    for model in ["", "a\tb", long.as_str()] {
        let new = json!({"model": model});
        let (status, error) = server.call(Method::POST, "/sessions", Some(new)).await;
        assert_eq!(
            (status, &error["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_field"))
        );
    }
    let list = server.get("/sessions").await;
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(
        (
            &list[0]["title"],
            &list[0]["profile_id"],
            list[0].get("model")
        ),
        (&json!(""), &json!("bare"), None)
    );
}
