//! What everything stands on: the journal, actors and their threads, tabs, memory, disk.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::labels::{Alone, Make, OfActor, OfOutcome, OfThread, set, short};
use super::process::resident_bytes;
use crate::domain::hangs::Role;

type Bytes = Family<Alone, Gauge<u64, AtomicU64>>;

/// What nobody tells and is looked at for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    pub tabs: usize,
    /// None where the database is no file.
    pub database_bytes: Option<u64>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Service {
    commits: Family<OfOutcome, Counter>,
    transaction: Histogram,
    group: Histogram,
    waiting: Gauge,
    mailboxes: Family<OfActor, Histogram, Make>,
    threads: Family<OfThread, Histogram, Make>,
    restarts: Family<OfActor, Counter>,
    tabs: Gauge,
    tabs_behind: Counter,
    resident: Bytes,
    database: Bytes,
}

impl Service {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let new = Self {
            commits: Family::default(),
            transaction: short(),
            group: Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]),
            waiting: Gauge::default(),
            mailboxes: Family::new_with_constructor(short),
            threads: Family::new_with_constructor(short),
            restarts: Family::default(),
            tabs: Gauge::default(),
            tabs_behind: Counter::default(),
            resident: Family::default(),
            database: Family::default(),
        };
        new.register_journal(registry);
        new.register_actors(registry);
        new.register_looked(registry);
        for outcome in ["committed", "failed"] {
            new.commits.get_or_create(&OfOutcome { outcome }).inc_by(0);
        }
        new
    }

    fn register_journal(&self, registry: &mut Registry) {
        registry.register("journal_commits", "Sessions' commits", self.commits.clone());
        registry.register_with_unit(
            "journal_transaction",
            "The journal's database transactions, each with a group of commits",
            Unit::Seconds,
            self.transaction.clone(),
        );
        registry.register(
            "journal_transaction_commits",
            "Commits in a transaction",
            self.group.clone(),
        );
        registry.register(
            "journal_commits_waiting",
            "Commits that wait for the transaction before theirs",
            self.waiting.clone(),
        );
    }

    fn register_actors(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "mailbox_wait",
            "How long a message waited in an actor's mailbox, asked by one each second",
            Unit::Seconds,
            self.mailboxes.clone(),
        );
        registry.register_with_unit(
            "event_loop_lag",
            "How long a thread took to come to a new task, asked by the watchdog",
            Unit::Seconds,
            self.threads.clone(),
        );
        registry.register(
            "actor_restarts",
            "Actors that died and were started again, and threads that hung and were replaced",
            self.restarts.clone(),
        );
    }

    fn register_looked(&self, registry: &mut Registry) {
        registry.register(
            "tabs_open",
            "Open WebSockets and event streams, and answers that programs wait for",
            self.tabs.clone(),
        );
        registry.register(
            "tabs_behind",
            "Times that a tab read too slowly and was caught up from the log",
            self.tabs_behind.clone(),
        );
        registry.register_with_unit(
            "process_resident_memory",
            "What this process holds of the machine's memory",
            Unit::Bytes,
            self.resident.clone(),
        );
        registry.register_with_unit(
            "database",
            "The SQLite file and its write-ahead log",
            Unit::Bytes,
            self.database.clone(),
        );
    }

    /// A transaction of the journal came to its end.
    pub(crate) fn transaction<E>(&self, commits: &[Result<(), E>], took: Duration) {
        self.transaction.observe(took.as_secs_f64());
        self.group.observe(commits.len() as f64);
        let (committed, failed): (Vec<_>, Vec<_>) = commits.iter().partition(|it| it.is_ok());
        for (outcome, number) in [("committed", committed.len()), ("failed", failed.len())] {
            let counter = self.commits.get_or_create(&OfOutcome { outcome });
            counter.inc_by(number as u64);
        }
    }

    pub(crate) fn journal_waits(&self, commits: usize) {
        set(&self.waiting, commits);
    }

    pub(crate) fn mailbox(&self, actor: &'static str, waited: Duration) {
        let histogram = self.mailboxes.get_or_create(&OfActor { actor });
        histogram.observe(waited.as_secs_f64());
    }

    pub(crate) fn thread(&self, role: Role, lag: Duration) {
        let thread = match role {
            Role::Sessions => "sessions",
            Role::Service(name) => name,
        };
        let histogram = self.threads.get_or_create(&OfThread { thread });
        histogram.observe(lag.as_secs_f64());
    }

    pub(crate) fn restarted(&self, actor: &'static str) {
        self.restarts.get_or_create(&OfActor { actor }).inc();
    }

    pub(crate) fn tab_behind(&self) {
        self.tabs_behind.inc();
    }

    pub(super) fn looked(&self, looked: &Looked) {
        set(&self.tabs, looked.tabs);
        for (family, bytes) in [
            (&self.resident, resident_bytes()),
            (&self.database, looked.database_bytes),
        ] {
            if let Some(bytes) = bytes {
                family.get_or_create(&[]).set(bytes);
            }
        }
    }
}
