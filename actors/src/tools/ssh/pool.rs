//! Connections that stay for a session: one to each host, given back by being dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Connection;
use crate::protocol::ids::SessionId;
use crate::tools::ToolError;

/// How many connections are kept, and for how long without use.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolLimits {
    pub(super) per_session: usize,
    pub(super) all: usize,
    pub(super) idle: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            per_session: 8,
            all: 64,
            idle: Duration::from_secs(300),
        }
    }
}

type Key = (SessionId, String);

/// See the module. Dropping it hangs up on every host.
#[derive(Debug)]
pub(super) struct Pool {
    slots: Arc<Slots>,
}

#[derive(Debug)]
struct Slots {
    limits: PoolLimits,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    slots: HashMap<Key, Arc<Slot>>,
    /// Whether a task looks for idle connections.
    swept: bool,
}

/// A session's connection to a host. Who connects holds the lock, so that two calls at once make
/// one connection.
#[derive(Debug)]
struct Slot {
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
    used: Mutex<Instant>,
}

impl Slot {
    fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether no call uses it just now: beside the table nobody holds the slot, and beside the
    /// slot nobody the connection.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
            && self.connection.try_lock().is_ok_and(|connection| {
                connection
                    .as_ref()
                    .is_none_or(|connection| Arc::strong_count(connection) == 1)
            })
    }
}

/// A connection in use.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) connection: Arc<Connection>,
    slot: Arc<Slot>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.slot.touch();
    }
}

impl Pool {
    pub(super) fn new(limits: PoolLimits) -> Self {
        Self {
            slots: Arc::new(Slots {
                limits,
                table: Mutex::default(),
            }),
        }
    }

    /// The session's connection to the host, which `connect` makes where there is none that
    /// lives.
    pub(super) async fn get(
        &self,
        session: SessionId,
        host: &str,
        connect: impl Future<Output = Result<Connection, ToolError>>,
    ) -> Result<Lease, ToolError> {
        let slot = self.slot((session, host.to_owned()))?;
        let mut held = slot.connection.lock().await;
        let connection = match held.take_if(|connection| !connection.is_closed()) {
            Some(connection) => connection,
            None => Arc::new(connect.await?),
        };
        *held = Some(Arc::clone(&connection));
        drop(held);
        slot.touch();
        Ok(Lease { connection, slot })
    }

    /// Forgets this connection, which turned out dead: the next call makes another.
    pub(super) async fn discard(lease: Lease) {
        let mut held = lease.slot.connection.lock().await;
        held.take_if(|held| Arc::ptr_eq(held, &lease.connection));
    }

    /// Whether the session has a living connection to the host.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.lock().slots.len()
    }

    /// Hangs up on all hosts of the session, once no call uses them.
    pub(super) fn end_session(&self, session: SessionId) {
        self.slots.lock().slots.retain(|key, _| key.0 != session);
    }

    fn slot(&self, key: Key) -> Result<Arc<Slot>, ToolError> {
        let limits = self.slots.limits;
        let mut table = self.slots.lock();
        if let Some(slot) = table.slots.get(&key) {
            return Ok(Arc::clone(slot));
        }
        let of_session = table.slots.keys().filter(|other| other.0 == key.0).count();
        if of_session >= limits.per_session {
            table.drop_longest_idle(Some(key.0), limits.per_session)?;
        }
        if table.slots.len() >= limits.all {
            table.drop_longest_idle(None, limits.all)?;
        }
        let slot = Arc::new(Slot {
            connection: tokio::sync::Mutex::default(),
            used: Mutex::new(Instant::now()),
        });
        table.slots.insert(key, Arc::clone(&slot));
        if !table.swept {
            table.swept = true;
            tokio::spawn(sweep(Arc::downgrade(&self.slots), limits.idle));
        }
        Ok(slot)
    }
}

impl Slots {
    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn drop_longest_idle(
        &mut self,
        session: Option<SessionId>,
        limit: usize,
    ) -> Result<(), ToolError> {
        let oldest = self
            .slots
            .iter()
            .filter(|(key, slot)| session.is_none_or(|session| key.0 == session) && slot.is_idle())
            .min_by_key(|(_, slot)| slot.used())
            .map(|(key, _)| key.clone());
        match oldest {
            Some(key) => {
                self.slots.remove(&key);
                Ok(())
            }
            None => Err(ToolError(format!(
                "{limit} ssh connections are in use, which is the limit; wait until a command has ended"
            ))),
        }
    }
}

/// Hangs up on hosts that were not used for `idle`. Ends with the last connection, or with the
/// pool.
async fn sweep(slots: Weak<Slots>, idle: Duration) {
    loop {
        tokio::time::sleep(idle / 4).await;
        let Some(slots) = slots.upgrade() else {
            return;
        };
        let mut table = slots.lock();
        table
            .slots
            .retain(|_, slot| slot.used().elapsed() < idle || !slot.is_idle());
        if table.slots.is_empty() {
            table.swept = false;
            return;
        }
    }
}
