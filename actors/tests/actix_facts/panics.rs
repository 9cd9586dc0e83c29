//! How far a panic reaches.

use actix::prelude::*;

use crate::on_arbiter;
use crate::probe::{
    Add, Fault, Life, PanicInHandler, PanicInResponseActFuture, PanicInResponseFuture, Probe,
};

#[test]
fn a_panic_in_a_handler_kills_that_actor_alone_and_closes_what_was_queued() {
    on_arbiter(async {
        let neighbour = Probe::sound().start();
        let addr = Probe::sound().start();

        // All three are in the mailbox before the actor is polled for the first time.
        let before = addr.send(Add);
        let fatal = addr.send(PanicInHandler);
        let behind = addr.send(Add);

        assert_eq!(before.await, Ok(1));
        assert_eq!(fatal.await, Err(MailboxError::Closed));
        assert_eq!(behind.await, Err(MailboxError::Closed));
        assert_eq!(neighbour.send(Add).await, Ok(1));
    });
}

fn dies_alone_of(fault: Fault) {
    on_arbiter(async {
        let neighbour = Probe::sound().start();
        let (probe, mut lives, _) = Probe::new(fault);
        let addr = probe.start();

        assert_eq!(lives.recv().await, Some(Life::Stopped));
        assert!(matches!(lives.recv().await, Some(Life::Dropped { .. })));

        assert_eq!(addr.send(Add).await, Err(MailboxError::Closed));
        assert_eq!(neighbour.send(Add).await, Ok(1));
    });
}

#[test]
fn a_panic_in_started_kills_that_actor_alone() {
    dies_alone_of(Fault::Started);
}

#[test]
fn a_panic_in_a_timer_kills_that_actor_alone() {
    dies_alone_of(Fault::Timer);
}

#[test]
fn a_panic_in_a_future_spawned_on_the_actor_kills_that_actor_alone() {
    dies_alone_of(Fault::SpawnedFuture);
}

#[test]
fn a_panic_in_a_response_act_future_kills_its_actor() {
    on_arbiter(async {
        let addr = Probe::sound().start();
        assert_eq!(
            addr.send(PanicInResponseActFuture).await,
            Err(MailboxError::Closed)
        );
        assert_eq!(addr.send(Add).await, Err(MailboxError::Closed));
    });
}

#[test]
fn a_panic_in_a_response_future_kills_nobody_and_only_its_sender_sees_it() {
    on_arbiter(async {
        let addr = Probe::sound().start();
        assert_eq!(
            addr.send(PanicInResponseFuture).await,
            Err(MailboxError::Closed)
        );
        assert_eq!(addr.send(Add).await, Ok(1));
    });
}

#[test]
fn a_panic_in_actix_spawn_kills_nobody() {
    on_arbiter(async {
        let addr = Probe::sound().start();
        let spawned = actix::spawn(async { panic!("forced in actix::spawn") });
        assert!(spawned.await.unwrap_err().is_panic());
        assert_eq!(addr.send(Add).await, Ok(1));
    });
}

#[test]
fn a_panic_in_a_tokio_task_comes_back_as_a_join_error() {
    on_arbiter(async {
        let task = tokio::spawn(async { panic!("forced in a tokio task") });
        assert!(task.await.unwrap_err().is_panic());
    });
}
