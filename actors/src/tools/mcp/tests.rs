//! The configuration, and servers that misbehave: real programs over real pipes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::protocol::tool::Effect;
use crate::tools::fake_session::{FakeSession, context};
use crate::tools::registry::{MCP_TOOLS, Registry};
use crate::tools::trust::Trust;
use crate::tools::{Tool, ToolError, ToolOutput};

fn read_config(value: &Value) -> McpConfig {
    parse(&value.to_string(), |name| {
        (name == "TOKEN").then(|| "canary".to_owned())
    })
}

#[test]
fn the_file_that_people_have_is_read() {
    let config = read_config(&json!({"mcpServers": {
        "time": {"command": "uvx", "args": ["mcp-server-time"], "autoApprove": ["*"]},
        "far away": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        "notes": {"command": "npx", "env": {"A": "${env:TOKEN}", "B": "${NONE:-b}", "C": 3}, "timeoutSeconds": 5, "tools": ["x"]},
        "off": {"command": "x", "disabled": true},
        "old": {"type": "sse", "url": "https://example.com/sse"},
        "lacks": {"command": "x", "env": {"A": "${NONE}"}},
        "far_away": {"command": "x"},
        "both": {"command": "x", "url": "http://localhost"},
        "file": {"url": "file:///etc/passwd"},
    }}));
    let names: Vec<&str> = config.servers.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["far_away", "notes", "time"]);
    let Transport::Stdio { env, .. } = &config.servers[1].transport else {
        panic!("it is a program");
    };
    assert_eq!(json!(env), json!({"A": "canary", "B": "b", "C": "3"}));
    assert_eq!(config.servers[1].time_limit, Duration::from_secs(5));
    assert!(!format!("{config:?}").contains("canary"));
    let told = config.problems.join("\n");
    for problem in [
        "server `old` is left out: the transport `sse` is not spoken any more",
        "server `lacks` is left out: it needs the environment variable NONE, which is not set",
        "server `far_away` is left out: another server has the same name",
        "server `both` is left out: give either `command`",
        "server `file` is left out: field `url`",
    ] {
        assert!(told.contains(problem), "{problem}: {told}");
    }
    assert_eq!(config.problems.len(), 5, "{told}");
    assert!(!config.unreadable);
    for wrong in ["", "[]", "{\"servers\": {}}"] {
        let config = parse(wrong, |_| None);
        assert_eq!(
            (config.problems.len(), config.unreadable),
            (1, true),
            "{wrong}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_server_is_told_without_its_values() {
    for server in [
        json!({"command": "x", "args": "--key=canary"}),
        json!({"command": "x", "env": "canary"}),
        json!({"url": "https://example.com", "headers": "canary"}),
        json!({"command": "x", "timeoutSeconds": "canary"}),
        json!("canary"),
    ] {
        let config = read_config(&json!({"mcpServers": {"time": server}}));
        let [told] = config.problems.as_slice() else {
            panic!("{config:?}");
        };
        assert!(told.contains("`args` and `tools` lists of texts"), "{told}");
        assert!(!told.contains("canary"), "{told}");
    }
}

#[tokio::test]
async fn an_address_is_told_without_its_query() {
    // Nobody listens there.
    let url = "http://127.0.0.1:1/mcp?key=canary".parse().unwrap();
    let config = ServerConfig {
        transport: Transport::Http {
            url,
            headers: Default::default(),
        },
        ..wild("", &[])
    };
    let why = Connection::open(&config, Arc::default()).await.unwrap_err();
    assert!(why.contains("could not be greeted"), "{why}");
    assert!(!why.contains("canary"), "{why}");
}

/// How soon a server has to answer that will not.
const SOON: Duration = Duration::from_millis(100);

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/support/mcp_server.py")
}

fn wild(mode: &str, more: &[&str]) -> ServerConfig {
    let script = script().to_str().unwrap().to_owned();
    let mut args = vec![script, mode.to_owned()];
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    ServerConfig {
        name: "wild".to_owned(),
        transport: Transport::Stdio {
            command: "python3".to_owned(),
            args,
            env: [("GIVEN".to_owned(), "1".to_owned())].into(),
            cwd: None,
        },
        tools: None,
        time_limit: Duration::from_secs(20),
    }
}

/// A server that is up, with its tools as the model has them.
struct House {
    dir: TempDir,
    connection: Connection,
    listing: Listing,
    trust: Trust,
    link: ServerHandle,
    changed: Arc<Notify>,
    registry: Registry,
}

impl House {
    async fn open(config: &ServerConfig) -> Self {
        let changed = Arc::new(Notify::new());
        let (connection, listing) = Connection::open(config, Arc::clone(&changed))
            .await
            .unwrap();
        let (trust, link) = (Trust::default(), ServerHandle::default());
        link.up(connection.peer(), Arc::clone(&listing.tools));
        let tools = listing.tools.iter().map(|tool| {
            trust.allow(tool.spec.name.clone(), tool.sha256.clone());
            Arc::new(McpTool {
                listed: tool.clone(),
                server: config.name.clone(),
                time_limit: config.time_limit,
                link: link.clone(),
                trust: trust.clone(),
            }) as Arc<dyn Tool>
        });
        let registry = Registry::new(tools);
        Self {
            dir: tempfile::tempdir().unwrap(),
            connection,
            listing,
            trust,
            link,
            changed,
            registry,
        }
    }

    async fn call(&self, name: &str, args: Value) -> Result<ToolOutput, ToolError> {
        let allowed = self.registry.names(&[MCP_TOOLS.to_owned()]);
        let prepared = self.registry.prepare(name, &args, &allowed)?;
        let context = context(&Arc::new(FakeSession::default()), self.dir.path());
        prepared.tool.call(prepared.args, context).await
    }

    async fn refused(&self, name: &str) -> String {
        self.call(name, json!({})).await.unwrap_err().0
    }
}

#[tokio::test]
async fn a_servers_tool_is_called() {
    let house = House::open(&wild("well", &[])).await;
    let effects: Vec<_> = house
        .listing
        .tools
        .iter()
        .map(|t| (t.spec.name.as_str(), t.spec.effect))
        .collect();
    assert_eq!(
        effects,
        [
            ("mcp__wild__echo", Effect::Egress),
            ("mcp__wild__env", Effect::Host)
        ]
    );
    assert_eq!(house.listing.tools[0].spec.time_limit_ms, 20_000);
    let answer = house
        .call("mcp__wild__echo", json!({"text": "hello"}))
        .await
        .unwrap();
    assert_eq!(answer.text, "hello\n[1 image here]\n[note://1]\na note");
    assert_eq!(answer.images.len(), 1);
    let wrong = house
        .call("mcp__wild__echo", json!({"text": [1]}))
        .await
        .unwrap_err()
        .0;
    assert!(wrong.contains("`text` must be a string"), "{wrong}");

    let told = house.call("mcp__wild__env", json!({})).await.unwrap().text;
    let known = [
        "GIVEN", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ",
        "USER", "PWD", "OLDPWD", "SHLVL", "_",
    ];
    let strange: Vec<&str> = told
        .lines()
        .filter(|name| !known.contains(name) && !name.contains("PYENV"))
        .collect();
    assert_eq!(strange, Vec::<&str>::new());
    assert!(told.contains("GIVEN"));

    let closing = CancellationToken::new();
    closing.cancel();
    assert_eq!(house.connection.ended(closing).await, "it was ended");
}

#[tokio::test]
async fn a_server_that_hangs_is_told_to_stop_and_doubted() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("cancelled");
    let mut config = wild("slow", &[mark.to_str().unwrap()]);
    config.time_limit = Duration::from_millis(300);
    let house = House::open(&config).await;
    let error = house.refused("mcp__wild__echo").await;
    assert!(error.contains("did not answer within"), "{error}");
    house.link.doubt.notified().await;
    while !mark.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let peer = house.connection.peer();
    assert!(
        house
            .link
            .answers(&peer, Duration::from_secs(60), false)
            .await
    );
}

#[tokio::test]
async fn a_server_that_is_at_a_call_need_answer_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let house = House::open(&wild("held", &[gate.to_str().unwrap()])).await;
    let peer = house.connection.peer();
    let call = house.call("mcp__wild__echo", json!({"text": "late"}));
    tokio::pin!(call);
    // It is under way before the server is asked, and lasts until the gate is there.
    tokio::select! {
        biased;
        ended = &mut call => panic!("{ended:?}"),
        answers = house.link.answers(&peer, SOON, false) => assert!(answers),
    }
    std::fs::write(&gate, "").unwrap();
    let answer = call.await.unwrap();
    assert!(answer.text.starts_with("late\n"), "{}", answer.text);
}

#[tokio::test]
async fn a_server_that_hangs_on_after_its_call_is_found() {
    let mut config = wild("hang", &[]);
    config.time_limit = Duration::from_millis(300);
    let house = House::open(&config).await;
    let error = house.refused("mcp__wild__echo").await;
    assert!(error.contains("did not answer within"), "{error}");
    let peer = house.connection.peer();
    // A call that came in between is no reason not to answer, unless it may have come first.
    for overtaken in [false, true] {
        assert!(!house.link.answers(&peer, SOON, overtaken).await);
        let (answers, _) = tokio::join!(
            house.link.answers(&peer, SOON, overtaken),
            house.refused("mcp__wild__echo")
        );
        assert_eq!(answers, overtaken);
    }
}

#[test]
fn structured_content_is_told_where_no_text_says_it() {
    let dir = tempfile::tempdir().unwrap();
    let read = |texts: &[&str], data: Value| {
        let texts = texts
            .iter()
            .map(|text| json!({"type": "text", "text": text}));
        let texts: Vec<Value> = texts.collect();
        let answer = json!({"content": texts, "structuredContent": data});
        let answer = serde_json::from_value(answer).unwrap();
        let context = context(&Arc::new(FakeSession::default()), dir.path());
        output_of(answer, &context).unwrap().text
    };
    let degrees = "{\n  \"degrees\": 21\n}";
    assert_eq!(read(&[], json!({"degrees": 21})), degrees);
    let beside = read(&["It is warm."], json!({"degrees": 21}));
    assert_eq!(beside, format!("It is warm.\n{degrees}"));
    assert_eq!(read(&["It is warm."], Value::Null), "It is warm.");
    let lacking = read(&["a"], json!({"result": ["a", "b"]}));
    assert!(
        lacking.starts_with("a\n{") && lacking.contains("\"b\""),
        "{lacking}"
    );
    assert_eq!(read(&[], json!({"result": []})), "{\n  \"result\": []\n}");
    for (texts, data) in [
        (
            ["It is warm.", "{\"b\": [1], \"a\": 2}"],
            json!({"a": 2, "b": [1]}),
        ),
        (["It is warm.", "and dry"], json!({"result": "and dry"})),
        (["a", "{\"b\": 5}"], json!({"result": ["a", {"b": 5}]})),
    ] {
        assert_eq!(read(&texts, data), texts.join("\n"));
    }
    let long = read(&["long"], json!({"data": "x".repeat(100_000)}));
    assert!(long.len() <= 32 * 1024 && long.contains("the whole output is in the file"));
}

#[tokio::test]
async fn a_server_that_dies_says_its_last_words() {
    let house = House::open(&wild("die", &[])).await;
    let error = house.refused("mcp__wild__echo").await;
    assert!(error.contains("went away in the middle of it"), "{error}");
    let why = house.connection.ended(CancellationToken::new()).await;
    assert!(why.contains("I die now"), "{why}");
}

#[tokio::test]
async fn a_flood_is_cut_and_an_endless_line_ends_with_the_call() {
    let house = House::open(&wild("flood", &[])).await;
    let answer = house.call("mcp__wild__echo", json!({})).await.unwrap();
    assert!(answer.text.len() <= 32 * 1024);
    assert!(answer.text.contains("the whole output is in the file"));

    let mut config = wild("endless", &[]);
    config.time_limit = Duration::from_secs(1);
    let house = House::open(&config).await;
    let error = house.refused("mcp__wild__echo").await;
    assert!(error.contains("did not answer within 1 s"), "{error}");
}

#[tokio::test]
async fn ten_thousand_tools_are_not_taken_in() {
    let house = House::open(&wild("many", &[])).await;
    assert_eq!(house.listing.tools.len(), 128);
    assert!(house.listing.problems[0].contains("more tools than the 128"));
    assert!(
        house
            .listing
            .tools
            .iter()
            .all(|tool| tool.spec.description.len() < 2100)
    );

    let mut few = wild("many", &[]);
    few.tools = Some(vec!["tool7".to_owned(), "none".to_owned()]);
    let house = House::open(&few).await;
    assert_eq!(house.listing.tools.len(), 1);

    let house = House::open(&wild("big", &[])).await;
    assert_eq!(house.listing.tools.len(), 1);
    assert!(
        house.listing.problems[0].contains("100"),
        "{:?}",
        house.listing.problems
    );
}

#[tokio::test]
async fn a_tool_that_is_described_otherwise_is_another_tool() {
    let config = wild("rug", &[]);
    let house = House::open(&config).await;
    house.call("mcp__wild__echo", json!({})).await.unwrap();
    house.changed.notified().await;
    let peer = house.connection.peer();
    let now = listing(&peer, &config).await.unwrap();
    assert_ne!(now.tools[0].sha256, house.listing.tools[0].sha256);
    house.link.up(peer, Arc::clone(&now.tools));
    let error = house.refused("mcp__wild__echo").await;
    assert!(
        error.contains("in another way than when this run began"),
        "{error}"
    );
    house.trust.forbid("mcp__wild__env");
    let error = house.refused("mcp__wild__env").await;
    assert!(error.contains("has to look at it"), "{error}");
}

#[tokio::test]
async fn what_is_no_server_is_told() {
    let mut none = wild("well", &[]);
    none.transport = Transport::Stdio {
        command: "/nowhere/server".to_owned(),
        args: Vec::new(),
        env: Default::default(),
        cwd: None,
    };
    let why = Connection::open(&none, Arc::default()).await.unwrap_err();
    assert!(
        why.contains("`/nowhere/server` could not be started"),
        "{why}"
    );
    none.transport = Transport::Stdio {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), "echo no such thing >&2; exit 3".to_owned()],
        env: Default::default(),
        cwd: None,
    };
    let why = Connection::open(&none, Arc::default()).await.unwrap_err();
    assert!(
        why.contains("could not be greeted") && why.contains("no such thing"),
        "{why}"
    );
}
