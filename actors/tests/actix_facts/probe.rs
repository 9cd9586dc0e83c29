//! An actor that counts, and can be made to die in every way there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::prelude::*;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What a probe tells of its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Stopped,
    Dropped { while_panicking: bool },
}

/// Where a probe panics by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Started,
    Timer,
    SpawnedFuture,
    /// In a handler, and then again in `stopped`.
    Stopped,
}

pub(crate) struct Probe {
    fault: Fault,
    count: usize,
    restarts: Arc<AtomicUsize>,
    life: UnboundedSender<Life>,
}

impl Probe {
    pub(crate) fn new(fault: Fault) -> (Self, UnboundedReceiver<Life>, Arc<AtomicUsize>) {
        let (life, lives) = unbounded_channel();
        let restarts = Arc::new(AtomicUsize::new(0));
        let probe = Self {
            fault,
            count: 0,
            restarts: Arc::clone(&restarts),
            life,
        };
        (probe, lives, restarts)
    }

    pub(crate) fn sound() -> Self {
        Self::new(Fault::None).0
    }
}

impl Actor for Probe {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        match self.fault {
            Fault::None | Fault::Stopped => {}
            Fault::Started => panic!("forced in started"),
            Fault::Timer => {
                ctx.run_later(Duration::from_millis(1), |_, _| panic!("forced in a timer"));
            }
            Fault::SpawnedFuture => {
                ctx.spawn(async { panic!("forced in a spawned future") }.into_actor(self));
            }
        }
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        let _ = self.life.send(Life::Stopped);
        if self.fault == Fault::Stopped {
            panic!("forced in stopped");
        }
    }
}

impl Supervised for Probe {
    fn restarting(&mut self, _: &mut Self::Context) {
        self.restarts.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.life.send(Life::Dropped {
            while_panicking: std::thread::panicking(),
        });
    }
}

/// Counts one up and gives back the count.
#[derive(Message)]
#[rtype(result = "usize")]
pub(crate) struct Add;

impl Handler<Add> for Probe {
    type Result = usize;

    fn handle(&mut self, _: Add, _: &mut Self::Context) -> usize {
        self.count += 1;
        self.count
    }
}

#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct StopYourself;

impl Handler<StopYourself> for Probe {
    type Result = ();

    fn handle(&mut self, _: StopYourself, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct PanicInHandler;

impl Handler<PanicInHandler> for Probe {
    type Result = ();

    fn handle(&mut self, _: PanicInHandler, _: &mut Self::Context) {
        panic!("forced in a handler");
    }
}

#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct PanicInResponseFuture;

impl Handler<PanicInResponseFuture> for Probe {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: PanicInResponseFuture, _: &mut Self::Context) -> Self::Result {
        Box::pin(async { panic!("forced in a ResponseFuture") })
    }
}

#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct PanicInResponseActFuture;

impl Handler<PanicInResponseActFuture> for Probe {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, _: PanicInResponseActFuture, _: &mut Self::Context) -> Self::Result {
        Box::pin(async { panic!("forced in a ResponseActFuture") }.into_actor(self))
    }
}
