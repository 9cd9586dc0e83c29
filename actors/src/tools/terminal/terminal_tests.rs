use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::protocol::approval::DetailKind;
use crate::protocol::ids::RunId;
use crate::tools::fake_session::{FakeSession, context};

fn terminal(allowed: Allowed) -> Terminal {
    Terminal::new(TerminalConfig {
        allowed,
        ..TerminalConfig::default()
    })
}

#[test]
fn a_lifted_fence_is_host_and_looking_is_reading() {
    let lifted = terminal(Allowed::Everything);
    let effect = |args: Value| lifted.effect(&args);
    assert_eq!(
        effect(json!({"action": "run", "command": "ls"})),
        Effect::Host
    );
    assert_eq!(effect(json!({"action": "look", "id": 1})), Effect::Read);
    assert_eq!(effect(json!({"action": "list"})), Effect::Read);
    assert_eq!(effect(json!({"action": "end", "id": 1})), Effect::Write);
    assert_eq!(lifted.spec().effect, Effect::Host);
}

#[tokio::test]
async fn an_approval_is_bound_to_command_directory_and_script() {
    let dir = tempfile::tempdir().unwrap();
    let session = Arc::new(FakeSession::default());
    let context = context(&session, dir.path());
    let terminal = terminal(Allowed::Any);
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    std::fs::write(dir.path().join("go.sh"), "echo one").unwrap();
    let propose = async |args: Value| terminal.proposal(&args, &context).await.unwrap();
    let args = json!({"action": "run", "command": "sh go.sh"});
    let first = propose(args.clone()).await;
    assert_eq!(
        first,
        propose(args.clone()).await,
        "the same again is the same"
    );
    assert_eq!(first.summary.to_string(), "run `sh go.sh`");
    assert_eq!(first.details[0].kind, DetailKind::Code);
    assert_eq!(first.details[0].text, "sh go.sh");
    let other = propose(json!({"action": "run", "command": "sh  go.sh"})).await;
    assert_ne!(first.binding, other.binding);
    let elsewhere = json!({"action": "run", "command": "sh go.sh", "directory": "sub"});
    assert_ne!(first.binding, propose(elsewhere).await.binding);
    std::fs::write(dir.path().join("go.sh"), "rm -rf .").unwrap();
    assert_ne!(first.binding, propose(args).await.binding);
}

#[test]
fn a_directory_stays_for_the_session_and_each_subagent_has_its_own() {
    let session = Arc::new(FakeSession::default());
    let workspace = Path::new("/workspace");
    let own = context(&session, workspace);
    let later = ToolContext {
        run_id: RunId::new(),
        ..own.clone()
    };
    let child = || ToolContext {
        run_id: RunId::new(),
        is_subagent: true,
        ..own.clone()
    };
    let (one, other) = (child(), child());
    let shells = Shells::default();
    shells.set_directory(&own, Path::new("/workspace/a"), workspace);
    shells.set_directory(&one, Path::new("/workspace/b"), workspace);
    assert_eq!(
        shells.directory(&later),
        Some(PathBuf::from("/workspace/a"))
    );
    assert_eq!(shells.directory(&one), Some(PathBuf::from("/workspace/b")));
    assert_eq!(shells.directory(&other), None);
    shells.set_directory(&one, workspace, workspace);
    assert_eq!(shells.directory(&one), None);
}

#[test]
fn temporary_files_go_with_their_session_though_a_command_closed_them() {
    let dir = tempfile::tempdir().unwrap();
    let terminal = Terminal::new(TerminalConfig {
        sandbox: SandboxConfig {
            scratch: dir.path().to_owned(),
            ..SandboxConfig::default()
        },
        ..TerminalConfig::default()
    });
    let (gone, other) = (SessionId::new(), SessionId::new());
    let [left, kept] = [gone, other].map(|it| dir.path().join(it.to_string()));
    let closed = left.join("closed");
    std::fs::create_dir_all(closed.join("inner")).unwrap();
    std::fs::create_dir(&kept).unwrap();
    // Which keeps nobody out who is root.
    std::fs::set_permissions(&closed, Permissions::from_mode(0o500)).unwrap();
    terminal.session_closed(gone);
    assert!(!left.exists() && kept.exists());
}

#[tokio::test]
async fn a_command_that_is_not_held_says_why_and_has_no_rule() {
    let dir = tempfile::tempdir().unwrap();
    let session = Arc::new(FakeSession::default());
    let context = context(&session, dir.path());
    let args = json!({"action": "run", "command": "ls"});
    let proposal = terminal(Allowed::Everything)
        .proposal(&args, &context)
        .await;
    let proposal = proposal.unwrap();
    assert_eq!(proposal.rule, None);
    let mut details = proposal.details.iter();
    let why = details.find(|detail| detail.label == "why it asks");
    assert!(why.unwrap().text.contains("TERMINAL_ALLOWED_COMMANDS"));
}

#[tokio::test]
async fn wrong_calls_are_told_how_to_do_better() {
    let dir = tempfile::tempdir().unwrap();
    let session = Arc::new(FakeSession::default());
    let terminal = terminal(Allowed::Any);
    for (args, words) in [
        (json!({"action": "run"}), "run needs `command`"),
        (
            json!({"action": "run", "command": " "}),
            "run needs `command`",
        ),
        (
            json!({"action": "run", "command": "x".repeat(40_000)}),
            "write a script",
        ),
        (
            json!({"action": "run", "command": "ls", "directory": "/etc"}),
            "outside the workspace",
        ),
        (
            json!({"action": "run", "command": "ls", "directory": "no"}),
            "no directory `no`",
        ),
        (json!({"action": "look"}), "look needs `id`"),
        (json!({"action": "end", "id": 7}), "no background command 7"),
        (
            json!({"action": "look", "id": 7}),
            "no background command 7",
        ),
    ] {
        let error = terminal.call(args, context(&session, dir.path())).await;
        let error = error.unwrap_err();
        assert!(error.0.contains(words), "{error}");
    }
}
