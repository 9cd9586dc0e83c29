use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::tools::fake_session::{FakeSession, call, context};
use crate::tools::output::RESULT_LIMIT_BYTES;

async fn answers(session: FakeSession, calls: &[Value]) -> String {
    let session = Arc::new(session);
    let mut answers = Vec::new();
    for arguments in calls {
        let context = context(&session, Path::new("/"));
        let answer = match call("scratchpad", arguments.clone(), context).await {
            Ok(text) => text,
            Err(error) => format!("error: {error}"),
        };
        answers.push(format!("> {arguments}\n{answer}"));
    }
    answers.join("\n\n")
}

#[tokio::test]
async fn notes_are_kept_and_errors_say_what_to_do() {
    let calls = [
        json!({"action": "read"}),
        json!({"action": "write", "section": "findings", "text": "one"}),
        json!({"action": "append", "section": "findings", "text": "two"}),
        json!({"action": "append", "section": "drafts", "text": "Dear all"}),
        json!({"action": "read"}),
        json!({"action": "read", "section": "findings"}),
        json!({"action": "read", "section": "sources"}),
        json!({"action": "clear", "section": "drafts"}),
        json!({"action": "write", "section": "ideas", "text": "x"}),
        json!({"action": "write", "section": "findings"}),
        json!({"action": "append", "text": "x"}),
        json!({"action": "clear"}),
        json!({"action": "write", "section": "findings", "text": {"a": 1}}),
    ];
    let session = FakeSession::with(&["findings", "sources", "drafts"], false);
    insta::assert_snapshot!(answers(session, &calls).await);
}

#[tokio::test]
async fn reading_everything_stays_within_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let sections = ["a", "b", "c"];
    let session = Arc::new(FakeSession::with(&sections, false));
    for section in sections {
        let arguments = json!({"action": "write", "section": section, "text": "x".repeat(16_000)});
        call("scratchpad", arguments, context(&session, Path::new("/")))
            .await
            .unwrap();
    }
    let context = context(&session, dir.path());
    let file = format!("tool_output/{}.txt", context.call_id);
    let all = call("scratchpad", json!({"action": "read"}), context)
        .await
        .unwrap();
    assert!(all.len() <= RESULT_LIMIT_BYTES);
    assert!(all.contains("bytes cut here") && all.contains(&file));
    let kept = std::fs::read_to_string(dir.path().join(file)).unwrap();
    assert!(kept.len() > 48_000, "it is kept whole");
}

#[test]
fn only_read_reads() {
    let tool = ScratchpadTool;
    assert_eq!(tool.effect(&json!({"action": "read"})), Effect::Read);
    for action in ["write", "append", "clear"] {
        assert_eq!(tool.effect(&json!({"action": action})), Effect::Write);
    }
}
