//! `navi chat -p`, as a script runs it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Output, Stdio};

use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{House, Server, text};

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

fn chat(server: &Server, arguments: &[&str]) -> Output {
    let all: Vec<&str> = ["chat"].iter().chain(arguments).copied().collect();
    server.house().run(&all)
}

/// The same with something on standard input.
fn chat_with(server: &Server, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = begin(server, arguments, Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // Whoever refuses it does not read it all.
    let written = std::thread::spawn(move || stdin.write_all(&input).is_ok());
    let output = child.wait_with_output().unwrap();
    written.join().unwrap();
    output
}

fn begin(server: &Server, arguments: &[&str], input: Stdio) -> Child {
    let all: Vec<&str> = ["chat"].iter().chain(arguments).copied().collect();
    let mut command = server.house().command(&all);
    command
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn interrupt(child: &Child) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Ended so, with these words on standard error and nothing on standard output.
fn refused(output: &Output, code: i32, words: &str) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(stdout(output), "");
}

fn report(output: &Output) -> Value {
    let text = stdout(output);
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn write(path: &str) -> Step {
    let arguments = json!({"action": "write", "path": path, "content": "x"});
    Step::tool_call("filesystem", arguments)
}

#[tokio::test]
async fn nothing_but_the_answer_is_on_standard_output() {
    let (model, server) = talking();
    let look = json!({"action": "add", "texts": ["look"]});
    model.script(vec![
        Step::Thinking("Hm.".to_owned()),
        Step::text("Let me see."),
        Step::tool_call("todo", look),
    ]);
    model.script(vec![Step::text("It is\n"), Step::text("**Paris**.\n\n")]);
    let output = chat(&server, &["-p", "What is it?"]);
    assert_eq!(stdout(&output), "It is\n**Paris**.\n");
    assert!(output.status.success());
    assert_eq!(model.chats()[0].last_user_text(), "What is it?");
}

#[tokio::test]
async fn a_program_of_the_same_user_needs_no_token_and_leaves_no_login() {
    let (model, server) = talking();
    model.script(vec![Step::text("Hello.")]);
    let mut command = server.house().command(&["chat", "-p", "hi"]);
    let output = command.env_remove("NAVI_API_TOKEN").output().unwrap();
    assert_eq!(stdout(&output), "Hello.\n", "{}", stderr(&output));
}

#[tokio::test]
async fn json_has_all_of_it_and_a_session_is_gone_on_with() {
    let (model, server) = talking();
    model.script(vec![
        Step::Thinking("A person greets.".to_owned()),
        Step::text("Hello \u{1b}[31mred"),
    ]);
    let output = chat(&server, &["--json", "-p", "first"]);
    let first = report(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(first["outcome"], "answered");
    // JSON keeps a control character as it is, by its escape.
    assert_eq!(first["answer"], "Hello \u{1b}[31mred");
    assert_eq!(first["thinking"], "A person greets.");
    assert_eq!(
        (&first["error"], &first["denied"]),
        (&Value::Null, &json!([]))
    );
    assert!(
        first["usage"]["prompt_tokens"].as_u64() > Some(0),
        "{first}"
    );
    let session = first["session_id"].as_str().unwrap();
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["messages"][0]["run_id"], first["run_id"]);

    model.script(Reply::new([Step::text("Again.")]).when("second"));
    let output = chat(&server, &["--json", "-p", "second", "--session", session]);
    let second = report(&output);
    assert_eq!(second["session_id"], session);
    assert_ne!(second["run_id"], first["run_id"]);
    let asked = model.chats();
    let sent = asked.iter().find(|it| it.last_user_text() == "second");
    assert!(sent.unwrap().body.to_string().contains("first"));
    model.assert_clean();
}

#[tokio::test]
async fn a_models_text_gives_a_terminal_no_orders() {
    let (model, server) = talking();
    model.script(vec![Step::text("a\u{1b}]0;owned\u{7}b\u{9b}2J\tc\nd")]);
    let output = chat(&server, &["-p", "hi"]);
    assert_eq!(stdout(&output), "a\\u{1b}]0;owned\\u{7}b\\u{9b}2J\tc\nd\n");
}

#[tokio::test]
async fn standard_input_is_added_and_bounded() {
    let (model, server) = talking();
    let output = chat_with(&server, &["-p", "Sum this up:"], b"one\ntwo\n");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(
        model.chats()[0].last_user_text(),
        "Sum this up:\n\none\ntwo"
    );
    let output = chat_with(&server, &["-p"], b"only this");
    assert!(output.status.success(), "{}", stderr(&output));
    let asked = model.chats();
    assert!(asked.iter().any(|it| it.last_user_text() == "only this"));

    let sessions = server.get("/sessions").await.as_array().unwrap().len();
    let long = vec![b'x'; 300 * 1024];
    refused(&chat_with(&server, &["-p", "hi"], &long), 2, "262144 bytes");
    refused(&chat_with(&server, &["-p", "hi"], b"\xff\xfe"), 2, "--file");
    refused(
        &chat_with(&server, &["-p", " "], b"\n"),
        2,
        "nothing to ask",
    );
    let after = server.get("/sessions").await;
    assert_eq!(after.as_array().unwrap().len(), sessions, "nothing began");
}

#[tokio::test]
async fn files_go_with_the_message() {
    let (model, server) = talking();
    let dir = tempfile::tempdir().unwrap();
    let (notes, more) = (dir.path().join("notes.txt"), dir.path().join("more.md"));
    fs::write(&notes, "The lamp is green.").unwrap();
    fs::write(&more, "# More").unwrap();
    let arguments = [
        "--json",
        "-p",
        "look",
        "--file",
        text(&notes),
        "--file",
        text(&more),
    ];
    let told = report(&chat(&server, &arguments));
    assert_eq!(told["outcome"], "answered", "{told}");
    let session = told["session_id"].as_str().unwrap();
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let files = snapshot["messages"][0]["files"].as_array().unwrap();
    let names: Vec<&Value> = files.iter().map(|file| &file["name"]).collect();
    assert_eq!(names, ["notes.txt", "more.md"]);
    let sent = model.chats()[0].body.to_string();
    assert!(sent.contains("The lamp is green."), "{sent}");

    // Their number: a title may come yet.
    let sessions = server.get("/sessions").await.as_array().unwrap().len();
    let missing = dir.path().join("none");
    refused(
        &chat(&server, &["-p", "x", "--file", text(&missing)]),
        2,
        "cannot be read",
    );
    refused(
        &chat(&server, &["-p", "x", "--file", text(dir.path())]),
        2,
        "is no file",
    );
    let after = server.get("/sessions").await;
    assert_eq!(after.as_array().unwrap().len(), sessions, "nothing began");
}

#[tokio::test]
async fn wrong_usage_and_no_service_are_told_before_anything_is_done() {
    let (_model, server) = talking();
    let nobody = "0190a0b0-0000-7000-8000-000000000001";
    for (arguments, words) in [
        (["--session", nobody], "session"),
        (["--profile", "butler"], "butler"),
    ] {
        let all = ["-p", "hi"].into_iter().chain(arguments);
        refused(&chat(&server, &all.collect::<Vec<_>>()), 2, words);
    }
    // Clap's own.
    refused(&chat(&server, &["--json"]), 2, "--prompt");
    // No terminal, and no question either.
    refused(&chat(&server, &[]), 2, "-p");
    assert_eq!(server.get("/sessions").await, json!([]));

    let wrong = House::new(&[("OLLAMA_NUM_CTX", "many")]);
    refused(&wrong.run(&["chat", "-p", "hi"]), 2, "OLLAMA_NUM_CTX");
    let told = report(&wrong.run(&["chat", "--json", "-p", "hi"]));
    assert_eq!(
        (&told["outcome"], &told["error"]["code"]),
        (&json!("refused"), &json!("settings"))
    );

    let house = House::new(&[]);
    let output = house.run(&["chat", "-p", "hi"]);
    refused(&output, 2, "navi does not run on");
    let told = report(&house.run(&["chat", "--json", "-p", "hi"]));
    assert_eq!(
        (&told["outcome"], &told["error"]["code"]),
        (&json!("refused"), &json!("not_running"))
    );
}

#[tokio::test]
async fn a_model_that_fails_and_a_session_that_is_busy_are_failures() {
    let (model, server) = talking();
    model.script(vec![Step::status(400, "{\"error\": \"no such thing\"}")]);
    let output = chat(&server, &["-p", "hi"]);
    refused(&output, 1, "no such thing");

    model.script(vec![Step::text("one"), Step::hold("gate")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "hold"}))
        .await;
    tab.next_of("stream_delta").await;
    let told = report(&chat(
        &server,
        &["--json", "-p", "hi", "--session", &session],
    ));
    assert_eq!(
        (&told["outcome"], &told["error"]["code"]),
        (&json!("failed"), &json!("session_busy"))
    );
    model.release("gate");
    tab.next_of("stream_end").await;
}

#[tokio::test]
async fn a_limit_has_an_exit_code_of_its_own() {
    let model = FakeModel::start();
    let house = House::new(&[("OLLAMA_HOST", &model.url())]);
    let profiles = house.data_dir().join("profiles");
    fs::create_dir_all(&profiles).unwrap();
    let profile = "id = \"brief\"\nname = \"Brief\"\ndescription = \"d\"\nsystem_prompt = \"p\"\n\
         enabled_tools = [\"todo\"]\ntemperature = 0.5\nplanning_enabled = false\nmax_iterations = 1\n";
    fs::write(profiles.join("brief.toml"), profile).unwrap();
    let server = house.start();
    model.script(vec![Step::tool_call("todo", json!({"action": "list"}))]);
    model.script(Reply::new([Step::text("This far.")]).with_tools(false));
    let output = chat(&server, &["-p", "go", "--profile", "brief"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(stdout(&output), "This far.\n");
}

#[tokio::test]
async fn what_nobody_can_allow_is_denied_waited_for_or_allowed() {
    let model = FakeModel::start();
    let settings = [("OLLAMA_HOST", &*model.url()), ("NAVI_CONSENT_MODE", "ask")];
    let server = House::new(&settings).start();
    model.script(vec![write("a.txt")]);
    model.script(vec![Step::text("I could not.")]);
    let output = chat(&server, &["-p", "write a"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert_eq!(stdout(&output), "I could not.\n");
    assert!(stderr(&output).contains("denied: create `a.txt`"));

    model.script(vec![write("b.txt")]);
    model.script(vec![Step::text("Written.")]);
    let output = chat(&server, &["-p", "write b", "--consent", "allow"]);
    assert!(output.status.success(), "{}", stderr(&output));

    for (answer, code) in [("allow", 0), ("deny", 4)] {
        model.script(vec![write("c.txt")]);
        model.script(vec![Step::text("So be it.")]);
        let session = server.new_session().await;
        let mut tab = server.tab(&session, None).await;
        let arguments = [
            "-p",
            "write c",
            "--consent",
            "wait",
            "--json",
            "--session",
            &session,
        ];
        let child = begin(&server, &arguments, Stdio::null());
        let asked = tab.next_of("approval_requested").await;
        let id = asked["approval_id"].as_str().unwrap();
        let path = format!("/sessions/{session}/approvals/{id}");
        server.post(&path, json!({"decision": answer})).await;
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains("waits for an answer on Navi's page"));
        let denied = report(&output)["denied"].as_array().unwrap().len();
        assert_eq!(denied, usize::from(code == 4));
    }
    model.assert_clean();
}

#[tokio::test]
async fn ctrl_c_stops_the_run_where_it_goes() {
    let (model, server) = talking();
    model.script(vec![Step::text("one"), Step::hold("never")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let child = begin(&server, &["-p", "go", "--session", &session], Stdio::null());
    tab.next_of("stream_delta").await;
    interrupt(&child);
    tab.next_of("stream_stopped").await;
    let output = child.wait_with_output().unwrap();
    refused(&output, 130, "stopping");
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["messages"][1]["state"], "stopped");
}

#[tokio::test]
async fn a_second_ctrl_c_waits_for_nobody() {
    let (model, server) = talking();
    model.script(vec![Step::text("one"), Step::hold("never")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let mut child = begin(&server, &["-p", "go", "--session", &session], Stdio::null());
    tab.next_of("stream_delta").await;
    server.signal("STOP");
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    interrupt(&child);
    assert!(said.any(|line| line.unwrap().contains("stopping")));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    server.signal("CONT");
}

#[tokio::test]
async fn a_service_that_dies_in_mid_answer_is_waited_for_and_says_what_became_of_it() {
    let (model, server) = talking();
    model.script(vec![Step::text("one "), Step::hold("never")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let arguments = ["--json", "-p", "go", "--session", &session];
    let child = begin(&server, &arguments, Stdio::null());
    tab.next_of("stream_delta").await;
    let server = server.crash_and_restart();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let told = report(&output);
    assert_eq!(
        (&told["outcome"], &told["error"]["code"]),
        (&json!("interrupted"), &json!("run_interrupted"))
    );
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let asked = snapshot["messages"].as_array().unwrap();
    let users = asked.iter().filter(|message| message["role"] == "user");
    assert_eq!(users.count(), 1, "it was sent once: {asked:#?}");
}

#[tokio::test]
async fn a_run_that_goes_on_after_a_restart_is_answered() {
    let model = FakeModel::start();
    let settings = [
        ("OLLAMA_HOST", &*model.url()),
        ("NAVI_RESUME_RUNS", "reads"),
    ];
    let server = House::new(&settings).start();
    model.script(vec![Step::text("one "), Step::hold("never")]);
    model.script(vec![Step::text("two.")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let child = begin(&server, &["-p", "go", "--session", &session], Stdio::null());
    tab.next_of("stream_delta").await;
    let _server = server.crash_and_restart();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // How much of the first piece was kept depends on when it died.
    let answer = stdout(&output);
    assert!(matches!(&*answer, "one two.\n" | "two.\n"), "{answer}");
}
