//! The row "random people": several tabs of one session send whatever frames come to their minds
//! at random times, while the database is slow and the process may be killed. No session dies, no
//! tab sees a hole, and in the end every tab has what the store has.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::database::lock;
use crate::fake_model::{FakeModel, Reply, Step};
use crate::rounds::{Chance, rounds};
use crate::server::{House, Server, Told};
use crate::view::{self, View};

/// What was sent in each round, over all tabs.
const FRAMES: usize = 60;

/// A tab that only reads, until its socket goes.
fn reads(mut tab: crate::server::Socket, mut view: View) -> JoinHandle<View> {
    tokio::spawn(async move {
        loop {
            match tab.next().await {
                Told::Frame(frame) if frame.get("seq").is_some() => view.apply(&frame),
                Told::Frame(frame) if frame.get("part_id").is_some() => view.apply(&frame),
                Told::Frame(_) => {}
                Told::Closed(_) => return view,
            }
        }
    })
}

/// What people know of the session: they act on what a moment ago was so.
#[derive(Debug, Default)]
struct Known {
    waiting: Vec<Value>,
    approvals: Vec<Value>,
    messages: Vec<Value>,
    branches: u64,
}

async fn look(server: &Server, session: &str) -> Known {
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let ids = |list: &str, id: &str| -> Vec<Value> {
        let items = snapshot[list].as_array().unwrap().iter();
        items.map(|item| item[id].clone()).collect()
    };
    let of_users = snapshot["messages"].as_array().unwrap().iter();
    Known {
        waiting: ids("queue", "message_id"),
        approvals: ids("approvals", "approval_id"),
        messages: of_users
            .filter(|message| message["role"] == "user")
            .map(|message| message["id"].clone())
            .collect(),
        branches: snapshot["forks"].as_array().unwrap().len() as u64 + 1,
    }
}

/// What one does, by chance: the kind, which of what there is, and how.
type Whim = [usize; 3];

fn whim(chance: &mut Chance) -> Whim {
    [13, 1_000, 6].map(|below| usize::try_from(chance.between(0, below)).unwrap())
}

/// A frame or a request of one who has seen `known`.
async fn acts(server: &Server, session: &str, [kind, which, how]: Whim, known: &Known, n: usize) {
    let one = |of: &[Value]| of.get(which % of.len().max(1)).cloned();
    let path = |rest: &str| format!("/sessions/{session}{rest}");
    let call = async |method: Method, rest: &str, body: Value| {
        let (status, answer) = server.call(method, &path(rest), Some(body)).await;
        assert!(!status.is_server_error(), "{rest}: {status} {answer}");
    };
    match kind {
        0..4 => {
            let mut tab = server.tab(session, None).await;
            let text = format!("message {n}");
            let mode = ["queue", "steer"][how % 2];
            let message =
                json!({"type": "message", "content": text, "client_id": text, "mode": mode});
            tab.send(&message).await;
            if how < 2 {
                tab.send(&message).await;
            }
            loop {
                match tab.next().await {
                    Told::Frame(frame) if frame["client_id"] == text.as_str() => break,
                    Told::Frame(_) => {}
                    Told::Closed(code) => panic!("closed with {code}"),
                }
            }
        }
        4 | 5 => {
            let Some(id) = one(&known.waiting) else {
                return;
            };
            let mut tab = server.tab(session, None).await;
            tab.send(&json!({"type": "withdraw", "message_id": id}))
                .await;
            tab.send(&json!({"type": "edit_queued", "message_id": id, "content": "other"}))
                .await;
            tab.send(&json!({"type": "nonsense"})).await;
            tab.next_of("error").await;
        }
        6 => {
            let Some(id) = one(&known.waiting) else {
                return;
            };
            let mut tab = server.tab(session, None).await;
            let edit =
                json!({"type": "edit_queued", "message_id": id, "content": format!("edit {n}")});
            tab.send(&edit).await;
            tab.send(&json!({"type": "nonsense"})).await;
            tab.next_of("error").await;
        }
        7 => call(Method::POST, "/stop", json!({})).await,
        8 => {
            let mode = ["ask", "edits", "auto"][how % 3];
            call(Method::PATCH, "/mode", json!({ "mode": mode })).await;
        }
        9 => {
            let Some(id) = one(&known.approvals) else {
                return;
            };
            let rest = format!("/approvals/{}", id.as_str().unwrap());
            call(Method::POST, &rest, json!({"decision": "once"})).await;
        }
        10 => {
            let Some(id) = one(&known.messages) else {
                return;
            };
            let body = json!({"message_id": id, "content": format!("anew {n}")});
            call(Method::POST, "/branches", body).await;
        }
        11 => {
            let id = which % 4 + 1;
            let edit = match how {
                0 => json!({"edit": "add", "text": format!("step {n}")}),
                1 => json!({"edit": "skip", "id": id}),
                2 => json!({"edit": "restore", "id": id}),
                3 => json!({"edit": "hold", "id": id}),
                4 => json!({"edit": "move", "id": id, "before": 1}),
                _ => json!({"edit": "rewrite", "id": id, "text": format!("words {n}")}),
            };
            call(Method::PATCH, "/plan", edit).await;
        }
        _ => {
            call(Method::PATCH, "/pin", json!({})).await;
            call(Method::POST, "/continue", json!({})).await;
            let branch_id = which as u64 % (known.branches + 1);
            call(Method::PUT, "/branch", json!({ "branch_id": branch_id })).await;
        }
    }
}

#[tokio::test]
async fn whatever_people_do_at_once_no_session_dies_and_every_tab_agrees_with_the_store() {
    let mut chance = Chance::new();
    let model = FakeModel::start();
    // Some answers take a while, some write a note first, some ask.
    let slow = [
        Step::text("well, "),
        Step::DelayMs(40),
        Step::text("so it is"),
    ];
    model.script(Reply::new(slow).when("message 1").with_tools(true).always());
    let file = json!({"action": "write", "path": "note.md", "content": "noted"});
    let writes = [Step::tool_call("filesystem", file)];
    let writes = Reply::new(writes).when("message 2").results(0);
    model.script(writes.with_tools(true).always());
    let house = House::new(&[("OLLAMA_HOST", &model.url())]);
    let mut server = house.start();
    let session = server.new_session().await;
    let mut sent = 0;
    for _ in 0..rounds(1, 40) {
        let head = server.get(&format!("/sessions/{session}")).await["last_seq"].as_u64();
        let head = head.unwrap();
        let tabs = [
            reads(server.tab(&session, Some(head)).await, View::after(head)),
            reads(server.tab(&session, Some(0)).await, View::default()),
        ];
        for _ in 0..FRAMES / 2 {
            let known = look(&server, &session).await;
            let (one, two) = (whim(&mut chance), whim(&mut chance));
            let slow = Duration::from_millis(chance.between(20, 300));
            let is_slow = chance.between(0, 6) == 0;
            tokio::join!(
                acts(&server, &session, one, &known, sent),
                acts(&server, &session, two, &known, sent + 1),
                async {
                    if is_slow {
                        let held = lock(server.house()).await;
                        tokio::time::sleep(slow).await;
                        held.rollback().await.unwrap();
                    }
                },
            );
            sent += 2;
        }
        let said = server.said();
        assert!(!said.contains("session starts over"), "{said}");
        server = server.crash_and_restart();
        let frames = view::told(&server, &session).await;
        let mut later = View::default();
        later.apply_all(&frames);
        for tab in tabs {
            let seen = tab.await.unwrap();
            assert!(seen.seq <= later.seq, "a tab was told what is not stored");
            for event in seen.events() {
                let stored = later.events().find(|it| it["seq"] == event["seq"]);
                assert_eq!(Some(event), stored);
            }
        }
    }
    model.assert_clean();
}
