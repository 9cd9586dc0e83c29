//! How many sockets there are: a limit on each session's and on all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::SessionId;

const MAX_TABS: usize = 4000;
const MAX_TABS_OF_A_SESSION: usize = 1000;

/// The sockets of this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tabs {
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    sessions: HashMap<SessionId, usize>,
}

/// A socket's place in the count, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    tabs: Tabs,
    session: Option<SessionId>,
}

impl Tabs {
    /// How many there are.
    pub(crate) fn open(&self) -> usize {
        let counts = self.counts.lock();
        counts.unwrap_or_else(PoisonError::into_inner).all
    }

    /// Takes a seat, of a session or of the list.
    ///
    /// # Errors
    /// `rate_limited` where there is none left.
    pub(crate) fn seat(&self, session: Option<SessionId>) -> Result<Seat, NaviError> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_session = session.map_or(0, |id| counts.sessions.get(&id).copied().unwrap_or(0));
        if counts.all >= MAX_TABS || of_session >= MAX_TABS_OF_A_SESSION {
            return Err(NaviError::new(
                ErrorCode::RateLimited,
                "too many tabs are open; close some",
            ));
        }
        counts.all += 1;
        if let Some(id) = session {
            counts.sessions.insert(id, of_session + 1);
        }
        Ok(Seat {
            tabs: self.clone(),
            session,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self
            .tabs
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        counts.all = counts.all.saturating_sub(1);
        if let Some(id) = self.session
            && let Some(count) = counts.sessions.get_mut(&id)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.sessions.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn seats_are_bounded_and_come_back() {
        let tabs = Tabs::default();
        let session = Some(SessionId::new());
        let seats: Vec<Seat> = (0..MAX_TABS_OF_A_SESSION)
            .map(|_| tabs.seat(session).unwrap())
            .collect();
        assert_eq!(tabs.seat(session).unwrap_err().code, ErrorCode::RateLimited);
        tabs.seat(Some(SessionId::new())).unwrap();
        assert_eq!(tabs.open(), MAX_TABS_OF_A_SESSION);
        drop(seats);
        tabs.seat(session).unwrap();
        assert!(tabs.counts.lock().unwrap().sessions.is_empty());
    }
}
