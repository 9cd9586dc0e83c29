//! A service with every door through which text comes in, and sessions of it.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::super::site::{Site, SiteReply, answer, redirect};
use super::super::uploads::upload;
use crate::fake_model::FakeModel;
use crate::server::{House, Server, Told, text};

/// What others wrote.
pub(super) const WORDS: &str = "foreign words";

/// A service with every door through which text comes in.
pub(super) struct Scene {
    pub(super) model: FakeModel,
    pub(super) server: Server,
    pub(super) site: Site,
    /// A folder of `FS_ALLOWED_PATHS`.
    pub(super) beside: PathBuf,
    _folder: tempfile::TempDir,
}

impl Scene {
    pub(super) async fn new(more: &[(&str, &str)]) -> Self {
        let site = Site::start(IpAddr::V4(Ipv4Addr::LOCALHOST), site).await;
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().canonicalize().unwrap().join("beside");
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join("note.txt"), WORDS).unwrap();
        let model = FakeModel::start();
        let (models, searches) = (model.url(), site.url(""));
        let variables = [
            ("OLLAMA_HOST", models.as_str()),
            ("NAVI_CONSENT_MODE", "auto"),
            ("NAVI_FETCH_ALLOWED_HOSTS", "127.0.0.1"),
            ("NAVI_SEARXNG_URL", searches.trim_end_matches('/')),
            ("HOME_ASSISTANT_URL", searches.as_str()),
            ("HOME_ASSISTANT_TOKEN", "token"),
            ("FS_ALLOWED_PATHS", text(&beside)),
        ];
        let server = House::new(&variables).with(more).start();
        Self {
            model,
            server,
            site,
            beside,
            _folder: folder,
        }
    }

    pub(super) async fn evening(&self) -> Evening<'_> {
        self.evening_with("secretary").await
    }

    async fn evening_with(&self, profile: &str) -> Evening<'_> {
        let profile = json!({"profile_id": profile});
        let created = self.server.post("/sessions", profile).await;
        Evening {
            scene: self,
            session: created["session_id"].as_str().unwrap().to_owned(),
        }
    }

    /// A session to which a file with these words was sent, and nothing was said of it.
    pub(super) async fn sent(&self) -> Evening<'_> {
        self.sent_to("secretary").await
    }

    /// The same with another profile.
    pub(super) async fn sent_to(&self, profile: &str) -> Evening<'_> {
        let evening = self.evening_with(profile).await;
        let name = format!("{WORDS}.txt");
        let content = format!("{WORDS}\nsecond line\n");
        let file = upload(&self.server, &evening.session, &name, content.as_bytes()).await;
        fs::rename(
            evening.path(file["path"].as_str().unwrap()),
            evening.path("uploads/in.txt"),
        )
        .unwrap();
        evening
    }

    pub(super) async fn allow(&self, tool: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        let sha256 = loop {
            let all = self.server.get("/tools").await;
            let found = all.as_array().unwrap().iter().find(|it| it["name"] == tool);
            if let Some(found) = found.filter(|it| it["sha256"].is_string()) {
                break found["sha256"].clone();
            }
            assert!(Instant::now() < until, "{tool}: {all:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let path = format!("/tools/{tool}/allow");
        let body = Some(json!({"sha256": sha256}));
        let (status, told) = self.server.call(Method::POST, &path, body).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{told}");
    }

    /// Every tool, once these are there too.
    pub(super) async fn tools_with(&self, names: &[&str]) -> Vec<Value> {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let all = self.server.get("/agents/tools").await;
            let all = all.as_array().unwrap();
            let is_there = |name: &&str| all.iter().any(|it| it["name"] == **name);
            if names.iter().all(is_there) {
                return all.clone();
            }
            assert!(Instant::now() < until, "{all:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Servers that misbehave as these say.
    pub(super) fn mcp_servers(&self, modes: &[&str]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mcp_server.py");
        let server = |mode: &&str| {
            let server = json!({"command": "python3", "args": [script, mode]});
            ((*mode).to_owned(), server)
        };
        let servers: Map<String, Value> = modes.iter().map(server).collect();
        let config = self.server.house().data_dir().join("mcp.json");
        fs::write(config, json!({"mcpServers": servers}).to_string()).unwrap();
    }

    pub(super) fn user_tool(&self, name: &str, effect: &str, script: &str) {
        let folder = self.server.house().data_dir().join("tools").join(name);
        fs::create_dir_all(&folder).unwrap();
        let run = folder.join("run.sh");
        fs::write(&run, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
        let manifest = format!(
            "name = \"{name}\"\ndescription = \"Does it.\"\neffect = \"{effect}\"\nexecutable = \"run.sh\"\n"
        );
        fs::write(folder.join("tool.toml"), manifest).unwrap();
    }
}

/// One session, in which calls are made one after the other.
pub(super) struct Evening<'a> {
    scene: &'a Scene,
    pub(super) session: String,
}

/// What came of a call.
pub(super) struct Came {
    pub(super) event: Value,
    /// How many questions were asked, each of which was answered with yes.
    pub(super) questions: usize,
}

impl Evening<'_> {
    pub(super) fn path(&self, path: &str) -> PathBuf {
        let files = self.scene.server.house().data_dir().join("session_files");
        files.join(&self.session).join(path)
    }

    pub(super) async fn call(&self, tool: &str, args: Value) -> Came {
        let mut tab = self.scene.server.tab(&self.session, None).await;
        let content = format!("use the tool: {tool} {args}");
        tab.send(&json!({"type": "message", "content": content}))
            .await;
        let (mut event, mut questions) = (None, 0);
        loop {
            match tab.next().await {
                Told::Frame(frame) if frame["type"] == "approval_requested" => {
                    questions += 1;
                    let id = &frame["approval_id"];
                    let yes = json!({"type": "approve", "approval_id": id, "decision": "once"});
                    tab.send(&yes).await;
                }
                Told::Frame(frame)
                    if frame["type"] == "tool_call" && frame["is_subagent"] == false =>
                {
                    event = Some(frame);
                }
                Told::Frame(frame) if frame["type"] == "stream_end" => break,
                Told::Frame(_) => {}
                Told::Closed(code) => panic!("closed with {code}"),
            }
        }
        let event = event.unwrap_or_else(|| panic!("no call of {tool} {args}"));
        Came { event, questions }
    }

    pub(super) async fn snapshot(&self) -> Value {
        let path = format!("/sessions/{}", self.session);
        self.scene.server.get(&path).await
    }

    /// A call whose result, good or bad, is from outside.
    pub(super) async fn outside(&self, tool: &str, args: Value) -> String {
        let came = self.call(tool, args.clone()).await.event;
        let told = came["result"].as_str().unwrap().to_owned();
        assert_eq!(came["outside"], true, "{tool} {args}: {told}");
        let snapshot = self.snapshot().await;
        assert!(snapshot["tainted_at"].is_string(), "{tool} {args}");
        let messages = snapshot["messages"].as_array().unwrap();
        let result = messages.iter().rfind(|it| it["role"] == "tool").unwrap();
        assert_eq!(result["outside"], true, "{tool} {args}");
        let chats = self.scene.model.chats();
        let seen = chats.iter().rev().find_map(|chat| {
            let messages = chat.body["messages"].as_array()?;
            let last = messages.iter().rfind(|it| it["role"] == "tool")?;
            Some(last["content"].as_str()?.to_owned())
        });
        let seen = seen.unwrap();
        assert!(
            seen.starts_with("[outside-") && seen.contains("text from outside ends.]"),
            "{tool} {args}: {seen}"
        );
        told
    }

    /// The same, and it holds the words.
    pub(super) async fn tells(&self, tool: &str, args: Value) {
        let told = self.outside(tool, args.clone()).await;
        assert!(told.contains(WORDS), "{tool} {args}: {told}");
    }

    /// A call whose result is the session's own.
    pub(super) async fn own(&self, tool: &str, args: Value) {
        let came = self.call(tool, args.clone()).await;
        let told = &came.event["result"];
        assert_eq!(came.questions, 0, "{tool} {args}: {told}");
        assert!(came.event.get("outside").is_none(), "{tool} {args}: {told}");
        assert!(self.snapshot().await.get("tainted_at").is_none());
    }

    /// Whether it asks before anything leaves.
    pub(super) async fn asks(&self) -> bool {
        let url = self.scene.site.url("/page");
        self.call("web_fetch", json!({"url": url})).await.questions > 0
    }
}

fn site(head: &str) -> SiteReply {
    let path = head.split_whitespace().nth(1).unwrap_or_default();
    let header = format!("X-None: {WORDS}");
    match path.split('?').next().unwrap_or_default() {
        "/search" => {
            let found = json!({"results": [
                {"title": WORDS, "url": "http://example.org/", "content": WORDS}
            ]});
            of_json(&found)
        }
        "/api/states" => {
            let lamp = json!([
                {"entity_id": "light.lamp", "state": "on", "attributes": {"friendly_name": WORDS}}
            ]);
            of_json(&lamp)
        }
        "/away" => redirect("http://elsewhere.example/foreign%20words"),
        "/type" => answer(
            "200 OK",
            &["Content-Type: application/x-foreign-words"],
            b"\x00\x01",
        ),
        "/silent" => SiteReply::Silence,
        "/refused" => answer("500 foreign words", &[&header], b""),
        _ => answer("200 OK", &["Content-Type: text/plain"], WORDS.as_bytes()),
    }
}

fn of_json(body: &Value) -> SiteReply {
    answer(
        "200 OK",
        &["Content-Type: application/json"],
        body.to_string().as_bytes(),
    )
}

pub(super) fn files(action: &str, fields: Value) -> Value {
    let mut args = fields;
    args["action"] = json!(action);
    args
}

pub(super) fn command(line: &str) -> Value {
    json!({"action": "run", "command": line})
}
