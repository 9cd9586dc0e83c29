//! A message in the last instant of a run; a double send from two tabs; the same `client_id`
//! twice: one answer each, none stranded.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Reply, Step};
use crate::rounds::{Chance, rounds};
use crate::server::{House, Server, Socket, Told};
use crate::view::View;

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

fn message(text: &str, mode: &str) -> Value {
    json!({"type": "message", "content": text, "client_id": text, "mode": mode})
}

/// A tab, all that it was shown, and which messages were answered.
struct Desk {
    socket: Socket,
    view: View,
    /// The message and the run of each `client_id`.
    accepted: HashMap<String, (Value, Value)>,
    /// What was told to this tab alone.
    own: Vec<Value>,
    /// The run that took a message in while it went.
    steered: HashMap<Value, Value>,
    ended: Vec<Value>,
}

impl Desk {
    /// A tab that has everything up to this event, however long the service takes to join it.
    async fn after(server: &Server, session: &str, seq: u64) -> Self {
        Self {
            socket: server.tab(session, Some(seq)).await,
            view: View::after(seq),
            accepted: HashMap::new(),
            own: Vec::new(),
            steered: HashMap::new(),
            ended: Vec::new(),
        }
    }

    async fn next(&mut self) -> Value {
        let frame = match self.socket.next().await {
            Told::Frame(frame) => frame,
            Told::Closed(code) => panic!("closed with {code}"),
        };
        if frame.get("seq").is_none() && frame.get("part_id").is_none() {
            self.own.push(frame.clone());
            return frame;
        }
        self.view.apply(&frame);
        match frame["type"].as_str().unwrap() {
            "message_accepted" => {
                let id = frame["client_id"].as_str().unwrap().to_owned();
                let place = (frame["message_id"].clone(), frame["run_id"].clone());
                assert!(self.accepted.insert(id, place).is_none(), "twice: {frame}");
            }
            "message_steered" => {
                let message = frame["message_id"].clone();
                self.steered.insert(message, frame["run_id"].clone());
            }
            "stream_end" => self.ended.push(frame["run_id"].clone()),
            "error" | "run_interrupted" | "stream_stopped" => panic!("{frame}"),
            _ => {}
        }
        frame
    }

    async fn until(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next().await;
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    /// Reads until each of these messages was answered: one that is stranded is waited for in
    /// vain.
    async fn until_answered(&mut self, client_ids: &[&str]) {
        while !client_ids.iter().all(|id| self.is_answered(id)) {
            self.next().await;
        }
    }

    fn is_answered(&self, client_id: &str) -> bool {
        let Some((message, run)) = self.accepted.get(client_id) else {
            return false;
        };
        let run = self.steered.get(message).unwrap_or(run);
        self.ended.contains(run)
    }
}

/// Reads on until this tab was shown as much as the other.
async fn catch_up(desk: &mut Desk, with: &Desk) {
    while desk.view.seq < with.view.seq {
        desk.next().await;
    }
}

async fn snapshot(server: &Server, session: &str) -> Value {
    server.get(&format!("/sessions/{session}")).await
}

/// The conversation as `role: content`.
fn conversation(snapshot: &Value) -> Vec<String> {
    let messages = snapshot["messages"].as_array().unwrap().iter();
    messages
        .map(|it| {
            format!(
                "{}: {}",
                it["role"].as_str().unwrap(),
                it["content"].as_str().unwrap()
            )
        })
        .collect()
}

/// When two tabs send, of a run that is about to end.
#[derive(Clone, Copy, Debug)]
enum Instant {
    /// So many microseconds after its last word was let go.
    After(u64),
    OnLastDelta,
    OnEnd,
}

#[tokio::test]
async fn a_message_in_the_last_instant_of_a_run_from_two_tabs_is_answered_once() {
    let mut chance = Chance::new();
    let (model, server) = talking();
    for round in 0..rounds(40, 200) {
        let gate = format!("last word {round}");
        model.script([Step::text("one "), Step::hold(&gate), Step::text("two")]);
        let session = server.new_session().await;
        let mut one = Desk::after(&server, &session, 0).await;
        let mut two = Desk::after(&server, &session, 0).await;
        one.socket.send(&message("first", "queue")).await;
        one.until("stream_delta").await;
        let mode = ["queue", "steer"][usize::from(chance.between(0, 2) == 1)];
        let instant = match chance.between(0, 4) {
            0 => Instant::OnLastDelta,
            1 => Instant::OnEnd,
            _ => Instant::After(chance.between(0, 30_000)),
        };
        model.release(&gate);
        match instant {
            // Time itself is the fault here.
            Instant::After(us) => tokio::time::sleep(Duration::from_micros(us)).await,
            Instant::OnLastDelta => drop(one.until("stream_delta").await),
            Instant::OnEnd => drop(one.until("stream_end").await),
        }
        let (left, right) = (message("left", mode), message("right", mode));
        tokio::join!(one.socket.send(&left), two.socket.send(&right));
        one.until_answered(&["first", "left", "right"]).await;
        catch_up(&mut two, &one).await;
        assert_eq!(one.view, two.view, "{instant:?}, {mode}");

        let snapshot = snapshot(&server, &session).await;
        let said = conversation(&snapshot);
        let told = format!("{instant:?}, {mode}: {said:#?}");
        assert_eq!(snapshot["queue"], json!([]), "{told}");
        assert_eq!(snapshot["state"], "idle", "{told}");
        for user in ["user: first", "user: left", "user: right"] {
            let times = said.iter().filter(|it| *it == user).count();
            assert_eq!(times, 1, "{user}, {told}");
        }
        assert_eq!(said[..2], ["user: first", "assistant: one two"], "{told}");
        if mode == "queue" {
            assert_eq!(said.len(), 6, "{told}");
            for turn in said.chunks(2) {
                let asked = turn[0].strip_prefix("user: ").unwrap();
                let answered = format!("assistant: You said: {asked}");
                assert!(asked == "first" || turn[1] == answered, "{told}");
            }
        } else {
            let last = said.last().unwrap();
            assert!(last.starts_with("assistant: You said: "), "{told}");
        }
    }
    model.assert_clean();
}

#[tokio::test]
async fn a_double_send_from_two_tabs_gets_two_answers_in_one_order() {
    let (model, server) = talking();
    for _ in 0..rounds(15, 90) {
        let session = server.new_session().await;
        let mut one = Desk::after(&server, &session, 0).await;
        let mut two = Desk::after(&server, &session, 0).await;
        let (left, right) = (message("left", "queue"), message("right", "queue"));
        tokio::join!(one.socket.send(&left), two.socket.send(&right));
        one.until_answered(&["left", "right"]).await;
        catch_up(&mut two, &one).await;
        assert_eq!(one.view, two.view);
        let said = conversation(&snapshot(&server, &session).await);
        let turn = |text: &str| {
            [
                format!("user: {text}"),
                format!("assistant: You said: {text}"),
            ]
        };
        let (left, right) = (turn("left"), turn("right"));
        assert!(
            said == [left.clone(), right.clone()].concat() || said == [right, left].concat(),
            "{said:#?}"
        );
    }
    model.assert_clean();
}

/// What goes on in the session when the same message comes four times at once.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Nothing,
    ARun,
    TheEndOfARun,
}

#[tokio::test]
async fn the_same_client_id_twice_is_one_message_and_one_answer() {
    let (model, mut server) = talking();
    let mut sessions = Vec::new();
    let rounds = rounds(12, 60);
    for round in 0..rounds {
        let meanwhile = [Meanwhile::Nothing, Meanwhile::ARun, Meanwhile::TheEndOfARun][round % 3];
        let session = server.new_session().await;
        let mut one = Desk::after(&server, &session, 0).await;
        let mut two = Desk::after(&server, &session, 0).await;
        let gate = format!("round {round}");
        let mut all = vec!["twice"];
        if !matches!(meanwhile, Meanwhile::Nothing) {
            model.script([Step::text("one "), Step::hold(&gate), Step::text("two")]);
            one.socket.send(&message("before", "queue")).await;
            one.until("stream_delta").await;
            all.push("before");
        }
        if let Meanwhile::TheEndOfARun = meanwhile {
            model.release(&gate);
            one.until("stream_end").await;
        }
        let twice = message("twice", "queue");
        let both = async |desk: &mut Desk| {
            desk.socket.send(&twice).await;
            desk.socket.send(&twice).await;
        };
        tokio::join!(both(&mut one), both(&mut two));
        model.release(&gate);
        one.until_answered(&all).await;
        two.until_answered(&all).await;
        // Sent again when all is over: the answer to each sending names the same message.
        one.socket.send(&twice).await;
        let known = one.accepted["twice"].0.clone();
        while one.own.len() + two.own.len() < 4 {
            tokio::select! {
                _ = one.next(), if one.own.len() < 3 => {}
                _ = two.next() => {}
            }
        }
        for frame in one.own.iter().chain(&two.own) {
            assert_eq!(frame["type"], "message_accepted", "{meanwhile:?}: {frame}");
            assert_eq!(frame["message_id"], known, "{meanwhile:?}: {frame}");
        }
        sessions.push((session, known, all.len() * 2));
    }
    server = server.crash_and_restart();
    for (session, known, messages) in &sessions {
        let mut tab = server.tab(session, None).await;
        tab.send(&message("twice", "queue")).await;
        let again = tab.next_of("message_accepted").await;
        assert_eq!(again["message_id"], *known);
        let snapshot = snapshot(&server, session).await;
        let said = conversation(&snapshot);
        assert_eq!(said.len(), *messages, "{said:#?}");
        let end = &said[messages - 2..];
        assert_eq!(end, ["user: twice", "assistant: You said: twice"]);
    }
    model.assert_clean();
}

#[tokio::test]
async fn the_same_client_id_twice_over_rest_is_one_message_and_one_answer() {
    let (model, server) = talking();
    let session = server.new_session().await;
    let path = format!("/sessions/{session}/messages");
    let plain = |id: &str| json!({"content": id, "client_id": id});

    // At once, while the model has not answered yet.
    model.script(Reply::new([Step::text("wait"), Step::hold("gate")]).when("at once"));
    let both = async {
        tokio::join!(
            server.post(&path, plain("at once")),
            server.post(&path, plain("at once"))
        )
    };
    let release = async {
        model.wait_for(|chats| !chats.is_empty()).await;
        model.release("gate");
    };
    let ((one, two), ()) = tokio::join!(both, release);
    assert_eq!((&one["content"], &one), (&json!("wait"), &two));
    // After it was answered.
    assert_eq!(server.post(&path, plain("at once")).await, one);

    // A message that came over a socket.
    let last = snapshot(&server, &session).await["last_seq"].as_u64();
    let mut desk = Desk::after(&server, &session, last.unwrap()).await;
    desk.socket.send(&message("by socket", "queue")).await;
    desk.until_answered(&["by socket"]).await;
    let answer = server.post(&path, plain("by socket")).await;
    assert_eq!(answer["content"], "You said: by socket");
    assert_eq!(answer["run_id"], desk.ended[0]);

    // The same after a crash; the tab's session was never lost to it.
    let server = server.crash_and_restart();
    assert_eq!(
        server.post(&path, plain("at once")).await["content"],
        "wait"
    );
    let said = conversation(&snapshot(&server, &session).await);
    let expected = [
        "user: at once",
        "assistant: wait",
        "user: by socket",
        "assistant: You said: by socket",
    ];
    assert_eq!(said, expected);
    model.assert_clean();
}
