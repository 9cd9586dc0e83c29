//! Requests of programs as they were last seen: so that one that comes again is known, and a run
//! that nobody listens to any more.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashlink::LruCache;
use navi_actors::protocol::ids::{CallId, RunId, SessionId, UserId};
use navi_actors::session_turns::{SessionTurn, SessionTurns};
use navi_actors::tools::lent::Offer;
use parking_lot::Mutex;

/// How many of each kind are known of one person: the newest.
const KNOWN: usize = 1_024;
/// How many messages of one person whose runs have not begun are lent something.
const OFFERS: usize = 64;

/// What this process was asked. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    of: HashMap<UserId, OfPerson>,
    listening: HashMap<SessionId, usize>,
    turns: SessionTurns,
}

/// What one person's programs asked: no other's pushes it out.
#[derive(Debug)]
struct OfPerson {
    seen: LruCache<Sameness, Seen>,
    /// Runs that ended at a stop word of their program's, with the words; the newest last.
    stopped: VecDeque<(RunId, Sameness)>,
    /// Calls that were handed over in a conversation that begins so; the newest last.
    calls: VecDeque<(Sameness, Vec<CallId>)>,
    /// What is lent to runs that have not begun; the newest last.
    offers: VecDeque<Offered>,
    /// What names led to. They may be gone since.
    sessions: HashMap<Sameness, SessionId>,
}

impl Default for OfPerson {
    fn default() -> Self {
        Self {
            seen: LruCache::new(KNOWN),
            stopped: VecDeque::new(),
            calls: VecDeque::new(),
            offers: VecDeque::new(),
            sessions: HashMap::new(),
        }
    }
}

#[derive(Debug)]
struct Offered {
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
    /// SHA-256 of what was asked: a request that names a key is known by that.
    pub(super) asked: Sameness,
    delivered: Arc<AtomicBool>,
}

impl Seen {
    pub(super) fn new(session: SessionId, client_id: String, asked: Sameness) -> Self {
        Self {
            session,
            client_id,
            asked,
            delivered: Arc::default(),
        }
    }

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
    /// Where the person's newest request of this kind led.
    pub(super) fn find(&self, by: UserId, sameness: &Sameness) -> Option<Seen> {
        self.0.lock().of.get(&by)?.seen.peek(sameness).cloned()
    }

    pub(super) fn keep(&self, by: UserId, sameness: Sameness, seen: Seen) {
        let mut state = self.0.lock();
        state.of.entry(by).or_default().seen.insert(sameness, seen);
    }

    /// A run ends at one of these words, for the program.
    pub(super) fn keep_stopped(&self, by: UserId, run_id: RunId, words: Sameness) {
        let mut state = self.0.lock();
        let known = &mut state.of.entry(by).or_default().stopped;
        known.retain(|(known, _)| *known != run_id);
        if known.len() >= KNOWN {
            known.pop_front();
        }
        known.push_back((run_id, words));
    }

    /// Whether the run ended at one of these words.
    pub(super) fn was_stopped_at(&self, by: UserId, run_id: RunId, words: Sameness) -> bool {
        let state = self.0.lock();
        let known = state.of.get(&by);
        known.is_some_and(|known| known.stopped.contains(&(run_id, words)))
    }

    /// Calls that were handed over to a client that gives no ids to what came of them.
    pub(super) fn keep_calls(&self, by: UserId, conversation: Sameness, calls: Vec<CallId>) {
        let mut state = self.0.lock();
        let known = &mut state.of.entry(by).or_default().calls;
        if known.len() >= KNOWN {
            known.pop_front();
        }
        known.push_back((conversation, calls));
    }

    /// Those of all of the person's conversations that began so, the oldest first.
    pub(super) fn find_calls(&self, by: UserId, conversation: &Sameness) -> Vec<Vec<CallId>> {
        let state = self.0.lock();
        let known = state.of.get(&by).into_iter().flat_map(|it| &it.calls);
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
        let mut state = self.0.lock();
        let offers = &mut state.of.entry(by).or_default().offers;
        offers.retain(|it| (it.session, &it.client_id) != (session, &client_id));
        if offers.len() >= OFFERS {
            offers.pop_front();
        }
        let offer = lend(&client_id);
        offers.push_back(Offered {
            session,
            client_id,
            _offer: offer,
        });
    }

    /// The session that a name of the person's led to, as it was known when it did.
    pub(super) fn session(&self, by: UserId, name: &Sameness) -> Option<SessionId> {
        self.0.lock().of.get(&by)?.sessions.get(name).copied()
    }

    pub(super) fn keep_session(&self, by: UserId, name: Sameness, session: SessionId) {
        let mut state = self.0.lock();
        let sessions = &mut state.of.entry(by).or_default().sessions;
        if sessions.len() >= KNOWN {
            // What is looked for again is known again.
            sessions.clear();
        }
        sessions.insert(name, session);
    }

    /// What the person's names lead to is looked for anew: a session of theirs came back.
    pub(crate) fn forget_names(&self, by: UserId) {
        if let Some(known) = self.0.lock().of.get_mut(&by) {
            known.sessions.clear();
        }
    }

    /// The person was removed.
    pub(crate) fn forget_person(&self, by: UserId) {
        // Offers end elsewhere, and not while this is held.
        let forgotten = self.0.lock().of.remove(&by);
        drop(forgotten);
    }

    pub(super) fn listen(&self, session: SessionId) -> Listening {
        *self.0.lock().listening.entry(session).or_default() += 1;
        Listening {
            requests: self.clone(),
            session,
        }
    }

    /// Requests that go on where a session stands look at that one after the other.
    pub(super) async fn turn(&self, session: SessionId) -> SessionTurn {
        let turns = self.0.lock().turns.clone();
        turns.take(session).await
    }

    pub(super) fn is_heard(&self, session: SessionId) -> bool {
        self.0.lock().listening.contains_key(&session)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut state = self.requests.0.lock();
        if let Some(count) = state.listening.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                state.listening.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(n: usize) -> Sameness {
        let mut some = [0; 32];
        some[..8].copy_from_slice(&n.to_le_bytes());
        some
    }

    #[test]
    fn what_one_person_asks_pushes_out_nothing_of_another() {
        let requests = Requests::default();
        let (anna, borys) = (UserId::new(), UserId::new());
        let session = SessionId::new();
        let run = RunId::new();
        let seen = Seen::new(session, "hers".to_owned(), some(0));
        requests.keep(anna, some(0), seen);
        requests.keep_stopped(anna, run, some(0));
        requests.keep_calls(anna, some(0), vec![CallId::new()]);
        requests.keep_session(anna, some(0), session);
        for n in 0..=KNOWN {
            let seen = Seen::new(session, "his".to_owned(), some(n));
            requests.keep(borys, some(n), seen);
            requests.keep_stopped(borys, RunId::new(), some(n));
            requests.keep_calls(borys, some(n), vec![CallId::new()]);
            requests.keep_session(borys, some(n), session);
        }
        let knows = |by| {
            (
                requests.find(by, &some(0)).is_some(),
                requests.find_calls(by, &some(0)).len(),
                requests.session(by, &some(0)).is_some(),
                requests.was_stopped_at(by, run, some(0)),
            )
        };
        assert_eq!(knows(anna), (true, 1, true, true));
        // His own are bounded.
        assert_eq!(knows(borys), (false, 0, false, false));
        requests.forget_person(anna);
        assert_eq!(knows(anna), (false, 0, false, false));
    }
}
