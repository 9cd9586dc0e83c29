use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::tools::fake_session::{FakeSession, call, call_with, context};
use crate::tools::registry::ToolConfig;
use crate::tools::workspace::{Limits, WorkspaceLimits};

/// A workspace on disk, with the directory around it: what a way out would reach.
pub(super) struct Fixture {
    outside: TempDir,
    access: Arc<FileAccess>,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("workspace")).unwrap();
        fs::write(outside.path().join("secret.txt"), "the secret").unwrap();
        Self {
            outside,
            access: Arc::default(),
        }
    }

    /// With other directories beside the workspace.
    pub(super) fn allowing(allowed: impl FnOnce(&Path) -> FileAccess) -> Self {
        let mut place = Self::new();
        place.access = Arc::new(allowed(place.outside()));
        place
    }

    pub(super) fn reach(&self) -> Reach {
        Reach {
            access: Arc::clone(&self.access),
            workspace: self.workspace(),
            limits: Limits::default(),
            stop: Default::default(),
        }
    }

    pub(super) fn access(&self) -> &Arc<FileAccess> {
        &self.access
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

    pub(super) async fn call(&self, arguments: Value) -> ToolResult<String> {
        let session = Arc::new(FakeSession::default());
        let config = ToolConfig {
            files: Arc::clone(&self.access),
            ..ToolConfig::default()
        };
        let context = context(&session, &self.workspace());
        call_with(&config, "filesystem", arguments, context).await
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
    let place = Fixture::new();
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
    let place = Fixture::new();
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
        json!({"action": "move", "path": "code.rs"}),
        json!({"action": "move", "path": "code.rs", "to": "data.bin"}),
        json!({"action": "move", "path": "code.rs", "to": "./code.rs"}),
        json!({"action": "move", "path": "notes", "to": "notes/deeper"}),
        json!({"action": "move", "path": "absent.md", "to": "b.md"}),
        json!({"action": "move", "path": ".", "to": "b"}),
        json!({"action": "delete"}),
        json!({"action": "delete", "path": "."}),
        json!({"action": "delete", "path": "code.rs/"}),
        json!({"action": "delete", "path": "nots"}),
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
    let place = Fixture::new();
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
    let place = Fixture::new();
    place.put("min.js", format!("{}\nlast", "x".repeat(100_000)));
    let text = place.ok(json!({"action": "read", "path": "min.js"})).await;
    assert!(text.len() <= crate::tools::output::RESULT_LIMIT_BYTES);
    assert!(text.contains("bytes cut here"));
    assert!(text.ends_with("[1 line more; to go on, read with start_line 2]"));
}

#[tokio::test]
async fn empty_and_odd_files_are_told() {
    let place = Fixture::new();
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
    let place = Fixture::new();
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
    let place = Fixture::new();
    place.put("a.txt", "aaa");
    let error = place
        .error(json!({"action": "edit", "path": "a.txt", "old_text": "aa", "new_text": "b"}))
        .await;
    assert!(error.contains("stands 2 times"), "{error}");
    assert_eq!(place.content("a.txt"), "aaa");
}

#[tokio::test]
async fn many_places_that_overlap_are_not_all_counted() {
    let place = Fixture::new();
    place.put("a.txt", "a".repeat(2 << 20));
    let old = "a".repeat(200 << 10);
    let error = place
        .error(json!({"action": "edit", "path": "a.txt", "old_text": old, "new_text": "b"}))
        .await;
    assert!(error.contains("stands more than 10 times"), "{error}");
}

#[tokio::test]
async fn windows_line_ends_stay() {
    let place = Fixture::new();
    place.put("a.txt", "one\r\ntwo\r\nthree\r\n");
    place
        .ok(json!({"action": "edit", "path": "a.txt", "old_text": "one\ntwo", "new_text": "1\n2"}))
        .await;
    assert_eq!(place.content("a.txt"), "1\r\n2\r\nthree\r\n");
    // A command wrote the last line.
    place.put("b.txt", "one\r\ntwo\r\nthree\n");
    place
        .ok(json!({"action": "edit", "path": "b.txt", "old_text": "one\ntwo", "new_text": "1\n2"}))
        .await;
    assert_eq!(place.content("b.txt"), "1\r\n2\r\nthree\n");
}

#[cfg(unix)]
#[tokio::test]
async fn permissions_survive_and_no_temporary_file_stays() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Fixture::new();
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

fn small(place: &Fixture) -> Reach {
    Reach {
        limits: Limits {
            write_bytes: 100,
            read_bytes: 200,
            workspace: WorkspaceLimits {
                bytes: 250,
                entries: 4,
            },
        },
        ..place.reach()
    }
}

fn write_to(reach: &Reach, path: &str, bytes: usize) -> ToolResult<String> {
    let log = ChangeLog::open(reach, ChangeAction::Write, Origin::default())?;
    let spot = reach.spot(path)?;
    write::write(&log, &spot, &"x".repeat(bytes))
}

#[test]
fn files_and_the_workspace_have_limits() {
    let place = Fixture::new();
    let reach = small(&place);
    let too_large = write_to(&reach, "a", 101).unwrap_err();
    assert!(
        too_large.0.contains("100 bytes is the limit"),
        "{too_large}"
    );
    write_to(&reach, "a", 100).unwrap();
    write_to(&reach, "b", 100).unwrap();
    let full = write_to(&reach, "c", 51).unwrap_err();
    assert!(full.0.contains("would have 251 bytes"), "{full}");
    // A full workspace can still be made smaller.
    write_to(&reach, "b", 10).unwrap();
    write_to(&reach, "d/e", 1).unwrap();
    let many = write_to(&reach, "f", 1).unwrap_err();
    assert!(many.0.contains("more than 4 files"), "{many}");
    let many = write_to(&reach, "g/h", 1).unwrap_err();
    assert!(many.0.contains("more than 4 files"), "{many}");
    assert!(!place.workspace().join("g").exists());
}

#[test]
fn files_beyond_what_a_search_looks_at_count_all_the_same() {
    let place = Fixture::new();
    let mut reach = small(&place);
    reach.limits.workspace.entries = 50_500;
    let many = place.workspace().join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..50_500 {
        fs::File::create(many.join(number.to_string())).unwrap();
    }
    let full = write_to(&reach, "a", 1).unwrap_err();
    assert!(full.0.contains("more than 50500 files"), "{full}");
}

#[test]
fn an_edit_heeds_the_limits_too() {
    let place = Fixture::new();
    let reach = small(&place);
    write_to(&reach, "a", 60).unwrap();
    let grow = json!({"action": "edit", "old_text": "x", "new_text": "yy", "replace_all": true});
    let grow: FilesystemArgs = serde_json::from_value(grow).unwrap();
    let log = ChangeLog::open(&reach, ChangeAction::Write, Origin::default()).unwrap();
    let edited = edit::edit(&log, &reach.spot("a").unwrap(), &grow);
    assert!(edited.is_err());
    assert_eq!(place.content("a"), "x".repeat(60));
}

#[tokio::test]
async fn a_stopped_call_changes_nothing() {
    let place = Fixture::new();
    place.put("a.txt", "before");
    let session = Arc::new(FakeSession::default());
    for arguments in [
        json!({"action": "write", "path": "a.txt", "content": "after"}),
        json!({"action": "write", "path": "new/b.txt", "content": "after"}),
        json!({"action": "edit", "path": "a.txt", "old_text": "before", "new_text": "after"}),
        json!({"action": "list"}),
        json!({"action": "search_content", "pattern": "x"}),
        json!({"action": "move", "path": "a.txt", "to": "b.txt"}),
        json!({"action": "delete", "path": "a.txt"}),
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
    let place = Fixture::new();
    fs::remove_dir(place.workspace()).unwrap();
    let error = place.error(json!({"action": "list"})).await;
    assert_eq!(error, "the workspace cannot be opened; tell the user");
}

#[tokio::test]
async fn a_long_list_says_how_much_more_there_is() {
    let place = Fixture::new();
    for n in 0..510 {
        place.put(&format!("{n:03}.txt"), "");
    }
    let text = place.ok(json!({"action": "list"})).await;
    assert!(text.starts_with("the workspace has 510 entries:\n000.txt (0 bytes)\n"));
    assert!(text.ends_with("[10 more; list a directory in it, or use search_names]"));
}

#[test]
fn effects_are_told_per_call() {
    let tool = Filesystem::new(Arc::default());
    for action in ["list", "read", "search_names", "search_content"] {
        assert_eq!(tool.effect(&json!({"action": action})), Effect::Read);
    }
    for action in ["write", "edit", "move", "delete"] {
        assert_eq!(tool.effect(&json!({"action": action})), Effect::Write);
    }
}

#[tokio::test]
async fn files_and_directories_are_moved_and_deleted() {
    let place = Fixture::new();
    place.put("draft.md", "one\n");
    place.put("notes/a/b.md", "two\n");
    let mut answers = Vec::new();
    for arguments in [
        json!({"action": "move", "path": "draft.md", "to": "new/plan.md"}),
        json!({"action": "move", "path": "new/plan.md", "to": "notes"}),
        json!({"action": "move", "path": "notes", "to": "archive"}),
        json!({"action": "delete", "path": "archive/plan.md"}),
        json!({"action": "delete", "path": "archive"}),
    ] {
        answers.push(place.ok(arguments).await);
    }
    insta::assert_snapshot!(answers.join("\n"), @r"
    moved `draft.md` to `new/plan.md`
    moved `new/plan.md` to `notes/plan.md`
    moved `notes` to `archive`
    deleted `archive/plan.md` (4 bytes); the user can undo this
    deleted `archive` (a directory with 2 entries, 4 bytes); the user can undo this
    ");
    let left: Vec<_> = fs::read_dir(place.workspace()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test]
async fn text_in_other_encodings_is_read_edited_and_kept_as_it_is() {
    let place = Fixture::new();
    for (name, mark) in [
        ("little.txt", &b"\xff\xfe"[..]),
        ("big.txt", b"\xfe\xff"),
        ("marked.txt", b"\xef\xbb\xbf"),
    ] {
        let encoding = text::Encoding::of(mark);
        place.put(name, encoding.encode("звіт\r\nдва\r\n"));
        let read = place.ok(json!({"action": "read", "path": name})).await;
        assert!(read.ends_with(":\nзвіт\nдва"), "{read:?}");
        let found = json!({"action": "search_content", "pattern": "звіт", "path": name});
        assert!(place.ok(found).await.contains(":1: звіт"), "{name}");
        let edit =
            json!({"action": "edit", "path": name, "old_text": "звіт\n", "new_text": "план\n"});
        let edited = place.ok(edit).await;
        assert!(edited.contains("+план"), "{edited}");
        let bytes = fs::read(place.workspace().join(name)).unwrap();
        assert_eq!(bytes, encoding.encode("план\r\nдва\r\n"), "{name}");
    }
}

#[tokio::test]
async fn a_file_larger_than_memory_would_like_is_read_in_ranges() {
    let place = Fixture::new();
    let line = format!("{}\n", "x".repeat(999));
    // Beyond what is taken in whole, and beyond what a search holds of a line.
    place.put("large.log", line.repeat(17_000) + "the last line\n");
    let range = json!({"action": "read", "path": "large.log", "start_line": 17_001});
    let text = place.ok(range).await;
    assert!(text.ends_with("the last line"), "{text}");
    let found = json!({"action": "search_content", "pattern": "last line"});
    assert!(
        place
            .ok(found)
            .await
            .contains("large.log:17001: the last line")
    );
    let edit =
        json!({"action": "edit", "path": "large.log", "old_text": "last", "new_text": "first"});
    let error = place.error(edit).await;
    assert!(
        error.contains("files of at most 4.0 MiB can be edited"),
        "{error}"
    );
}

#[tokio::test]
async fn calls_that_change_one_file_at_once_lose_nothing() {
    let place = Arc::new(Fixture::new());
    place.put("list.txt", "end\n");
    let calls = (0..20).map(|n| {
        let place = Arc::clone(&place);
        let edit = json!({"action": "edit", "path": "list.txt", "old_text": "end", "new_text": format!("{n}\nend")});
        tokio::spawn(async move { place.ok(edit).await })
    });
    futures_util::future::join_all(calls.collect::<Vec<_>>()).await;
    assert_eq!(place.content("list.txt").lines().count(), 21);
}

#[tokio::test]
async fn a_person_who_is_asked_sees_what_would_change() {
    let place = Fixture::new();
    place.put("plan.md", "one\ntwo\n");
    place.put("notes/a.md", "x");
    let tool = Filesystem::new(Arc::default());
    let session = Arc::new(FakeSession::default());
    let context = context(&session, &place.workspace());
    let mut seen = Vec::new();
    for arguments in [
        json!({"action": "edit", "path": "plan.md", "old_text": "two", "new_text": "2"}),
        json!({"action": "write", "path": "new/plan.md", "content": "one\n"}),
        json!({"action": "write", "path": "plan.md", "content": "three\n"}),
        json!({"action": "move", "path": "plan.md", "to": "notes"}),
        json!({"action": "delete", "path": "notes"}),
        json!({"action": "read", "path": "plan.md"}),
    ] {
        let proposal = tool.proposal(&arguments, &context).await.unwrap();
        let details = proposal.details.iter();
        let details: Vec<String> = details
            .map(|it| format!("{} ({:?}): {}", it.label, it.kind, it.text))
            .collect();
        let rule = proposal.rule.unwrap();
        seen.push(format!(
            "{}\n{}\nalways: {} [{}]",
            proposal.summary,
            details.join("\n"),
            rule.words,
            rule.key
        ));
    }
    insta::assert_snapshot!(seen.join("\n---\n"));
    // Nothing was made by asking.
    assert!(!place.workspace().join("new").exists());
    assert_eq!(place.content("plan.md"), "one\ntwo\n");
}

#[tokio::test]
async fn an_approval_is_bound_to_what_stands_there() {
    let place = Fixture::new();
    place.put("plan.md", "one\ntwo\n");
    let tool = Filesystem::new(Arc::default());
    let session = Arc::new(FakeSession::default());
    let context = context(&session, &place.workspace());
    for arguments in [
        json!({"action": "edit", "path": "plan.md", "old_text": "two", "new_text": "2"}),
        json!({"action": "write", "path": "plan.md", "content": "three\n"}),
        json!({"action": "move", "path": "plan.md", "to": "b.md"}),
        json!({"action": "delete", "path": "plan.md"}),
    ] {
        place.put("plan.md", "one\ntwo\n");
        let asked = tool.proposal(&arguments, &context).await.unwrap();
        let again = tool.proposal(&arguments, &context).await.unwrap();
        assert_eq!(asked, again);
        place.put("plan.md", "ONE\ntwo\n");
        let later = tool.proposal(&arguments, &context).await.unwrap();
        assert_ne!(asked.binding, later.binding, "{arguments}");
    }
    // A directory that comes to stand there is another place to move to.
    let arguments = json!({"action": "move", "path": "plan.md", "to": "b.md"});
    let asked = tool.proposal(&arguments, &context).await.unwrap();
    std::fs::create_dir(place.workspace().join("b.md")).unwrap();
    let later = tool.proposal(&arguments, &context).await.unwrap();
    assert_ne!(asked.binding, later.binding);
}
