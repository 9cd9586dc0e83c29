//! Connections that stay for a session: one to each host, given back by being dropped.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::connection::Connection;
use crate::protocol::ids::SessionId;
use crate::tools::ToolResult;

/// As many connections as one session has.
const PER_SESSION: usize = 8;
/// As many as all have.
const ALL: usize = 64;

type Key = (SessionId, String);

/// See the module. Dropping it hangs up on every host.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Duration,
    table: Arc<Mutex<Table>>,
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
    /// Whether no call uses it just now: beside the table nobody holds it.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
    }
}

/// A connection in use.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) connection: Arc<Connection>,
    slot: Arc<Slot>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        *self.slot.used.lock() = Instant::now();
    }
}

impl Pool {
    /// Connections that are not used for `idle` are hung up on.
    pub(super) fn new(idle: Duration) -> Self {
        Self {
            idle,
            table: Arc::default(),
        }
    }

    /// The session's connection to the host, which `connect` makes where there is none that
    /// lives.
    pub(super) async fn get(
        &self,
        session: SessionId,
        host: &str,
        connect: impl Future<Output = ToolResult<Connection>>,
    ) -> ToolResult<Lease> {
        let slot = self.slot((session, host.to_owned()))?;
        let mut held = slot.connection.lock().await;
        let connection = match held.take_if(|connection| !connection.is_closed()) {
            Some(connection) => connection,
            None => Arc::new(connect.await?),
        };
        *held = Some(Arc::clone(&connection));
        drop(held);
        Ok(Lease { connection, slot })
    }

    /// Forgets this connection, which turned out dead: the next call makes another.
    pub(super) async fn discard(lease: Lease) {
        let mut held = lease.slot.connection.lock().await;
        held.take_if(|held| Arc::ptr_eq(held, &lease.connection));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.table.lock().slots.len()
    }

    /// Hangs up on all hosts of the session, once no call uses them.
    pub(super) fn end_session(&self, session: SessionId) {
        self.table.lock().slots.retain(|key, _| key.0 != session);
    }

    fn slot(&self, key: Key) -> ToolResult<Arc<Slot>> {
        let mut table = self.table.lock();
        if let Some(slot) = table.slots.get(&key) {
            return Ok(Arc::clone(slot));
        }
        table.make_room(Some(key.0), PER_SESSION)?;
        table.make_room(None, ALL)?;
        let slot = Arc::new(Slot {
            connection: tokio::sync::Mutex::default(),
            used: Mutex::new(Instant::now()),
        });
        table.slots.insert(key, Arc::clone(&slot));
        if !std::mem::replace(&mut table.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.table), self.idle));
        }
        Ok(slot)
    }
}

impl Table {
    /// Hangs up on the host that was not used for longest, where the session, or all of them,
    /// have as many connections as they may.
    fn make_room(&mut self, session: Option<SessionId>, limit: usize) -> ToolResult<()> {
        let slots = self.slots.iter();
        let counted = slots.filter(|(key, _)| session.is_none_or(|session| key.0 == session));
        if counted.clone().count() < limit {
            return Ok(());
        }
        let oldest = counted
            .filter(|(_, slot)| slot.is_idle())
            .min_by_key(|(_, slot)| *slot.used.lock())
            .map(|(key, _)| key.clone());
        let key = oldest.ok_or_else(|| {
            refusal!(
                "{limit} ssh connections are in use, which is the limit; wait until a command has ended"
            )
        })?;
        self.slots.remove(&key);
        Ok(())
    }
}

/// Hangs up on hosts that were not used for `idle`. Ends with the last connection, or with the
/// pool.
async fn sweep(table: Weak<Mutex<Table>>, idle: Duration) {
    loop {
        tokio::time::sleep(idle / 4).await;
        let Some(table) = table.upgrade() else {
            return;
        };
        let mut table = table.lock();
        let in_use = |slot: &Arc<Slot>| slot.used.lock().elapsed() < idle || !slot.is_idle();
        table.slots.retain(|_, slot| in_use(slot));
        if table.slots.is_empty() {
            table.swept = false;
            return;
        }
    }
}
