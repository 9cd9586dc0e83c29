use std::path::PathBuf;

use super::*;

fn order(dir: &std::path::Path) -> Order {
    Order {
        program: "true".to_owned(),
        directory: dir.to_owned(),
        workspace: dir.to_owned(),
        scratch: dir.join("tmp"),
        ..Order::default()
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
    let names: Vec<&str> = job.order.environment.keys().map(String::as_str).collect();
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
    assert!(job.is_inside());
}

#[test]
fn a_lifted_fence_asks_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::new(SandboxConfig::default());
    let lifted = Order {
        fence: Fence::Lifted,
        ..order(dir.path())
    };
    let job = sandbox.job(lifted, true);
    assert!(!job.is_inside() && !job.landlock && job.user.is_none());
}

#[test]
fn what_an_older_kernel_does_not_hold_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut sandbox = Sandbox::new(SandboxConfig::default());
    sandbox.user = None;
    let mut refused = |landlock| {
        sandbox.landlock = landlock;
        let job = sandbox.job(order(dir.path()), true);
        (job.deny_signals, job.deny_truncate)
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
    let mut job = sandbox.job(order(dir.path()), true);
    for (signals, truncate) in [(false, false), (true, false), (false, true), (true, true)] {
        (job.deny_signals, job.deny_truncate) = (signals, truncate);
        assert!(syscalls::filters(&job).is_ok());
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
