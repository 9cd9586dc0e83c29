#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;

fn order(dir: &std::path::Path) -> Order {
    Order {
        program: "true".to_owned(),
        args: Vec::new(),
        directory: dir.to_owned(),
        workspace: dir.to_owned(),
        scratch: dir.join("tmp"),
        read: Vec::new(),
        environment: BTreeMap::new(),
        input: None,
        streams: Streams::Merged,
        fence: Fence::Inside,
        limits: Limits::default(),
    }
}

#[test]
fn a_data_directory_that_commands_could_read_is_no_sandbox() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let private = std::slice::from_ref(&data);
    assert_eq!(overlap(private, &[PathBuf::from("/usr")]), None);
    assert_eq!(overlap(private, &[dir.path().join("other")]), None);
    assert!(overlap(private, &[dir.path().to_owned()]).is_some());
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    assert!(
        overlap(private, &[link]).is_some(),
        "a link leads there too"
    );
}

#[test]
fn a_command_gets_none_of_our_environment() {
    let dir = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::new(SandboxConfig::default());
    let mut order = order(dir.path());
    order.environment.insert("MINE".to_owned(), "1".to_owned());
    let job = sandbox.job(order, true);
    let names: Vec<&str> = job.environment.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "DEBIAN_FRONTEND",
            "GIT_PAGER",
            "GIT_TERMINAL_PROMPT",
            "HOME",
            "LANG",
            "LOGNAME",
            "MINE",
            "PAGER",
            "PATH",
            "SHELL",
            "TERM",
            "TMPDIR",
            "USER"
        ]
    );
    assert!(job.policy.inside);
}

#[test]
fn a_lifted_fence_asks_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::new(SandboxConfig::default());
    let lifted = Order {
        fence: Fence::Lifted,
        ..order(dir.path())
    };
    let policy = sandbox.job(lifted, true).policy;
    assert!(!policy.inside && !policy.landlock && policy.user.is_none());
}

#[test]
fn what_an_older_kernel_does_not_hold_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut sandbox = Sandbox::new(SandboxConfig::default());
    sandbox.user = None;
    let mut refused = |landlock| {
        sandbox.landlock = landlock;
        let policy = sandbox.job(order(dir.path()), true).policy;
        (policy.deny_signals, policy.deny_truncate)
    };
    assert_eq!(refused(Some(2)), (true, true));
    assert_eq!(refused(Some(3)), (true, false));
    assert_eq!(refused(Some(6)), (false, false));
    assert_eq!(refused(None), (true, false), "nothing is held there");
}

#[test]
fn every_filter_can_be_made() {
    let dir = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::new(SandboxConfig::default());
    let mut policy = sandbox.job(order(dir.path()), true).policy;
    for (signals, truncate) in [(false, false), (true, false), (false, true), (true, true)] {
        (policy.deny_signals, policy.deny_truncate) = (signals, truncate);
        assert!(syscalls::filters(&policy).is_ok());
    }
}

#[test]
fn root_without_a_user_is_told_what_to_set() {
    let sandbox = Sandbox::new(SandboxConfig {
        user: Some("none".to_owned()),
        ..SandboxConfig::default()
    });
    match sandbox.available() {
        Ok(()) => assert!(!user::is_root(), "{sandbox}"),
        Err(reason) => {
            let words = reason.to_string();
            assert!(
                words.contains("NAVI_SANDBOX_USER") || words.contains("Landlock"),
                "{words}"
            );
        }
    }
}
