//! `navi chat` at a terminal: a pseudo-terminal, with keys pressed and the screen read.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, ExitStatus};
use std::sync::mpsc;
use std::time::Instant;

use nix::pty::{Winsize, openpty};
use reqwest::Method;
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Recorded, Reply, Step};
use crate::server::{House, PATIENCE, Server};

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

/// A person at a terminal.
struct Person {
    child: Child,
    keys: File,
    screen: mpsc::Receiver<Vec<u8>>,
    /// All that came, as it came.
    raw: Vec<u8>,
    /// How much of what is read of it was seen already.
    seen: usize,
}

impl Person {
    fn at(server: &Server, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let size = Winsize {
            ws_row: 40,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(Some(&size), None).unwrap();
        let (keys, tty) = (File::from(pty.master), File::from(pty.slave));
        let all: Vec<&str> = ["chat"].iter().chain(arguments).copied().collect();
        let mut command = server.house().command(&all);
        command
            .env("TERM", "xterm-256color")
            .envs(variables.iter().copied())
            .stdin(tty.try_clone().unwrap())
            .stdout(tty.try_clone().unwrap())
            .stderr(tty);
        let child = command.spawn().unwrap();
        // Its own ends of the terminal go with it: so the screen ends when the child does.
        drop(command);
        let (told, screen) = mpsc::channel();
        let mut from = keys.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut buffer) {
                if told.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut person = Self {
            child,
            keys,
            screen,
            raw: Vec::new(),
            seen: 0,
        };
        person.sees("› ");
        person
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line.
    fn says(&mut self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// What is on the screen, without what a terminal obeys.
    fn text(&self) -> String {
        let mut text = String::new();
        let raw = String::from_utf8_lossy(&self.raw);
        let mut chars = raw.chars();
        while let Some(c) = chars.next() {
            match c {
                '\u{1b}' if chars.next() == Some('[') => {
                    chars.find(|c| c.is_ascii_alphabetic());
                }
                '\u{1b}' | '\r' => {}
                c => text.push(c),
            }
        }
        text
    }

    /// Waits until this stands on the screen, behind what was seen before.
    fn sees(&mut self, words: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if let Some(at) = text.get(self.seen..).and_then(|new| new.find(words)) {
                self.seen += at + words.len();
                return;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(more) => self.raw.extend(more),
                Err(_) => panic!("{words} is not on the screen:\n{text}"),
            }
        }
    }

    fn leaves(&mut self) -> ExitStatus {
        self.press(CTRL_D);
        self.child.wait().unwrap()
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn talking(variables: &[(&str, &str)]) -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]);
    (model, server.with(variables).start())
}

async fn only_session(server: &Server) -> String {
    let sessions = server.get("/sessions").await;
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
    sessions[0]["id"].as_str().unwrap().to_owned()
}

fn write(path: &str) -> Step {
    let arguments = json!({"action": "write", "path": path, "content": "x"});
    Step::tool_call("filesystem", arguments)
}

#[tokio::test]
async fn an_answer_is_read_while_it_is_said() {
    let (model, server) = talking(&[]);
    model.script(vec![
        Step::Thinking("They greet me.".to_owned()),
        Step::text("It is **bold**.\nAnd"),
        Step::hold("gate"),
        Step::text(" more."),
    ]);
    let mut person = Person::at(&server, &[], &[]);
    person.says("hello");
    person.sees("thought for 3 words");
    person.sees("It is bold.");
    model.release("gate");
    person.sees("And more.");
    person.says("/thinking");
    person.sees("They greet me.");
    let raw = String::from_utf8_lossy(&person.raw).into_owned();
    assert!(raw.contains("\u{1b}[1mbold"), "{raw:?}");
    assert!(person.leaves().success());
    let session = only_session(&server).await;
    person.sees(&format!("navi chat --session {session}"));
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(
        snapshot["messages"][1]["content"],
        "It is **bold**.\nAnd more."
    );
}

#[tokio::test]
async fn nothing_is_made_before_something_is_said_and_colours_may_be_off() {
    let (model, server) = talking(&[]);
    model.script(vec![Step::text("# Loud\n\u{1b}]0;owned\u{7}end")]);
    let mut person = Person::at(&server, &[], &[("NO_COLOR", "1")]);
    person.sees("Navi listens");
    person.says("/mode ask");
    person.sees("the next conversation begins in it");
    person.says("/dance");
    person.sees("there is no command /dance");
    assert_eq!(server.get("/sessions").await, json!([]));
    person.says("hello");
    person.sees("Loud");
    person.sees(r"\u{1b}]0;owned\u{7}end");
    let raw = String::from_utf8_lossy(&person.raw).into_owned();
    assert!(
        !raw.contains("\u{1b}]0;") && !raw.contains('\u{7}'),
        "{raw:?}"
    );
    assert!(!raw.contains("\u{1b}[1m"), "{raw:?}");
    let session = only_session(&server).await;
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["mode"], "ask");
}

#[tokio::test]
async fn one_key_answers_what_is_asked() {
    let (model, server) = talking(&[("NAVI_CONSENT_MODE", "ask")]);
    let mut person = Person::at(&server, &[], &[]);
    for (key, told, outcome) in [
        ("d", "denied", "failed"),
        ("a", "allowed", "success"),
        ("A", "allowed from now on", "success"),
    ] {
        model.script(vec![write(&format!("{key}.txt"))]);
        model.script(vec![Step::text("so be it")]);
        person.says("write");
        person.sees(&format!("? create `{key}.txt`"));
        person.sees("a allow");
        person.press(key);
        person.sees(told);
        person.sees("so be it");
        let session = only_session(&server).await;
        let snapshot = server.get(&format!("/sessions/{session}")).await;
        let messages = snapshot["messages"].as_array().unwrap();
        let last = messages.iter().rfind(|message| message["role"] == "tool");
        assert_eq!(last.unwrap()["outcome"], outcome, "{key}");
    }
    // There is a rule now.
    model.script(vec![write("more.txt")]);
    model.script(vec![Step::text("unasked")]);
    person.says("write");
    person.sees("unasked");
    let rules = server.get("/consent/rules").await;
    assert_eq!(rules["rules"].as_array().unwrap().len(), 1);
    model.assert_clean();
}

#[tokio::test]
async fn a_denial_says_why_and_what_was_answered_elsewhere_is_told() {
    let (model, server) = talking(&[("NAVI_CONSENT_MODE", "ask")]);
    let mut person = Person::at(&server, &[], &[]);
    model.script(vec![write("a.txt")]);
    model.script(vec![Step::text("as you wish")]);
    person.says("write");
    person.sees("? create");
    person.says("/deny not there");
    person.sees("denied: not there");
    person.sees("as you wish");
    let asked = model.chats();
    assert!(
        asked
            .iter()
            .any(|chat| chat.body.to_string().contains("The user says: not there"))
    );

    model.script(vec![write("b.txt")]);
    model.script(vec![Step::text("thank you")]);
    person.says("again");
    person.sees("? create");
    let session = only_session(&server).await;
    let approvals = server.get(&format!("/sessions/{session}/approvals")).await;
    let id = approvals["approvals"][0]["approval_id"].as_str().unwrap();
    let path = format!("/sessions/{session}/approvals/{id}");
    server.post(&path, json!({"decision": "allow"})).await;
    person.sees("allowed elsewhere");
    person.sees("thank you");
    // The key is a letter again.
    person.says("all done");
    person.sees("all done");
    model
        .wait_for(|chats| chats.iter().any(|chat| chat.last_user_text() == "all done"))
        .await;
}

#[tokio::test]
async fn ctrl_c_stops_the_run_and_twice_at_rest_leaves() {
    let (model, server) = talking(&[]);
    model.script(vec![Step::text("one\n"), Step::hold("never")]);
    let mut person = Person::at(&server, &[], &[]);
    person.says("go");
    person.sees("one");
    person.press(CTRL_C);
    person.sees("stopped");
    let session = only_session(&server).await;
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["messages"][1]["state"], "stopped");
    person.press(CTRL_C);
    person.sees("Ctrl-C again leaves");
    person.press(CTRL_C);
    assert!(person.child.wait().unwrap().success());
}

#[tokio::test]
async fn what_is_typed_while_a_run_goes_waits_for_its_end() {
    let (model, server) = talking(&[]);
    model.script(Reply::new([Step::text("one\n"), Step::hold("gate")]).when("first"));
    model.script(Reply::new([Step::text("two")]).when("second"));
    let mut person = Person::at(&server, &[], &[]);
    person.says("first");
    person.sees("one");
    person.says("second");
    person.sees("it waits for the run that goes");
    model.release("gate");
    person.sees("two");
}

#[tokio::test]
async fn conversations_are_listed_searched_and_picked() {
    let (model, server) = talking(&[]);
    for (asked, answer) in [
        ("the lamps", "They are green."),
        ("the door", "It is shut."),
    ] {
        model.script(Reply::new([Step::text(answer)]).when(asked));
        let session = server.new_session().await;
        let path = format!("/sessions/{session}/messages");
        server.post(&path, json!({"content": asked})).await;
        let title = json!({"title": format!("About {asked}")});
        let one = format!("/sessions/{session}");
        server.call(Method::PATCH, &one, Some(title)).await;
    }
    let mut person = Person::at(&server, &[], &[]);
    person.says("/sessions");
    person.sees(" 1 About the door");
    person.sees(" 2 About the lamps");
    person.sees("a number opens one");
    person.says("2");
    person.sees("About the lamps · secretary");
    person.sees("› the lamps");
    person.sees("They are green.");
    person.says("/sessions shut");
    person.sees(" 1 About the door");
    person.sees("It is shut.");
    person.sees("a number opens one");
    person.says("/open 1");
    person.sees("› the door");

    // What is said there stands there, and a number is a message again.
    model.script(Reply::new([Step::text("Five.")]).when("5"));
    person.says("5");
    person.sees("Five.");
    let found = server.get("/sessions").await;
    assert_eq!(found[0]["title"], "About the door");
}

#[tokio::test]
async fn a_file_goes_with_the_next_message() {
    let (model, server) = talking(&[]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("my notes.txt");
    std::fs::write(&path, "The lamp is green.").unwrap();
    let mut person = Person::at(&server, &[], &[]);
    person.says("/file /none/such");
    person.sees("cannot be read");
    person.says(&format!(
        "/file {}",
        path.display().to_string().replace(' ', "\\ ")
    ));
    person.sees("my notes.txt goes with your next message");
    person.says("what colour?");
    let has_read = |words: &str, chats: &[Recorded]| {
        let mut chats = chats.iter();
        chats.any(|chat| chat.body.to_string().contains(words))
    };
    model
        .wait_for(|chats| has_read("The lamp is green.", chats))
        .await;
    assert!(person.leaves().success());
}

#[tokio::test]
async fn a_restart_in_mid_answer_is_told_and_gone_on_from() {
    let (model, server) = talking(&[]);
    model.script(vec![Step::text("one\n"), Step::hold("never")]);
    let mut person = Person::at(&server, &[], &[]);
    person.says("go");
    person.sees("one");
    let server = server.crash_and_restart();
    person.sees("interrupted: ");
    person.sees("/continue goes on");
    model.script(vec![Step::text("two\n")]);
    person.says("/continue");
    person.sees("two");
    let session = only_session(&server).await;
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let messages = snapshot["messages"].as_array().unwrap();
    let said = messages.iter().filter(|message| message["role"] == "user");
    assert_eq!(said.count(), 1, "{messages:#?}");
}

#[tokio::test]
async fn what_is_said_while_the_service_is_away_waits_for_it() {
    let (model, mut server) = talking(&[]);
    model.script(Reply::new([Step::text("Here I am.")]).when("there?"));
    let session = server.new_session().await;
    let mut person = Person::at(&server, &["--session", &session], &[]);
    server.ask_to_end();
    server.ended().await;
    person.sees("Navi does not answer");
    // Typed ahead, all at once.
    person.press("/thinking\rare you there?\r");
    person.sees("told no reasoning");
    let _server = server.house().clone().start();
    person.sees("Here I am.");
}

#[tokio::test]
async fn messages_that_still_wait_where_one_leaves_are_told_of() {
    let (_model, mut server) = talking(&[]);
    let session = server.new_session().await;
    let mut person = Person::at(&server, &["--session", &session], &[]);
    server.ask_to_end();
    server.ended().await;
    person.sees("Navi does not answer");
    // What answers the last line says that those before it were taken.
    person.press("are you there?\rhello?\r/thinking\r");
    person.sees("told no reasoning");
    assert!(person.leaves().success());
    person.sees("your last 2 messages may not have reached Navi");
    person.sees(&format!("navi chat --session {session}"));
}

#[tokio::test]
async fn a_conversation_that_another_shows_is_shown_live() {
    let (model, server) = talking(&[]);
    let session = server.new_session().await;
    let mut person = Person::at(&server, &["--session", &session], &[]);
    model.script(vec![Step::text("Hello, you two.")]);
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "from the page"}))
        .await;
    person.sees("› from the page");
    person.sees("Hello, you two.");
    let last: Value = tab.next_of("stream_end").await;
    assert_eq!(last["content"], "Hello, you two.");
}
