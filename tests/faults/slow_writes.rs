//! The row "decisions while writes wait": what people do at once, in several tabs, while the
//! database is slow. What was submitted counts, though it is not told yet.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::database::lock;
use crate::fake_model::{FakeModel, Reply, Step};
use crate::script::UNTOLD;
use crate::server::{House, Server, Socket, Told};

/// A session whose run stands still, with a message that waits behind it and two tabs.
struct Scene {
    model: FakeModel,
    server: Server,
    session: String,
    one: Socket,
    two: Socket,
    waiting: Value,
}

fn message(text: &str, mode: &str) -> Value {
    json!({"type": "message", "content": text, "client_id": text, "mode": mode})
}

impl Scene {
    async fn begin() -> Self {
        let model = FakeModel::start();
        let first = Reply::new(vec![Step::hold("gate"), Step::text("first")]);
        model.script(first.when("first").with_tools(true));
        let server = House::new(&[("OLLAMA_HOST", &model.url()), UNTOLD]).start();
        let session = server.new_session().await;
        let mut one = server.tab(&session, Some(0)).await;
        one.send(&message("first", "queue")).await;
        one.next_of("stream_start").await;
        one.send(&message("second", "queue")).await;
        let waiting = one.next_of("message_accepted").await["message_id"].clone();
        let mut two = server.tab(&session, Some(0)).await;
        while two.next_of("message_accepted").await["message_id"] != waiting {}
        Self {
            model,
            server,
            session,
            one,
            two,
            waiting,
        }
    }

    fn withdraw(&self) -> Value {
        json!({"type": "withdraw", "message_id": self.waiting})
    }

    fn edit(&self, content: &str) -> Value {
        json!({"type": "edit_queued", "message_id": self.waiting, "content": content})
    }

    /// The run goes on to its end, whole.
    async fn goes_on(mut self) -> Vec<String> {
        self.model.release("gate");
        self.one.next_of("stream_end").await;
        self.one.send(&message("last", "queue")).await;
        let mut told = Vec::new();
        loop {
            let end = self.one.next_of("stream_end").await;
            told.push(end["content"].as_str().unwrap().to_owned());
            if told.last().is_some_and(|said| said.ends_with("last")) {
                break;
            }
        }
        let snapshot = self
            .server
            .get(&format!("/sessions/{}", self.session))
            .await;
        assert_eq!(snapshot["queue"], json!([]));
        self.model.assert_clean();
        told
    }
}

/// How long the database stands still: whatever is sent meanwhile piles up behind it.
const STANDS_STILL: Duration = Duration::from_millis(700);

/// The database takes nothing for a while.
async fn stands_still(server: &Server) -> JoinHandle<()> {
    let held = lock(server.house()).await;
    tokio::spawn(async move {
        tokio::time::sleep(STANDS_STILL).await;
        held.rollback().await.unwrap();
    })
}

#[tokio::test]
async fn a_message_that_two_tabs_withdraw_is_withdrawn_once() {
    let mut scene = Scene::begin().await;
    let held = stands_still(&scene.server).await;
    let withdraw = scene.withdraw();
    scene.one.send(&withdraw).await;
    scene.two.send(&withdraw).await;
    held.await.unwrap();
    let changed = scene.one.next_of("queue_changed").await;
    assert_eq!(changed["message_id"], scene.waiting);
    assert_eq!(scene.goes_on().await, ["You said: last"]);
}

#[tokio::test]
async fn a_message_that_is_withdrawn_and_edited_at_once_is_gone() {
    let mut scene = Scene::begin().await;
    let held = stands_still(&scene.server).await;
    let (withdraw, edit) = (scene.withdraw(), scene.edit("other words"));
    scene.one.send(&withdraw).await;
    scene.two.send(&edit).await;
    held.await.unwrap();
    loop {
        // The edit may have come first.
        let changed = scene.one.next_of("queue_changed").await;
        if changed["content"].is_null() {
            break;
        }
    }
    assert_eq!(scene.goes_on().await, ["You said: last"]);
}

#[tokio::test]
async fn an_edit_that_is_acknowledged_is_what_is_answered() {
    let mut scene = Scene::begin().await;
    let held = stands_still(&scene.server).await;
    scene.server.arm("log journal::append").await;
    let edit = scene.edit("other words");
    scene.one.send(&edit).await;
    scene.server.says("passes journal::append").await;
    // The run ends while the edit is still on its way to the store.
    scene.model.release("gate");
    held.await.unwrap();
    scene.one.next_of("queue_changed").await;
    assert_eq!(
        scene.goes_on().await,
        ["You said: other words", "You said: last"]
    );
}

/// It comes too late, and that is said: no edit is acknowledged and lost.
#[tokio::test]
async fn an_edit_behind_the_runs_end_is_what_is_answered_or_refused() {
    let mut scene = Scene::begin().await;
    let held = stands_still(&scene.server).await;
    scene.server.arm("log journal::append").await;
    // The run's end is on its way to the store, and told to nobody.
    scene.model.release("gate");
    scene.server.says("passes journal::append").await;
    let edit = scene.edit("other words");
    scene.two.send(&edit).await;
    held.await.unwrap();
    let answer = loop {
        match scene.two.next().await {
            Told::Frame(frame) if frame["type"] == "error" => break "You said: second",
            Told::Frame(frame) if frame["type"] == "queue_changed" => {
                break "You said: other words";
            }
            Told::Frame(_) => {}
            Told::Closed(code) => panic!("closed with {code}"),
        }
    };
    assert_eq!(scene.goes_on().await, [answer, "You said: last"]);
}

#[tokio::test]
async fn two_toggles_of_a_pin_are_told_apart() {
    let scene = Scene::begin().await;
    let held = stands_still(&scene.server).await;
    let toggle = || {
        let path = format!("/sessions/{}/pin", scene.session);
        let server = &scene.server;
        async move { server.call(reqwest::Method::PATCH, &path, None).await.1 }
    };
    let (a, b, held) = tokio::join!(toggle(), toggle(), held);
    held.unwrap();
    let mut pinned = [a["pinned"].clone(), b["pinned"].clone()];
    pinned.sort_by_key(Value::to_string);
    assert_eq!(pinned, [json!(false), json!(true)]);
}

#[tokio::test]
async fn a_mode_that_is_set_back_is_set_back() {
    let scene = Scene::begin().await;
    let mode = format!("/sessions/{}/mode", scene.session);
    let set = async |to: &str| {
        let body = Some(json!({ "mode": to }));
        let (status, _) = scene.server.call(reqwest::Method::PATCH, &mode, body).await;
        assert!(status.is_success());
    };
    set("ask").await;
    let held = stands_still(&scene.server).await;
    scene.server.arm("log journal::append").await;
    let back = async {
        scene.server.says("passes journal::append").await;
        set("ask").await;
    };
    let ((), (), held) = tokio::join!(set("auto"), back, held);
    held.unwrap();
    let path = format!("/sessions/{}", scene.session);
    assert_eq!(scene.server.get(&path).await["mode"], "ask");
}
