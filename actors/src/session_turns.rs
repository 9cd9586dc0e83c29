//! Turns at a session: what is done to one of them one after the other, beside its actor.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::protocol::ids::SessionId;

/// See the module. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct SessionTurns(Arc<Mutex<HashMap<SessionId, Weak<AsyncMutex<()>>>>>);

/// Somebody's turn at a session, until it is dropped.
#[derive(Debug)]
pub struct SessionTurn {
    _alone: OwnedMutexGuard<()>,
}

impl SessionTurns {
    /// Waits for those who asked before.
    pub async fn take(&self, session: SessionId) -> SessionTurn {
        let turn = {
            let mut turns = self.0.lock();
            turns.retain(|_, turn| turn.strong_count() > 0);
            turns
                .get(&session)
                .and_then(Weak::upgrade)
                .unwrap_or_else(|| {
                    let turn = Arc::default();
                    turns.insert(session, Arc::downgrade(&turn));
                    turn
                })
        };
        SessionTurn {
            _alone: turn.lock_owned().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn one_after_the_other_at_each_session_and_none_is_kept_in_mind() {
        let turns = SessionTurns::default();
        let (here, there) = (SessionId::new(), SessionId::new());
        let first = turns.take(here).now_or_never().unwrap();
        let mut second = Box::pin(turns.take(here));
        assert!(second.as_mut().now_or_never().is_none());
        drop(turns.take(there).now_or_never().unwrap());
        drop(first);
        drop(second.now_or_never().unwrap());
        let _third = turns.take(there).now_or_never().unwrap();
        assert_eq!(turns.0.lock().len(), 1);
    }
}
