//! Settings that are changed while Navi runs, and a model server by its address and key.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{Config, FakeModel};
use crate::person::Person;
use crate::server::{House, Server};

const FILE: &str = "\
# Mine.
[runs]
# One level is enough.
subagent_depth = 1 # for now
";
const KEY: &str = "sk-hunter2";

/// A house whose settings' file has this text.
fn furnished(text: &str, variables: &[(&str, &str)]) -> (House, PathBuf) {
    let house = House::new(variables);
    std::fs::create_dir_all(house.data_dir()).unwrap();
    let file = house.data_dir().join("navi.toml");
    std::fs::write(&file, text).unwrap();
    (house, file)
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

async fn version(server: &Server) -> Value {
    server.get("/api/settings").await["version"].clone()
}

/// Changes the settings as they are now.
async fn change(server: &Server, changes: Value) -> (StatusCode, Value) {
    let body = json!({"version": version(server).await, "changes": changes});
    server
        .call(Method::PATCH, "/api/settings", Some(body))
        .await
}

fn row(list: &Value, key: &str) -> Value {
    let rows = list["settings"].as_array().unwrap();
    rows.iter().find(|row| row["key"] == key).unwrap().clone()
}

/// The code of what a refusal says.
fn phrase(refusal: &Value) -> &str {
    refusal["phrase"]["code"].as_str().unwrap_or_default()
}

async fn undo(server: &Server) -> (StatusCode, Value) {
    let body = json!({"version": version(server).await});
    let asked = server.call(Method::POST, "/api/settings/undo", Some(body));
    asked.await
}

#[tokio::test]
async fn a_setting_is_written_shown_until_the_next_start_and_put_back() {
    let (house, file) = furnished(FILE, &[]);
    let server = house.start();
    let changes = json!({"runs.subagent_depth": "3", "log.level": "warn"});
    let (status, list) = change(&server, changes).await;
    assert_eq!(status, StatusCode::OK, "{list}");
    let written = format!("{}\n[log]\nlevel = \"warn\"\n", FILE.replace("= 1", "= 3"));
    assert_eq!(read(&file), written);
    let depth = row(&list, "runs.subagent_depth");
    assert_eq!(
        (&depth["value"], &depth["pending"]["value"]),
        (&json!("1"), &json!("3"))
    );
    assert_eq!(row(&list, "log.level")["pending"]["origin"], json!(file));
    assert_eq!(list["can_undo"], true);

    drop(server);
    let server = house.start();
    let list = server.get("/api/settings").await;
    let depth = row(&list, "runs.subagent_depth");
    assert_eq!(
        (&depth["value"], &depth["pending"]),
        (&json!("3"), &Value::Null)
    );
    assert_eq!(
        (&depth["in_file"], &depth["origin"]),
        (&json!(true), &json!(file))
    );
    // What was written before the start is not told from what was written by hand.
    assert_eq!(list["can_undo"], false);
    let (status, refusal) = undo(&server).await;
    assert_eq!(
        (status.as_u16(), phrase(&refusal)),
        (404, "no_earlier_settings")
    );

    let (_, list) = change(&server, json!({"log.level": null})).await;
    assert_eq!(
        row(&list, "log.level")["pending"],
        json!({"value": "info", "origin": "default"})
    );
    let (status, list) = undo(&server).await;
    assert_eq!(status, StatusCode::OK, "{list}");
    assert_eq!(read(&file), written);
    assert_eq!(row(&list, "log.level")["pending"], Value::Null);
}

#[tokio::test]
async fn a_wrong_change_is_told_and_changes_nothing() {
    let (house, file) = furnished(FILE, &[]);
    let server = house.start();
    for (changes, status, said) in [
        (json!({"runs.subagent_depth": "99"}), 400, "setting_wrong"),
        (json!({"log.level": "loud"}), 400, "setting_wrong"),
        (json!({"runs.subagent_dept": "1"}), 400, "unknown_setting"),
        (
            json!({"profiles.default": "nobody"}),
            400,
            "settings_refused",
        ),
        (json!({"model.backend": "openai"}), 400, "settings_refused"),
        (
            json!({"model.parallel": "2"}),
            409,
            "setting_in_environment",
        ),
        (
            json!({"ollama.default_model": "[hidden]"}),
            400,
            "setting_wrong",
        ),
        // What would open the house, or run something.
        (
            json!({"server.bind": "0.0.0.0:80"}),
            403,
            "setting_file_only",
        ),
        (
            json!({"server.api_token": "mine"}),
            403,
            "setting_file_only",
        ),
        (json!({"server.accounts": null}), 403, "setting_file_only"),
        (
            json!({"tools.terminal_allowed_commands": "*"}),
            403,
            "setting_file_only",
        ),
        (
            json!({"tools.sandbox_user": "none"}),
            403,
            "setting_file_only",
        ),
        (
            json!({"tools.mcp_config": "mine.json"}),
            403,
            "setting_file_only",
        ),
        (
            json!({"log.level": "warn", "web.fetch_allowed_hosts": "*"}),
            403,
            "setting_file_only",
        ),
    ] {
        let (got, refusal) = change(&server, changes.clone()).await;
        assert_eq!(
            (got.as_u16(), phrase(&refusal)),
            (status, said),
            "{changes}: {refusal}"
        );
        assert_eq!(read(&file), FILE, "{changes}");
    }
    let (_, refusal) = change(&server, json!({"runs.subagent_depth": "99"})).await;
    let expected = &refusal["phrase"]["phrases"]["expected"];
    assert_eq!(expected["params"], json!({"from": "0", "to": "8"}));
    let list = server.get("/api/settings").await;
    assert_eq!(row(&list, "server.bind")["file_only"], "doors");
    assert_eq!(list["can_undo"], false);
    assert_eq!(undo(&server).await.0, StatusCode::NOT_FOUND);
    // One that is broken by hand is told, and not written over.
    std::fs::write(&file, "[runs").unwrap();
    let list = server.get("/api/settings").await;
    assert_eq!(list["problem"]["code"], "plain");
    let (status, refusal) = change(&server, json!({"log.level": "warn"})).await;
    assert_eq!(
        (status.as_u16(), phrase(&refusal)),
        (409, "settings_broken")
    );
    assert_eq!(read(&file), "[runs");
}

#[tokio::test]
async fn of_two_who_change_settings_at_once_one_is_told() {
    let (house, file) = furnished(FILE, &[]);
    let server = house.start();
    let read_by_both = version(&server).await;
    let patch = |changes: Value| {
        let body = json!({"version": read_by_both, "changes": changes});
        server.call(Method::PATCH, "/api/settings", Some(body))
    };
    let (one, other) = tokio::join!(
        patch(json!({"log.level": "warn"})),
        patch(json!({"runs.subagent_depth": "2"}))
    );
    let mut answers = [
        (one.0.as_u16(), phrase(&one.1)),
        (other.0.as_u16(), phrase(&other.1)),
    ];
    answers.sort_unstable();
    assert_eq!(answers, [(200, ""), (409, "settings_moved")]);
    let text = read(&file);
    assert!(text.contains("warn") != text.contains("= 2"), "{text}");
    // Nor is what somebody wrote by hand lost.
    let before = version(&server).await;
    std::fs::write(&file, format!("{text}# By hand.\n")).unwrap();
    let body = json!({"version": before, "changes": {"log.level": "error"}});
    let (status, _) = server
        .call(Method::PATCH, "/api/settings", Some(body))
        .await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(read(&file).ends_with("# By hand.\n"));
}

#[tokio::test]
async fn what_was_changed_by_hand_is_not_undone_from_the_page() {
    let before = "[tools]\nsandbox_read_paths = \"/opt\"\n[runs]\nsubagent_depth = 1\n";
    let (house, file) = furnished(before, &[]);
    let server = house.start();
    assert_eq!(
        change(&server, json!({"log.level": "warn"})).await.0,
        StatusCode::OK
    );
    let from_here = read(&file);
    // Be it what the page may change too.
    for by_hand in [("/opt", ""), ("depth = 1", "depth = 2")] {
        let text = from_here.replace(by_hand.0, by_hand.1);
        std::fs::write(&file, &text).unwrap();
        assert_eq!(server.get("/api/settings").await["can_undo"], false);
        let (status, refusal) = undo(&server).await;
        assert_eq!((status.as_u16(), phrase(&refusal)), (403, "undo_by_hand"));
        assert_eq!(read(&file), text);
    }
    std::fs::write(&file, &from_here).unwrap();
    assert_eq!(undo(&server).await.0, StatusCode::OK);
    assert_eq!(read(&file), before);
}

#[tokio::test]
async fn a_starter_model_that_is_none_is_found_before_it_is_used() {
    let text = "[model]\nbackend = \"ollama\"\n[starter]\nmodel = \"smolm\"\n";
    let (house, file) = furnished(text, &[("STARTER_MODEL", "")]);
    let server = house.start();
    let (status, refusal) = change(&server, json!({"model.backend": "auto"})).await;
    assert_eq!(
        (status.as_u16(), phrase(&refusal)),
        (400, "settings_refused")
    );
    assert_eq!(read(&file), text);
}

#[tokio::test]
async fn a_secret_is_written_and_never_told() {
    let house = House::new(&[]);
    let server = house.start();
    let (status, list) = change(&server, json!({"web.brave_api_key": KEY})).await;
    assert_eq!(status, StatusCode::OK, "{list}");
    assert_eq!(
        row(&list, "web.brave_api_key")["pending"]["value"],
        "[hidden]"
    );
    let file = house.data_dir().join("navi.toml");
    assert!(read(&file).contains(KEY));
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A change of it is one that waits, though nobody sees from what to what.
    let (_, again) = change(&server, json!({"web.brave_api_key": "key-2-7f3a"})).await;
    for told in [list, again, server.get("/api/settings").await] {
        let told = told.to_string();
        assert!(
            !told.contains(KEY) && !told.contains("key-2-7f3a"),
            "{told}"
        );
    }
    assert!(!server.said().contains(KEY));
    // Nor where the line with it cannot be read.
    std::fs::write(&file, format!("# Mine.\n[openai]\napi_key = \"{KEY}\n")).unwrap();
    let list = server.get("/api/settings").await;
    let (status, refusal) = change(&server, json!({"log.level": "warn"})).await;
    assert_eq!(status, StatusCode::CONFLICT);
    for told in [list["problem"].to_string(), refusal.to_string()] {
        assert!(told.contains("line 3") && !told.contains(KEY), "{told}");
    }
    let printed = house.run(&["config"]);
    assert!(!printed.status.success());
    let printed = String::from_utf8_lossy(&printed.stderr).into_owned();
    assert!(
        printed.contains("line 3") && !printed.contains(KEY),
        "{printed}"
    );
}

/// A server that wants a key.
fn with_key() -> FakeModel {
    let fake = FakeModel::start();
    fake.configure(Config {
        ollama: false,
        api_key: Some(KEY.to_owned()),
        models: vec!["first".to_owned(), "second".to_owned()],
        ..Config::default()
    });
    fake
}

async fn try_out(server: &Server, base_url: &str, api_key: Value) -> (StatusCode, Value) {
    let body = json!({"base_url": base_url, "api_key": api_key});
    server
        .call(Method::POST, "/api/models/try", Some(body))
        .await
}

async fn use_it(
    server: &Server,
    base_url: &str,
    api_key: Value,
    model: &str,
) -> (StatusCode, Value) {
    let version = version(server).await;
    let body =
        json!({"version": version, "base_url": base_url, "api_key": api_key, "model": model});
    server
        .call(Method::PUT, "/api/models/server", Some(body))
        .await
}

async fn answer(server: &Server) -> String {
    let path = format!("/sessions/{}/messages", server.new_session().await);
    server
        .post(&path, json!({"content": "Hi"}))
        .await
        .to_string()
}

#[tokio::test]
async fn a_model_server_is_tried_and_answers_without_a_new_start() {
    let fake = with_key();
    let house = House::new(&[]);
    let server = house.start();
    let file = house.data_dir().join("navi.toml");
    for (address, key, status, said) in [
        (fake.url(), json!("sk-wrong"), 502, "look_key"),
        (fake.url(), Value::Null, 502, "look_key"),
        (format!("{}?a=b", fake.url()), Value::Null, 502, "look_key"),
        (
            "http://127.0.0.1:9".to_owned(),
            json!(KEY),
            503,
            "look_silent",
        ),
        (server.url.clone(), json!(KEY), 502, "look_key"),
        (
            "file:///etc/passwd".to_owned(),
            Value::Null,
            400,
            "no_server_address",
        ),
        (
            "http://me:pw@127.0.0.1:9".to_owned(),
            Value::Null,
            400,
            "no_server_address",
        ),
        (
            "http://127.0.0.1:9/v1?api-key=[hidden]".to_owned(),
            Value::Null,
            400,
            "expect_whole",
        ),
    ] {
        let (got, refusal) = try_out(&server, &address, key).await;
        assert_eq!(
            (got.as_u16(), phrase(&refusal)),
            (status, said),
            "{address}: {refusal}"
        );
        assert!(!refusal.to_string().contains("sk-"), "{refusal}");
    }
    let (_, found) = try_out(&server, &fake.url(), json!(KEY)).await;
    let names: Vec<&Value> = found["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(found["address"], format!("{}/v1", fake.url()));
    assert!(!file.exists(), "nothing is written by a try");

    let mut page = server.socket("/ws/sessions").await;
    let (status, list) = use_it(&server, &fake.url(), json!(KEY), "second").await;
    assert_eq!(status, StatusCode::OK, "{list}");
    assert!(!list.to_string().contains(KEY));
    let address = row(&list, "openai.base_url");
    assert_eq!(
        (&address["value"], &address["pending"]),
        (&json!(fake.url()), &Value::Null)
    );
    while page.next_of("status").await["status"]["active"] != "openai" {}
    assert!(answer(&server).await.contains("You said: Hi"));
    assert!(
        fake.requests()
            .iter()
            .any(|it| it.is_chat() && it.body["model"] == "second")
    );

    // Known by now; its key need not be given again.
    assert_eq!(
        try_out(&server, &fake.url(), Value::Null).await.0,
        StatusCode::OK
    );
    let (status, _) = use_it(&server, &fake.url(), Value::Null, "first").await;
    assert_eq!(status, StatusCode::OK);
    drop(server);
    let server = house.start();
    assert!(answer(&server).await.contains("You said: Hi"));
    assert!(
        fake.requests()
            .iter()
            .any(|it| it.is_chat() && it.body["model"] == "first")
    );
    assert_eq!(fake.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_key_goes_to_no_address_that_it_was_not_given_for() {
    let (fake, other) = (with_key(), FakeModel::start());
    let server = House::new(&[]).start();
    assert_eq!(
        use_it(&server, &fake.url(), json!(KEY), "first").await.0,
        StatusCode::OK
    );
    try_out(&server, &other.url(), Value::Null).await;
    let (status, refusal) = use_it(&server, &other.url(), Value::Null, "fake:latest").await;
    assert_eq!((status.as_u16(), phrase(&refusal)), (400, "key_of_another"));
    let moved = json!({"openai.base_url": other.url()});
    assert_eq!(
        phrase(&change(&server, moved.clone()).await.1),
        "key_of_another"
    );
    // Nor in two steps.
    let out = json!({"openai.base_url": null});
    assert_eq!(change(&server, out).await.0, StatusCode::OK);
    assert_eq!(phrase(&change(&server, moved).await.1), "key_of_another");
    // Without it, or with its own, it may be another.
    let (status, _) = use_it(&server, &other.url(), json!(""), "fake:latest").await;
    assert_eq!(status, StatusCode::OK);
    assert!(answer(&server).await.contains("You said: Hi"));
    let sent = other.requests();
    let mut keys = sent.iter().flat_map(|it| &it.headers);
    assert!(!keys.any(|(name, _)| name == "authorization"), "{sent:?}");
}

#[tokio::test]
async fn a_model_server_that_is_replaced_ends_no_answer() {
    let (fake, other) = (with_key(), FakeModel::start());
    let server = House::new(&[]).start();
    assert_eq!(
        use_it(&server, &fake.url(), json!(KEY), "first").await.0,
        StatusCode::OK
    );
    fake.script(vec![
        crate::fake_model::Step::Text("One, ".to_owned()),
        crate::fake_model::Step::Hold("rest".to_owned()),
        crate::fake_model::Step::Text("two.".to_owned()),
    ]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "Count", "client_id": "a"}))
        .await;
    tab.next_of("stream_delta").await;
    assert_eq!(
        use_it(&server, &other.url(), json!(""), "fake:latest")
            .await
            .0,
        StatusCode::OK
    );
    fake.release("rest");
    let end = tab.next_of("stream_end").await;
    assert!(end.to_string().contains("One, two."), "{end}");
    assert!(answer(&server).await.contains("You said: Hi"));
    assert!(
        other
            .requests()
            .iter()
            .any(crate::fake_model::Recorded::is_chat)
    );
}

#[tokio::test]
async fn a_token_for_administering_alone_sends_nobodys_words_elsewhere() {
    let house = House::new(&[("NAVI_ACCOUNTS", "on")]);
    let server = house.start();
    let file = house.data_dir().join("navi.toml");
    let admin = Person::join(&server, "Ada", "admin").await;
    let narrow = Person {
        token: admin.token_for(&server, &["read", "run", "admin"]).await,
        ..admin.clone()
    };
    let ask = async |who: &Person, method, path, mut body: Value| {
        body["version"] = version(&server).await;
        let (status, _) = who.call(&server, method, path, Some(body)).await;
        status
    };
    let patch = async |who: &Person, changes: Value| {
        let body = json!({"changes": changes});
        ask(who, Method::PATCH, "/api/settings", body).await
    };
    let auto = json!({"consent.mode": "auto", "log.level": "warn"});
    for changes in [
        auto.clone(),
        json!({"openai.base_url": "http://127.0.0.1:9"}),
        json!({"web.searxng_url": "http://127.0.0.1:9"}),
        json!({"home_assistant.url": "http://127.0.0.1:9", "home_assistant.token": "x"}),
    ] {
        let status = patch(&narrow, changes.clone()).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{changes}");
    }
    let there = json!({"base_url": "http://127.0.0.1:9", "api_key": ""});
    let status = ask(&narrow, Method::PUT, "/api/models/server", there).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(!file.exists());

    assert_eq!(patch(&admin, auto).await, StatusCode::OK);
    let undone = ask(&narrow, Method::POST, "/api/settings/undo", json!({})).await;
    assert_eq!(undone, StatusCode::FORBIDDEN);
    assert!(read(&file).contains("auto"));
    let rest = json!({"log.level": "error"});
    assert_eq!(patch(&narrow, rest).await, StatusCode::OK);
}

#[tokio::test]
async fn who_is_no_admin_changes_no_setting_and_the_record_has_who_did() {
    let server = House::new(&[("NAVI_ACCOUNTS", "on")]).start();
    let user = Person::join(&server, "Olena", "user").await;
    let admin = Person::join(&server, "Ada", "admin").await;
    let body = json!({"version": version(&server).await, "changes": {"web.tavily_api_key": KEY}});
    let ask = |who: Person, method, path: &'static str, body: Value| {
        let server = &server;
        async move { who.call(server, method, path, Some(body)).await }
    };
    let server_there = json!({"base_url": "http://127.0.0.1:9", "api_key": null});
    for (method, path, body) in [
        (Method::PATCH, "/api/settings", body.clone()),
        (
            Method::POST,
            "/api/settings/undo",
            json!({"version": body["version"]}),
        ),
        (Method::POST, "/api/models/try", server_there.clone()),
        (Method::PUT, "/api/models/server", server_there),
    ] {
        let (status, _) = ask(user.clone(), method, path, body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
    }
    let (status, told) = ask(admin, Method::PATCH, "/api/settings", body).await;
    assert_eq!(status, StatusCode::OK, "{told}");
    let record = server.get("/api/record").await;
    let mut lines = record.as_array().unwrap().iter();
    let line = lines
        .find(|line| line["what"] == "settings_changed")
        .unwrap();
    assert_eq!(
        (&line["name"], &line["about"]),
        (&json!("Ada"), &json!("web.tavily_api_key"))
    );
    assert!(!record.to_string().contains(KEY));
}
