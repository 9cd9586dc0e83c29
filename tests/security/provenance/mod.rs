//! Text from outside, by every way that it can come in and out again through every reader
//! (DESIGN section 6). A result that holds it is marked for the model and for people, and the
//! session asks from then on before anything leaves the machine.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use navi_actors::tools::home_assistant::HomeAssistant;
use navi_actors::tools::ssh::Ssh;
use navi_actors::tools::{Provenance, Tool as _};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::site::{Site, SiteReply, answer, redirect};
use super::uploads::{PIXEL, upload};
use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{House, Server, Told, text};

/// What others wrote.
const WORDS: &str = "foreign words";

/// A service with every door through which text comes in.
struct Scene {
    model: FakeModel,
    server: Server,
    site: Site,
    /// A folder of `FS_ALLOWED_PATHS`.
    beside: PathBuf,
    _folder: tempfile::TempDir,
}

impl Scene {
    async fn new(more: &[(&str, &str)]) -> Self {
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

    async fn evening(&self) -> Evening<'_> {
        Evening {
            scene: self,
            session: self.server.new_session().await,
        }
    }

    /// A session to which a file with these words was sent, and nothing was said of it.
    async fn sent(&self) -> Evening<'_> {
        let evening = self.evening().await;
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

    async fn allow(&self, tool: &str) {
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

    fn user_tool(&self, name: &str, effect: &str, script: &str) {
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
struct Evening<'a> {
    scene: &'a Scene,
    session: String,
}

/// What came of a call.
struct Came {
    event: Value,
    /// How many questions were asked, each of which was answered with yes.
    questions: usize,
}

impl Evening<'_> {
    fn path(&self, path: &str) -> PathBuf {
        let files = self.scene.server.house().data_dir().join("session_files");
        files.join(&self.session).join(path)
    }

    async fn call(&self, tool: &str, args: Value) -> Came {
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

    async fn snapshot(&self) -> Value {
        let path = format!("/sessions/{}", self.session);
        self.scene.server.get(&path).await
    }

    /// A call whose result, good or bad, is from outside.
    async fn outside(&self, tool: &str, args: Value) -> String {
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
    async fn tells(&self, tool: &str, args: Value) {
        let told = self.outside(tool, args.clone()).await;
        assert!(told.contains(WORDS), "{tool} {args}: {told}");
    }

    /// A call whose result is the session's own.
    async fn own(&self, tool: &str, args: Value) {
        let came = self.call(tool, args.clone()).await;
        let told = &came.event["result"];
        assert_eq!(came.questions, 0, "{tool} {args}: {told}");
        assert!(came.event.get("outside").is_none(), "{tool} {args}: {told}");
        assert!(self.snapshot().await.get("tainted_at").is_none());
    }

    /// Whether it asks before anything leaves.
    async fn asks(&self) -> bool {
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
            let body = found.to_string();
            answer(
                "200 OK",
                &["Content-Type: application/json"],
                body.as_bytes(),
            )
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

fn files(action: &str, fields: Value) -> Value {
    let mut args = fields;
    args["action"] = json!(action);
    args
}

fn command(line: &str) -> Value {
    json!({"action": "run", "command": line})
}

/// Every reader of the workspace, as a call that would show `path`.
fn readers(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("filesystem", files("read", json!({"path": path}))),
        (
            "filesystem",
            files("search_content", json!({"pattern": WORDS})),
        ),
        (
            "filesystem",
            files("write", json!({"path": path, "content": "new\n"})),
        ),
        ("terminal", command(&format!("cat {path}"))),
        // What failed says as much as what did not.
        (
            "filesystem",
            files(
                "edit",
                json!({"path": path, "old_text": "foreign wordz", "new_text": "x"}),
            ),
        ),
        ("terminal", command(&format!("cat {path} >&2; exit 3"))),
        (
            "filesystem",
            files(
                "edit",
                json!({"path": path, "old_text": WORDS, "new_text": "own words"}),
            ),
        ),
    ]
}

#[tokio::test]
async fn an_upload_stays_from_outside_through_every_reader() {
    let scene = Scene::new(&[]).await;
    for (tool, args) in readers("uploads/in.txt") {
        scene.sent().await.tells(tool, args).await;
    }
    let listed = files("list", json!({"path": "uploads", "depth": 3}));
    scene.sent().await.outside("filesystem", listed).await;
    let named = files("search_names", json!({"pattern": "in.txt"}));
    scene.sent().await.outside("filesystem", named).await;
    let image = scene.evening().await;
    let file = upload(&scene.server, &image.session, "a.png", PIXEL).await;
    image
        .outside("view_image", json!({"path": file["path"]}))
        .await;
}

#[tokio::test]
async fn a_copy_is_from_outside_as_much_as_what_it_is_of() {
    let scene = Scene::new(&[]).await;
    // A copy is a copy: the readers that differ most tell of each, all of them of one.
    let each = [usize::MAX, 2, 2, 2, 2];
    let copies = [
        "cp uploads/in.txt copy.txt",
        "mv uploads/in.txt copy.txt && rm -r uploads",
        "ln -s uploads/in.txt copy.txt",
        "tar cf a.tar uploads && tar xOf a.tar uploads/in.txt > copy.txt && rm -r uploads",
        "base64 uploads/in.txt | base64 -d > copy.txt",
    ];
    for (copies, some) in copies.into_iter().zip(each) {
        for (tool, args) in readers("copy.txt").into_iter().take(some) {
            let evening = scene.sent().await;
            evening.outside("terminal", command(copies)).await;
            if copies.starts_with("ln") {
                // Not every reader follows a link.
                evening.outside(tool, args).await;
            } else {
                evening.tells(tool, args).await;
            }
        }
    }
    let evening = scene.sent().await;
    let moved = files("move", json!({"path": "uploads/in.txt", "to": "copy.txt"}));
    evening.outside("filesystem", moved).await;
    for (tool, args) in readers("copy.txt").into_iter().take(2) {
        evening.tells(tool, args).await;
    }
    // A command that was there before the file, and takes it when it comes.
    let evening = scene.evening().await;
    // One process: other tests may have as many as its user may have.
    let waits = "exec python3 -c 'import glob, shutil, time\nwhile not glob.glob(\"uploads/*.txt\"): time.sleep(0.1)\nshutil.copy(glob.glob(\"uploads/*.txt\")[0], \"copy.txt\")'";
    let mut waiting = command(waits);
    waiting["background"] = json!(true);
    evening.own("terminal", waiting).await;
    upload(&scene.server, &evening.session, "in.txt", WORDS.as_bytes()).await;
    let until = Instant::now() + Duration::from_secs(60);
    while fs::read(evening.path("copy.txt")).map_or(0, |it| it.len()) < WORDS.len() {
        assert!(Instant::now() < until, "it took nothing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let read = files("read", json!({"path": "copy.txt"}));
    evening.tells("filesystem", read).await;
}

#[tokio::test]
async fn a_link_that_was_there_before_the_file() {
    let scene = Scene::new(&[]).await;
    let evening = scene.evening().await;
    evening
        .own("terminal", command("ln -s uploads notes"))
        .await;
    let file = upload(&scene.server, &evening.session, "in.txt", WORDS.as_bytes()).await;
    let path = file["path"].as_str().unwrap().replace("uploads", "notes");
    let read = files("read", json!({"path": path}));
    evening.tells("filesystem", read).await;
}

#[tokio::test]
async fn pages_searches_and_what_went_wrong_with_them() {
    let scene = Scene::new(&[]).await;
    let fetch = |path: &str| json!({"url": scene.site.url(path)});
    scene
        .evening()
        .await
        .tells("web_fetch", fetch("/page"))
        .await;
    scene
        .evening()
        .await
        .tells("web_search", json!({"query": "anything"}))
        .await;
    for path in ["/away", "/type", "/refused"] {
        scene
            .evening()
            .await
            .outside("web_fetch", fetch(path))
            .await;
    }
    // What was read may have been written down: notes are as foreign from then on.
    let evening = scene.evening().await;
    evening.tells("web_fetch", fetch("/page")).await;
    fs::create_dir_all(evening.path("")).unwrap();
    fs::write(evening.path("notes.md"), WORDS).unwrap();
    for (tool, args) in readers("notes.md").into_iter().take(2) {
        evening.tells(tool, args).await;
    }
    assert!(evening.asks().await);
}

/// What comes from outside may leave something in the workspace before it has ended: what is read
/// meanwhile is from outside as well.
#[tokio::test]
async fn what_is_read_beside_a_page_that_is_still_read() {
    let scene = Scene::new(&[]).await;
    let evening = scene.evening().await;
    fs::create_dir_all(evening.path("")).unwrap();
    fs::write(evening.path("mine.txt"), "own words").unwrap();
    let page = json!({"url": scene.site.url("/silent")});
    let read = files("read", json!({"path": "mine.txt"}));
    let both = [
        Step::tool_call("filesystem", read),
        Step::tool_call("web_fetch", page),
    ];
    scene.model.script(Reply::new(both).when("both at once"));
    let mut tab = scene.server.tab(&evening.session, None).await;
    let content = "read both at once";
    tab.send(&json!({"type": "message", "content": content}))
        .await;
    let ended = tab.next_of("tool_call").await;
    assert_eq!(ended["tool"], "filesystem", "{ended}");
    assert_eq!(ended["outside"], true, "{ended}");
    tab.send(&json!({"type": "stop"})).await;
    tab.next_of("stream_stopped").await;
}

#[tokio::test]
async fn a_message_with_a_file() {
    let scene = Scene::new(&[]).await;
    let evening = scene.evening().await;
    let file = upload(&scene.server, &evening.session, "a.txt", WORDS.as_bytes()).await;
    let mut tab = scene.server.tab(&evening.session, None).await;
    let files = json!([{"path": file["path"]}]);
    tab.send(&json!({"type": "message", "content": "look", "files": files}))
        .await;
    tab.until("stream_end").await;
    assert!(evening.snapshot().await["tainted_at"].is_string());
    assert!(evening.asks().await);
}

#[tokio::test]
async fn files_beside_the_workspace() {
    let scene = Scene::new(&[]).await;
    let note = text(&scene.beside.join("note.txt")).to_owned();
    for (tool, args) in readers(&note) {
        let elsewhere = ["search_content", "write"].map(|action| json!(action));
        if tool != "filesystem" || elsewhere.contains(&args["action"]) {
            continue;
        }
        scene.evening().await.tells(tool, args).await;
        fs::write(&note, WORDS).unwrap();
    }
    let evening = scene.evening().await;
    for content in ["new", "newer"] {
        let write = files("write", json!({"path": note, "content": content}));
        evening.own("filesystem", write).await;
    }
    fs::write(&note, WORDS).unwrap();
    let search = files(
        "search_content",
        json!({"pattern": WORDS, "path": scene.beside}),
    );
    scene.evening().await.tells("filesystem", search).await;
    let evening = scene.evening().await;
    let moved = files("move", json!({"path": note, "to": "mine.txt"}));
    evening.outside("filesystem", moved).await;
    let read = files("read", json!({"path": "mine.txt"}));
    evening.tells("filesystem", read).await;
}

#[tokio::test]
async fn programs_of_others() {
    let scene = Scene::new(&[]).await;
    scene.user_tool(
        "reads",
        "read",
        "cat \"$NAVI_WORKSPACE\"/* 2>/dev/null; echo foreign words",
    );
    scene.user_tool("fails", "read", "echo foreign words >&2; exit 4");
    scene.user_tool("writes", "write", "echo foreign words > made.txt");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mcp_server.py");
    let servers = json!({"mcpServers": {
        "well": {"command": "python3", "args": [script, "well"]},
        "dies": {"command": "python3", "args": [script, "die"]},
    }});
    let config = scene.server.house().data_dir().join("mcp.json");
    fs::write(config, servers.to_string()).unwrap();
    for tool in ["reads", "fails", "writes"] {
        scene.allow(tool).await;
    }
    scene.evening().await.tells("reads", json!({})).await;
    scene.evening().await.tells("fails", json!({})).await;
    let evening = scene.evening().await;
    evening.outside("writes", json!({})).await;
    let read = files("read", json!({"path": "made.txt"}));
    evening.tells("filesystem", read).await;
    for tool in ["mcp__well__echo", "mcp__dies__echo"] {
        scene.allow(tool).await;
    }
    let evening = scene.evening().await;
    evening
        .tells("mcp__well__echo", json!({"text": WORDS}))
        .await;
    let evening = scene.evening().await;
    evening
        .outside("mcp__dies__echo", json!({"text": WORDS}))
        .await;
}

#[tokio::test]
async fn a_command_with_a_network() {
    let scene = Scene::new(&[("TERMINAL_ALLOWED_COMMANDS", "*")]).await;
    let evening = scene.evening().await;
    evening
        .tells("terminal", command("echo foreign words; exit 1"))
        .await;
    assert!(evening.asks().await);
}

#[tokio::test]
async fn other_machines() {
    for (args, provenance) in [
        (json!({"action": "list_hosts"}), Provenance::Own),
        (json!({"action": "run"}), Provenance::Outside),
        (json!({"action": "upload"}), Provenance::Outside),
        (json!({"action": "download"}), Provenance::Outside),
    ] {
        assert_eq!(Ssh::new(Default::default()).provenance(&args), provenance);
    }
    let house = HomeAssistant::new(Default::default());
    assert_eq!(house.provenance(&json!({})), Provenance::Outside);
}

#[tokio::test]
async fn what_a_subagent_read() {
    let scene = Scene::new(&[]).await;
    let evening = scene.sent().await;
    let read = files("read", json!({"path": "uploads/in.txt"}));
    scene
        .model
        .script(Reply::new([Step::tool_call("filesystem", read)]).system("for another assistant"));
    let told = evening
        .outside("spawn_agent", json!({"task": "look into the file"}))
        .await;
    assert!(told.contains("completed_normally: true"), "{told}");
}

#[tokio::test]
async fn a_fact_that_nobody_confirmed() {
    let scene = Scene::new(&[]).await;
    let evening = scene.sent().await;
    let read = files("read", json!({"path": "uploads/in.txt"}));
    evening.tells("filesystem", read).await;
    let fact = json!({"category": "people", "key": "sister_name", "value": WORDS});
    evening.call("memory_save", fact.clone()).await;
    let later = scene.evening().await;
    later
        .tells("memory_search", json!({"query": "sister"}))
        .await;
    // Its name alone is in others' words, too.
    let later = scene.evening().await;
    later
        .outside("memory_search", json!({"query": "zebra"}))
        .await;
    // The value that is replaced is quoted.
    let later = scene.evening().await;
    let other = json!({"category": "people", "key": "sister_name", "value": "Olena"});
    later.tells("memory_save", other).await;
    let later = scene.evening().await;
    later.own("memory_search", json!({"query": "sister"})).await;
}

/// SPEC section 9: only on the user's explicit word.
#[tokio::test]
async fn nothing_of_the_user_is_forgotten_unasked() {
    let scene = Scene::new(&[]).await;
    let fact = json!({"category": "people", "key": "sister_name", "value": "Olena"});
    let name = json!({"category": "people", "key": "sister_name"});
    for tainted in [false, true] {
        let evening = scene.evening().await;
        evening.call("memory_save", fact.clone()).await;
        if tainted {
            let url = scene.site.url("/page");
            evening.call("web_fetch", json!({"url": url})).await;
        }
        let came = evening.call("memory_forget", name.clone()).await;
        assert_eq!((came.questions, &came.event["success"]), (1, &json!(true)));
    }
    assert_eq!(scene.server.get("/memory").await["facts"], json!([]));
}

/// An evening without anything from outside: nothing is marked, nothing is asked.
#[tokio::test]
async fn what_is_the_sessions_own_stays_so() {
    let scene = Scene::new(&[]).await;
    let evening = scene.evening().await;
    let write = |content: &str| files("write", json!({"path": "own.txt", "content": content}));
    evening.own("filesystem", write(WORDS)).await;
    for (tool, args) in readers("own.txt") {
        evening.own(tool, args).await;
        evening.own("filesystem", write(WORDS)).await;
    }
    for (tool, args) in [
        (
            "terminal",
            command("for i in 1 2 3; do echo $i > $i.txt; done; ls"),
        ),
        ("filesystem", files("list", json!({"depth": 2}))),
        (
            "filesystem",
            files("move", json!({"path": "1.txt", "to": "4.txt"})),
        ),
        ("filesystem", files("delete", json!({"path": "2.txt"}))),
        ("todo", json!({"action": "list"})),
        ("memory_search", json!({"query": "x"})),
    ] {
        evening.own(tool, args).await;
    }
    assert!(!evening.asks().await, "the first page, in the mode auto");
    assert!(evening.asks().await, "and the second one");
}
