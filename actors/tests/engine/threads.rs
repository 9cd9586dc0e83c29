//! Callers that live on other threads than the service.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use futures_util::StreamExt;
use navi_actors::protocol::command::NewSessionRequest;
use navi_actors::store::Listed;

use crate::house::{PATIENCE, with_house};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Drives a future on this thread alone, with no tokio runtime in reach.
fn without_a_runtime<T>(work: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Nothing of the store may run where the caller is polled: HTTP workers have runtimes of
/// their own, and a pooled connection hangs with the one that opened it.
#[test]
fn the_store_is_asked_on_the_services_own_runtime() {
    with_house(|house| async move {
        let (engine, user) = (house.engine.clone(), house.user);
        let (done, ended) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            assert!(tokio::runtime::Handle::try_current().is_err());
            let seen = without_a_runtime(async {
                let created = engine.create_session(user, NewSessionRequest::default());
                let session = created.await.unwrap().id;
                let listed = engine.sessions(user, Listed::Current).await.unwrap();
                let snapshot = engine.snapshot(user, session).await.unwrap();
                // A cursor ahead makes the feed read a snapshot too.
                let tab = engine.attach(user, session, Some(9), None, None).await;
                let frame = tab.unwrap().next().await.unwrap();
                assert!(frame.contains("cursor_ahead"), "{frame}");
                (session, listed.len(), snapshot.summary.id)
            });
            done.send(seen).unwrap();
        });
        let ended = tokio::time::timeout(PATIENCE, ended).await;
        let (session, listed, snapshot) = ended.expect("it hangs").expect("it panicked");
        assert_eq!((listed, snapshot), (1, session));
    });
}
