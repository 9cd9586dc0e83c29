//! Why supervision is ours: what `actix::Supervisor` does, and what a dying actor can tell.

use std::sync::atomic::Ordering;

use actix::prelude::*;

use crate::on_arbiter;
use crate::probe::{Add, Fault, Life, PanicInHandler, Probe, StopYourself};

#[test]
fn supervisor_does_not_restart_after_a_panic() {
    on_arbiter(async {
        let (probe, mut lives, restarts) = Probe::new(Fault::None);
        let addr = Supervisor::start(|_| probe);
        assert_eq!(addr.send(Add).await, Ok(1));

        assert_eq!(addr.send(PanicInHandler).await, Err(MailboxError::Closed));

        assert_eq!(lives.recv().await, Some(Life::Stopped));
        assert_eq!(addr.send(Add).await, Err(MailboxError::Closed));
        assert!(!addr.connected());
        assert_eq!(restarts.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn supervisor_restarts_the_same_instance_with_its_old_state_after_a_stop() {
    on_arbiter(async {
        let (probe, _lives, restarts) = Probe::new(Fault::None);
        let addr = Supervisor::start(|_| probe);
        assert_eq!(addr.send(Add).await, Ok(1));

        assert_eq!(addr.send(StopYourself).await, Ok(()));

        assert_eq!(addr.send(Add).await, Ok(2), "the count is the old one");
        assert_eq!(restarts.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn stopped_runs_after_a_panic_too_so_it_proves_no_clean_exit() {
    on_arbiter(async {
        let (probe, mut lives, _) = Probe::new(Fault::None);
        let addr = probe.start();
        assert_eq!(addr.send(PanicInHandler).await, Err(MailboxError::Closed));
        assert_eq!(lives.recv().await, Some(Life::Stopped));
        assert!(matches!(lives.recv().await, Some(Life::Dropped { .. })));
        assert_eq!(lives.recv().await, None);
    });
}

#[test]
fn drop_of_a_panicked_actor_runs_while_the_thread_unwinds() {
    on_arbiter(async {
        let (probe, mut lives, _) = Probe::new(Fault::None);
        let addr = probe.start();
        assert_eq!(addr.send(PanicInHandler).await, Err(MailboxError::Closed));
        lives.recv().await;
        let while_panicking = true;
        assert_eq!(lives.recv().await, Some(Life::Dropped { while_panicking }));
    });
}

#[test]
fn drop_of_a_stopped_actor_runs_while_nothing_unwinds() {
    on_arbiter(async {
        let (probe, mut lives, _) = Probe::new(Fault::None);
        let addr = probe.start();
        assert_eq!(addr.send(StopYourself).await, Ok(()));
        lives.recv().await;
        let while_panicking = false;
        assert_eq!(lives.recv().await, Some(Life::Dropped { while_panicking }));
    });
}

/// The abort would take this test's process with it, so the test runs itself in another.
#[cfg(unix)]
#[test]
fn a_panic_in_stopped_after_a_panic_aborts_the_whole_process() {
    use std::os::unix::process::ExitStatusExt;

    const CHILD: &str = "NAVI_TEST_ABORTING_CHILD";
    if std::env::var_os(CHILD).is_some() {
        on_arbiter(async {
            let (probe, _lives, _) = Probe::new(Fault::Stopped);
            let _ = probe.start().send(PanicInHandler).await;
        });
        return;
    }

    let name = "supervision::a_panic_in_stopped_after_a_panic_aborts_the_whole_process";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CHILD, "1")
        .output()
        .unwrap();

    let sigabrt = 6;
    assert_eq!(output.status.signal(), Some(sigabrt), "{output:?}");
}
