//! [`MemoryActor`]: reads idle conversations for facts about their user, and writes the
//! summary of what is known (SPEC section 9).
//!
//! Started by the engine, stopped by the service's end. It owns which users' conversations
//! are being read just now, one pass a user, and whose summary is due. It must not know runs,
//! tabs or live sessions: it reads what the store holds. When it dies it is rebuilt; what it
//! was reading is unread still, since a session's facts and its mark are one transaction, and
//! is read at the next pass.

mod access;
mod handle;
mod pass;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, WrapFuture};

pub use self::access::{MemoryOf, NobodysMemory, Remembers};
pub use self::handle::MemoryHandle;
pub use self::pass::Reader;
use crate::protocol::ids::UserId;
use crate::supervision::Guard;

/// The most users whose conversations are read at the same time.
const PASSES: usize = 32;

/// When memory does its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryTimes {
    /// How long a session must have been idle before it is read.
    pub idle_after: Duration,
    /// How long a summary waits for more changes before a model writes it anew.
    pub rewrite_after: Duration,
}

impl Default for MemoryTimes {
    fn default() -> Self {
        Self {
            idle_after: Duration::from_secs(30 * 60),
            rewrite_after: Duration::from_secs(10),
        }
    }
}

/// Asks to read the user's idle sessions. Dropped while a pass of this user is under way.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct ReadIdle {
    pub user: UserId,
}

/// The user's facts changed: the summary is to be written anew, a while from now.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct FactsChanged {
    pub user: UserId,
}

/// What a pass does.
#[derive(Clone, Copy, Debug)]
enum Task {
    ReadIdle,
    WriteSummary,
}

/// Whether the summary must be written once more after the pass that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Afterwards {
    Nothing,
    WriteSummary,
}

/// See the module.
#[derive(Debug)]
pub struct MemoryActor {
    reader: Reader,
    rewrite_after: Duration,
    passes: HashMap<UserId, Afterwards>,
    /// Users whose summary is written when its time has come.
    due: HashSet<UserId>,
    _guard: Guard,
}

impl MemoryActor {
    /// An actor that reads with this reader.
    #[must_use]
    pub fn new(reader: Reader, rewrite_after: Duration, guard: Guard) -> Self {
        Self {
            reader,
            rewrite_after,
            passes: HashMap::new(),
            due: HashSet::new(),
            _guard: guard,
        }
    }

    fn begin(&mut self, user: UserId, task: Task, ctx: &mut Context<Self>) {
        let is_full = self.passes.len() >= PASSES;
        match self.passes.entry(user) {
            Entry::Occupied(_) => return,
            Entry::Vacant(_) if is_full => {
                // What was left out is found again when its user comes back.
                tracing::debug!(passes = PASSES, "memory is busy, a pass was left out");
                return;
            }
            Entry::Vacant(place) => place.insert(Afterwards::Nothing),
        };
        let reader = self.reader.clone();
        ctx.spawn(
            async move {
                match task {
                    Task::ReadIdle => reader.read_idle(user).await,
                    Task::WriteSummary => reader.write_summary(user).await,
                }
            }
            .into_actor(self)
            .map(move |(), actor, ctx| {
                if actor.passes.remove(&user) == Some(Afterwards::WriteSummary) {
                    actor.begin(user, Task::WriteSummary, ctx);
                }
            }),
        );
    }
}

impl Actor for MemoryActor {
    type Context = Context<Self>;
}

impl Handler<ReadIdle> for MemoryActor {
    type Result = ();

    fn handle(&mut self, ReadIdle { user }: ReadIdle, ctx: &mut Self::Context) {
        fail::fail_point!("memory::wake");
        self.begin(user, Task::ReadIdle, ctx);
    }
}

impl Handler<FactsChanged> for MemoryActor {
    type Result = ();

    fn handle(&mut self, FactsChanged { user }: FactsChanged, ctx: &mut Self::Context) {
        if !self.due.insert(user) {
            return;
        }
        ctx.run_later(self.rewrite_after, move |actor, ctx| {
            actor.due.remove(&user);
            match actor.passes.get_mut(&user) {
                Some(afterwards) => *afterwards = Afterwards::WriteSummary,
                None => actor.begin(user, Task::WriteSummary, ctx),
            }
        });
    }
}
