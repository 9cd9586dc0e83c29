//! The sessions that clients of older revisions have: rmcp's, bounded in number and time, and
//! each one its opener's alone.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::Stream;
use navi_actors::protocol::ids::UserId;
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::time::Instant;

use crate::access::Key;

/// Programs of one person that are connected at once. One more, and the one of theirs that said
/// nothing for longest has to begin anew, as its protocol has it.
const MAX_SESSIONS: usize = 64;
/// A person's program may be left open over night.
const IDLE_LIMIT: Duration = Duration::from_secs(24 * 3600);

tokio::task_local! {
    /// Whose request is answered: rmcp does not say it where a session begins.
    static ASKER: UserId;
}

/// Answers a request of this person's.
pub(super) async fn asked_by<T>(asker: UserId, answer: impl Future<Output = T>) -> T {
    ASKER.scope(asker, answer).await
}

/// See the module.
#[derive(Debug)]
pub(super) struct LegacySessions {
    inner: LocalSessionManager,
    open: Mutex<HashMap<SessionId, Open>>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    /// Who began it; nobody where nobody was said to ask.
    person: Option<UserId>,
    /// By what they came in; known when it was answered.
    owner: Option<Key>,
    used_at: Instant,
}

impl LegacySessions {
    pub(super) fn new() -> Self {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = Some(IDLE_LIMIT);
        Self {
            inner,
            open: Mutex::default(),
        }
    }

    /// Whether this is a session that was begun with this key.
    pub(super) fn is_of(&self, id: &[u8], key: Key) -> bool {
        let id = std::str::from_utf8(id).unwrap_or_default();
        let owner = self.open.lock().get(id).and_then(|open| open.owner);
        owner == Some(key)
    }

    /// Notes who began a session.
    pub(super) fn give(&self, id: &[u8], key: Key) {
        let id = std::str::from_utf8(id).unwrap_or_default();
        if let Some(open) = self.open.lock().get_mut(id) {
            open.owner = Some(key);
        }
    }

    /// The person's that has to go for another one, where they have as many as they may.
    fn superfluous(&self, person: Option<UserId>) -> Option<SessionId> {
        let open = self.open.lock();
        let theirs = || open.iter().filter(|(_, open)| open.person == person);
        if theirs().count() < MAX_SESSIONS {
            return None;
        }
        let oldest = theirs().min_by_key(|(_, open)| open.used_at);
        oldest.map(|(id, _)| id.clone())
    }

    fn use_now(&self, id: &SessionId) {
        if let Some(open) = self.open.lock().get_mut(id) {
            open.used_at = Instant::now();
        }
    }
}

impl SessionManager for LegacySessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let person = ASKER.try_with(|asker| *asker).ok();
        while let Some(oldest) = self.superfluous(person) {
            self.close_session(&oldest).await?;
        }
        let (id, transport) = self.inner.create_session().await?;
        let open = Open {
            person,
            owner: None,
            used_at: Instant::now(),
        };
        self.open.lock().insert(id.clone(), open);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.use_now(id);
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.open.lock().remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_stream(id, message).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.resume(id, last_event_id).await
    }
}
