use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::tools::fake_session::{FakeSession, call, context};

async fn answers(calls: &[Value]) -> String {
    answers_of(FakeSession::default(), calls).await
}

async fn answers_of(session: FakeSession, calls: &[Value]) -> String {
    let session = Arc::new(session);
    let mut answers = Vec::new();
    for arguments in calls {
        let context = context(&session, Path::new("/"));
        let answer = match call("todo", arguments.clone(), context).await {
            Ok(text) => text,
            Err(error) => format!("error: {error}"),
        };
        answers.push(format!("> {arguments}\n{answer}"));
    }
    answers.join("\n\n")
}

#[tokio::test]
async fn a_list_is_kept() {
    let calls = [
        json!({"action": "list"}),
        json!({"action": "add", "texts": ["read the notes", "write the report"]}),
        json!({"action": "add", "texts": "send it"}),
        json!({"action": "mark", "ids": [1], "status": "done", "note": "three notes read"}),
        json!({"action": "mark", "ids": "2", "status": "In_Progress"}),
        json!({"action": "mark", "ids": [3], "status": "skipped"}),
        json!({"action": "list", "texts": [], "ids": [], "status": null, "note": ""}),
    ];
    insta::assert_snapshot!(answers(&calls).await);
}

#[tokio::test]
async fn a_step_is_done_when_it_is_shown() {
    let calls = [
        json!({"action": "add", "texts": ["write the report"]}),
        json!({"action": "mark", "ids": [1], "note": "written", "status": "done"}),
        json!({"action": "mark", "ids": [1], "status": "done", "validation": "report.md has 3 sections"}),
    ];
    let session = FakeSession::with(&[], true);
    insta::assert_snapshot!(answers_of(session, &calls).await);
}

#[tokio::test]
async fn long_notes_are_whole_in_the_list_alone() {
    let note = "x".repeat(200);
    let answers = answers(&[
        json!({"action": "add", "texts": ["write the report"]}),
        json!({"action": "mark", "ids": [1], "status": "failed", "note": note}),
        json!({"action": "list"}),
    ])
    .await;
    assert_eq!(answers.matches(&format!("({note})")).count(), 1);
    assert!(answers.ends_with(&format!("({note})")), "{answers}");
}

#[tokio::test]
async fn what_the_user_says_of_a_step_is_shown_and_heeded() {
    let session = FakeSession::edited(&[
        json!({"edit": "add", "text": "read the notes"}),
        json!({"edit": "add", "text": "write the report"}),
        json!({"edit": "add", "text": "send it"}),
        json!({"edit": "skip", "id": 1}),
        json!({"edit": "hold", "id": 3}),
    ]);
    let calls = [
        json!({"action": "list"}),
        json!({"action": "mark", "ids": [2, 3], "status": "in_progress"}),
        json!({"action": "mark", "ids": [1], "status": "done"}),
        json!({"action": "add", "texts": ["read the notes", "tell them"]}),
    ];
    insta::assert_snapshot!(answers_of(session, &calls).await);
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let calls = [
        json!({"action": "add"}),
        json!({"action": "mark", "ids": [1]}),
        json!({"action": "mark", "status": "done"}),
        json!({"action": "mark", "ids": [4], "status": "done"}),
        json!({"action": "add", "texts": ["one"]}),
        json!({"action": "mark", "ids": [4], "status": "done"}),
        json!({"action": "mark", "ids": [1], "status": "finished"}),
        json!({"action": "mark", "id": 1, "status": "done"}),
        json!({"action": "mark", "ids": [-1], "status": "done"}),
        json!({"action": "mark", "ids": [0], "status": "done"}),
    ];
    insta::assert_snapshot!(answers(&calls).await);
}

#[test]
fn only_list_reads() {
    let tool = TodoTool;
    assert_eq!(tool.effect(&json!({"action": "list"})), Effect::Read);
    assert_eq!(tool.effect(&json!({"action": "add"})), Effect::Write);
    assert_eq!(tool.effect(&json!({"action": "mark"})), Effect::Write);
}
