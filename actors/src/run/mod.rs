//! [`RunActor`]: one run.
//!
//! Started by its session; stopped by its end, by its stop token or by a shutdown. It owns
//! the driver of the run's loop: the model's stream, the tool tasks, the budget. It must
//! not know tabs, the log or SQL, and decides nothing: the loop in `domain` does. When it
//! dies, its session records a failed run and stays usable.

mod driver;
mod model_call;
mod pace;
mod tool_calls;

use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, WrapFuture,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::driver::Driver;
use crate::protocol::ids::{MessageId, RunId, SessionId};
use crate::services::Services;
use crate::session::SessionActor;
use crate::supervision::Guard;

/// What a run starts from.
#[derive(Debug)]
pub struct RunSetup {
    pub services: Arc<Services>,
    pub session: Addr<SessionActor>,
    pub session_id: SessionId,
    pub run_id: RunId,
    /// The user message that it answers.
    pub message_id: MessageId,
    pub profile_id: String,
    /// The last prompt size that is known.
    pub context_tokens: u32,
    /// Cancelled when the user stops the run, and when the session goes.
    pub stop: CancellationToken,
}

/// The service shuts down: the run ends at its next safe point, or after `grace` wherever it is.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Interrupt {
    pub grace: Duration,
}

/// See the module.
#[derive(Debug)]
pub struct RunActor {
    driver: Option<Driver>,
    /// Cancelled when the run is to end at its next safe point.
    wind_down: CancellationToken,
    /// Cancelled when it is to end now.
    interrupt: CancellationToken,
    guard: Guard,
}

impl RunActor {
    /// An actor that drives this run as soon as it is started.
    #[must_use]
    pub fn new(setup: RunSetup, guard: Guard) -> Self {
        let (wind_down, interrupt) = (CancellationToken::new(), CancellationToken::new());
        Self {
            driver: Some(Driver::new(setup, wind_down.clone(), interrupt.clone())),
            wind_down,
            interrupt,
            guard,
        }
    }
}

impl Actor for RunActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let Some(driver) = self.driver.take() else {
            return;
        };
        let span = driver.span();
        ctx.spawn(
            driver
                .drive()
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

    fn handle(&mut self, Interrupt { grace }: Interrupt, ctx: &mut Self::Context) {
        self.wind_down.cancel();
        ctx.run_later(grace, |actor, _| actor.interrupt.cancel());
    }
}
