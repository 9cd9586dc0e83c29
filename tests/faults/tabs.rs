//! A tab that drops at 1,000 random points, joins between read and subscribe, never reads;
//! 500 tabs: the same bytes in the end, and bounded memory.

use std::collections::BTreeMap;
use std::fs;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Recorded, Reply, Step};
use crate::rounds::{Chance, rounds};
use crate::server::{House, Server, Socket, Told};
use crate::view::View;

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

fn words(count: usize, ms: u64) -> Vec<Step> {
    let pieces = ["Привіт ", "🌍🌍 ", "straße ", "plain ", "\n\n"];
    (0..count)
        .flat_map(|n| {
            let text = format!("{n}{}", pieces[n % pieces.len()]);
            [Step::Text(text), Step::DelayMs(ms)]
        })
        .collect()
}

/// A run of several parts: text before calls with and without reasoning, two subagents at
/// once that call a tool themselves, and a long answer.
fn script(model: &FakeModel) {
    let write = |path: &str| {
        let content = "x".repeat(20);
        let args = json!({"action": "write", "path": path, "content": content});
        Step::tool_call("filesystem", args)
    };
    let spawn = |task: &str| Step::tool_call("spawn_agent", json!({"task": task}));
    let main = |steps: Vec<Step>| model.script(Reply::new(steps).when("go"));
    let mut first = words(20, 3);
    first.extend([write("a.txt"), write("b.txt")]);
    main(first);
    let mut second = vec![Step::Thinking("Let me see. ".to_owned())];
    second.extend(words(20, 3));
    second.push(write("c.txt"));
    main(second);
    let mut third = words(10, 3);
    third.extend([spawn("count stones"), spawn("count trees")]);
    main(third);
    for task in ["count stones", "count trees"] {
        let mut looks = words(15, 3);
        let list = json!({"action": "list", "path": "."});
        looks.push(Step::tool_call("filesystem", list));
        model.script(Reply::new(looks).when(task));
        model.script(Reply::new(words(15, 3)).when(task));
    }
    main(words(80, 3));
}

/// A conversation in which a run begins, and the tab that asked for it.
async fn going(server: &Server) -> (String, Socket) {
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "go"})).await;
    (session, tab)
}

async fn next_frame(tab: &mut Socket) -> Value {
    match tab.next().await {
        Told::Frame(frame) => frame,
        Told::Closed(code) => panic!("closed with {code}"),
    }
}

/// Reads to the end of the run.
async fn read_on(tab: &mut Socket, view: &mut View) {
    loop {
        let frame = next_frame(tab).await;
        view.apply(&frame);
        if frame["type"] == "stream_end" {
            return;
        }
    }
}

/// A client that loses its connection again and again, after so many frames each time, and
/// comes back with the last event that it has. Gives back what it saw, and how often it left.
async fn comes_and_goes(server: &Server, session: &str, mut after: Vec<u64>) -> (View, usize) {
    let mut view = View::default();
    let mut drops = 0;
    loop {
        let mut tab = server.tab(session, Some(view.seq)).await;
        let Some(frames) = after.pop() else {
            read_on(&mut tab, &mut view).await;
            return (view, drops);
        };
        for _ in 0..frames {
            let frame = next_frame(&mut tab).await;
            view.apply(&frame);
            if frame["type"] == "stream_end" {
                return (view, drops);
            }
        }
        drop(tab);
        drops += 1;
    }
}

#[tokio::test]
async fn tabs_that_drop_at_random_points_see_the_same_bytes_as_one_that_stayed() {
    let mut chance = Chance::new();
    let (model, server) = talking();
    let mut drops = 0;
    let wanted = rounds(100, 1000);
    while drops < wanted {
        script(&model);
        let (session, mut stays) = going(&server).await;
        let mut seen = View::default();
        let leave = |chance: &mut Chance| (0..20).map(|_| chance.between(0, 12)).collect();
        let clients: Vec<Vec<u64>> = (0..6).map(|_| leave(&mut chance)).collect();
        let clients = clients
            .into_iter()
            .map(|after| comes_and_goes(&server, &session, after));
        let (clients, ()) = tokio::join!(join_all(clients), read_on(&mut stays, &mut seen));
        for (view, left) in clients {
            assert_eq!(view, seen);
            drops += left;
        }
        let mut late = View::default();
        read_on(&mut server.tab(&session, Some(0)).await, &mut late).await;
        assert_eq!(late, seen);
    }
    model.assert_clean();
}

/// A page: a snapshot, and what came after it.
#[derive(Debug, Default)]
struct Page {
    seq: u64,
    epoch: i64,
    /// Of each message of the model, its reasoning and its text.
    parts: BTreeMap<String, String>,
    over: bool,
    snapshots: usize,
}

impl Page {
    async fn load(&mut self, server: &Server, session: &str) {
        let snapshot = server.get(&format!("/sessions/{session}")).await;
        self.seq = snapshot["last_seq"].as_u64().unwrap();
        self.epoch = snapshot["epoch"].as_i64().unwrap();
        self.parts = texts(&snapshot);
        self.over = snapshot["run"].is_null();
        self.snapshots += 1;
    }

    async fn connect(&self, server: &Server, session: &str) -> Socket {
        let (seq, epoch) = (self.seq, self.epoch);
        let path = format!("/ws/sessions/{session}?after={seq}&epoch={epoch}");
        server.socket(&path).await
    }

    /// Takes a frame in. False for a hole, which changes nothing.
    fn apply(&mut self, frame: &Value) -> bool {
        if let Some(seq) = frame["seq"].as_u64() {
            assert_eq!(seq, self.seq + 1, "a gap or a repeat: {frame}");
            self.seq = seq;
            return true;
        }
        if frame["is_subagent"] == true {
            return true;
        }
        let part = frame["part_id"].as_str().expect("a delta").to_owned();
        let offset = usize::try_from(frame["offset"].as_u64().unwrap()).unwrap();
        let text = self.parts.entry(part).or_default();
        let have = text.encode_utf16().count();
        if offset > have {
            return false;
        }
        let delta: Vec<u16> = frame["delta"].as_str().unwrap().encode_utf16().collect();
        let fresh = delta.get(have - offset..).unwrap_or_default();
        text.push_str(&String::from_utf16(fresh).expect("whole characters"));
        true
    }
}

/// The parts that a snapshot's messages are made of.
fn texts(snapshot: &Value) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    for message in snapshot["messages"].as_array().unwrap() {
        if message["role"] != "assistant" {
            continue;
        }
        let id = message["id"].as_str().unwrap();
        for (field, kind) in [("content", "text"), ("thinking", "thinking")] {
            if let Some(text) = message[field].as_str().filter(|text| !text.is_empty()) {
                parts.insert(format!("{id}.{kind}"), text.to_owned());
            }
        }
    }
    parts
}

/// A page that is opened while the run goes, loses its connection again and again, and is
/// loaded anew where text is missing, or now and then by its user.
async fn opened(server: &Server, session: &str, after: Vec<u64>) -> Page {
    let mut page = Page::default();
    page.load(server, session).await;
    let mut after = after.into_iter();
    while !page.over {
        let mut tab = page.connect(server, session).await;
        let frames = after.next();
        if frames.is_some_and(|frames| frames % 5 == 0) {
            page.load(server, session).await;
            continue;
        }
        let mut read = 0;
        while frames.is_none_or(|frames| read < frames) {
            let frame = next_frame(&mut tab).await;
            if !page.apply(&frame) {
                page.load(server, session).await;
                break;
            }
            page.over = frame["type"] == "stream_end";
            if page.over {
                break;
            }
            read += 1;
        }
    }
    page
}

#[tokio::test]
async fn pages_that_begin_with_a_snapshot_show_what_the_conversation_says() {
    let mut chance = Chance::new();
    let (model, server) = talking();
    for _ in 0..rounds(2, 20) {
        script(&model);
        let (session, mut stays) = going(&server).await;
        stays.next_of("stream_delta").await;
        let pages: Vec<Vec<u64>> = (0..6)
            .map(|_| (0..12).map(|_| chance.between(1, 16)).collect())
            .collect();
        let pages = pages
            .into_iter()
            .map(|after| opened(&server, &session, after));
        let pages = join_all(pages).await;
        stays.next_of("stream_end").await;
        let end = server.get(&format!("/sessions/{session}")).await;
        for page in pages {
            assert_eq!(
                page.parts,
                texts(&end),
                "after {} snapshots",
                page.snapshots
            );
            assert_eq!(Some(page.seq), end["last_seq"].as_u64());
        }
    }
    model.assert_clean();
}

/// A page whose snapshot fell between reasoning and answer, and which joins once the run is
/// over and `meanwhile` has happened: the reasoning was told before the snapshot, and is in no
/// message of it yet.
async fn shows_both(meanwhile: impl AsyncFnOnce(&Server, &mut Socket)) {
    let (model, server) = talking();
    model.script([
        Step::Thinking("hm, ".to_owned()),
        Step::text("Here "),
        Step::hold("looked"),
        Step::text("it is."),
    ]);
    let (session, mut stays) = going(&server).await;
    stays.next_of("stream_delta").await;
    let mut page = Page::default();
    page.load(&server, &session).await;
    assert!(page.parts.is_empty());
    model.release("looked");
    stays.next_of("stream_end").await;
    meanwhile(&server, &mut stays).await;
    let mut tab = page.connect(&server, &session).await;
    while !page.over {
        let frame = next_frame(&mut tab).await;
        assert!(page.apply(&frame), "a hole: {frame}");
        page.over = frame["type"] == "stream_end";
    }
    assert_eq!(page.snapshots, 1);
    assert_eq!(
        page.parts,
        texts(&server.get(&format!("/sessions/{session}")).await)
    );
    assert_eq!(page.parts.len(), 2);
    model.assert_clean();
}

#[tokio::test]
async fn a_page_whose_snapshot_fell_between_reasoning_and_answer_shows_both() {
    shows_both(async |_, _| {}).await;
}

/// The session that told it is gone; the one that is read again knows it from the store.
#[tokio::test]
async fn a_page_whose_snapshot_was_of_a_session_that_died_shows_both() {
    shows_both(async |server, tab| {
        server.arm("session::send=1*panic(forced by a test)").await;
        tab.send(&json!({"type": "message", "content": "more"}))
            .await;
        server.says("session died, reading it again").await;
    })
    .await;
}

#[tokio::test]
async fn a_frame_beyond_those_that_wait_is_refused_with_its_client_id() {
    let model = FakeModel::start();
    let house = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("NAVI_WATCHDOG_SECONDS", "0"),
    ]);
    let server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    // It has joined.
    tab.send(&json!({})).await;
    tab.next_of("error").await;
    server.arm("journal::write=1*pause").await;
    let message =
        |content: &str| json!({"type": "message", "content": content, "client_id": "late"});
    tab.send(&message("first")).await;
    for _ in 0..64 {
        tab.send(&json!({})).await;
    }
    for content in ["x".to_owned(), "x".repeat(70_000)] {
        tab.send(&message(&content)).await;
        let told = tab.next_of("error").await;
        assert_eq!(told["code"], "rate_limited");
        assert_eq!(told["client_id"], "late", "{} bytes", content.len());
    }
    server.arm("journal::write=off").await;
    tab.next_of("message_accepted").await;
}

#[tokio::test]
async fn tabs_that_join_between_read_and_subscribe_miss_and_repeat_nothing() {
    let mut chance = Chance::new();
    let (model, server) = talking();
    let tabs = rounds(60, 600);
    let mut answer = words(tabs * 4, 2);
    answer.push(Step::hold("joined"));
    answer.push(Step::text("end"));
    model.script(answer);
    let (session, mut stays) = going(&server).await;
    let mut seen = View::default();
    while seen.text(".text").is_empty() {
        seen.apply(&next_frame(&mut stays).await);
    }
    let mut joined: Vec<(Socket, View, bool)> = Vec::new();
    while joined.len() < tabs {
        // Eight at a time, so that they join all along the answer.
        let kinds: Vec<(u64, u64)> = (0..8)
            .map(|_| (chance.between(0, 3), chance.between(0, 2)))
            .collect();
        let visits = kinds
            .into_iter()
            .map(|(kind, frames)| joins(&server, &session, kind, frames));
        joined.extend(join_all(visits).await);
    }
    model.release("joined");
    // Not read while they joined, which may be longer than a tab is waited for.
    read_or_come_back(&server, &session, &mut stays, &mut seen).await;
    for (mut tab, mut view, whole) in joined {
        read_or_come_back(&server, &session, &mut tab, &mut view).await;
        assert_eq!(view.text(".text"), seen.text(".text"));
        assert!(!whole || view == seen, "{view:?} and {seen:?}");
    }
    model.assert_clean();
}

/// A tab that joins: from its run's beginning, from the session's, or after what REST told. Says
/// whether it is to see everything.
async fn joins(server: &Server, session: &str, kind: u64, frames: u64) -> (Socket, View, bool) {
    let (after, mut view) = match kind {
        0 => (None, View::default()),
        1 => (Some(0), View::default()),
        _ => {
            let snapshot = server.get(&format!("/sessions/{session}")).await;
            let head = snapshot["last_seq"].as_u64();
            (head, View::after(head.unwrap()))
        }
    };
    let mut tab = server.tab(session, after).await;
    for _ in 0..frames {
        view.apply(&next_frame(&mut tab).await);
    }
    (tab, view, kind < 2)
}

/// Reads to the end of the run. A connection that nobody read for too long was cut.
async fn read_or_come_back(server: &Server, session: &str, tab: &mut Socket, view: &mut View) {
    loop {
        match tab.next().await {
            Told::Frame(frame) => {
                view.apply(&frame);
                if frame["type"] == "stream_end" {
                    return;
                }
            }
            Told::Closed(_) => *tab = server.tab(session, Some(view.seq)).await,
        }
    }
}

/// Between a message and the start of its calls there is no event that its text could stand
/// before in the log.
#[tokio::test]
async fn tabs_that_join_before_the_calls_of_a_text_begin_see_the_text() {
    let model = FakeModel::start();
    let house = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        // The session stands still before the calls: after the plan and the model's call.
        ("FAILPOINTS", "run::step=2*off->1*sleep(1500)->off"),
    ]);
    let server = house.start();
    let list = json!({"action": "list", "path": "."});
    let reply = [
        Step::text("I look it up."),
        Step::tool_call("filesystem", list),
    ];
    model.script(Reply::new(reply));
    model.script([Step::text("There.")]);
    let (session, mut stays) = going(&server).await;
    let streamed = |chat: &Recorded| chat.body["stream"] != false && chat.finished_ms.is_some();
    model.wait_for(|chats| chats.iter().any(streamed)).await;
    let mut joined = Vec::new();
    for _ in 0..50 {
        joined.push(server.tab(&session, Some(0)).await);
    }
    let mut seen = View::default();
    read_on(&mut stays, &mut seen).await;
    assert_eq!(seen.text(".text"), "I look it up.There.");
    for mut tab in joined {
        let mut view = View::default();
        read_on(&mut tab, &mut view).await;
        assert_eq!(view, seen);
    }
    model.assert_clean();
}

#[tokio::test]
async fn reasoning_that_came_to_nothing_is_not_told_again_after_its_run() {
    let (model, server) = talking();
    model.script([Step::Thinking("hm, ".to_owned())]);
    model.script([Step::text("Here.")]);
    let (session, mut stays) = going(&server).await;
    let mut seen = View::default();
    read_on(&mut stays, &mut seen).await;
    assert_eq!(seen.text(".thinking"), "hm, ");
    let mut tab = server.tab(&session, Some(seen.seq)).await;
    tab.send(&json!({"type": "message", "content": "go on"}))
        .await;
    assert_eq!(next_frame(&mut tab).await["type"], "message_accepted");
    model.assert_clean();
}

/// A line of `/proc/PID/status`, in bytes.
fn memory(server: &Server, line: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|it| it.starts_with(line)).unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[tokio::test]
async fn many_tabs_most_of_which_never_read_cost_little_and_see_the_same_in_the_end() {
    const ANSWER: usize = 4_000_000;
    let (model, server) = talking();
    let piece = "0123456789abcdef".repeat(256);
    let mut answer = vec![Step::text(&piece); ANSWER / piece.len()];
    answer.push(Step::text("end"));
    let mut peaks = Vec::new();
    for silent_tabs in [0, rounds(95, 495)] {
        let session = server.new_session().await;
        let mut silent = Vec::new();
        for _ in 0..silent_tabs {
            silent.push(server.narrow_tab(&session).await);
        }
        let mut reading = Vec::new();
        for _ in 0..5 {
            reading.push(server.tab(&session, None).await);
        }
        model.script(answer.clone());
        reading[0]
            .send(&json!({"type": "message", "content": "go"}))
            .await;
        let views = join_all(reading.iter_mut().map(|tab| async move {
            let mut view = View::default();
            read_on(tab, &mut view).await;
            view
        }));
        let views = views.await;
        peaks.push((silent_tabs, memory(&server, "VmHWM:")));
        for view in &views {
            assert_eq!(*view, views[0]);
        }
        for tab in silent.iter_mut().take(5) {
            let mut view = View::default();
            read_or_come_back(&server, &session, tab, &mut view).await;
            assert_eq!(view, views[0]);
        }
    }
    // What a tab may cost is its buffers, beside what the answer takes without it. Kept for those
    // who do not read, the answer alone would be 4 MB for each of them.
    let [(_, alone), (tabs, beside)] = peaks[..] else {
        panic!("{peaks:?}")
    };
    let allowed = alone + 40_000_000 + tabs * 400_000;
    assert!(beside < allowed, "{peaks:?}");
    model.assert_clean();
}
