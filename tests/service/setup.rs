//! How Navi is set up, as the page shows it: settings, models, what is wrong.

use std::time::Instant;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{Config, FakeModel, Reply, Step};
use crate::server::{House, PATIENCE, Server, Socket, TOKEN};

#[tokio::test]
async fn the_settings_are_those_that_the_command_prints() {
    let house = House::new(&[
        ("OLLAMA_HOST", "http://me:pw-hunter2@127.0.0.1:9"),
        ("OPENAI_API_KEY", "sk-hunter2"),
    ]);
    std::fs::create_dir(house.data_dir()).unwrap();
    let file = house.data_dir().join("navi.toml");
    std::fs::write(&file, "[runs]\nsubagent_depth = 1\n").unwrap();
    let server = house.start();
    let told = server.get("/api/settings").await;
    let text = told.to_string();
    assert!(!text.contains("hunter2") && !text.contains(TOKEN), "{text}");
    assert_eq!(told["file"], json!(file));

    let printed = house.run(&["config", "--json"]).stdout;
    let printed: Value = serde_json::from_slice(&printed).unwrap();
    assert_eq!(told["settings"], printed);
    let rows = printed.as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["variable"] == name).unwrap();
    assert_eq!(row("NAVI_SUBAGENT_DEPTH")["origin"], json!(file));
    assert_eq!(row("OLLAMA_HOST")["value"], "http://[hidden]@127.0.0.1:9");
    assert_eq!(row("NAVI_API_TOKEN")["value"], "[hidden]");
    let description = &row("OPENAI_API_KEY")["description"];
    assert_eq!(description, "Its key, if it wants one.");
}

#[tokio::test]
async fn what_the_doctor_finds_the_service_finds_too() {
    let server = House::new(&[]).start();
    // Both get a report: who comes while one looks waits for what it finds.
    let (report, again) = tokio::join!(
        server.get("/api/diagnostics"),
        server.get("/api/diagnostics")
    );
    for report in [report, again] {
        assert_eq!(report["level"], "warning");
        let check = |name: &str| {
            let mut checks = report["checks"].as_array().unwrap().iter();
            checks.find(|check| check["name"] == name).unwrap().clone()
        };
        assert_eq!(check("model")["level"], "warning");
        assert!(check("model")["remedy"].is_string());
        assert_eq!(check("database")["level"], "fine", "{report}");
        let port = check("port")["detail"].as_str().unwrap().to_owned();
        assert!(port.contains("navi runs at"), "{port}");
    }
}

#[tokio::test]
async fn a_profile_is_copied_and_edited_once_its_file_is_right() {
    let house = House::new(&[]);
    let server = house.start();
    let mut page = server.socket("/ws/sessions").await;
    let original = server.get("/agents/profiles/secretary/file").await;
    assert_eq!(original["built_in"], true);
    let text = original["text"].as_str().unwrap();
    let copy = text.replacen("\"secretary\"", "\"mine\"", 1);
    let path = "/agents/profiles/mine/file";
    let put = async |text: &str, before: Value| {
        let body = Some(json!({"text": text, "before": before}));
        let (status, answer) = server.call(Method::PUT, path, body).await;
        (status.as_u16(), answer["code"].clone())
    };
    let wrong = copy.replace("temperature", "temperatur");
    assert_eq!(
        put(&wrong, Value::Null).await,
        (400, json!("invalid_field"))
    );
    let (status, _) = server.call(Method::GET, path, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);

    assert_eq!(put(&copy, Value::Null).await, (204, Value::Null));
    let is_mine = |status: &Value| {
        let mut all = status["profile_models"].as_array().unwrap().iter();
        all.any(|it| it["profile_id"] == "mine")
    };
    told(&mut page, is_mine).await;
    let edited = copy.replace("Personal Secretary", "Mine");
    let conflict = (409, json!("change_conflict"));
    assert_eq!(put(&edited, Value::Null).await, conflict);
    assert_eq!(put(&edited, json!(text)).await, conflict);
    assert_eq!(put(&edited, json!(copy)).await, (204, Value::Null));
    // By its new name for every page.
    let is_renamed = |status: &Value| {
        let mut all = status["profile_models"].as_array().unwrap().iter();
        all.any(|it| it["profile_id"] == "mine" && it["name"] == "Mine")
    };
    told(&mut page, is_renamed).await;
    let file = server.get(path).await;
    assert_eq!(
        (&file["text"], &file["built_in"]),
        (&json!(edited), &json!(false))
    );
    assert_eq!(
        file["file"],
        json!(house.data_dir().join("profiles/mine.toml"))
    );
}

#[tokio::test]
async fn strangers_learn_nothing_of_it() {
    let server = House::new(&[]).start();
    for (method, path) in [
        (Method::GET, "/api/settings"),
        (Method::PATCH, "/api/settings"),
        (Method::POST, "/api/settings/undo"),
        (Method::POST, "/api/models/try"),
        (Method::PUT, "/api/models/server"),
        (Method::GET, "/api/diagnostics"),
        (Method::GET, "/agents/profiles/secretary/file"),
        (Method::PUT, "/agents/profiles/secretary/file"),
        (Method::POST, "/api/models/pull"),
        (Method::POST, "/api/models/pull/stop"),
    ] {
        let request = crate::server::client().request(method, format!("{}{path}", server.url));
        let status = request.send().await.unwrap().status();
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
    }
}

fn line(said: &Value) -> Step {
    Step::Raw(format!("{said}\n"))
}

/// What the next status tells of which this holds.
async fn told(page: &mut Socket, holds: impl Fn(&Value) -> bool) -> Value {
    loop {
        let status = page.next_of("status").await["status"].clone();
        if holds(&status) {
            return status;
        }
    }
}

async fn pull(server: &Server, name: &str) -> (StatusCode, Value) {
    let body = Some(json!({ "name": name }));
    server.call(Method::POST, "/api/models/pull", body).await
}

async fn stop(server: &Server, name: &str) -> StatusCode {
    let body = Some(json!({ "name": name }));
    let stopped = server.call(Method::POST, "/api/models/pull/stop", body);
    stopped.await.0
}

#[tokio::test]
async fn ollama_pulls_a_model_and_every_tab_sees_how_far_it_is() {
    let fake = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &fake.url())]).start();
    let mut pages = [
        server.socket("/ws/sessions").await,
        server.socket("/ws/sessions").await,
    ];
    let part = json!({"status": "pulling 1", "digest": "1", "total": 1000, "completed": 250});
    fake.script(
        Reply::new([
            line(&part),
            Step::hold("rest"),
            line(&json!({"status": "success"})),
            Step::End,
        ])
        .pull("new:1b"),
    );
    assert_eq!(pull(&server, "new:1b").await.0, StatusCode::ACCEPTED);
    for page in &mut pages {
        let status = told(page, |status| status["pull"]["received"] == 250).await;
        assert_eq!(status["pull"]["total"], 1000);
        assert_eq!(status["pull"]["name"], "new:1b");
    }
    // The same is joined, another one has to wait.
    assert_eq!(pull(&server, "new:1b").await.0, StatusCode::ACCEPTED);
    let (status, error) = pull(&server, "other").await;
    assert_eq!(
        (status, &error["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("backend_busy"))
    );
    assert_eq!(stop(&server, "other").await, StatusCode::NOT_FOUND);

    fake.configure(Config {
        models: vec!["fake:latest".to_owned(), "new:1b".to_owned()],
        ..Config::default()
    });
    fake.release("rest");
    for page in &mut pages {
        let here = |status: &Value| {
            let models = status["backends"][0]["models"].as_array().unwrap().clone();
            status["pull"].is_null() && models.iter().any(|model| model["name"] == "new:1b")
        };
        told(page, here).await;
    }
    let pulls = fake.requests();
    let pulls = pulls.iter().filter(|request| request.path == "/api/pull");
    assert_eq!(pulls.count(), 1);
}

#[tokio::test]
async fn a_pull_can_be_stopped_and_why_one_failed_is_told() {
    let fake = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &fake.url())]).start();
    let mut page = server.socket("/ws/sessions").await;
    fake.script(Reply::new([Step::Begin, Step::Silence]).pull("slow"));
    assert_eq!(pull(&server, "slow").await.0, StatusCode::ACCEPTED);
    told(&mut page, |status| status["pull"]["name"] == "slow").await;
    assert_eq!(stop(&server, "slow").await, StatusCode::NO_CONTENT);
    told(&mut page, |status| status["pull"].is_null()).await;
    assert_eq!(stop(&server, "slow").await, StatusCode::NOT_FOUND);

    // The fake knows no other model.
    assert_eq!(pull(&server, "missing").await.0, StatusCode::ACCEPTED);
    let status = told(&mut page, |status| status["pull"]["problem"].is_string()).await;
    let problem = status["pull"]["problem"].as_str().unwrap();
    assert!(problem.contains("no model missing to pull"), "{problem}");
    // It can be put away.
    assert_eq!(stop(&server, "missing").await, StatusCode::NO_CONTENT);
    told(&mut page, |status| status["pull"].is_null()).await;

    for name in ["", "a b", "../x", "http://host/x"] {
        let (status, error) = pull(&server, name).await;
        assert_eq!(
            (status, &error["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_field")),
            "{name}"
        );
    }
    let house = House::new(&[
        ("LLM_BACKEND", "openai"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"),
    ]);
    let (status, error) = pull(&house.start(), "qwen3").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{error}");
}

#[tokio::test]
async fn it_is_told_who_would_answer_for_a_profile_and_who_does_not() {
    let fake = FakeModel::start();
    let server = House::new(&[
        ("OLLAMA_HOST", &fake.url()),
        ("OLLAMA_DEFAULT_MODEL", "none:7b"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"),
    ]);
    let profiles = server.data_dir().join("profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    std::fs::write(
        profiles.join("own.toml"),
        "id = \"own\"\nname = \"Own\"\ndescription = \"\"\nsystem_prompt = \"x\"\n\
         enabled_tools = []\ntemperature = 0.5\nllm_backend = \"openai\"\n",
    )
    .unwrap();
    let server = server.start();
    // A start waits a few seconds for what it asks the model servers, and no longer.
    let until = Instant::now() + PATIENCE;
    let status = loop {
        let status = server.get("/api/status").await;
        let backends = &status["backends"];
        if backends[0]["models"][0].is_object() && backends[1]["down_since"].is_string() {
            break status;
        }
        assert!(Instant::now() < until, "{status}");
    };
    let of = |id: &str| {
        let mut all = status["profile_models"].as_array().unwrap().iter();
        all.find(|it| it["profile_id"] == id).unwrap().clone()
    };
    assert_eq!(
        of("own"),
        json!({
            "profile_id": "own", "name": "Own", "description": "", "has_tools": false,
            "is_default": false, "backend": "ollama", "model": "fake:latest",
            "instead_of": "none:7b", "fell_back_from": "openai"
        })
    );
    let secretary = of("secretary");
    assert!(secretary["fell_back_from"].is_null(), "{secretary}");
    assert!(secretary["instead_of"].is_string(), "{secretary}");
    let backends = status["backends"].as_array().unwrap();
    assert!(backends[0]["down_since"].is_null(), "{status}");
    assert!(backends[1]["down_since"].is_string(), "{status}");
    assert_eq!(backends[0]["models"][0]["bytes"], 4096);
}
