//! Ways out of the workspace, none of which may work.

#![cfg(unix)]
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::tests::Fixture;

const SECRET: &str = "the secret";

fn read(path: &str) -> Value {
    json!({"action": "read", "path": path})
}

fn write(path: &str) -> Value {
    json!({"action": "write", "path": path, "content": "overwritten"})
}

fn edit(path: &str) -> Value {
    json!({"action": "edit", "path": path, "old_text": "the", "new_text": "no"})
}

fn all_actions(path: &str) -> Vec<Value> {
    let mut calls = vec![read(path), write(path), edit(path)];

    for action in ["list", "search_names", "search_content"] {
        calls.push(json!({"action": action, "path": path, "pattern": "secret"}));
    }
    calls
}

/// Those that take or put whole entries. Of a link it is the link itself that they take.
fn arranging(path: &str) -> Vec<Value> {
    vec![
        json!({"action": "move", "path": path, "to": "taken"}),
        json!({"action": "move", "path": "inside.txt", "to": path}),
        json!({"action": "delete", "path": path}),
    ]
}

/// Nothing outside was read, changed or made.
fn assert_untouched(place: &Fixture) {
    let secret = fs::read_to_string(place.outside().join("secret.txt")).unwrap();
    assert_eq!(secret, SECRET);
    let mut names: Vec<_> = fs::read_dir(place.outside())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.retain(|name| name != ".changes");
    names.sort();
    assert_eq!(names, ["secret.txt", "workspace"]);
}

#[tokio::test]
async fn paths_that_lead_out_are_refused() {
    let place = Fixture::new();
    place.put("inside.txt", "x");
    let absolute = place.outside().join("secret.txt").display().to_string();
    for path in [
        "../secret.txt",
        "a/../../secret.txt",
        "./../secret.txt",
        "..",
        "../",
        &absolute,
        "//etc/passwd",
        "/proc/self/environ",
        "~/secret.txt",
        "..\\secret.txt",
        "\0../secret.txt",
        "../secret.txt\0.md",
    ] {
        for arguments in all_actions(path).into_iter().chain(arranging(path)) {
            let error = place.error(arguments).await;
            assert!(!error.contains(SECRET), "{error}");
        }
    }
    assert_eq!(place.content("inside.txt"), "x");
    assert_untouched(&place);
}

#[tokio::test]
async fn names_that_only_look_like_a_way_out_are_names() {
    let place = Fixture::new();
    for path in [
        "\u{2025}/secret.txt",
        "\u{ff0e}\u{ff0e}/secret.txt",
        "\u{2024}\u{2024}\u{ff0f}secret.txt",
        "%2e%2e/secret.txt",
        "...",
        "..\u{301}/secret.txt",
    ] {
        let error = place.error(read(path)).await;
        assert!(error.contains("does not exist"), "{error}");
        place.ok(write(path)).await;
    }
    assert_untouched(&place);
}

#[tokio::test]
async fn links_that_lead_out_are_refused() {
    let place = Fixture::new();
    let workspace = place.workspace();
    symlink("../secret.txt", workspace.join("relative")).unwrap();
    symlink(
        place.outside().join("secret.txt"),
        workspace.join("absolute"),
    )
    .unwrap();
    symlink("..", workspace.join("up")).unwrap();
    symlink(place.outside(), workspace.join("directory")).unwrap();
    symlink("/proc/self/root", workspace.join("root")).unwrap();
    symlink("/proc/self/cwd", workspace.join("cwd")).unwrap();
    symlink("absolute", workspace.join("twice")).unwrap();
    symlink("circle", workspace.join("circle")).unwrap();
    for path in [
        "relative",
        "absolute",
        "up/secret.txt",
        "directory/secret.txt",
        "root/etc/passwd",
        "cwd/Cargo.toml",
        "twice",
        "circle",
        "up",
        "directory",
        "root",
    ] {
        for arguments in all_actions(path) {
            let error = place.error(arguments).await;
            assert!(!error.contains(SECRET), "{error}");
            assert!(!error.contains("root:"), "{error}");
        }
    }
    // A walk goes past them, and says where they lead without going there.
    let found = json!({"action": "search_content", "pattern": "secret"});
    assert_eq!(place.ok(found).await, "nothing in 0 files matches `secret`");
    let found = json!({"action": "search_names", "pattern": "secret"});
    assert_eq!(
        place.ok(found).await,
        "no file has a name that matches `secret`; to look inside files use search_content"
    );
    let listed = place.ok(json!({"action": "list", "depth": 9})).await;
    assert!(listed.contains("\nup (link to ..)"), "{listed}");
    assert!(!listed.contains("up/"), "{listed}");
    assert_untouched(&place);
}

#[tokio::test]
async fn a_dangling_link_makes_no_file_outside() {
    let place = Fixture::new();
    let workspace = place.workspace();
    symlink("../made.txt", workspace.join("out")).unwrap();
    symlink("made.txt", workspace.join("within")).unwrap();
    symlink("../made", workspace.join("outdir")).unwrap();
    for path in ["out", "within", "outdir/made.txt"] {
        place.error(write(path)).await;
        place.error(edit(path)).await;
        place.error(read(path)).await;
    }
    assert!(!workspace.join("made.txt").exists());
    assert_untouched(&place);
}

#[tokio::test]
async fn links_inside_can_be_read_through() {
    let place = Fixture::new();
    place.put("notes/plan.md", "one");
    symlink("notes", place.workspace().join("n")).unwrap();
    symlink("notes/plan.md", place.workspace().join("plan")).unwrap();
    for path in ["n/plan.md", "plan"] {
        let text = place.ok(read(path)).await;
        assert!(text.ends_with("\none"), "{text}");
    }
    place.ok(write("n/other.md")).await;
    assert_eq!(place.content("notes/other.md"), "overwritten");
    let error = place.error(write("plan")).await;
    assert!(error.contains("is a link"), "{error}");
}

#[tokio::test]
async fn a_link_is_moved_and_deleted_itself() {
    let place = Fixture::new();
    place.put("inside.txt", "x");
    let workspace = place.workspace();
    symlink("../secret.txt", workspace.join("out")).unwrap();
    symlink("..", workspace.join("up")).unwrap();
    place
        .ok(json!({"action": "move", "path": "out", "to": "away"}))
        .await;
    place.ok(json!({"action": "delete", "path": "away"})).await;
    for to in ["up/x", "up/", "up/workspace/x"] {
        place
            .error(json!({"action": "move", "path": "inside.txt", "to": to}))
            .await;
    }
    place.ok(json!({"action": "delete", "path": "up"})).await;
    assert_eq!(place.content("inside.txt"), "x");
    assert_untouched(&place);
}

#[tokio::test]
async fn a_hard_link_within_the_workspace_is_a_file_like_any_other() {
    let place = Fixture::new();
    place.put("a.txt", "the one");
    fs::hard_link(
        place.workspace().join("a.txt"),
        place.workspace().join("b.txt"),
    )
    .unwrap();
    place.ok(read("a.txt")).await;
    place.ok(edit("b.txt")).await;
    // The edit made a new file in the place of one name; the other name keeps the old.
    assert_eq!(place.content("b.txt"), "no one");
    assert_eq!(place.content("a.txt"), "the one");
}

#[tokio::test]
async fn a_hard_link_to_a_file_outside_is_neither_read_nor_changed() {
    let place = Fixture::new();
    fs::hard_link(
        place.outside().join("secret.txt"),
        place.workspace().join("a.txt"),
    )
    .unwrap();
    for arguments in [
        read("a.txt"),
        write("a.txt"),
        edit("a.txt"),
        json!({"action": "search_content", "path": "a.txt", "pattern": "secret"}),
    ] {
        let error = place.error(arguments).await;
        assert!(error.contains("is a hard link"), "{error}");
        assert!(!error.contains(SECRET), "{error}");
    }
    let found = json!({"action": "search_content", "pattern": "secret"});
    let found = place.ok(found).await;
    assert!(found.starts_with("nothing in 0 files matches"), "{found}");
    assert_untouched(&place);
}

#[tokio::test]
async fn pipes_and_sockets_are_no_files_and_keep_nobody_waiting() {
    let place = Fixture::new();
    let pipe = place.workspace().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(place.workspace().join("socket")).unwrap();
    for path in ["pipe", "socket"] {
        for arguments in [read(path), write(path), edit(path)] {
            place.error(arguments).await;
        }
    }
    let found = json!({"action": "search_content", "pattern": "x"});
    assert_eq!(place.ok(found).await, "nothing in 0 files matches `x`");
    let listed = place.ok(json!({"action": "list"})).await;
    assert!(listed.contains("pipe (no regular file)"), "{listed}");
}

#[tokio::test]
async fn names_of_files_cannot_forge_the_output() {
    let place = Fixture::new();
    place.put("a\nsecret.txt (10 bytes)", "x");
    place.put("b\u{202e}txt.exe", "x");
    let listed = place.ok(json!({"action": "list"})).await;
    assert_eq!(
        listed,
        "the workspace has 2 entries:\na\\nsecret.txt (10 bytes) (1 byte)\nb\\u{202e}txt.exe (1 byte)"
    );
}

/// Someone swaps a directory for a link and back, as fast as they can, while calls go on. What
/// a call sees is the directory inside or an error, never the outside.
#[tokio::test]
async fn a_swap_in_the_middle_of_a_call_wins_nothing() {
    const CALLS: usize = 60;
    let place = Fixture::new();
    place.put("real/secret.txt", "harmless");
    place.put("real/other.txt", "harmless");
    symlink("..", place.workspace().join("link")).unwrap();

    let workspace = place.workspace();
    let over = Arc::new(AtomicBool::new(false));
    let swapping = {
        let over = Arc::clone(&over);
        std::thread::spawn(move || {
            let place = workspace.join("place");
            while !over.load(Ordering::Relaxed) {
                for name in ["real", "link"] {
                    let home = workspace.join(name);
                    // A write may have made the directory in the gap between two swaps.
                    while fs::rename(&home, &place).is_err() {
                        let _ = fs::remove_dir_all(&place);
                    }
                    fs::rename(&place, &home).unwrap();
                }
            }
        })
    };

    let mut inside = 0;
    for _ in 0..CALLS {
        for arguments in [
            read("place/secret.txt"),
            json!({"action": "search_content", "pattern": "secret|harmless"}),
            json!({"action": "search_content", "path": "place", "pattern": "secret|harmless"}),
            json!({"action": "list", "depth": 5}),
        ] {
            let answer = match place.call(arguments).await {
                Ok(text) => {
                    inside += 1;
                    text
                }
                Err(error) => error.0,
            };
            assert!(!answer.contains(SECRET), "{answer}");
            assert!(!answer.contains("workspace/"), "{answer}");
        }
        let _ = place.call(write("place/secret.txt")).await;
        let _ = place
            .call(json!({"action": "edit", "path": "place/other.txt", "old_text": "x", "new_text": "y"}))
            .await;
    }
    over.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(inside > 0);
    assert_untouched(&place);
}
