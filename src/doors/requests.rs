//! Requests of programs as they were last seen: so that one that comes again is known, and a run
//! that nobody listens to any more.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use navi_actors::protocol::ids::{CallId, SessionId, UserId};
use navi_actors::tools::lent::Offer;

/// How many are known: the newest.
const KNOWN: usize = 1_024;
/// How many messages of one person that were not sent yet are lent tools.
const OFFERS: usize = 64;

/// What this process was asked. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The newest last.
    seen: VecDeque<(Sameness, Seen)>,
    listening: HashMap<SessionId, usize>,
    /// Calls that were handed over in a conversation that begins so; the newest last.
    calls: VecDeque<(Sameness, Vec<CallId>)>,
    /// What is lent to runs that have not begun; the newest last.
    offers: VecDeque<Offered>,
    /// What names led to. They may be gone since.
    sessions: HashMap<Sameness, SessionId>,
}

#[derive(Debug)]
struct Offered {
    by: UserId,
    session: SessionId,
    client_id: String,
    /// Taken back with this.
    _offer: Offer,
}

/// SHA-256 of what makes a request the same as another: who asks, where, and what.
pub(super) type Sameness = [u8; 32];

/// Where a request led.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) session: SessionId,
    pub(super) client_id: String,
    delivered: Arc<AtomicBool>,
}

impl Seen {
    /// The end of the answer was handed over.
    pub(super) fn is_delivered(&self) -> bool {
        self.delivered.load(Ordering::Relaxed)
    }

    pub(super) fn deliver(&self) {
        self.delivered.store(true, Ordering::Relaxed);
    }
}

/// One answer that listens to a session, until it is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    requests: Requests,
    session: SessionId,
}

impl Requests {
    /// Where the newest request of this kind led.
    pub(super) fn find(&self, sameness: &Sameness) -> Option<Seen> {
        let state = self.state();
        let mut newest = state.seen.iter().rev();
        let found = newest.find(|(known, _)| known == sameness);
        found.map(|(_, seen)| seen.clone())
    }

    pub(super) fn keep(&self, sameness: Sameness, session: SessionId, client_id: String) -> Seen {
        let seen = Seen {
            session,
            client_id,
            delivered: Arc::default(),
        };
        let mut state = self.state();
        if state.seen.len() == KNOWN {
            state.seen.pop_front();
        }
        state.seen.push_back((sameness, seen.clone()));
        seen
    }

    /// Calls that were handed over to a client that gives no ids to what came of them.
    pub(super) fn keep_calls(&self, conversation: Sameness, calls: Vec<CallId>) {
        let mut state = self.state();
        if state.calls.len() == KNOWN {
            state.calls.pop_front();
        }
        state.calls.push_back((conversation, calls));
    }

    /// Those of all conversations that began so, the oldest first.
    pub(super) fn find_calls(&self, conversation: &Sameness) -> Vec<Vec<CallId>> {
        let state = self.state();
        let known = state.calls.iter();
        let found = known.filter(|(known, _)| known == conversation);
        found.map(|(_, calls)| calls.clone()).collect()
    }

    /// Keeps what is lent to the run that a message will begin, in place of what was before, and
    /// of the oldest of this person's where there are as many as they may have.
    pub(crate) fn offer(
        &self,
        by: UserId,
        session: SessionId,
        client_id: String,
        lend: impl FnOnce(&str) -> Offer,
    ) {
        let mut state = self.state();
        let offers = &mut state.offers;
        // An offer takes back what its message was lent last: the old one goes first.
        offers.retain(|it| (it.session, &it.client_id) != (session, &client_id));
        if offers.iter().filter(|it| it.by == by).count() >= OFFERS
            && let Some(oldest) = offers.iter().position(|it| it.by == by)
        {
            offers.remove(oldest);
        }
        let offer = lend(&client_id);
        offers.push_back(Offered {
            by,
            session,
            client_id,
            _offer: offer,
        });
    }

    /// The session that a name led to, as it was known when it did.
    pub(super) fn session(&self, name: &Sameness) -> Option<SessionId> {
        self.state().sessions.get(name).copied()
    }

    pub(super) fn keep_session(&self, name: Sameness, session: SessionId) {
        let mut state = self.state();
        if state.sessions.len() >= KNOWN {
            // What is looked for again is known again.
            state.sessions.clear();
        }
        state.sessions.insert(name, session);
    }

    pub(super) fn forget_session(&self, name: &Sameness) {
        self.state().sessions.remove(name);
    }

    pub(super) fn listen(&self, session: SessionId) -> Listening {
        *self.state().listening.entry(session).or_default() += 1;
        Listening {
            requests: self.clone(),
            session,
        }
    }

    pub(super) fn is_heard(&self, session: SessionId) -> bool {
        self.state().listening.contains_key(&session)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut state = self.requests.state();
        if let Some(count) = state.listening.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                state.listening.remove(&self.session);
            }
        }
    }
}
