//! Row: a panic in each kind of actor. It is rebuilt, or its end is told; a sibling, a run of
//! another session that goes all the while, never notices.

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::amid::{fill, nesting, summary};
use crate::fake_model::{FakeModel, Reply, Step};
use crate::script::{Client, Seen, house, outcomes, snapshot, spawn, workspace, write};
use crate::server::{House, PATIENCE, Server, Socket, Told};

/// What the log says of a service that died.
const DIED: &str = "service died, starting it again";
/// What it says of one that is there again: what it is sent from then on is heard.
const REBUILT: &str = "service runs again";

/// A run that is in the middle of something, with a message that waits behind it.
struct Sibling {
    client: Client,
    /// What its tab hears.
    told: UnboundedReceiver<Told>,
    /// What both messages are answered.
    answers: [&'static str; 2],
}

impl Sibling {
    /// A command of it waits, and the model is free meanwhile.
    async fn begin(model: &FakeModel, server: &Server) -> Self {
        model.script(Reply::new([waits_for("go")]).when("a sibling").results(0));
        model.script(
            Reply::new([Step::text("it went on")])
                .when("a sibling")
                .results(1),
        );
        Self::until(server, "tool_started", "it went on").await
    }

    /// A model writes its answer.
    async fn streaming(model: &FakeModel, server: &Server) -> Self {
        let steps = [Step::text("before "), Step::hold("go"), Step::text("after")];
        model.script(Reply::new(steps).when("a sibling").with_tools(true));
        Self::until(server, "stream_delta", "before after").await
    }

    async fn until(server: &Server, kind: &str, answer: &'static str) -> Self {
        let mut client = Client::named(server).await;
        let mut tab = client.tab(server).await;
        client.say(&mut tab, "one", "a sibling").await;
        for frame in tab.until(kind).await {
            client.take(&frame);
        }
        // With it all that was said is in the log: nothing of it is on its way any more.
        client.say(&mut tab, "two", "and then?").await;
        for frame in tab.until("message_accepted").await {
            client.take(&frame);
        }
        Self {
            client,
            told: reads(tab),
            answers: [answer, "You said: and then?"],
        }
    }

    /// Both messages are answered, as if nothing had been.
    async fn ends_well(mut self, model: &FakeModel, server: &Server) {
        model.release("go");
        let_go(server, &self.client, "go");
        for answer in self.answers {
            let end = loop {
                let frame = match hears(&mut self.told).await {
                    Told::Frame(frame) => frame,
                    Told::Closed(code) => panic!("closed with {code}"),
                };
                self.client.take(&frame);
                if frame["type"] == "stream_end" {
                    break frame;
                }
            };
            assert_eq!(end["content"], answer);
        }
        for event in self.client.view.events() {
            let kind = event["type"].as_str().unwrap();
            let is_trouble = ["error", "run_interrupted", "resync"].contains(&kind);
            assert!(!is_trouble && event["reason"] != "retry", "{event}");
        }
        self.client.assert_sound(server).await;
        model.assert_clean();
    }
}

/// Reads a tab all the while, however long its test does something else: one that says nothing is
/// taken for gone.
fn reads(mut tab: Socket) -> UnboundedReceiver<Told> {
    let (tell, told) = unbounded_channel();
    tokio::spawn(async move {
        loop {
            let next = tab.whenever().await;
            let is_over = matches!(next, Told::Closed(_));
            if tell.send(next).is_err() || is_over {
                return;
            }
        }
    });
    told
}

/// What such a tab hears next.
async fn hears(told: &mut UnboundedReceiver<Told>) -> Told {
    let next = tokio::time::timeout(PATIENCE, told.recv()).await;
    next.expect("something is told").expect("it is read")
}

/// A command that ends when there is a file of this name.
fn waits_for(name: &str) -> Step {
    let command = format!("until test -f {name}; do sleep 0.05; done");
    Step::tool_call("terminal", json!({"action": "run", "command": command}))
}

fn let_go(server: &Server, client: &Client, name: &str) {
    // A run without a command has no folder, and needs none.
    let _ = std::fs::write(workspace(server, &client.session).join(name), "");
}

async fn rig(variables: &[(&str, &str)]) -> (FakeModel, House, Server, Sibling) {
    let (model, house) = house(variables);
    let server = house.start();
    let sibling = Sibling::begin(&model, &server).await;
    (model, house, server, sibling)
}

async fn panics(server: &Server, point: &str) {
    server
        .arm(&format!("{point}=1*panic(forced by a test)"))
        .await;
}

/// Waits until so many services were built again.
async fn rebuilt(server: &Server, times: usize) {
    let until = std::time::Instant::now() + PATIENCE;
    while server.said().matches(REBUILT).count() < times {
        assert!(std::time::Instant::now() < until, "{}", server.said());
        // Nothing but the log tells of it.
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// What a page and its user do: what was refused is sent again, what was interrupted is
/// continued. Gives back how often the run was interrupted until its answer came.
async fn persist(client: &mut Client, tab: &mut Socket, id: &str, text: &str) -> usize {
    let mut interrupted = 0;
    client.say(tab, id, text).await;
    loop {
        let frame = match tab.next().await {
            Told::Frame(frame) => frame,
            Told::Closed(code) => panic!("closed with {code}"),
        };
        client.take(&frame);
        match frame["type"].as_str().unwrap() {
            "error" if frame["seq"].is_null() && frame["client_id"] == id => {
                client.say(tab, id, text).await;
            }
            "run_interrupted" => {
                interrupted += 1;
                tab.send(&json!({"type": "continue"})).await;
            }
            "stream_end" => return interrupted,
            "error" => panic!("{frame}"),
            _ => {}
        }
    }
}

/// The message is answered in the end; its tab stays, and is told each event once.
async fn answered_in_spite_of(points: &[(&str, usize)], died: &str) {
    let (model, _house, server, sibling) = rig(&[]).await;
    answered(&model, &server, points, died).await;
    sibling.ends_well(&model, &server).await;
}

async fn answered(model: &FakeModel, server: &Server, points: &[(&str, usize)], died: &str) {
    for (point, interruptions) in points {
        let mut client = Client::named(server).await;
        let mut tab = client.tab(server).await;
        panics(server, point).await;
        let interrupted = persist(&mut client, &mut tab, "c", "hello").await;
        assert_eq!(interrupted, *interruptions, "{point}");
        assert!(server.said().contains(died), "{point}: {}", server.said());
        let found = client.assert_sound(server).await;
        assert_eq!(found["state"], "idle");
        client.say(&mut tab, "again", "again").await;
        assert_eq!(client.watch(&mut tab).await, Seen::End);
        assert_eq!(model.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_panic_in_a_session() {
    let points = [
        ("session::send", 0),
        ("session::tell", 1),
        ("session::stream", 1),
    ];
    answered_in_spite_of(&points, "session died, reading it again").await;
}

#[tokio::test]
async fn a_panic_in_the_journal() {
    // What was not written is sent again; of what was, the session learns from the store.
    let points = [
        ("journal::append", 0),
        ("journal::write", 0),
        ("journal::written", 1),
    ];
    answered_in_spite_of(&points, DIED).await;
}

#[tokio::test]
async fn a_panic_in_what_guards_a_model() {
    // The call is made again; the sibling's stream, which it had let begin, goes on.
    let (model, house) = house(&[]);
    let server = house.start();
    let sibling = Sibling::streaming(&model, &server).await;
    answered(&model, &server, &[("llm::acquire", 0)], DIED).await;
    sibling.ends_well(&model, &server).await;
}

#[tokio::test]
async fn a_panic_in_a_run() {
    let (model, _house, server, sibling) = rig(&[]).await;
    let mut client = Client::named(&server).await;
    let mut tab = client.tab(&server).await;
    panics(&server, "run::step").await;
    client.say(&mut tab, "c", "hello").await;
    let frames = tab.until("error").await;
    frames.iter().for_each(|frame| client.take(frame));
    let error = frames.last().unwrap();
    assert_eq!(error["code"], "run_failed");
    assert_eq!(error["recoverable"], false);
    client.say(&mut tab, "again", "again").await;
    assert_eq!(client.watch(&mut tab).await, Seen::End);
    client.assert_sound(&server).await;
    sibling.ends_well(&model, &server).await;
}

#[tokio::test]
async fn a_panic_in_a_subagents_run() {
    let model = FakeModel::start();
    let server = nesting(&model);
    let sibling = Sibling::begin(&model, &server).await;
    let mut client = Client::named(&server).await;
    let mut tab = client.tab(&server).await;
    let both = [spawn("the left side"), spawn("the right side")];
    model.script(Reply::new(both).when("both").results(0));
    model.script(Reply::new([waits_for("left")]).when("the left side"));
    model.script(
        Reply::new([waits_for("right")])
            .when("the right side")
            .results(0),
    );
    model.script(
        Reply::new([Step::text("it is done")])
            .when("the right side")
            .results(1),
    );
    model.script(
        Reply::new([Step::text("one of them failed")])
            .when("both")
            .results(2),
    );
    client.say(&mut tab, "c", "both sides").await;
    // The parent's two calls, and one of each child.
    for _ in 0..4 {
        for frame in tab.until("tool_started").await {
            client.take(&frame);
        }
    }
    // The next step is the left one's: every other run waits for something.
    panics(&server, "run::step").await;
    let_go(&server, &client, "left");
    let frames = tab.until("subagent_finished").await;
    frames.iter().for_each(|frame| client.take(frame));
    assert_eq!(frames.last().unwrap()["completed_normally"], false);
    let_go(&server, &client, "right");
    let frames = tab.until("stream_end").await;
    frames.iter().for_each(|frame| client.take(frame));
    assert_eq!(frames.last().unwrap()["content"], "one of them failed");
    let found = client.assert_sound(&server).await;
    assert_eq!(outcomes(&found), ["failed", "success"]);
    sibling.ends_well(&model, &server).await;
}

#[tokio::test]
async fn a_panic_in_the_compression() {
    let (model, _house, server, sibling) = rig(&[("CONTEXT_KEEP_RECENT", "1")]).await;
    let mut client = Client::named(&server).await;
    let mut tab = client.tab(&server).await;
    panics(&server, "compression::begin").await;
    fill(&model, &mut client, &mut tab).await;
    rebuilt(&server, 1).await;
    let found = client.assert_sound(&server).await;
    assert_eq!(found["compression"], Value::Null, "it is as it was");
    // The next turn has it done before it begins.
    model.script(summary(vec![Step::text("- they counted to two")]));
    client.say(&mut tab, "three", "three").await;
    for frame in tab.until("context_compressed").await {
        client.take(&frame);
    }
    assert_eq!(client.watch(&mut tab).await, Seen::End);
    client.assert_sound(&server).await;
    sibling.ends_well(&model, &server).await;
}

#[tokio::test]
async fn a_panic_in_the_memory() {
    let (model, _house, server, sibling) = rig(&[]).await;
    // The second one hits what was built after the first, which hears of nothing before.
    for times in 1..=2 {
        panics(&server, "memory::wake").await;
        let wakes = async {
            loop {
                server.new_session().await;
            }
        };
        tokio::select! {
            () = rebuilt(&server, times) => {}
            () = wakes => {}
        }
    }
    let put = server
        .call(
            reqwest::Method::PUT,
            "/memory/facts/places/home",
            Some(json!({"value": "Kyiv"})),
        )
        .await;
    assert!(put.0.is_success(), "{put:?}");
    sibling.ends_well(&model, &server).await;
}

#[tokio::test]
async fn a_panic_in_the_janitor() {
    let (model, house) = house(&[]);
    // It sweeps first thing: so does what is built after it.
    let faults = ("FAILPOINTS", "janitor::sweep=2*panic(forced by a test)");
    let server = house.start_with(&[faults]);
    let sibling = Sibling::begin(&model, &server).await;
    rebuilt(&server, 2).await;
    sibling.ends_well(&model, &server).await;
}

/// What a path answers, once it is as wanted. Its changes are told to no page that waits.
async fn until<T>(server: &Server, path: &str, wanted: impl Fn(&Value) -> Option<T>) -> T {
    // A server in Python may take its time to begin.
    let until = std::time::Instant::now() + 3 * PATIENCE;
    loop {
        let answer = server.get(path).await;
        if let Some(found) = wanted(&answer) {
            return found;
        }
        assert!(std::time::Instant::now() < until, "{path}: {answer:#}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Put in place whole, as editors do.
fn put_file(path: &std::path::Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let aside = path.with_extension("new");
    std::fs::write(&aside, text).unwrap();
    std::fs::rename(aside, path).unwrap();
}

#[tokio::test]
async fn a_panic_in_the_extensions() {
    let (model, house, server, sibling) = rig(&[]).await;
    panics(&server, "extensions::look").await;
    let folder = house.data_dir().join("tools").join("greet");
    put_file(&folder.join("run.sh"), "#!/bin/sh\necho hello\n");
    let manifest = "name = \"greet\"\ndescription = \"Does it.\"\neffect = \"read\"\nexecutable = \"run.sh\"\n";
    put_file(&folder.join("tool.toml"), manifest);
    rebuilt(&server, 1).await;
    until(&server, "/tools", |tools| {
        let mut tools = tools.as_array()?.iter();
        tools.find(|tool| tool["name"] == "greet").cloned()
    })
    .await;
    sibling.ends_well(&model, &server).await;
}

#[tokio::test]
async fn a_panic_in_what_keeps_an_mcp_server() {
    let (model, house, server, sibling) = rig(&[]).await;
    let mark = crate::processes::marker();
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");
    let config = json!({"mcpServers": {"wild": {
        "command": "python3", "args": [program, "well", mark],
    }}});
    put_file(&house.data_dir().join("mcp.json"), &config.to_string());
    let ready = |servers: &Value| {
        let mut servers = servers.as_array()?.iter();
        servers.find(|it| it["state"] == "ready").cloned()
    };
    until(&server, "/mcp", ready).await;
    let before = crate::processes::processes_with(&mark);
    panics(&server, "mcp::connect").await;
    server.post("/mcp/wild/restart", json!({})).await;
    rebuilt(&server, 1).await;
    // Its program went with it, and another one is there.
    let others = || {
        let now = crate::processes::processes_with(&mark);
        !now.is_empty() && now.iter().all(|pid| !before.contains(pid))
    };
    let patience = std::time::Instant::now() + 3 * PATIENCE;
    while !others() {
        assert!(std::time::Instant::now() < patience, "{before:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    until(&server, "/mcp", ready).await;

    let mut client = Client::named(&server).await;
    let mut tab = client.tab(&server).await;
    let text = "use the tool: mcp__wild__echo {\"text\": \"still here\"}";
    client.say(&mut tab, "c", text).await;
    let frames = tab.until("approval_requested").await;
    let id = &frames.last().unwrap()["approval_id"];
    tab.send(&json!({"type": "approve", "approval_id": id, "decision": "once"}))
        .await;
    let result = tab.next_of("tool_call").await;
    assert_eq!(result["success"], true, "{result}");
    sibling.ends_well(&model, &server).await;
}

/// A service with an MCP server that is there a while after it.
async fn with_late_server(variables: &[(&str, &str)]) -> (FakeModel, Server) {
    let (model, house) = house(variables);
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");
    let late = "sleep 1; exec python3 \"$0\" well";
    let config = json!({"mcpServers": {"late": {"command": "sh", "args": ["-c", late, program]}}});
    put_file(&house.data_dir().join("mcp.json"), &config.to_string());
    let server = house.start();
    until(&server, "/mcp", |servers| {
        let mut servers = servers.as_array()?.iter();
        servers.find(|it| it["state"] == "ready").cloned()
    })
    .await;
    (model, server)
}

/// The run goes on before the server is there.
#[tokio::test]
async fn a_call_of_an_mcp_server_that_a_person_allows_after_a_crash_is_made() {
    let (model, server) = with_late_server(&[]).await;
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let text = "use the tool: mcp__late__echo {\"text\": \"still here\"}";
    tab.send(&json!({"type": "message", "content": text})).await;
    let id = tab.next_of("approval_requested").await["approval_id"].clone();
    let server = server.crash_and_restart();
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "approve", "approval_id": id, "decision": "once"}))
        .await;
    let result = tab.next_of("tool_call").await;
    assert_eq!(result["success"], true, "{result}");
    tab.next_of("stream_end").await;
    model.assert_clean();
}

/// The run goes on before the server is there, and none of its calls waits for it.
#[tokio::test]
async fn a_run_that_goes_on_after_a_crash_offers_the_tools_of_an_mcp_server_again() {
    let (model, server) = with_late_server(&[("NAVI_CONSENT_MODE", "ask")]).await;
    model.script([write("a.txt")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "write"}))
        .await;
    let id = tab.next_of("approval_requested").await["approval_id"].clone();
    let server = server.crash_and_restart();
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "approve", "approval_id": id, "decision": "once"}))
        .await;
    tab.next_of("stream_end").await;
    let chats = model.chats().into_iter().map(|chat| chat.body);
    let offers: Vec<Value> = chats.map(|mut body| body["tools"].take()).collect();
    let offers = offers.iter().filter(|tools| tools.is_array());
    let has_late = offers.map(|tools| tools.to_string().contains("mcp__late__echo"));
    assert_eq!(has_late.collect::<Vec<_>>(), [true, true]);
    model.assert_clean();
}

#[tokio::test]
async fn a_panic_in_a_tab() {
    let (model, _house, server, sibling) = rig(&[]).await;
    let mut client = Client::named(&server).await;
    let mut one = client.tab(&server).await;
    let mut other = client.tab(&server).await;
    let mut others = client.other();
    client.say(&mut one, "before", "before").await;
    assert_eq!(client.watch(&mut one).await, Seen::End);
    assert_eq!(others.watch(&mut other).await, Seen::End);
    // Both have joined, and wait for what comes.
    panics(&server, "tab::feed").await;
    // One of the two is next to ask for a frame.
    client.say(&mut one, "c", "hello").await;
    let seen = [client.watch(&mut one).await, others.watch(&mut other).await];
    let closed = seen.iter().filter(|seen| **seen == Seen::Closed).count();
    assert_eq!(closed, 1, "{seen:?}");
    client.come_back(&server).await;
    others.come_back(&server).await;
    client.view.assert_goes_with(&others.view);
    others.view.assert_goes_with(&client.view);
    let found = client.assert_sound(&server).await;
    assert_eq!(found["messages"].as_array().unwrap().len(), 4);
    sibling.ends_well(&model, &server).await;
}

/// Without it nothing can be found: the process ends, and what starts next finds it all.
#[tokio::test]
async fn a_panic_in_the_root() {
    let (model, house) = house(&[]);
    let mut server = house.start();
    let sibling = Sibling::streaming(&model, &server).await;
    let Sibling {
        mut client,
        mut told,
        ..
    } = sibling;
    panics(&server, "root::open").await;
    let path = format!("/sessions/{}", client.session);
    let found = server.get(&path).await;
    assert_eq!(
        found["id"], client.session,
        "one that lives is found without it"
    );
    let unknown = "7b0c2e1a-5d53-4c8e-9d35-0b8f6c7d1e2f";
    let path = format!("{}/sessions/{unknown}", server.url);
    let asked = crate::server::client()
        .get(path)
        .bearer_auth(crate::server::TOKEN);
    let answer = asked.send().await;
    assert!(answer.is_err() || !answer.unwrap().status().is_success());
    assert_eq!(server.ended().await.code(), Some(1), "{}", server.said());
    // Its tab is told to come back, and of no end.
    while let Told::Frame(frame) = hears(&mut told).await {
        client.take(&frame);
        let kind = frame["type"].as_str().unwrap();
        let is_end = matches!(kind, "stream_end" | "run_interrupted" | "error");
        assert!(!is_end || frame["seq"].is_null(), "{frame}");
    }
    drop(server);

    let server = house.start();
    let mut tab = client.come_back(&server).await;
    let found = snapshot(&server, &client.session).await;
    // The message that waited has its run by now, or it is over.
    assert_ne!(found["state"], "interrupted", "{found:#?}");
    while !client.view.types().contains(&"stream_end") {
        assert_ne!(client.watch(&mut tab).await, Seen::Closed);
    }
    let found = client.assert_sound(&server).await;
    let messages = found["messages"].as_array().unwrap();
    let answers: Vec<_> = messages
        .iter()
        .filter(|message| message["role"] == "assistant")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(answers, ["before ", "You said: and then?"]);
    model.assert_clean();
}
