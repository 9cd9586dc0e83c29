//! How often a person is asked in an evening with Navi: what was safe unasked stays so, and no
//! fence asks a needless question.

use serde_json::{Value, json};

use crate::fake_model::FakeModel;
use crate::server::{House, Told};

/// A small project is written, tested, mended and looked through; notes are taken; two pages
/// are looked for and one of them is read. 40 calls.
fn calls() -> Vec<(&'static str, Value)> {
    let files = |action: &str, mut fields: Value| {
        fields["action"] = json!(action);
        ("filesystem", fields)
    };
    let run = |command: &str| {
        let args = json!({"action": "run", "command": command});
        ("terminal", args)
    };
    let write =
        |path: &str, content: &str| files("write", json!({"path": path, "content": content}));
    let edit = |path: &str, old: &str, new: &str| {
        files(
            "edit",
            json!({"path": path, "old_text": old, "new_text": new}),
        )
    };
    let read = |path: &str| files("read", json!({"path": path}));
    let todo = |action: &str, mut fields: Value| {
        fields["action"] = json!(action);
        ("todo", fields)
    };
    let note = |action: &str, mut fields: Value| {
        fields["action"] = json!(action);
        fields["section"] = json!("findings");
        ("scratchpad", fields)
    };
    let test = "#!/bin/sh\n[ \"$(sh src/add.sh 2 3)\" = 5 ] && echo passed\n";
    vec![
        todo("add", json!({"texts": ["write", "test", "tell"]})),
        todo("list", json!({})),
        write("README.md", "# Sums\n\nAdds two numbers.\n"),
        write("src/add.sh", "echo $(($1 - $2))\n"),
        write("tests/run.sh", test),
        files("list", json!({"depth": 3})),
        run("sh tests/run.sh || echo failed"),
        read("src/add.sh"),
        edit("src/add.sh", "-", "+"),
        run("sh tests/run.sh"),
        write("Makefile", "test:\n\t@sh tests/run.sh\n"),
        run("chmod +x tests/run.sh && ./tests/run.sh"),
        run("cd src && ls -la"),
        run("cd .. && pwd"),
        note("write", json!({"text": "subtraction was the fault"})),
        note("append", json!({"text": "mended"})),
        note("read", json!({})),
        files("search_content", json!({"pattern": "Adds"})),
        files("search_names", json!({"pattern": "*.sh"})),
        edit("README.md", "two numbers", "two whole numbers"),
        read("README.md"),
        write("notes/today.md", "- sums\n"),
        write("notes/tomorrow.md", "- products\n"),
        files(
            "move",
            json!({"path": "notes/tomorrow.md", "to": "notes/next.md"}),
        ),
        files("delete", json!({"path": "notes/today.md"})),
        run("for i in 1 2 3; do sh src/add.sh $i $i; done > out.txt; cat out.txt"),
        run("wc -l out.txt && grep -c 4 out.txt"),
        run("mkdir -p build && cp src/add.sh build/ && tar cf build/add.tar -C build add.sh"),
        run("tar tf build/add.tar"),
        read("out.txt"),
        (
            "memory_save",
            json!({"category": "work", "key": "language", "value": "shell"}),
        ),
        ("memory_search", json!({"query": "language"})),
        write("report.md", "All is well.\n"),
        edit("report.md", "well", "very well"),
        read("report.md"),
        run("rm -r build && ls"),
        todo("list", json!({})),
        note("clear", json!({})),
        ("web_search", json!({"query": "sums in shell"})),
        ("web_fetch", json!({"url": "http://127.0.0.1:9/sums"})),
    ]
}

/// How many questions were asked in this mode, each of them answered with yes; by tool.
async fn asked(mode: &str) -> Vec<String> {
    let model = FakeModel::start();
    let url = model.url();
    let variables = [
        ("OLLAMA_HOST", url.as_str()),
        ("NAVI_CONSENT_MODE", mode),
        ("NAVI_SEARXNG_URL", "http://127.0.0.1:9"),
    ];
    let server = House::new(&variables).start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let mut asked = Vec::new();
    let calls = calls();
    assert_eq!(calls.len(), 40);
    for (tool, args) in calls {
        let content = format!("use the tool: {tool} {args}");
        tab.send(&json!({"type": "message", "content": content}))
            .await;
        loop {
            match tab.next().await {
                Told::Frame(frame) if frame["type"] == "approval_requested" => {
                    asked.push(tool.to_owned());
                    let id = &frame["approval_id"];
                    let yes = json!({"type": "approve", "approval_id": id, "decision": "once"});
                    tab.send(&yes).await;
                }
                Told::Frame(frame) if frame["type"] == "tool_call" => {
                    // Nobody is there to be searched or fetched from.
                    assert_eq!(frame["success"], !tool.starts_with("web_"), "{frame}");
                }
                Told::Frame(frame) if frame["type"] == "stream_end" => break,
                Told::Frame(_) => {}
                Told::Closed(code) => panic!("closed with {code}"),
            }
        }
    }
    asked
}

/// As many as before text was known by where it came from and commands by what they come to.
#[tokio::test]
async fn forty_calls_of_an_evening_ask_no_more_than_they_did() {
    // What leaves the machine asks where only edits are free,
    assert_eq!(asked("edits").await, ["web_search", "web_fetch"]);
    // and elsewhere once the session has read what a search gave back.
    assert_eq!(asked("auto").await, ["web_fetch"]);
}
