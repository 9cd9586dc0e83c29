#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say so by failing"
)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::workspace::{Limits, Workspace};
use super::*;
use crate::tools::fake_session::{FakeSession, call, context};

/// A workspace on disk, with the directory around it: what a way out would reach.
pub(super) struct Place {
    outside: TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("workspace")).unwrap();
        fs::write(outside.path().join("secret.txt"), "the secret").unwrap();
        Self { outside }
    }

    pub(super) fn outside(&self) -> &Path {
        self.outside.path()
    }

    pub(super) fn workspace(&self) -> std::path::PathBuf {
        self.outside.path().join("workspace")
    }

    pub(super) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn content(&self, path: &str) -> String {
        fs::read_to_string(self.workspace().join(path)).unwrap()
    }

    pub(super) async fn call(&self, arguments: Value) -> ToolResult {
        let session = Arc::new(FakeSession::default());
        call(
            "filesystem",
            arguments,
            context(&session, &self.workspace()),
        )
        .await
    }

    pub(super) async fn ok(&self, arguments: Value) -> String {
        match self.call(arguments.clone()).await {
            Ok(text) => text,
            Err(error) => panic!("{arguments}: {error}"),
        }
    }

    pub(super) async fn error(&self, arguments: Value) -> String {
        match self.call(arguments.clone()).await {
            Ok(text) => panic!("{arguments} succeeded: {text}"),
            Err(error) => error.0,
        }
    }
}

#[tokio::test]
async fn a_file_is_written_read_edited_and_listed() {
    let place = Place::new();
    let write = json!({"action": "write", "path": "notes/plan.md", "content": "# Plan\n\n1. draft\n2. send\n"});
    let edit = json!({"action": "edit", "path": "notes/plan.md", "old_text": "1. draft", "new_text": "1. final"});
    let mut answers = Vec::new();
    for arguments in [
        json!({"action": "list"}),
        write.clone(),
        write,
        json!({"action": "read", "path": "./notes//plan.md"}),
        edit,
        json!({"action": "read", "path": "notes/plan.md", "start_line": 3, "line_count": 1, "line_numbers": true}),
        json!({"action": "list"}),
        json!({"action": "list", "path": "", "depth": 2}),
        json!({"action": "list", "path": "notes/"}),
    ] {
        answers.push(place.ok(arguments).await);
    }
    insta::assert_snapshot!(answers.join("\n---\n"));
    assert_eq!(
        place.content("notes/plan.md"),
        "# Plan\n\n1. final\n2. send\n"
    );
}

#[tokio::test]
async fn errors_tell_the_model_what_to_do_next() {
    let place = Place::new();
    place.put("notes/plan.md", "one\n");
    place.put("data.bin", b"\x7fELF\0\x01");
    place.put("latin1.txt", b"caf\xe9\n");
    place.put(
        "code.rs",
        "fn main() {\n    let total = 1;\n    print(total);\n    print(total);\n}\n",
    );
    let mut answers = Vec::new();
    for arguments in [
        json!({"action": "read"}),
        json!({"action": "read", "path": "notes/plna.md"}),
        json!({"action": "read", "path": "zzz/plan.md"}),
        json!({"action": "read", "path": "notes"}),
        json!({"action": "read", "path": "notes/plan.md/"}),
        json!({"action": "read", "path": "notes/plan.md/x"}),
        json!({"action": "read", "path": "data.bin"}),
        json!({"action": "read", "path": "notes/plan.md", "start_line": 5}),
        json!({"action": "read", "path": "/etc/passwd"}),
        json!({"action": "read", "path": "../secret.txt"}),
        json!({"action": "write", "path": "a.md"}),
        json!({"action": "write", "path": "notes", "content": "x"}),
        json!({"action": "write", "path": "new/", "content": "x"}),
        json!({"action": "write", "path": ".", "content": "x"}),
        json!({"action": "write", "path": "notes/plan.md/x", "content": "x"}),
        json!({"action": "write", "path": "notes/plan.md/x/y", "content": "x"}),
        json!({"action": "edit", "path": "code.rs", "new_text": "x"}),
        json!({"action": "edit", "path": "code.rs", "old_text": "", "new_text": "x"}),
        json!({"action": "edit", "path": "code.rs", "old_text": "x", "new_text": "x"}),
        json!({"action": "edit", "path": "code.rs", "old_text": "print(total);", "new_text": "x"}),
        json!({"action": "edit", "path": "code.rs", "old_text": "let total= 1;\nprint(total)", "new_text": "x"}),
        json!({"action": "edit", "path": "code.rs", "old_text": "quite another thing", "new_text": "x"}),
        json!({"action": "edit", "path": "latin1.txt", "old_text": "caf", "new_text": "x"}),
        json!({"action": "edit", "path": "data.bin", "old_text": "ELF", "new_text": "x"}),
        json!({"action": "edit", "path": "absent.md", "old_text": "a", "new_text": "x"}),
        json!({"action": "edit", "path": "notes", "old_text": "a", "new_text": "x"}),
        json!({"action": "list", "path": "code.rs"}),
        json!({"action": "list", "path": "nots"}),
        json!({"action": "search_names"}),
        json!({"action": "search_names", "pattern": "a{b"}),
        json!({"action": "search_names", "pattern": "a", "path": "code.rs"}),
        json!({"action": "search_content"}),
        json!({"action": "search_content", "pattern": "print(total"}),
        json!({"action": "search_content", "pattern": "a\\nb"}),
        json!({"action": "search_content", "pattern": "a", "path": "nope"}),
    ] {
        answers.push(format!(
            "> {arguments}\n{}",
            place.error(arguments.clone()).await
        ));
    }
    insta::assert_snapshot!(answers.join("\n\n"));
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 4);
}

#[tokio::test]
async fn a_long_file_is_read_piece_by_piece() {
    let place = Place::new();
    let lines: Vec<String> = (1..=3_000)
        .map(|n| format!("line {n} of a long file, with a few words on it"))
        .collect();
    place.put("long.txt", lines.join("\n"));
    let mut seen = Vec::new();
    let mut start = 1;
    for _ in 0..10 {
        let text = place
            .ok(json!({"action": "read", "path": "long.txt", "start_line": start}))
            .await;
        assert!(text.len() <= crate::tools::output::RESULT_LIMIT_BYTES);
        seen.extend(
            text.lines()
                .filter(|line| line.starts_with("line "))
                .map(str::to_owned),
        );
        match text.rsplit_once("read with start_line ") {
            Some((_, next)) => start = next.trim_end_matches(']').parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(seen, lines);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_cut_in_the_middle() {
    let place = Place::new();
    place.put("min.js", format!("{}\nlast", "x".repeat(100_000)));
    let text = place.ok(json!({"action": "read", "path": "min.js"})).await;
    assert!(text.len() <= crate::tools::output::RESULT_LIMIT_BYTES);
    assert!(text.contains("bytes cut here"));
    assert!(text.ends_with("[1 line more; to go on, read with start_line 2]"));
}

#[tokio::test]
async fn empty_and_odd_files_are_told() {
    let place = Place::new();
    place.put("empty.txt", "");
    place.put("latin1.txt", b"caf\xe9\n");
    assert_eq!(
        place
            .ok(json!({"action": "read", "path": "empty.txt"}))
            .await,
        "`empty.txt` is empty"
    );
    let text = place
        .ok(json!({"action": "read", "path": "latin1.txt", "start_line": 0, "line_count": 0}))
        .await;
    assert!(
        text.contains("caf\u{fffd}\n[the file is no valid UTF-8"),
        "{text}"
    );
}

#[tokio::test]
async fn every_occurrence_is_replaced_when_asked() {
    let place = Place::new();
    place.put("a.txt", "x y x\nx\n");
    let text = place
        .ok(json!({"action": "edit", "path": "a.txt", "old_text": "x", "new_text": "z", "replace_all": true}))
        .await;
    assert!(
        text.starts_with("edited `a.txt` (3 replacements):"),
        "{text}"
    );
    assert_eq!(place.content("a.txt"), "z y z\nz\n");
}

#[tokio::test]
async fn places_that_overlap_are_no_single_place() {
    let place = Place::new();
    place.put("a.txt", "aaa");
    let error = place
        .error(json!({"action": "edit", "path": "a.txt", "old_text": "aa", "new_text": "b"}))
        .await;
    assert!(error.contains("more than once"), "{error}");
    assert_eq!(place.content("a.txt"), "aaa");
}

#[tokio::test]
async fn windows_line_ends_stay() {
    let place = Place::new();
    place.put("a.txt", "one\r\ntwo\r\nthree\r\n");
    place
        .ok(json!({"action": "edit", "path": "a.txt", "old_text": "one\ntwo", "new_text": "1\n2"}))
        .await;
    assert_eq!(place.content("a.txt"), "1\r\n2\r\nthree\r\n");
}

#[cfg(unix)]
#[tokio::test]
async fn permissions_survive_and_no_temporary_file_stays() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Place::new();
    place.put("run.sh", "echo one\n");
    let path = place.workspace().join("run.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    place
        .ok(json!({"action": "edit", "path": "run.sh", "old_text": "one", "new_text": "two"}))
        .await;
    place
        .ok(json!({"action": "write", "path": "run.sh", "content": "echo three\n"}))
        .await;
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 1);
}

fn small(place: &Place) -> Workspace {
    let limits = Limits {
        write_bytes: 100,
        read_bytes: 200,
        workspace_bytes: 250,
        workspace_entries: 4,
    };
    Workspace::open(&place.workspace(), limits, Default::default()).unwrap()
}

fn write_to(workspace: &Workspace, path: &str, bytes: usize) -> ToolResult {
    write::write(
        workspace,
        &WorkspacePath::parse(path).unwrap(),
        &"x".repeat(bytes),
    )
}

#[test]
fn files_and_the_workspace_have_limits() {
    let place = Place::new();
    let workspace = small(&place);
    let too_large = write_to(&workspace, "a", 101).unwrap_err();
    assert!(
        too_large.0.contains("100 bytes is the limit"),
        "{too_large}"
    );
    write_to(&workspace, "a", 100).unwrap();
    write_to(&workspace, "b", 100).unwrap();
    let full = write_to(&workspace, "c", 51).unwrap_err();
    assert!(full.0.contains("would have 251 bytes"), "{full}");
    // A full workspace can still be made smaller.
    write_to(&workspace, "b", 10).unwrap();
    write_to(&workspace, "d/e", 1).unwrap();
    let many = write_to(&workspace, "f", 1).unwrap_err();
    assert!(many.0.contains("more than 4 files"), "{many}");
    let many = write_to(&workspace, "g/h", 1).unwrap_err();
    assert!(many.0.contains("more than 4 files"), "{many}");
    assert!(!place.workspace().join("g").exists());

    place.put("large", "x".repeat(201));
    let path = WorkspacePath::parse("large").unwrap();
    let error = workspace.read_file(&path).unwrap_err();
    assert!(error.0.contains("files of at most 200 bytes"), "{error}");
}

#[test]
fn an_edit_heeds_the_limits_too() {
    let place = Place::new();
    let workspace = small(&place);
    write_to(&workspace, "a", 60).unwrap();
    let path = WorkspacePath::parse("a").unwrap();
    let grow = Edit {
        old_text: "x".to_owned(),
        new_text: "yy".to_owned(),
        replace_all: true,
    };
    assert!(edit::edit(&workspace, &path, grow).is_err());
    assert_eq!(place.content("a"), "x".repeat(60));
}

#[tokio::test]
async fn a_stopped_call_changes_nothing() {
    let place = Place::new();
    place.put("a.txt", "before");
    let session = Arc::new(FakeSession::default());
    for arguments in [
        json!({"action": "write", "path": "a.txt", "content": "after"}),
        json!({"action": "write", "path": "new/b.txt", "content": "after"}),
        json!({"action": "edit", "path": "a.txt", "old_text": "before", "new_text": "after"}),
        json!({"action": "list"}),
        json!({"action": "search_content", "pattern": "x"}),
    ] {
        let context = context(&session, &place.workspace());
        context.stop.cancel();
        let error = call("filesystem", arguments, context).await.unwrap_err();
        assert!(error.0.contains("stopped"), "{error}");
    }
    assert_eq!(place.content("a.txt"), "before");
    assert!(!place.workspace().join("new").exists());
}

#[tokio::test]
async fn a_missing_workspace_is_an_error() {
    let place = Place::new();
    fs::remove_dir(place.workspace()).unwrap();
    let error = place.error(json!({"action": "list"})).await;
    assert_eq!(error, "the workspace cannot be opened; tell the user");
}

#[tokio::test]
async fn a_long_list_says_how_much_more_there_is() {
    let place = Place::new();
    for n in 0..510 {
        place.put(&format!("{n:03}.txt"), "");
    }
    let text = place.ok(json!({"action": "list"})).await;
    assert!(text.starts_with("the workspace has 510 entries:\n000.txt (0 bytes)\n"));
    assert!(text.ends_with("[10 more; list a directory in it, or use search_names]"));
}

#[test]
fn effects_are_told_per_call() {
    let tool = Filesystem::new();
    for action in ["list", "read", "search_names", "search_content"] {
        assert_eq!(tool.effect(&json!({"action": action})), Effect::Read);
    }
    for action in ["write", "edit"] {
        assert_eq!(tool.effect(&json!({"action": action})), Effect::Write);
    }
}
