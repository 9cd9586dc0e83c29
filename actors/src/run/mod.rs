//! [`RunActor`]: one run, a session's own or a child.
//!
//! Started by its session; a child by its parent's `RunActor`. Stopped by its end, by its stop
//! token or by a shutdown. It owns the driver of the run's loop: the model's stream, the tool
//! tasks, the budget. It must not know tabs, the log or SQL, and decides nothing: the loop in
//! `domain` does. When it dies, its session records a failed run and stays usable; a parent
//! gets a failed tool result.

mod asking;
mod begin;
mod book;
mod calls;
mod consent;
mod context;
mod driver;
mod joined;
mod live_output;
mod model_call;
mod offers;
mod origins;
mod pace;
mod parking;
mod planning;
mod proposals;
mod subagents;
mod telling;
mod tool_calls;
mod turn;

pub(crate) use self::begin::known_config;
pub(crate) use self::context::would_send;
pub use self::offers::Offers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, WrapFuture,
};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::domain::context::ContextMessage;
use crate::domain::history::{ContextState, Segment};
use crate::domain::model_choice::RunConfig;
use crate::domain::session::command::{Leaving, LeftRuns};
use crate::domain::session::transition::StartPoint;
use crate::memory::Remembers;
use crate::protocol::command::PlainConsent;
use crate::protocol::ids::{MessageId, Origin, SessionId, UserId};
use crate::protocol::tool::Effect;
use crate::services::Services;
use crate::session::SessionActor;
use crate::supervision::{Ending, Guard};

/// What a run starts from.
#[derive(Debug)]
pub struct RunSetup {
    pub services: Arc<Services>,
    pub session: Addr<SessionActor>,
    pub session_id: SessionId,
    pub user_id: UserId,
    pub remembers: Remembers,
    pub origin: Origin,
    pub profile_id: String,
    /// The model that was chosen for the session, as it was when the run began.
    pub model: Option<String>,
    pub work: Work,
    pub ends: Ends,
    /// When its time is up.
    pub deadline: Instant,
    /// The most tokens that it may use.
    pub max_tokens: u64,
    /// What becomes of calls that a person would be asked about.
    pub consent: PlainConsent,
    /// The most that its calls may do: what its parent's may.
    pub ceiling: Effect,
    /// Its family's: a child's are its parent's.
    pub changes: FileChanges,
}

/// How many calls began or ended that may have changed files, of a run and of its children. Cheap
/// to clone; all clones are one. Whoever is asked about a call that reads files is asked again
/// where this is another number by the time of the answer.
#[derive(Clone, Debug, Default)]
pub struct FileChanges(Arc<AtomicU64>);

impl FileChanges {
    fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Counts the begin of a call, and its end where what this gives back is dropped.
    fn begin(&self) -> ChangesFiles {
        self.0.fetch_add(1, Ordering::SeqCst);
        ChangesFiles(self.clone())
    }
}

/// See [`FileChanges::begin`].
#[derive(Debug)]
struct ChangesFiles(FileChanges);

impl Drop for ChangesFiles {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// How many calls of a run rest: their child waits for a person, or for children of its own that
/// do, or it waits until another child of its parent's has ended. Cheap to clone; all clones are
/// one. Where all that works rests, a run's time stands still.
#[derive(Clone, Debug, Default)]
pub struct Resting(Arc<watch::Sender<usize>>);

impl Resting {
    /// One more rests, until what this gives back is dropped.
    fn begin(&self) -> Rest {
        self.0.send_modify(|resting| *resting += 1);
        Rest(self.clone())
    }

    fn watch(&self) -> watch::Receiver<usize> {
        self.0.subscribe()
    }
}

/// See [`Resting::begin`].
#[derive(Debug)]
struct Rest(Resting);

impl Drop for Rest {
    fn drop(&mut self) {
        self.0.0.send_modify(|resting| *resting -= 1);
    }
}

/// What a run is about.
#[derive(Debug)]
pub enum Work {
    Turn(Box<Turn>),
    Child(ChildTask),
}

impl Work {
    /// Whether it was begun by a process before this one.
    fn goes_on(&self) -> bool {
        matches!(self, Self::Turn(turn) if matches!(turn.from, StartPoint::Stored(_)))
    }
}

/// A turn of the conversation.
#[derive(Debug)]
pub struct Turn {
    /// The user message that it answers.
    pub message_id: MessageId,
    /// The last prompt size that is known.
    pub context_tokens: u32,
    /// Whether it may plan.
    pub plans: bool,
    pub context: ContextState,
    pub from: StartPoint,
    /// What it goes by, where its start told that already.
    pub config: Option<Box<RunConfig>>,
    /// Where the conversation's messages are.
    pub path: Vec<Segment>,
    /// How many messages the session has.
    pub message_count: u64,
    /// Those of them that the store may not have yet: the last ones.
    pub unwritten: Vec<ContextMessage>,
    /// The session's last event so far.
    pub last_seq: u64,
}

/// A bounded task for a child.
#[derive(Debug)]
pub struct ChildTask {
    pub task: String,
    /// What the parent wants it to know beside.
    pub context: String,
    /// The message of the user's that its parent works for.
    pub asked_in: Option<MessageId>,
    /// 1 for a child of the foreground run.
    pub depth: u32,
    /// Its parent's.
    pub resting: Resting,
    pub finished: oneshot::Sender<ChildReport>,
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildReport {
    /// None where it answered; else what kept it from that.
    pub problem: Option<String>,
    pub text: String,
    /// Whether it read text from outside, which its own may repeat.
    pub outside: bool,
    pub tokens: u64,
}

/// What ends a run before its own end.
#[derive(Clone, Debug)]
pub struct Ends {
    /// Cancelled when the user stops the run, and when the session goes.
    pub stop: CancellationToken,
    /// Cancelled when the user stops the run, and not at its own end: what a call left behind
    /// ends with it.
    pub stopped: CancellationToken,
    /// Cancelled when the run is to end at its next safe point.
    pub wind_down: CancellationToken,
    /// Cancelled when it is to be left in the store at its next safe point.
    pub park: CancellationToken,
    /// Cancelled when it is to end now.
    pub interrupt: CancellationToken,
}

impl Ends {
    /// Of a foreground run with these tokens.
    #[must_use]
    pub fn new(stop: CancellationToken, stopped: CancellationToken) -> Self {
        Self {
            stop,
            stopped,
            wind_down: CancellationToken::new(),
            park: CancellationToken::new(),
            interrupt: CancellationToken::new(),
        }
    }

    /// Those of a child: what ends its parent ends it too. It cannot be left in the store, as
    /// its conversation is in none: while its parent is to be, it goes on.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            stop: self.stop.child_token(),
            stopped: self.stopped.child_token(),
            wind_down: self.wind_down.child_token(),
            park: CancellationToken::new(),
            interrupt: self.interrupt.child_token(),
        }
    }

    /// Whether the service shuts down, in whatever way.
    fn is_to_leave(&self) -> bool {
        self.wind_down.is_cancelled() || self.park.is_cancelled()
    }

    /// Ends when it does.
    async fn leaves(&self) {
        tokio::select! {
            () = self.wind_down.cancelled() => {}
            () = self.park.cancelled() => {}
        }
    }
}

/// The service shuts down: the run is left at its next safe point, or ended after its time of
/// grace wherever it is.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Interrupt(pub Leaving);

/// A tool of this run asks for a child run.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct RunChild(RunSetup);

/// See the module.
#[derive(Debug)]
pub struct RunActor {
    setup: Option<RunSetup>,
    ends: Ends,
    guard: Guard,
}

impl RunActor {
    /// An actor that drives this run as soon as it is started.
    #[must_use]
    pub fn new(setup: RunSetup, guard: Guard) -> Self {
        Self {
            ends: setup.ends.clone(),
            setup: Some(setup),
            guard,
        }
    }
}

impl Actor for RunActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let Some(setup) = self.setup.take() else {
            return;
        };
        let span =
            tracing::info_span!("run", session = %setup.session_id, run = %setup.origin.run_id);
        ctx.spawn(
            begin::drive(setup, ctx.address())
                .instrument(span)
                .into_actor(self)
                .map(|(), actor, ctx| {
                    actor.guard.mark_clean();
                    ctx.stop();
                }),
        );
    }
}

impl Handler<Interrupt> for RunActor {
    type Result = ();

    fn handle(&mut self, Interrupt(leaving): Interrupt, ctx: &mut Self::Context) {
        match leaving.runs {
            LeftRuns::Interrupted => self.ends.wind_down.cancel(),
            LeftRuns::Parked => self.ends.park.cancel(),
        }
        ctx.run_later(leaving.grace, |actor, _| actor.ends.interrupt.cancel());
    }
}

impl Handler<RunChild> for RunActor {
    type Result = ();

    fn handle(&mut self, RunChild(setup): RunChild, _: &mut Self::Context) {
        let run_id = setup.origin.run_id;
        // Who waits for the report sees its end in any case: the sender goes with the actor.
        let guard = Guard::new(move |ending| {
            if ending != Ending::Clean {
                tracing::error!(run = %run_id, "subagent died");
            }
        });
        Self::new(setup, guard).start();
    }
}
