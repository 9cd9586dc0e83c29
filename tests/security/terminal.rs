//! The terminal through the whole service: live output, what stays, what ends.

use std::time::{Duration, Instant};

use navi_actors::tools::Tool as _;
use serde_json::{Value, json};

use super::ward::Ward;
use crate::fake_model::{FakeModel, Recorded, Step};
use crate::processes::{begun, gone, is_root, marker, runs};
use crate::server::{House, PATIENCE, Server};

fn house() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let user = if is_root() { "nobody" } else { "" };
    let server = House::new(&[("OLLAMA_HOST", &model.url()), ("NAVI_SANDBOX_USER", user)]).start();
    (model, server)
}

fn terminal(command: &str, background: bool) -> Step {
    Step::tool_call(
        "terminal",
        json!({"action": "run", "command": command, "background": background}),
    )
}

#[tokio::test]
async fn output_is_live_and_a_reload_finds_it() {
    let (model, server) = house();
    let session = server.new_session().await;
    model.script(vec![terminal(
        "printf '\\033[31mone\\033[0m\\n'; while ! test -f go; do sleep 0.05; done; echo two",
        false,
    )]);
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "run"}))
        .await;
    let first = tab.next_of("tool_output").await;
    assert_eq!(first["offset"], 0);
    assert_eq!(
        first["delta"], "\u{1b}[31mone\u{1b}[0m\n",
        "colours are the page's to show"
    );
    let mut reload = server.tab(&session, None).await;
    let again = reload.next_of("tool_output").await;
    assert_eq!(again["delta"], first["delta"]);
    assert_eq!(again["call_id"], first["call_id"]);
    let workspace = server
        .house()
        .data_dir()
        .join("session_files")
        .join(&session);
    std::fs::write(workspace.join("go"), "").unwrap();
    for tab in [&mut tab, &mut reload] {
        let next = tab.next_of("tool_output").await;
        assert_eq!(next["delta"], "two\n");
        assert_eq!(next["offset"], 13);
        let result = tab.next_of("tool_call").await;
        assert_eq!(result["success"], true);
        let text = result["result"].as_str().unwrap();
        assert!(text.starts_with("one\ntwo\n[exit code 0 after "), "{text}");
        tab.next_of("stream_end").await;
    }
    model.assert_clean();
}

#[tokio::test]
async fn background_commands_outlive_a_run_and_not_their_session() {
    let mark = marker();
    let (model, server) = house();
    let session = server.new_session().await;
    model.script(vec![terminal(
        &format!("setsid sleep {mark} & sleep {mark}"),
        true,
    )]);
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "run"}))
        .await;
    tab.next_of("stream_end").await;
    // The run is over for good: a later one is told that it goes.
    model.script(vec![Step::tool_call("terminal", json!({"action": "list"}))]);
    tab.send(&json!({"type": "message", "content": "what goes"}))
        .await;
    let listed = tab.next_of("tool_call").await;
    let said = listed["result"].as_str().unwrap();
    assert!(said.contains("running for"), "{said}");
    tab.next_of("stream_end").await;
    begun(&mark).await;
    let (status, _) = server
        .call(
            reqwest::Method::DELETE,
            &format!("/sessions/{session}"),
            None,
        )
        .await;
    assert!(status.is_success());
    gone(&mark).await;
}

#[tokio::test]
async fn background_commands_end_with_a_stop_of_their_run() {
    let mark = marker();
    let (model, server) = house();
    let session = server.new_session().await;
    model.script(vec![terminal(&format!("setsid sleep {mark} & wait"), true)]);
    model.script([Step::hold("answer")]);
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "run"}))
        .await;
    tab.next_of("tool_call").await;
    begun(&mark).await;
    // The model holds its answer.
    let answers = |chat: &Recorded| {
        chat.body["messages"]
            .to_string()
            .contains("started in the background")
    };
    model.wait_for(|chats| chats.iter().any(answers)).await;
    tab.send(&json!({"type": "stop"})).await;
    tab.next_of("stream_stopped").await;
    gone(&mark).await;
    let until = Instant::now() + PATIENCE;
    let said = loop {
        model.script(vec![Step::tool_call("terminal", json!({"action": "list"}))]);
        tab.send(&json!({"type": "message", "content": "what goes"}))
            .await;
        let listed = tab.next_of("tool_call").await;
        let said = listed["result"].as_str().unwrap().to_owned();
        tab.next_of("stream_end").await;
        // Its end is told a moment after it is gone.
        if !said.contains("running for") {
            break said;
        }
        assert!(Instant::now() < until, "{said}");
    };
    assert!(
        said.contains("the run that started it was stopped"),
        "{said}"
    );
}

#[tokio::test]
async fn background_commands_end_when_their_time_is_up() {
    let mark = marker();
    let ward = Ward::inside();
    let args = json!({"action": "run", "background": true, "timeout_seconds": 1, "command": format!("sleep {mark}")});
    ward.call(args).await.unwrap();
    gone(&mark).await;
    let look = json!({"action": "look", "id": 1});
    let said = asked_until(&ward, look, |said| !said.contains("running for")).await;
    assert!(said.contains("its 1 s were up"), "{said}");
}

/// Calls the terminal until what it says holds, and gives that back.
async fn asked_until(ward: &Ward, args: Value, holds: impl Fn(&str) -> bool) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let said = ward.call(args.clone()).await.unwrap();
        if holds(&said) {
            return said;
        }
        assert!(Instant::now() < until, "{said}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_directory_stays_and_the_environment_does_not() {
    let ward = Ward::inside();
    let said = ward
        .run("mkdir -p a/b && cd a/b && export X=1")
        .await
        .unwrap();
    assert!(said.ends_with(", in a/b]"), "{said}");
    let said = ward.run("pwd; echo \"x=$X\"").await.unwrap();
    assert!(said.contains("/workspace/a/b\nx=\n"), "{said}");
    let args = json!({"action": "run", "command": "pwd", "directory": "a"});
    let said = ward.call(args).await.unwrap();
    assert!(said.contains("/workspace/a\n"), "{said}");
    assert!(ward.works("cd .. && rm -r a").await);
    let said = ward.run("pwd; exit 3").await.unwrap();
    assert!(said.contains("/workspace\n[exit code 3"), "{said}");
}

#[tokio::test]
async fn a_waiting_prompt_gets_no_input_and_a_hint() {
    let ward = Ward::inside();
    let said = ward
        .run("printf 'Overwrite? [y/N] '; read x")
        .await
        .unwrap();
    assert!(said.contains("use flags such as -y"), "{said}");
    let said = ward.run("cat").await.unwrap();
    assert!(
        said.contains("exit code 0"),
        "nothing to read is an end: {said}"
    );
    let said = ward
        .run("echo -n 'Password: '; cat /dev/tty")
        .await
        .unwrap();
    assert!(said.contains("use flags such as -y"), "{said}");
}

#[tokio::test]
async fn streams_keep_their_order() {
    let said = Ward::inside()
        .run("echo 1; echo 2 >&2; echo 3; echo 4 >&2")
        .await
        .unwrap();
    assert!(said.starts_with("1\n2\n3\n4\n[exit code 0"), "{said}");
}

#[tokio::test]
async fn background_commands_can_be_looked_at_and_ended() {
    let (mark, many) = (marker(), marker());
    let ward = Ward::inside();
    let args = json!({"action": "run", "background": true, "command": format!("until test -f go; do sleep 0.05; done; for i in 1 2 3; do echo line $i; done; sleep {mark}")});
    let said = ward.call(args).await.unwrap();
    assert!(said.starts_with("started in the background as 1"), "{said}");
    std::fs::write(ward.workspace().join("go"), "").unwrap();
    let look = json!({"action": "look", "id": 1});
    asked_until(&ward, look.clone(), |said| said.contains("line 3")).await;
    let said = ward.call(look).await.unwrap();
    assert!(said.starts_with("[no new output]\n[running for"), "{said}");
    let said = ward.call(json!({"action": "list"})).await.unwrap();
    assert!(said.contains("1: until test"), "{said}");
    let end = json!({"action": "end", "id": 1});
    let proposal = ward.terminal.proposal(&end, &ward.context()).await.unwrap();
    assert_eq!(proposal.summary.to_string(), "end background command 1");
    assert_eq!(
        proposal.rule.unwrap().words.to_string(),
        "ending background commands"
    );
    let said = ward.call(end).await.unwrap();
    assert!(said.contains("it was stopped"), "{said}");
    assert!(!runs(&mark));
    let args = json!({"action": "run", "background": true, "command": format!("sleep {many}")});
    for _ in 0..8 {
        ward.call(args.clone()).await.unwrap();
    }
    let said = ward.call(args).await.unwrap_err();
    assert!(
        said.contains("8 commands run in the background already"),
        "{said}"
    );
    drop(ward);
    gone(&many).await;
}

#[tokio::test]
async fn long_output_of_a_background_command_is_kept_too() {
    let ward = Ward::inside();
    let command = "until test -f go; do sleep 0.05; done; seq 20000";
    let args = json!({"action": "run", "background": true, "command": command});
    ward.call(args).await.unwrap();
    std::fs::write(ward.workspace().join("go"), "").unwrap();
    let list = json!({"action": "list"});
    asked_until(&ward, list, |said| !said.contains("running for")).await;
    let look = json!({"action": "look", "id": 1});
    let said = ward.call(look).await.unwrap();
    let (_, file) = said.split_once("whole output is in the file ").unwrap();
    let file = file.trim_end_matches(']');
    let whole = std::fs::read_to_string(ward.workspace().join(file)).unwrap();
    assert!(whole.starts_with("1\n2\n"), "{said}");
}

#[tokio::test]
async fn long_output_is_cut_and_kept() {
    let ward = Ward::inside();
    let said = ward.run("seq 20000").await.unwrap();
    assert!(said.len() < 40_000);
    assert!(
        said.starts_with("1\n2\n") && said.contains("bytes cut here"),
        "{said}"
    );
    let at = said.find("tool_output/").unwrap();
    let path = said[at..].split(']').next().unwrap();
    let whole = std::fs::read_to_string(ward.workspace().join(path)).unwrap();
    assert_eq!(whole.lines().count(), 20_000);
    let seen = ward.seen.0.lock().unwrap().len();
    assert_eq!(seen, whole.len(), "who watches saw it all");
}
