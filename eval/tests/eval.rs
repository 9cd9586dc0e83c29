//! The eval against a model that is scripted: what is scored, told and left behind.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../../tests/support/fake_model/mod.rs"]
mod fake_model;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fake_model::{FakeModel, Reply, Step};

/// A user of Navi's, with settings of their own.
struct User {
    dir: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl User {
    fn without_model() -> Self {
        let nowhere = "http://127.0.0.1:9".to_owned();
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        Self {
            dir,
            variables: vec![
                ("STARTER_MODEL", "off".to_owned()),
                ("OLLAMA_HOST", nowhere),
                // Scripts answer in the order in which they were written.
                ("LLM_PARALLEL", "1".to_owned()),
            ],
        }
    }

    fn of(model: &FakeModel) -> Self {
        let mut user = Self::without_model();
        let url = format!("{}/v1", model.url());
        let own = [
            ("LLM_BACKEND", "openai".to_owned()),
            ("OPENAI_BASE_URL", url),
        ];
        user.variables.extend(own);
        user
    }

    fn data_dir(&self) -> PathBuf {
        self.path("data")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A folder of this user's own tasks.
    fn tasks(&self, tasks: &str) -> PathBuf {
        let folder = self.path("tasks");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("own.toml"), tasks).unwrap();
        folder
    }

    /// The eval with this user's settings, with nothing else in its environment.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_navi-eval"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("TMPDIR", self.path("tmp"))
            .env("NAVI_DATA_DIR", self.data_dir())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A call that the fake answers a message with, and what it says once it has the result.
fn calls(model: &FakeModel, words: &str, tool: &str, arguments: Value, then: &str) {
    for step in [Step::tool_call(tool, arguments), Step::text(then)] {
        model.script(Reply::new([step]).when(words).with_tools(true));
    }
}

fn report(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// A line of the table, its cells apart.
fn row<'a>(table: &'a str, task: &str) -> Vec<&'a str> {
    let row = table.lines().find(|line| line.starts_with(task));
    let row = row.unwrap_or_else(|| panic!("no row for {task}: {table}"));
    row.split_whitespace().collect()
}

#[test]
fn tasks_are_scored_by_what_was_done() {
    let model = FakeModel::start();
    let write = json!({"action": "write", "path": "hello.txt", "content": "mellon"});
    calls(
        &model,
        "Create the file hello.txt",
        "filesystem",
        write,
        "Done.",
    );
    let wrong = json!({"action": "list"});
    calls(
        &model,
        "three steps on your todo",
        "filesystem",
        wrong,
        "Noted, all three!",
    );
    let user = User::of(&model);
    let file = user.path("report.json");
    let output = user.run(&[
        "--area",
        "tools",
        "--task",
        "write_a_file",
        "--task",
        "keeps_a_todo_list",
        "--json",
        text(&file),
    ]);
    let told = String::from_utf8_lossy(&output.stderr);
    // A task that fails is a result.
    assert!(output.status.success(), "{told}");
    assert!(told.contains("[1/2] tools/write_a_file"), "{told}");
    assert!(told.contains("[2/2] tools/keeps_a_todo_list"), "{told}");

    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.starts_with("fake:latest on openai"), "{table}");
    let good = row(&table, "write_a_file");
    assert_eq!(good[1..3], ["tools", "pass"]);
    assert_eq!(good[5], "1", "one tool call: {good:?}");
    let bad = row(&table, "keeps_a_todo_list");
    assert_eq!(bad[1..3], ["tools", "FAIL"]);
    assert_eq!(bad[7], "first_tool:", "{bad:?}");
    assert_eq!(row(&table, "all"), ["all", "1", "of", "2"]);

    let report = report(&file);
    assert_eq!(report["model"], "fake:latest");
    assert_eq!(report["backend"], "openai");
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["complete"], true);
    assert_eq!(
        report["areas"],
        json!([{"area": "tools", "passed": 1, "attempts": 2}])
    );
    let attempt = &report["tasks"][0]["attempts"][0];
    assert_eq!(attempt["passed"], true);
    assert_eq!(attempt["answers"], json!(["Done."]));
    assert!(attempt["model_calls"].as_u64().unwrap() >= 2, "{attempt}");
    assert!(attempt["prompt_tokens"].as_u64().unwrap() > 0, "{attempt}");
    let called = attempt["transcript"].as_array().unwrap().iter();
    let called = called.filter(|line| line["event"] == "tool_call");
    let called: Vec<_> = called.map(|line| &line["args"]["path"]).collect();
    assert_eq!(called, ["hello.txt"]);
    let failed = &report["tasks"][1]["attempts"][0];
    assert_eq!(failed["passed"], false);
    let outcomes: Vec<_> = failed["checks"].as_array().unwrap().iter().collect();
    assert_eq!(
        outcomes[0],
        &json!({"check": "completed", "passed": true, "found": null})
    );
    let found = outcomes[1]["found"].as_str().unwrap();
    assert!(
        found.contains("filesystem") && found.contains("list"),
        "{found}"
    );

    assert!(!user.data_dir().exists(), "the user's data is left alone");
    let left = std::fs::read_dir(user.path("tmp")).unwrap().count();
    assert_eq!(left, 0, "the temporary directory is gone");
    model.assert_clean();
}

#[test]
fn own_tasks_earlier_sessions_and_limits() {
    let model = FakeModel::start();
    let user = User::of(&model);
    let tasks = r#"
area = "own"
[[task]]
name = "two_sessions"
settings = { OLLAMA_NUM_CTX = "4096" }
say = ["first words", { text = "second words", new_session = true }]
checks = ["completed", { answer_matches = { matches = "second words" } }, { event = { event = "stream_end", at_least = 2 } }, { file_exists = { path = "given/a.txt" } }]
[task.files]
"given/a.txt" = "a"
[[task.past]]
hours_ago = 2
user = "I had a question."
assistant = "I had an answer."
[[task]]
name = "talks_without_end"
max_model_calls = 2
say = ["use the tool: todo {\"action\": \"list\"}"]
checks = ["completed"]
"#;
    let folder = user.tasks(tasks);
    for _ in 0..3 {
        let list = Step::tool_call("todo", json!({"action": "list"}));
        model.script(Reply::new([list]).when("use the tool").with_tools(true));
    }
    let list = user.run(&["--folder", text(&folder), "--list"]);
    let listed = String::from_utf8_lossy(&list.stdout).into_owned();
    assert_eq!(listed, "own  two_sessions\nown  talks_without_end\n");

    let output = user.run(&["--folder", text(&folder)]);
    assert!(output.status.success());
    let table = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        row(&table, "two_sessions")[1..3],
        ["own", "pass"],
        "{table}"
    );
    let over = row(&table, "talks_without_end").join(" ");
    assert!(
        over.contains("FAIL") && over.contains("limit of 2 model calls"),
        "{over}"
    );

    user.tasks(&tasks.replace("hours_ago", "hour_ago"));
    let output = user.run(&["--folder", text(&folder)]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("own.toml") && told.contains("hour_ago"),
        "{told}"
    );
    let output = user.run(&["--task", "no_such_task"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("no_such_task") && told.contains("--list"),
        "{told}"
    );
}

#[test]
fn settings_are_read_where_the_service_reads_them() {
    let user = User::without_model();
    let file = user.path("navi.toml");
    std::fs::write(&file, "shout = 1").unwrap();
    let dir = file.parent().unwrap();
    for place in [["--config", text(&file)], ["--data-dir", text(dir)]] {
        let output = user.run(&place);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        let wrong = format!("{}: there is no setting `shout`", file.display());
        assert!(told.contains(&wrong), "{told}");
    }
}

/// The program starts itself again as the sandbox of a command.
#[test]
fn commands_run_in_the_sandbox() {
    let model = FakeModel::start();
    let command = json!({"action": "run", "command": "echo mellon > told.txt"});
    calls(&model, "say the word", "terminal", command, "Done.");
    let user = User::of(&model);
    let tasks = r#"
area = "own"
[[task]]
name = "runs_a_command"
say = ["say the word"]
checks = [
  { tool_called = { tool = "terminal" } },
  { file_contains = { path = "told.txt", matches = "^mellon$" } },
]
"#;
    let folder = user.tasks(tasks);
    let output = user.run(&["--folder", text(&folder)]);
    let table = String::from_utf8_lossy(&output.stdout);
    let told = row(&table, "runs_a_command");
    assert_eq!(told[1..3], ["own", "pass"], "{table}");
}

#[test]
fn a_backend_that_does_not_answer_is_an_error() {
    let output = User::without_model().run(&["--task", "sum"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("no model answers: ollama:"), "{told}");
}

/// Ends the process with the signal of Ctrl-C in the middle of a task.
#[test]
fn ctrl_c_ends_it_with_the_report_so_far() {
    let model = FakeModel::start();
    model.script(
        Reply::new([Step::text("42")])
            .when("17 plus 25")
            .with_tools(true),
    );
    let silent = Reply::new([Step::Silence]).when("capital of France");
    model.script(silent.with_tools(true));
    let user = User::of(&model);
    let file = user.path("report.json");
    let arguments = ["--area", "answers", "--json", text(&file)];
    let child = user
        .command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let waits = model.wait_for(|calls| {
        let last = calls.last();
        last.is_some_and(|call| call.last_user_text().contains("capital of France"))
    });
    tokio::runtime::Runtime::new().unwrap().block_on(waits);
    let kill = format!("kill -INT {}", child.id());
    let asked = Command::new("sh").args(["-c", &kill]).status();
    assert!(asked.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let table = String::from_utf8_lossy(&output.stdout);
    assert_eq!(row(&table, "sum")[1..3], ["answers", "pass"], "{table}");
    assert!(table.contains("ended early"), "{table}");
    let report = report(&file);
    assert_eq!(report["complete"], false);
    assert_eq!(report["tasks"].as_array().unwrap().len(), 1);
}
