//! A canary in every secret setting: it is sent where it belongs, and stands nowhere else. What
//! is secret is asked of the program itself, so that a new setting is among them by itself.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};

use super::sign_on::somebody;
use super::site::{Site, answer};
use crate::collector::{Collector, Manner};
use crate::fake_model::{Config, FakeModel, Reply, Step};
use crate::provider::{CLIENT, Provider};
use crate::server::{House, Server, Socket, TOKEN, client};

/// Needs a server of its own, and is put to the test by itself.
const DATABASE_URL: &str = "DATABASE_URL";

/// Takes headers, of which a value is what is secret.
const HEADERS: &str = "NAVI_OTLP_HEADERS";

fn canary(variable: &str) -> String {
    format!("CANARY.{}.0123456789abcdef", variable.to_ascii_lowercase())
}

/// The variables of all secret settings.
fn secret_variables() -> Vec<String> {
    let output = House::new(&[]).run(&["config", "--json"]);
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = rows.as_array().unwrap().iter();
    rows.filter(|row| row["secret"] == true)
        .map(|row| row["variable"].as_str().unwrap().to_owned())
        .collect()
}

/// Everything that was seen, to be looked through at the end.
#[derive(Debug, Default)]
struct Seen(Vec<(String, Vec<u8>)>);

impl Seen {
    fn add(&mut self, place: &str, text: impl AsRef<[u8]>) {
        self.0.push((place.to_owned(), text.as_ref().to_vec()));
    }

    /// What the commands say that show settings.
    fn add_commands(&mut self, house: &House) {
        for arguments in [
            &["config"][..],
            &["config", "--json"],
            &["doctor"],
            &["doctor", "--json"],
        ] {
            let output = house.run(arguments);
            self.add(&format!("navi {arguments:?}"), output.stdout);
            self.add(&format!("navi {arguments:?}, its errors"), output.stderr);
        }
    }

    fn add_files(&mut self, dir: &Path) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.add_files(&path);
            } else if let Ok(bytes) = fs::read(&path) {
                self.add(&path.display().to_string(), bytes);
            }
        }
    }

    #[track_caller]
    fn has_no(&self, secret: &str) {
        for (place, text) in &self.0 {
            let found = text
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            let text = String::from_utf8_lossy(text);
            let shown = text.lines().find(|line| line.contains(secret));
            assert!(!found, "{secret} stands in {place}: {shown:?}");
        }
    }
}

/// A Home Assistant that repeats what it was sent, in its data and in its errors.
async fn parrot() -> Site {
    Site::start("127.0.0.1".parse().unwrap(), |head| {
        let json = ["Content-Type: application/json"];
        let said = json!(head);
        if head.starts_with("GET /api/states ") {
            let state = json!([{"entity_id": "sensor.echo", "state": said, "attributes": {"friendly_name": said}}]);
            answer("200 OK", &json, state.to_string().as_bytes())
        } else {
            let message = json!({"message": said}).to_string();
            answer("400 Bad Request", &json, message.as_bytes())
        }
    })
    .await
}

async fn turn(tab: &mut Socket, text: &str, seen: &mut Seen) {
    tab.send(&json!({"type": "message", "content": text})).await;
    let ends = ["stream_end", "error", "stream_stopped"];
    loop {
        match tab.next().await {
            crate::server::Told::Frame(frame) => {
                seen.add("an event", frame.to_string());
                let kind = frame["type"].as_str().unwrap_or_default();
                if ends.contains(&kind) {
                    return;
                }
            }
            crate::server::Told::Closed(code) => panic!("closed with {code}"),
        }
    }
}

/// Every document that the service gives out.
async fn documents(server: &Server, session: &str, token: &str, seen: &mut Seen) {
    let docs = ask(server, "/api/openapi.json", token).await;
    let paths: Value = serde_json::from_str(&docs).unwrap();
    let paths = paths["paths"].as_object().unwrap();
    assert!(paths.len() > 10, "the paths were not found");
    for (path, methods) in paths {
        if methods.get("get").is_none() {
            continue;
        }
        let path = path
            .replace("{session_id}", session)
            .replace("{id}", session);
        if path == format!("/sessions/{session}/events") {
            seen.add(&format!("GET {path}"), told(server, session, token).await);
            continue;
        }
        seen.add(&format!("GET {path}"), ask(server, &path, token).await);
        // And what it says to somebody with a wrong token.
        seen.add(&format!("GET {path}"), ask(server, &path, "wrong").await);
    }
    seen.add("the page", ask(server, "/", token).await);
}

/// The events of a session, which have no end, up to the newest.
async fn told(server: &Server, session: &str, token: &str) -> String {
    let found = client().get(format!("{}/sessions/{session}", server.url));
    let found = found.bearer_auth(token).send().await.unwrap();
    let found: Value = found.json().await.unwrap();
    let newest = format!("id: {}\n", found["last_seq"]);
    let url = format!("{}/sessions/{session}/events?after=0", server.url);
    let mut response = client().get(url).bearer_auth(token).send().await.unwrap();
    let mut told = format!("{:?}\n", response.headers());
    while !told.contains(&newest) {
        let more = response.chunk().await.unwrap().expect("more events");
        told.push_str(&String::from_utf8_lossy(&more));
    }
    told
}

/// An answer whole: its headers and its body.
async fn ask(server: &Server, path: &str, token: &str) -> String {
    let request = client()
        .request(Method::GET, format!("{}{path}", server.url))
        .bearer_auth(token);
    let response = request.send().await.unwrap();
    let headers = format!("{:?}", response.headers());
    let body = response.text().await.unwrap();
    if path.ends_with(".json") {
        return body;
    }
    format!("{headers}\n{body}")
}

#[tokio::test]
async fn canaries_in_every_secret_setting_stand_nowhere_else() {
    let secrets = secret_variables();
    for known in [
        "NAVI_API_TOKEN",
        DATABASE_URL,
        "OPENAI_API_KEY",
        "HOME_ASSISTANT_TOKEN",
    ] {
        assert!(
            secrets.iter().any(|secret| secret == known),
            "{known}: {secrets:?}"
        );
    }
    let model = FakeModel::start();
    model.configure(Config {
        ollama: false,
        api_key: Some(canary("OPENAI_API_KEY")),
        ..Config::default()
    });
    // Plans and titles are asked for without tools.
    for arguments in [
        json!({"action": "states"}),
        json!({"action": "states", "entity_id": "light.none"}),
    ] {
        let call = Step::tool_call("home_assistant", arguments);
        model.script(Reply::new([call]).with_tools(true));
    }
    let words = Step::text("The house repeats what it hears.");
    model.script(Reply::new([words]).with_tools(true));
    let home = parrot().await;
    let (model_url, home_url) = (format!("{}/v1", model.url()), home.url("/"));
    let canaries: Vec<(String, String)> = secrets
        .iter()
        .filter(|variable| *variable != DATABASE_URL)
        .map(|variable| (variable.clone(), canary(variable)))
        .collect();
    let collector = Collector::start(Manner::Takes).await;
    let (collector_url, header) = (collector.url(), format!("x-key={}", canary(HEADERS)));
    let provider = Provider::start().await;
    let mut variables = vec![
        ("LOG_LEVEL", "debug"),
        ("NAVI_ACCOUNTS", "on"),
        ("NAVI_PUBLIC_URL", "https://home.example"),
        ("NAVI_OIDC_ISSUER", provider.issuer.as_str()),
        ("NAVI_OIDC_CLIENT_ID", CLIENT),
        ("NAVI_SIGN_ON_JOIN", "user"),
        ("NAVI_OTLP_ENDPOINT", collector_url.as_str()),
        ("LLM_BACKEND", "openai"),
        ("OPENAI_BASE_URL", model_url.as_str()),
        ("HOME_ASSISTANT_URL", home_url.as_str()),
        // It is asked before the engines that have keys, and is not there.
        ("NAVI_SEARXNG_URL", "http://127.0.0.1:9/"),
        ("NAVI_DEFAULT_PROFILE", "smart_home"),
    ];
    for (variable, canary) in &canaries {
        let is_header = variable == HEADERS;
        variables.push((variable, if is_header { &header } else { canary }));
    }
    let house = House::new(&variables);
    let mut server = house.start();
    let token = canary("NAVI_API_TOKEN");
    let mut seen = Seen::default();
    seen.add("the banner", server.banner.join("\n"));

    let created = client()
        .post(format!("{}/sessions", server.url))
        .bearer_auth(&token)
        .json(&json!({}));
    let created: Value = created.send().await.unwrap().json().await.unwrap();
    let session = created["session_id"]
        .as_str()
        .expect("a session")
        .to_owned();
    let headers = [("authorization", format!("Bearer {token}"))];
    let path = format!("/ws/sessions/{session}");
    let mut tab = server.socket_with(&path, &headers).await.unwrap();
    turn(&mut tab, "What does the house say?", &mut seen).await;
    // The house was told its token, and said it back.
    let heard = home.requests().join("\n");
    assert!(heard.contains(&canary("HOME_ASSISTANT_TOKEN")), "{heard}");

    // The provider was shown by whom it was asked.
    somebody(&server, &provider, "anna").await.unwrap();
    let shown = STANDARD.encode(format!("{CLIENT}:{}", canary("NAVI_OIDC_CLIENT_SECRET")));
    let asked = provider.asked().join("\n");
    assert!(asked.contains(&shown), "{asked}");

    // And a key that the model server refuses.
    model.configure(Config {
        ollama: false,
        api_key: Some("another".to_owned()),
        ..Config::default()
    });
    turn(&mut tab, "And now?", &mut seen).await;
    documents(&server, &session, &token, &mut seen).await;
    for body in model.chats() {
        seen.add("a request to the model", body.body.to_string());
    }
    seen.add_commands(&house);
    server.ask_to_end();
    server.ended().await;
    let traces = collector.now();
    assert!(
        traces
            .heads
            .iter()
            .all(|head| head.contains(&header.replace('=', ": ")))
    );
    assert!(!traces.bodies.is_empty());
    for body in traces.bodies {
        seen.add("a trace", body);
    }
    seen.add("the log", server.said());
    seen.add_files(&house.data_dir());
    let events = seen.0.iter().filter(|(place, _)| place == "an event");
    assert!(events.count() > 5, "a conversation was seen");
    assert!(server.said().contains("DEBUG"), "the log is at debug");
    for (_, canary) in &canaries {
        seen.has_no(canary);
    }
    // The parts of a header that a program might take apart are the canary too.
    assert_ne!(token, TOKEN);
}

#[test]
fn a_database_password_is_told_to_nobody() {
    let password = canary("password");
    let urls = [
        format!("postgres://navi:{password}@127.0.0.1:9/navi"),
        format!("postgres://navi:{password}@no-such-host.invalid/navi"),
        format!("postgres://{password}@127.0.0.1:9/navi?password={password}"),
        format!("mysql://navi:{password}@127.0.0.1/navi"),
        format!("postgres://navi:{password}@[::/navi"),
    ];
    let commands = [
        &[][..],
        &["config"],
        &["doctor"],
        &["doctor", "--json"],
        &["migrate", "up"],
    ];
    // Each waits long for a database that is not there.
    std::thread::scope(|scope| {
        for url in &urls {
            for arguments in commands {
                let password = &password;
                scope.spawn(move || {
                    let house = House::new(&[(DATABASE_URL, url), ("LOG_LEVEL", "debug")]);
                    let mut seen = Seen::default();
                    let output = house.run(arguments);
                    seen.add(&format!("navi {arguments:?}"), output.stdout);
                    seen.add(&format!("navi {arguments:?}, its errors"), output.stderr);
                    seen.has_no(password);
                });
            }
        }
    });
}

#[test]
fn a_secret_that_is_wrong_is_not_repeated() {
    for variable in secret_variables() {
        let wrong = format!("{} with spaces", canary(&variable));
        let output = House::new(&[(&variable, &wrong)]).run(&["config"]);
        assert!(!output.status.success(), "{variable} took {wrong}");
        let mut seen = Seen::default();
        seen.add("its errors", &output.stderr);
        seen.add("its output", &output.stdout);
        seen.has_no(&canary(&variable));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&variable), "{said}");
    }
}

/// Model servers and proxies that are named with a password in their address.
#[tokio::test]
async fn passwords_inside_addresses_stand_nowhere_else() {
    const PASSWORD: &str = "CANARY-pass.0123456789abcdef";
    let with = |scheme: &str, rest: &str| format!("{scheme}me:{PASSWORD}@{rest}");
    let (ollama, openai) = (with("", "127.0.0.1:9"), with("http://", "gpu.invalid:9/v1"));
    let proxy = with("http://", "127.0.0.1:9");
    let house = House::new(&[
        ("LOG_LEVEL", "trace"),
        ("OLLAMA_HOST", &ollama),
        ("OPENAI_BASE_URL", &openai),
        ("HTTP_PROXY", &proxy),
        ("http_proxy", &proxy),
    ]);
    let mut server = house.start();
    let mut seen = Seen::default();
    let session = server.new_session().await;
    turn(&mut server.tab(&session, None).await, "Hello?", &mut seen).await;
    documents(&server, &session, TOKEN, &mut seen).await;
    seen.add_commands(&house);
    server.ask_to_end();
    server.ended().await;
    seen.add("the banner", server.banner.join("\n"));
    assert!(server.said().contains("gpu.invalid"), "it was asked");
    seen.add("the log", server.said());
    for (variable, wrong) in [
        ("OLLAMA_HOST", with("", "host:port")),
        ("OPENAI_BASE_URL", with("", "host")),
        ("OPENAI_BASE_URL", with("ftp://", "host")),
        ("NAVI_SEARXNG_URL", with("http://", "host")),
        ("HOME_ASSISTANT_URL", with("http://", "host")),
        ("NAVI_FETCH_ALLOWED_HOSTS", with("http://", "host")),
        ("NAVI_BIND", with("", "host:1")),
    ] {
        let output = House::new(&[(variable, &wrong)]).run(&["config"]);
        assert!(!output.status.success(), "{variable} took {wrong}");
        seen.add(variable, output.stdout);
        seen.add(variable, output.stderr);
    }
    seen.has_no(PASSWORD);
}
