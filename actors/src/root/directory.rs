//! Where each live session is.

use std::collections::HashMap;
use std::sync::Arc;

use actix::Addr;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::messages::{LiveSession, OpenSession};
use crate::domain::hangs::ThreadId;
use crate::domain::sharing::By;
use crate::protocol::ids::{SessionId, UserId};
use crate::session::SessionActor;

#[derive(Debug)]
pub(super) struct Live {
    /// Whose it is.
    pub(super) user: UserId,
    pub(super) session: LiveSession,
    /// Which of the actors that the root started it is.
    pub(super) start: u64,
    /// The thread that it lives on.
    pub(super) thread: ThreadId,
}

/// See the module. The root alone changes it; whoever asks for a session looks here first, and
/// saves a trip to the root's thread and back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory(Arc<RwLock<HashMap<SessionId, Live>>>);

impl Directory {
    /// A session that lives, for its owner, who needs nobody's leave.
    pub(crate) fn of_owner(&self, open: OpenSession) -> Option<LiveSession> {
        let all = self.read();
        let live = all.get(&open.session)?;
        let may = open.by == By::Person(live.user) && live.session.addr.connected();
        may.then(|| live.session.clone())
    }

    /// The sessions in memory, in no order.
    pub(crate) fn addresses(&self) -> Vec<Addr<SessionActor>> {
        let all = self.read();
        all.values().map(|live| live.session.addr.clone()).collect()
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, HashMap<SessionId, Live>> {
        self.0.read()
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, HashMap<SessionId, Live>> {
        self.0.write()
    }
}
