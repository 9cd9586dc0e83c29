//! [`JournalActor`]: ordered, grouped commits.
//!
//! Started by the engine, stopped by its shutdown after a flush. It owns the commits that wait
//! and the one group that is being written. It must not know what a commit means. When it dies,
//! those who wait get an error and read the session again from the store.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, ResponseFuture,
    WrapFuture,
};
use tokio::sync::oneshot;

use crate::metrics;
use crate::store::{Commit, Store, StoreError};
use crate::supervision::Guard;

/// The most commits that are written in one transaction.
pub(crate) const GROUP: usize = 64;

/// How long streamed text waits for that of other sessions, which write theirs at the same moments.
const TOGETHER: Duration = Duration::from_millis(2);

/// The most commits that may wait. Each session has a few at most; beyond this the database
/// is stuck, and callers are told so rather than kept.
const WAITING: usize = 4096;

/// A database that takes longer than this has gone: the store itself waits for locks, for
/// connections, and tries again, well within it.
const WRITE_LIMIT: Duration = Duration::from_secs(60);

/// Asks for a commit. Answered when it is durable. Commits of one sender are written in order.
#[derive(Debug, Message)]
#[rtype(result = "Result<(), StoreError>")]
pub struct Append(pub Commit);

/// Asks to write what waits, and then to stop. Answered when nothing is left.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Flush;

/// See the module.
#[derive(Debug)]
pub struct JournalActor {
    store: Store,
    waiting: VecDeque<(Commit, oneshot::Sender<Result<(), StoreError>>)>,
    writing: bool,
    /// Whether streamed text waits for more of it.
    gathering: bool,
    flushed: Vec<oneshot::Sender<()>>,
    guard: Guard,
}

impl JournalActor {
    /// A journal over this store.
    #[must_use]
    pub fn new(store: Store, guard: Guard) -> Self {
        Self {
            store,
            waiting: VecDeque::new(),
            writing: false,
            gathering: false,
            flushed: Vec::new(),
            guard,
        }
    }

    /// For what nobody waits for: what anybody waits for takes it along.
    fn write_soon(&mut self, ctx: &mut Context<Self>) {
        if self.writing || self.gathering {
            return;
        }
        self.gathering = true;
        ctx.run_later(TOGETHER, |actor, ctx| {
            actor.gathering = false;
            actor.write_next(ctx);
        });
    }

    fn write_next(&mut self, ctx: &mut Context<Self>) {
        if self.writing {
            return;
        }
        if self.waiting.is_empty() {
            if !self.flushed.is_empty() {
                for flushed in self.flushed.drain(..) {
                    // The one who asked may have run out of patience.
                    let _ = flushed.send(());
                }
                self.guard.mark_clean();
                ctx.stop();
            }
            return;
        }
        let (commits, acknowledge): (Vec<_>, Vec<_>) =
            self.waiting.drain(..self.waiting.len().min(GROUP)).unzip();
        metrics::record(|on| on.service.journal_waits(self.waiting.len()));
        self.writing = true;
        let store = self.store.clone();
        ctx.spawn(
            async move {
                fail::fail_point!("journal::write");
                let count = commits.len();
                let began = Instant::now();
                let written = tokio::time::timeout(WRITE_LIMIT, store.commit_group(commits));
                let results = written.await.unwrap_or_else(|_| {
                    let limit = WRITE_LIMIT.as_secs();
                    vec![Err(StoreError::Unsettled(format!("no answer within {limit} s"))); count]
                });
                metrics::record(|on| on.service.transaction(&results, began.elapsed()));
                fail::fail_point!("journal::written");
                results
            }
            .into_actor(self)
            .map(|results, actor, ctx| {
                for (result, acknowledge) in results.into_iter().zip(acknowledge) {
                    // A session that went away has nobody left to tell.
                    let _ = acknowledge.send(result);
                }
                actor.writing = false;
                actor.write_next(ctx);
            }),
        );
    }
}

impl Actor for JournalActor {
    type Context = Context<Self>;
}

impl Handler<Append> for JournalActor {
    type Result = ResponseFuture<Result<(), StoreError>>;

    fn handle(&mut self, Append(commit): Append, ctx: &mut Self::Context) -> Self::Result {
        fail::fail_point!("journal::append");
        if self.waiting.len() >= WAITING {
            return Box::pin(async {
                Err(StoreError::Unavailable(
                    "too many writes wait for it".to_owned(),
                ))
            });
        }
        let (tx, rx) = oneshot::channel();
        let is_text = commit.is_text();
        self.waiting.push_back((commit, tx));
        metrics::record(|on| on.service.journal_waits(self.waiting.len()));
        if is_text && self.waiting.len() < GROUP {
            self.write_soon(ctx);
        } else {
            self.write_next(ctx);
        }
        Box::pin(async {
            rx.await.unwrap_or_else(|_| {
                Err(StoreError::Unavailable("the journal went down".to_owned()))
            })
        })
    }
}

impl Handler<Flush> for JournalActor {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Flush, ctx: &mut Self::Context) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        self.flushed.push(tx);
        self.write_next(ctx);
        Box::pin(async {
            // An error means that the journal is gone, and with it all that waited.
            let _ = rx.await;
        })
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
