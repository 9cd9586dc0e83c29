//! A run in which everything happens, a client that lives through crashes, and what must hold
//! after each.

use std::collections::BTreeMap;
use std::path::PathBuf;

use reqwest::Method;
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{House, Server, Socket, Told};
use crate::view::{View, assert_whole, told};

/// A model that is held for long is not told of: nothing is written before it answers.
pub(crate) const UNTOLD: (&str, &str) = ("FAILPOINTS", "run::waiting=return");

/// A model server and a house whose services use it.
pub(crate) fn house(variables: &[(&str, &str)]) -> (FakeModel, House) {
    let model = FakeModel::start();
    let url = model.url();
    let mut all = vec![("OLLAMA_HOST", url.as_str())];
    all.extend(variables);
    let house = House::new(&all);
    (model, house)
}

pub(crate) fn list(depth: u64) -> Step {
    Step::tool_call("filesystem", json!({"action": "list", "depth": depth}))
}

pub(crate) fn write(path: &str) -> Step {
    Step::tool_call(
        "filesystem",
        json!({"action": "write", "path": path, "content": "x"}),
    )
}

pub(crate) fn spawn(task: &str) -> Step {
    Step::tool_call("spawn_agent", json!({"task": task}))
}

/// Leaves a line in the session's [`log_of`]: each line is an effect.
pub(crate) fn append(line: &str) -> Step {
    Step::tool_call(
        "terminal",
        json!({"action": "run", "command": format!("echo {line} >> log")}),
    )
}

pub(crate) fn workspace(server: &Server, session: &str) -> PathBuf {
    let files = server.house().data_dir().join("session_files");
    files.join(session)
}

/// How often this line was left.
pub(crate) fn lines(server: &Server, session: &str, line: &str) -> usize {
    let log = workspace(server, session).join("log");
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().filter(|it| *it == line).count()
}

pub(crate) async fn snapshot(server: &Server, session: &str) -> Value {
    server.get(&format!("/sessions/{session}")).await
}

/// The results in the messages, by their calls' ids.
pub(crate) fn results(snapshot: &Value) -> Vec<&Value> {
    let messages = snapshot["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "tool")
        .collect()
}

pub(crate) fn outcomes(snapshot: &Value) -> Vec<&str> {
    let results = results(snapshot).into_iter();
    results.map(|it| it["outcome"].as_str().unwrap()).collect()
}

/// What the model says to the message `job N;`, from wherever it is asked: a plan, calls that
/// read side by side, calls that change something, a subagent, an answer.
pub(crate) fn script(model: &FakeModel, number: usize) -> String {
    let job = format!("job {number};");
    let task = format!("part {number};");
    let whole = |system: &str, text: &str| {
        let reply = Reply::new([Step::text(text)]).streamed(false);
        reply.system(system).when(&job).always()
    };
    model.script(whole(
        "You sort a user's request",
        "Several things.\nREFLECT: no",
    ));
    model.script(whole(
        "You write the plan",
        "1. Look around | SELF\n2. Write it | TOOL: filesystem\n3. Say so | SELF",
    ));
    let mut answer = Vec::new();
    for word in [
        "All ",
        "of ",
        "it ",
        "is ",
        "done ",
        "— ",
        "зроблено ",
        "🌍",
    ] {
        answer.extend([Step::text(word), Step::DelayMs(10)]);
    }
    let mut reads = vec![
        Step::Thinking("I look around.".into()),
        Step::text("First. "),
    ];
    reads.extend([list(1), list(2), list(3)]);
    let writes = vec![
        write(&format!("{number}.txt")),
        append(&format!("job-{number}")),
    ];
    let steps = [
        (0, reads),
        (3, writes),
        (5, vec![Step::text("I have it looked at. "), spawn(&task)]),
        (6, answer),
    ];
    for (results, steps) in steps {
        let reply = Reply::new(steps).when(&job).with_tools(true);
        model.script(reply.results(results).always());
    }
    let child = |results: usize, steps: Vec<Step>| {
        let reply = Reply::new(steps).when(&task).with_tools(true);
        reply.results(results).always()
    };
    model.script(child(0, vec![list(1)]));
    model.script(child(1, vec![Step::text("It "), Step::text("is well.")]));
    format!("{job} look around, write it down and tell me")
}

/// How a client's socket came to an end, or its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    End,
    Interrupted,
    Closed,
}

/// A page: it has sent some messages, and has seen some of what came of them.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) session: String,
    pub(crate) view: View,
    /// By their `client_id`: the text, and whether that was acknowledged.
    sent: BTreeMap<String, (String, bool)>,
}

impl Client {
    pub(crate) async fn new(server: &Server) -> Self {
        Self {
            session: server.new_session().await,
            view: View::default(),
            sent: BTreeMap::new(),
        }
    }

    /// In a session with a name: nothing is asked of a model after its first turn.
    pub(crate) async fn named(server: &Server) -> Self {
        let client = Self::new(server).await;
        let path = format!("/sessions/{}", client.session);
        let name = json!({"title": "named"});
        let (status, _) = server.call(Method::PATCH, &path, Some(name)).await;
        assert!(status.is_success());
        client
    }

    /// Another page on the same session.
    pub(crate) fn other(&self) -> Self {
        Self {
            session: self.session.clone(),
            view: View::default(),
            sent: BTreeMap::new(),
        }
    }

    pub(crate) async fn tab(&self, server: &Server) -> Socket {
        server.tab(&self.session, Some(self.view.seq)).await
    }

    /// Says it in a tab that may go at any moment.
    pub(crate) async fn say(&mut self, tab: &mut Socket, client_id: &str, text: &str) {
        let said = (text.to_owned(), false);
        self.sent.entry(client_id.to_owned()).or_insert(said);
        let frame = json!({"type": "message", "content": text, "client_id": client_id});
        tab.try_send_raw(frame.to_string().into()).await;
    }

    /// Takes a frame in. What is told to this tab alone changes nothing.
    pub(crate) fn take(&mut self, frame: &Value) {
        if frame["seq"].is_null() && frame["part_id"].is_null() {
            return;
        }
        self.view.apply(frame);
        if frame["type"] == "message_accepted"
            && let Some(id) = frame["client_id"].as_str()
            && let Some(sent) = self.sent.get_mut(id)
        {
            sent.1 = true;
        }
    }

    /// Watches until the run is over or the socket is.
    pub(crate) async fn watch(&mut self, tab: &mut Socket) -> Seen {
        loop {
            match tab.next().await {
                Told::Closed(_) => return Seen::Closed,
                Told::Frame(frame) => {
                    self.take(&frame);
                    match frame["type"].as_str() {
                        Some("stream_end") => return Seen::End,
                        Some("run_interrupted") => return Seen::Interrupted,
                        Some("error") if !frame["seq"].is_null() => panic!("it failed: {frame}"),
                        _ => {}
                    }
                }
            }
        }
    }

    /// Goes on where this client left off, in a tab that has caught up.
    pub(crate) async fn come_back(&mut self, server: &Server) -> Socket {
        let mut tab = self.tab(server).await;
        let head = snapshot(server, &self.session).await["last_seq"].as_u64();
        while Some(self.view.seq) < head {
            match tab.next().await {
                Told::Frame(frame) => self.take(&frame),
                Told::Closed(code) => panic!("closed with {code}"),
            }
        }
        tab
    }

    /// What must hold after a crash, whatever it hit. The client has caught up.
    pub(crate) async fn assert_sound(&self, server: &Server) -> Value {
        let snapshot = snapshot(server, &self.session).await;
        let events = told(server, &self.session).await;
        let mut later = View::default();
        later.apply_all(&events);
        self.view.assert_goes_with(&later);
        assert_whole(&events);
        assert_ended_once(&events);
        assert_history(&snapshot);
        assert_unmixed(&snapshot, &events);
        let messages = snapshot["messages"].as_array().unwrap();
        for (text, accepted) in self.sent.values() {
            let said = |it: &&Value| it["role"] == "user" && it["content"] == *text;
            let count = messages.iter().filter(said).count();
            assert_eq!(count, usize::from(*accepted), "{text}: {messages:#?}");
        }
        snapshot
    }

    /// The messages that nobody acknowledged.
    pub(crate) fn outbox(&self) -> Vec<(String, String)> {
        let waiting = self.sent.iter().filter(|(_, (_, accepted))| !accepted);
        waiting
            .map(|(id, (text, _))| (id.clone(), text.clone()))
            .collect()
    }
}

/// A run has one end, and only the last one may have none.
fn assert_ended_once(events: &[Value]) {
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    for event in events {
        let Some(run) = event["run_id"].as_str() else {
            continue;
        };
        let over = ["stream_end", "stream_stopped", "run_interrupted"];
        if over.contains(&event["type"].as_str().unwrap()) && event["parent_run_id"].is_null() {
            *ends.entry(run).or_default() += 1;
        }
    }
    let twice: Vec<_> = ends.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "{twice:?} in {events:#?}");
}

/// Each call is answered once, in its place; the last ones may be open while a run goes.
pub(crate) fn assert_history(snapshot: &Value) {
    let messages = snapshot["messages"].as_array().unwrap();
    let mut rest = messages.iter();
    while let Some(message) = rest.next() {
        assert_ne!(message["role"], "tool", "nobody called it: {messages:#?}");
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let Some(result) = rest.next() else {
                assert_eq!(snapshot["state"], "running", "{call}: {messages:#?}");
                break;
            };
            assert_eq!(result["tool_call_id"], call["id"], "{messages:#?}");
        }
    }
}

/// What stands in two places was written to both or to none.
pub(crate) fn assert_unmixed(snapshot: &Value, events: &[Value]) {
    let of = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
    let messages = snapshot["messages"].as_array().unwrap().iter();
    let plans = messages.filter(|message| message["is_plan"] == true);
    assert_eq!(of("plan_ready").count(), plans.count(), "{events:#?}");
    if let Some(todo) = of("todo_updated").next_back() {
        assert_eq!(todo["items"], snapshot["todo"]);
    } else {
        assert_eq!(snapshot["todo"], json!([]));
    }
    let summary = !snapshot["compression"].is_null();
    assert_eq!(of("context_compressed").count() > 0, summary, "{events:#?}");
    let waits = of("approval_requested").count() - of("approval_resolved").count();
    let asked = snapshot["approvals"].as_array().unwrap().len();
    assert_eq!(waits, asked, "{snapshot:#?}");
}
