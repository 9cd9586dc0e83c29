//! How many sockets there are: a limit on each session's and on all.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::{SessionId, UserId};

const MAX_TABS: usize = 4000;
const MAX_TABS_OF_A_SESSION: usize = 1000;

/// The sockets of this process.
#[derive(Clone, Debug)]
pub(crate) struct Tabs {
    counts: Arc<Mutex<Counts>>,
    /// How many each person has at the most.
    of_one: usize,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    sessions: HashMap<SessionId, usize>,
    people: HashMap<UserId, usize>,
}

/// A socket's place in the count, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    tabs: Tabs,
    session: Option<SessionId>,
    user: Option<UserId>,
}

impl Tabs {
    /// How many there are.
    pub(crate) fn open(&self) -> usize {
        let counts = self.counts.lock();
        counts.unwrap_or_else(PoisonError::into_inner).all
    }

    /// None yet. `of_one`: what each of several people has at the most; none where there is one.
    pub(crate) fn new(of_one: Option<usize>) -> Self {
        Self {
            counts: Arc::default(),
            of_one: of_one.unwrap_or(MAX_TABS),
        }
    }

    /// Takes a seat, of a session or of the list.
    ///
    /// # Errors
    /// `rate_limited` where there is none left.
    pub(crate) fn seat(
        &self,
        session: Option<SessionId>,
        user: Option<UserId>,
    ) -> Result<Seat, NaviError> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_session = session.map_or(0, |id| counts.sessions.get(&id).copied().unwrap_or(0));
        // Whoever looks by a link is nobody here.
        let of_user = user.map_or(0, |user| counts.people.get(&user).copied().unwrap_or(0));
        if counts.all >= MAX_TABS || of_session >= MAX_TABS_OF_A_SESSION || of_user >= self.of_one {
            return Err(NaviError::new(
                ErrorCode::RateLimited,
                "too many tabs are open; close some",
            ));
        }
        counts.all += 1;
        if let Some(user) = user {
            counts.people.insert(user, of_user + 1);
        }
        if let Some(id) = session {
            counts.sessions.insert(id, of_session + 1);
        }
        Ok(Seat {
            tabs: self.clone(),
            session,
            user,
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
        if let Some(user) = self.user {
            leave(&mut counts.people, user);
        }
        if let Some(id) = self.session {
            leave(&mut counts.sessions, id);
        }
    }
}

/// One less; who has none left is not kept in mind.
fn leave<K: Copy + Eq + Hash>(counts: &mut HashMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn seats_are_bounded_and_come_back() {
        let tabs = Tabs::new(None);
        let (session, user) = (Some(SessionId::new()), Some(UserId::new()));
        let seats: Vec<Seat> = (0..MAX_TABS_OF_A_SESSION)
            .map(|_| tabs.seat(session, user).unwrap())
            .collect();
        let refused = tabs.seat(session, user).unwrap_err();
        assert_eq!(refused.code, ErrorCode::RateLimited);
        tabs.seat(Some(SessionId::new()), user).unwrap();
        assert_eq!(tabs.open(), MAX_TABS_OF_A_SESSION);
        drop(seats);
        tabs.seat(session, user).unwrap();
        assert!(tabs.counts.lock().unwrap().sessions.is_empty());
    }

    #[test]
    fn the_tabs_of_one_person_leave_room_for_others() {
        let tabs = Tabs::new(Some(2));
        let (anna, borys) = (Some(UserId::new()), Some(UserId::new()));
        let seats = [anna, anna].map(|user| tabs.seat(None, user).unwrap());
        assert!(tabs.seat(Some(SessionId::new()), anna).is_err());
        tabs.seat(None, borys).unwrap();
        drop(seats);
        tabs.seat(None, anna).unwrap();
        assert!(tabs.counts.lock().unwrap().people.is_empty());
    }
}
