//! The watchdog: finds threads that hang, and has the root mend what can be mended.
//!
//! A thread of its own, started and ended by the root: it has to go on where every thread of
//! the runtime hangs. It asks each arbiter, and the runtime itself, for a sign of life and
//! decides nothing ([`Watch`] does). A thread of sessions that hangs is replaced by the root;
//! one that everything needs ends the process, which a supervisor starts again: what was
//! acknowledged is in the store.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use actix::{Addr, ArbiterHandle};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::domain::hangs::{Finding, Patience, Role, ThreadId, Watch};
use crate::metrics;
use crate::programs::end_groups;
use crate::root::{ReplaceArbiter, SystemRoot};

/// The process's exit code where it hangs: no other failure has it.
pub const EXIT_CODE: i32 = 70;

/// How long the last words may take: the log may be what hangs.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Who can be asked for a sign of life.
#[derive(Clone, Debug)]
pub enum Asked {
    Arbiter(ArbiterHandle),
    Runtime(Handle),
}

impl Asked {
    /// False where it is gone.
    fn ask(&self, role: Role, silent: &Arc<AtomicBool>) -> bool {
        silent.store(true, Ordering::Relaxed);
        let silent = Arc::clone(silent);
        let asked = Instant::now();
        let sign = async move {
            silent.store(false, Ordering::Relaxed);
            metrics::record(|on| on.service.thread(role, asked.elapsed()));
        };
        match self {
            Self::Arbiter(arbiter) => arbiter.spawn(sign),
            Self::Runtime(runtime) => {
                runtime.spawn(sign);
                true
            }
        }
    }
}

enum Order {
    Watch(ThreadId, Role, Asked),
    /// From here on everything is being taken down: nothing is to be mended any more.
    End,
}

/// What gives the watchdog its orders. Cheap to clone.
#[derive(Clone)]
pub struct Watchdog {
    orders: Sender<Order>,
    next: Arc<AtomicU64>,
    hanging: watch::Sender<Vec<&'static str>>,
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").finish_non_exhaustive()
    }
}

/// A watchdog whose thread is still to be started.
#[derive(Debug)]
pub struct Sleeping {
    patience: Option<Patience>,
    orders: Receiver<Order>,
    hanging: watch::Sender<Vec<&'static str>>,
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Watch(id, role, _) => f.debug_tuple("Watch").field(id).field(role).finish(),
            Self::End => f.write_str("End"),
        }
    }
}

impl Watchdog {
    /// A watchdog with this patience, and its thread to be. Without any it never wakes.
    #[must_use]
    pub fn new(patience: Option<Patience>) -> (Self, Sleeping) {
        let (tx, orders) = channel();
        let hanging = watch::Sender::new(Vec::new());
        let sleeping = Sleeping {
            patience,
            orders,
            hanging: hanging.clone(),
        };
        let watchdog = Self {
            orders: tx,
            next: Arc::default(),
            hanging,
        };
        (watchdog, sleeping)
    }

    /// Watches this from now on, for as long as it is there.
    pub fn watch(&self, role: Role, asked: Asked) -> ThreadId {
        let id = ThreadId(self.next.fetch_add(1, Ordering::Relaxed));
        // Without a thread that listens nothing is watched.
        let _ = self.orders.send(Order::Watch(id, role, asked));
        id
    }

    /// Ends the watch.
    pub fn end(&self) {
        // It may have ended already.
        let _ = self.orders.send(Order::End);
    }

    /// The services that hang now.
    #[must_use]
    pub fn hanging(&self) -> watch::Receiver<Vec<&'static str>> {
        self.hanging.subscribe()
    }
}

impl Sleeping {
    /// Starts the thread. What can be mended is the root's to mend.
    pub fn wake(self, root: Addr<SystemRoot>) {
        let Some(patience) = self.patience else {
            return;
        };
        let awake = Awake {
            interval: patience.interval(),
            watch: Watch::new(patience),
            orders: self.orders,
            hanging: self.hanging,
            root,
            watched: Vec::new(),
        };
        let started = std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || awake.run());
        if let Err(error) = started {
            tracing::error!(%error, "the watchdog cannot be started: threads that hang will not be found");
        }
    }
}

struct Watched {
    id: ThreadId,
    role: Role,
    asked: Asked,
    /// It has not answered the last question yet.
    silent: Arc<AtomicBool>,
}

struct Awake {
    orders: Receiver<Order>,
    hanging: watch::Sender<Vec<&'static str>>,
    root: Addr<SystemRoot>,
    interval: Duration,
    watch: Watch,
    watched: Vec<Watched>,
}

impl Awake {
    fn run(mut self) {
        let mut looked = Instant::now();
        loop {
            let rest = self.interval.saturating_sub(looked.elapsed());
            match self.orders.recv_timeout(rest) {
                Ok(Order::Watch(id, role, asked)) => {
                    self.watch.add(id, role);
                    self.watched.push(Watched {
                        id,
                        role,
                        asked,
                        silent: Arc::default(),
                    });
                }
                Ok(Order::End) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let passed = looked.elapsed();
                    looked = Instant::now();
                    self.look(passed);
                }
            }
        }
    }

    fn look(&mut self, passed: Duration) {
        let watched = &self.watched;
        let findings = self.watch.look(passed, |id| {
            let mut watched = watched.iter();
            let thread = watched.find(|thread| thread.id == id);
            thread.is_none_or(|thread| !thread.silent.load(Ordering::Relaxed))
        });
        for finding in findings {
            self.act(finding);
        }
        // A thread has one question at a time: they would pile up before one that hangs.
        let watch = &mut self.watch;
        self.watched.retain(|thread| {
            let stays = thread.silent.load(Ordering::Relaxed)
                || thread.asked.ask(thread.role, &thread.silent);
            if !stays {
                watch.forget(thread.id);
            }
            stays
        });
    }

    fn act(&mut self, finding: Finding) {
        match finding {
            Finding::Replace { id, silent } => {
                self.watched.retain(|thread| thread.id != id);
                // As often as threads may be replaced.
                self.root.do_send(ReplaceArbiter { id, silent });
            }
            Finding::Hangs { service, silent } => {
                self.hanging.send_modify(|hanging| hanging.push(service));
                say(move || {
                    tracing::error!(
                        thread = service,
                        silent_ms = millis(silent),
                        "a thread hangs, and can only be waited for"
                    );
                });
            }
            Finding::Back { service, silent } => {
                self.hanging
                    .send_modify(|hanging| hanging.retain(|name| *name != service));
                say(move || {
                    tracing::warn!(
                        thread = service,
                        silent_ms = millis(silent),
                        "a thread that hung answers again"
                    );
                });
            }
            Finding::Lost { silent } => {
                let said = say(move || {
                    tracing::error!(
                        silent_ms = millis(silent),
                        exit_code = EXIT_CODE,
                        "a thread that nothing works without hangs for good, ending the process"
                    );
                });
                // An error means that nothing could be said.
                let _ = said.recv_timeout(LAST_WORDS);
                end_groups();
                std::process::exit(EXIT_CODE);
            }
        }
    }
}

/// Says something on a thread of its own, as the log may be what hangs. Tells when it is said.
fn say(words: impl FnOnce() + Send + 'static) -> Receiver<()> {
    let (tx, said) = channel();
    // Where no thread can be had there is nothing to say it with.
    let _ = std::thread::Builder::new().spawn(move || {
        words();
        let _ = tx.send(());
    });
    said
}

/// For the log.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
