//! What every page hears of: changes to the session list and how the service is.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::protocol::ids::{SessionId, UserId};
use crate::protocol::session::SessionSummary;
use crate::protocol::status::SystemStatus;

/// How many changes a page may be behind before it is sent the whole list again.
const CAPACITY: usize = 256;

/// A frame of `/ws/sessions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HubFrame {
    /// Everything, as it stands. The first frame, and again after a page fell behind.
    Sessions {
        sessions: Vec<SessionSummary>,
        status: Box<SystemStatus>,
    },
    SessionChanged {
        session: SessionSummary,
    },
    SessionRemoved {
        session_id: SessionId,
    },
    Status {
        status: Box<SystemStatus>,
    },
    /// The answer to a ping.
    Pong {},
}

/// A change with whom it is for; none means everybody.
#[derive(Clone, Debug)]
pub struct Change {
    pub user: Option<UserId>,
    pub frame: HubFrame,
}

/// Where changes are told. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Hub(broadcast::Sender<Arc<Change>>);

impl Default for Hub {
    fn default() -> Self {
        Self(broadcast::channel(CAPACITY).0)
    }
}

impl Hub {
    /// Tells a change to the pages that listen now.
    pub fn tell(&self, user: Option<UserId>, frame: HubFrame) {
        // An error means that no page listens.
        let _ = self.0.send(Arc::new(Change { user, frame }));
    }

    /// Tells that a session's row changed, where a list has it.
    pub fn session_changed(&self, session: SessionSummary) {
        if session.ephemeral {
            return;
        }
        for person in session.others() {
            let session = session.clone().seen_by(Some(person));
            self.tell(Some(person), HubFrame::SessionChanged { session });
        }
        self.tell(Some(session.user_id), HubFrame::SessionChanged { session });
    }

    /// Tells that a session is in no list any more.
    pub fn session_removed(&self, session: &SessionSummary) {
        for person in session.others().chain([session.user_id]) {
            self.session_left(session.id, person);
        }
    }

    /// Tells that a session is not in this person's list any more.
    pub fn session_left(&self, session_id: SessionId, person: UserId) {
        self.tell(Some(person), HubFrame::SessionRemoved { session_id });
    }

    /// Changes from now on.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Arc<Change>> {
        self.0.subscribe()
    }
}
