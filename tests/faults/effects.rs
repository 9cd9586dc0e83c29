//! Rows: between a tool's start and its result, and after its effect and before the commit;
//! recover, then go on, then crash again.
//!
//! How often a command ran is what its file says: each run leaves a line.

use std::os::unix::process::ExitStatusExt as _;

use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Recorded, Reply, Step};
use crate::script::{
    Client, Seen, append, assert_history, house, lines, outcomes, results, snapshot, spawn,
    workspace, write,
};
use crate::server::Server;
use crate::view::{assert_whole, told};

/// Has the model make this call, and the service killed at the point.
async fn killed_at(model: &FakeModel, server: Server, point: &str, call: Step) -> (Server, Client) {
    let mut client = Client::new(&server).await;
    let mut tab = client.tab(&server).await;
    model.script([call]);
    server.arm(&format!("kill {point}:1")).await;
    client.say(&mut tab, "c", "do it").await;
    assert_eq!(client.watch(&mut tab).await, Seen::Closed);
    let server = server.crash_and_restart();
    client.come_back(&server).await;
    client.assert_sound(&server).await;
    (server, client)
}

/// The results that the model is sent: it must know what it cannot know.
fn results_sent(chat: &Recorded) -> Vec<&str> {
    let messages = chat.body["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results.map(|it| it["content"].as_str().unwrap()).collect()
}

/// Continues, and gives back what the model was sent for that.
async fn go_on(model: &FakeModel, server: &Server, client: &mut Client) -> Recorded {
    let before = model.chats().len();
    model.script(Reply::new([Step::text("I went on")]).with_tools(true));
    let mut tab = client.come_back(server).await;
    tab.send(&json!({"type": "continue"})).await;
    assert_eq!(client.watch(&mut tab).await, Seen::End);
    let mut chats = model.chats().into_iter().skip(before);
    chats
        .find(|chat| chat.body["stream"] != json!(false))
        .unwrap()
}

/// What a call left in the session's folder.
type Effects = fn(&Server, &str) -> usize;

fn files(server: &Server, session: &str) -> usize {
    usize::from(workspace(server, session).join("a.txt").exists())
}

fn commands(server: &Server, session: &str) -> usize {
    lines(server, session, "once")
}

#[tokio::test]
async fn between_a_tools_start_and_its_result() {
    let (model, house) = house(&[]);
    let mut server = house.start();
    let calls: [(Step, Effects); 2] = [(write("a.txt"), files), (append("once"), commands)];
    for (call, effects) in calls {
        let (next, mut client) = killed_at(&model, server, "tool::call", call).await;
        server = next;
        let found = snapshot(&server, &client.session).await;
        assert_eq!(outcomes(&found), ["outcome_unknown"]);
        assert_eq!(found["state"], "interrupted");
        assert_eq!(effects(&server, &client.session), 0, "it had not begun");
        let sent = go_on(&model, &server, &mut client).await;
        assert_eq!(results_sent(&sent).len(), 1, "{:#}", sent.body);
        assert_eq!(effects(&server, &client.session), 0, "nobody runs it again");
    }
    model.assert_clean();
}

#[tokio::test]
async fn after_a_tools_effect_and_before_its_commit() {
    let (model, house) = house(&[]);
    let mut server = house.start();
    let calls: [(Step, Effects); 2] = [(write("a.txt"), files), (append("once"), commands)];
    for (call, effects) in calls {
        let (next, mut client) = killed_at(&model, server, "tool::done", call).await;
        server = next;
        let found = snapshot(&server, &client.session).await;
        assert_eq!(outcomes(&found), ["outcome_unknown"]);
        assert_eq!(effects(&server, &client.session), 1);
        let sent = go_on(&model, &server, &mut client).await;
        let unknown = results_sent(&sent)[0].to_owned();
        assert_eq!(results(&found)[0]["content"], *unknown);
        assert!(unknown.contains("may or may not"), "{unknown}");
        assert_eq!(effects(&server, &client.session), 1, "nobody runs it again");
    }
    model.assert_clean();
}

#[tokio::test]
async fn between_the_start_and_the_result_of_a_subagents_tool() {
    for point in ["tool::call", "tool::done"] {
        let (model, house) = house(&[]);
        let server = house.start();
        // The parent's own call is the first that comes to the point.
        model.script([spawn("leave a file")]);
        model.script(Reply::new([Step::hold("child"), write("a.txt")]).when("leave a file"));
        let mut client = Client::new(&server).await;
        let mut tab = client.tab(&server).await;
        client.say(&mut tab, "c", "do it").await;
        model
            .wait_for(|chats| chats.iter().any(|it| it.last_user_text().contains("leave")))
            .await;
        server.arm(&format!("kill {point}:1")).await;
        model.release("child");
        assert_eq!(client.watch(&mut tab).await, Seen::Closed);
        let server = server.crash_and_restart();
        client.come_back(&server).await;
        let found = client.assert_sound(&server).await;
        assert_eq!(outcomes(&found), ["outcome_unknown"], "{point}");
        let events = told(&server, &client.session).await;
        let of = |kind: &'static str| events.iter().filter(move |it| it["type"] == kind);
        assert_eq!(of("tool_call").count(), 2, "the child's and its parent's");
        assert!(of("tool_call").all(|call| call["outcome"] == "outcome_unknown"));
        let finished = of("subagent_finished").collect::<Vec<_>>();
        assert_eq!(finished.len(), 1);
        assert_eq!(finished[0]["completed_normally"], false);
        let done = usize::from(point == "tool::done");
        assert_eq!(files(&server, &client.session), done, "{point}");
        go_on(&model, &server, &mut client).await;
        assert_eq!(files(&server, &client.session), done, "{point}");
        model.assert_clean();
    }
}

/// What a plain run over REST had done is there too, though nobody got its answer.
#[tokio::test]
async fn in_a_plain_run() {
    let (model, house) = house(&[]);
    let server = house.start();
    let session = server.new_session().await;
    model.script([append("once")]);
    server.arm("kill tool::done:1").await;
    let url = format!("{}/sessions/{session}/messages", server.url);
    let request = crate::server::client()
        .post(url)
        .bearer_auth(crate::server::TOKEN)
        .json(&json!({"content": "do it"}));
    assert!(request.send().await.is_err(), "nobody is left to answer");
    let server = server.crash_and_restart();
    let found = snapshot(&server, &session).await;
    assert_eq!(outcomes(&found), ["outcome_unknown"]);
    assert_eq!(found["state"], "interrupted");
    assert_eq!(commands(&server, &session), 1);
    let path = format!("/sessions/{session}/messages");
    let answer = server.post(&path, json!({"content": "and now?"})).await;
    assert_eq!(answer["content"], "You said: and now?");
    assert_eq!(commands(&server, &session), 1);
    assert_history(&snapshot(&server, &session).await);
    model.assert_clean();
}

/// Killed at a run's worst moment, at each step of its recovery, in what goes on from there, and
/// once more: each call has one result, each run one end, and nothing is done twice.
#[tokio::test]
async fn recover_then_go_on_then_crash_again() {
    let (model, house) = house(&[]);
    let server = house.start();
    let mut client = Client::new(&server).await;
    let mut tab = client.tab(&server).await;
    model.script([append("first")]);
    server.arm("kill tool::done:1").await;
    client.say(&mut tab, "c", "do it").await;
    assert_eq!(client.watch(&mut tab).await, Seen::Closed);
    drop(server);

    // The recovery itself is killed: before it is written, and when it is.
    for at in [
        "journal::append:1",
        "journal::write:1",
        "journal::written:1",
    ] {
        if let Ok(mut dying) = house.try_start_with(&[("NAVI_KILL_AT", at)]) {
            assert_eq!(dying.ended().await.signal(), Some(9), "{at}");
        }
    }
    let server = house.start();
    client.come_back(&server).await;
    let found = client.assert_sound(&server).await;
    assert_eq!(outcomes(&found), ["outcome_unknown"]);
    assert_eq!(lines(&server, &client.session, "first"), 1);

    // It goes on, does more, and is killed again.
    let mut tab = client.come_back(&server).await;
    model.script([append("second")]);
    server.arm("kill tool::done:1").await;
    tab.send(&json!({"type": "continue"})).await;
    assert_eq!(client.watch(&mut tab).await, Seen::Closed);
    let server = server.crash_and_restart();
    client.come_back(&server).await;
    let found = client.assert_sound(&server).await;
    assert_eq!(outcomes(&found), ["outcome_unknown"; 2]);
    let sent = go_on(&model, &server, &mut client).await;
    assert_eq!(results_sent(&sent).len(), 2);
    let server = server.crash_and_restart();

    client.come_back(&server).await;
    let found = client.assert_sound(&server).await;
    assert_eq!(found["state"], "idle");
    for line in ["first", "second"] {
        assert_eq!(lines(&server, &client.session, line), 1, "{line}");
    }
    let events: Vec<Value> = told(&server, &client.session).await;
    assert_whole(&events);
    let ends = events.iter().filter(|it| it["type"] == "run_interrupted");
    assert_eq!(ends.count(), 2, "one for each run that was killed");
    model.assert_clean();
}
