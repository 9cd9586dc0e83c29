//! How many sockets there are: a limit on each session's and on all. Who looks by a link is counted
//! by themselves, so that no link costs anybody a tab.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::{LinkId, SessionId, UserId};
use parking_lot::Mutex;

const MAX_TABS: usize = 4000;
const MAX_TABS_OF_A_SESSION: usize = 1000;
/// Who look by links, all together.
const MAX_LOOKERS: usize = 2000;
/// One link takes this part of what all links of its owner may.
const PART_OF_A_LINK: usize = 4;

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
    lookers: usize,
    links: HashMap<LinkId, usize>,
    /// Those who look at what is this person's.
    looked_at: HashMap<UserId, usize>,
}

/// A socket's place in the count, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    tabs: Tabs,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Tab {
        session: Option<SessionId>,
        user: UserId,
    },
    Link {
        link: LinkId,
        owner: UserId,
    },
}

impl Tabs {
    /// How many there are.
    pub(crate) fn open(&self) -> usize {
        let counts = self.counts.lock();
        counts.all + counts.lookers
    }

    /// How many are this person's.
    pub(crate) fn of(&self, user: UserId) -> usize {
        held(&self.counts.lock().people, &user)
    }

    /// Takes a seat, of a session or of the list.
    ///
    /// # Errors
    /// `rate_limited` where there is none left.
    pub(crate) fn seat(
        &self,
        session: Option<SessionId>,
        sitter: Sitter,
    ) -> Result<Seat, NaviError> {
        let Sitter { user, most } = sitter;
        let mut counts = self.counts.lock();
        let of_session = session.map_or(0, |id| held(&counts.sessions, &id));
        let of_user = held(&counts.people, &user);
        let too_many = most.is_some_and(|most| of_user >= most as usize);
        if counts.all >= MAX_TABS || of_session >= MAX_TABS_OF_A_SESSION || too_many {
            return Err(NaviError::new(
                ErrorCode::RateLimited,
                "too many tabs are open; close some",
            ));
        }
        counts.all += 1;
        counts.people.insert(user, of_user + 1);
        if let Some(id) = session {
            counts.sessions.insert(id, of_session + 1);
        }
        Ok(Seat {
            tabs: self.clone(),
            place: Place::Tab { session, user },
        })
    }

    /// Takes a seat of those who look by this link at what is the owner's. All their links have
    /// as many as they have tabs, and beside those.
    ///
    /// # Errors
    /// `rate_limited` where there is none left.
    pub(crate) fn look(&self, link: LinkId, owner: Sitter) -> Result<Seat, NaviError> {
        let Sitter { user, most } = owner;
        let mut counts = self.counts.lock();
        let of_link = held(&counts.links, &link);
        let of_owner = held(&counts.looked_at, &user);
        let most = most.map_or(MAX_LOOKERS, |most| most as usize);
        let most_of_link = (most / PART_OF_A_LINK).max(1);
        if counts.lookers >= MAX_LOOKERS || of_owner >= most || of_link >= most_of_link {
            return Err(NaviError::new(
                ErrorCode::RateLimited,
                "as many look at this already as may; try again when somebody has left",
            ));
        }
        counts.lookers += 1;
        counts.links.insert(link, of_link + 1);
        counts.looked_at.insert(user, of_owner + 1);
        Ok(Seat {
            tabs: self.clone(),
            place: Place::Link { link, owner: user },
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.tabs.counts.lock();
        match self.place {
            Place::Tab { session, user } => {
                counts.all = counts.all.saturating_sub(1);
                leave(&mut counts.people, user);
                if let Some(id) = session {
                    leave(&mut counts.sessions, id);
                }
            }
            Place::Link { link, owner } => {
                counts.lookers = counts.lookers.saturating_sub(1);
                leave(&mut counts.links, link);
                leave(&mut counts.looked_at, owner);
            }
        }
    }
}

fn held<K: Eq + Hash>(counts: &HashMap<K, usize>, key: &K) -> usize {
    counts.get(key).copied().unwrap_or(0)
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
    use super::*;

    fn somebody(most: Option<u32>) -> Sitter {
        let user = UserId::new();
        Sitter { user, most }
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
        assert!(tabs.counts.lock().sessions.is_empty());
    }

    #[test]
    fn the_tabs_of_one_person_leave_room_for_others() {
        let tabs = Tabs::default();
        let (anna, borys) = (somebody(Some(2)), somebody(Some(2)));
        let seats = [anna, anna].map(|user| tabs.seat(None, user).unwrap());
        assert!(tabs.seat(Some(SessionId::new()), anna).is_err());
        tabs.seat(None, borys).unwrap();
        assert_eq!(tabs.of(anna.user), 2);
        // She is given one more, and then fewer: what is open stays.
        let with = |most| Sitter { most, ..anna };
        let third = tabs.seat(None, with(Some(3))).unwrap();
        assert!(tabs.seat(None, with(Some(1))).is_err());
        drop(third);
        drop(seats);
        tabs.seat(None, anna).unwrap();
        assert!(tabs.counts.lock().people.is_empty());
    }

    #[test]
    fn who_looks_by_links_leaves_the_tabs_alone() {
        let tabs = Tabs::default();
        let anna = somebody(Some(8));
        let links: [LinkId; 5] = std::array::from_fn(|_| LinkId::new());
        let look = |link: LinkId| tabs.look(link, anna);
        let mut seats: Vec<Seat> = Vec::new();
        for link in &links[..4] {
            // Two of each, and then it is another's turn.
            seats.extend([look(*link).unwrap(), look(*link).unwrap()]);
            look(*link).unwrap_err();
        }
        let refused = look(links[4]).unwrap_err();
        assert_eq!(refused.code, ErrorCode::RateLimited);
        // Neither theirs nor anybody else's is fewer.
        let own: Vec<Seat> = (0..8).map(|_| tabs.seat(None, anna).unwrap()).collect();
        tabs.look(LinkId::new(), somebody(Some(1))).unwrap();
        assert_eq!(tabs.open(), own.len() + seats.len());
        drop(seats);
        look(links[4]).unwrap();
        drop(own);
        let counts = tabs.counts.lock();
        assert!(counts.links.is_empty() && counts.looked_at.is_empty());
        assert_eq!((counts.all, counts.lookers), (0, 0));
    }
}
