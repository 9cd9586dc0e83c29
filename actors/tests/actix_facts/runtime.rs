//! One tokio runtime for all arbiters, and why.

use std::sync::{Arc, mpsc};
use std::thread::ThreadId;
use std::time::Duration;

use actix::prelude::*;
use tokio::runtime::{Builder, Handle, Id, Runtime};
use tokio::sync::oneshot;

/// Only a test that fails sees its end.
const LIMIT: Duration = Duration::from_secs(60);

fn shared_runtime() -> Arc<Runtime> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    Arc::new(runtime)
}

/// Tells where it runs.
struct Where;

impl Actor for Where {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "(ThreadId, Id)")]
struct AreYou;

impl Handler<AreYou> for Where {
    type Result = MessageResult<AreYou>;

    fn handle(&mut self, _: AreYou, _: &mut Self::Context) -> Self::Result {
        MessageResult((std::thread::current().id(), Handle::current().id()))
    }
}

async fn place_on(arbiter: &ArbiterHandle) -> (ThreadId, Id) {
    Where::start_in_arbiter(arbiter, |_| Where)
        .send(AreYou)
        .await
        .unwrap()
}

/// Blocks an arbiter until a task that was spawned there has run, or so long.
/// Gives back whether the task ran while the arbiter was blocked.
async fn runs_while_its_arbiter_is_blocked(arbiter: &Arbiter, longest: Duration) -> bool {
    let (done, outcome) = oneshot::channel();
    arbiter.spawn_fn(move || {
        let (ran, has_run) = mpsc::channel();
        tokio::spawn(async move {
            let _ = ran.send(());
        });
        let _ = done.send(has_run.recv_timeout(longest).is_ok());
    });
    tokio::time::timeout(LIMIT, outcome).await.unwrap().unwrap()
}

#[test]
fn one_tokio_runtime_can_serve_the_system_and_every_arbiter() {
    let runtime = shared_runtime();
    let for_system = Arc::clone(&runtime);
    System::with_tokio_rt(|| for_system).block_on(async {
        let for_arbiter = Arc::clone(&runtime);
        let arbiter = Arbiter::with_tokio_rt(|| for_arbiter);
        let (_, id) = place_on(&arbiter.handle()).await;
        assert_eq!(id, Handle::current().id());
    });
}

#[test]
fn by_default_each_arbiter_has_a_runtime_of_its_own() {
    System::new().block_on(async {
        let arbiter = Arbiter::new();
        let (_, id) = place_on(&arbiter.handle()).await;
        assert_ne!(id, Handle::current().id());
    });
}

#[test]
fn tasks_on_a_shared_runtime_go_on_while_the_arbiter_that_spawned_them_is_blocked() {
    let runtime = shared_runtime();
    let for_system = Arc::clone(&runtime);
    System::with_tokio_rt(|| for_system).block_on(async {
        let for_arbiter = Arc::clone(&runtime);
        let arbiter = Arbiter::with_tokio_rt(|| for_arbiter);
        assert!(runs_while_its_arbiter_is_blocked(&arbiter, LIMIT / 2).await);
    });
}

#[test]
fn tasks_on_an_arbiters_own_runtime_hang_with_it() {
    System::new().block_on(async {
        let a_second = Duration::from_secs(1);
        assert!(!runs_while_its_arbiter_is_blocked(&Arbiter::new(), a_second).await);
    });
}

#[test]
fn an_actor_lives_on_the_arbiter_that_starts_it() {
    let runtime = shared_runtime();
    let for_system = Arc::clone(&runtime);
    System::with_tokio_rt(|| for_system).block_on(async {
        let for_arbiter = Arc::clone(&runtime);
        let arbiter = Arbiter::with_tokio_rt(|| for_arbiter);
        let (started_here, address) = oneshot::channel();
        arbiter.spawn_fn(move || {
            let _ = started_here.send((std::thread::current().id(), Where.start()));
        });
        let (arbiters_thread, addr) = address.await.unwrap();
        assert_ne!(arbiters_thread, std::thread::current().id());

        for _ in 0..3 {
            let (actors_thread, _) = addr.send(AreYou).await.unwrap();
            assert_eq!(actors_thread, arbiters_thread);
        }
    });
}
