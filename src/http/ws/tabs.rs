//! How many sockets there are: a limit on each session's and on all.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::{SessionId, UserId};

const MAX_TABS: usize = 4000;
const MAX_TABS_OF_A_SESSION: usize = 1000;

/// The sockets of this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tabs {
    counts: Arc<Mutex<Counts>>,
}

/// Whose a socket is, and how many they have at the most; none where there is one person.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sitter {
    pub(crate) user: UserId,
    pub(crate) most: Option<u32>,
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

    /// How many are this person's.
    pub(crate) fn of(&self, user: UserId) -> usize {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.people.get(&user).copied().unwrap_or(0)
    }

    /// Takes a seat, of a session or of the list.
    ///
    /// # Errors
    /// `rate_limited` where there is none left.
    pub(crate) fn seat(
        &self,
        session: Option<SessionId>,
        sitter: Option<Sitter>,
    ) -> Result<Seat, NaviError> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_session = session.map_or(0, |id| counts.sessions.get(&id).copied().unwrap_or(0));
        // Whoever looks by a link is nobody here.
        let user = sitter.map(|sitter| sitter.user);
        let most = sitter.and_then(|sitter| sitter.most);
        let of_user = user.map_or(0, |user| counts.people.get(&user).copied().unwrap_or(0));
        let too_many = most.is_some_and(|most| of_user >= most as usize);
        if counts.all >= MAX_TABS || of_session >= MAX_TABS_OF_A_SESSION || too_many {
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

    fn somebody(most: Option<u32>) -> Option<Sitter> {
        let user = UserId::new();
        Some(Sitter { user, most })
    }

    #[test]
    fn seats_are_bounded_and_come_back() {
        let tabs = Tabs::default();
        let (session, user) = (Some(SessionId::new()), somebody(None));
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
        let tabs = Tabs::default();
        let (anna, borys) = (somebody(Some(2)), somebody(Some(2)));
        let seats = [anna, anna].map(|user| tabs.seat(None, user).unwrap());
        assert!(tabs.seat(Some(SessionId::new()), anna).is_err());
        tabs.seat(None, borys).unwrap();
        assert_eq!(tabs.of(anna.unwrap().user), 2);
        // She is given one more, and then fewer: what is open stays.
        let with = |most| anna.map(|anna| Sitter { most, ..anna });
        let third = tabs.seat(None, with(Some(3))).unwrap();
        assert!(tabs.seat(None, with(Some(1))).is_err());
        drop(third);
        drop(seats);
        tabs.seat(None, anna).unwrap();
        assert!(tabs.counts.lock().unwrap().people.is_empty());
    }
}
