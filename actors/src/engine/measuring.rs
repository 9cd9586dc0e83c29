//! What `/metrics` tells and nobody counts as it happens: how long mailboxes keep a message, and
//! what is looked at for the answer.

use std::time::{Duration, Instant};

use actix::{Context, Handler, Message};

use super::Engine;
use crate::journal::JournalActor;
use crate::llm_actor::LlmActor;
use crate::metrics::{self, Looked};
use crate::root::SystemRoot;
use crate::session::SessionActor;

/// How often mailboxes are asked.
const EVERY: Duration = Duration::from_secs(1);

/// How many sessions are asked each time: in turns, so that thousands cost no more than a few.
const SESSIONS: usize = 16;

/// Asked only to see how long it waits. Where a mailbox is full it is not sent: what waits in it
/// tells already.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Probe {
    sent: Instant,
    /// Which of the sessions have their turn.
    turn: usize,
}

impl Probe {
    fn new(turn: usize) -> Self {
        let sent = Instant::now();
        Self { sent, turn }
    }

    fn came(self, actor: &'static str) {
        metrics::record(|on| on.service.mailbox(actor, self.sent.elapsed()));
    }
}

impl Engine {
    /// `/metrics`, for a service with so many tabs. None where nothing is counted.
    pub async fn metrics(&self, tabs: usize) -> Option<String> {
        let metrics = metrics::on()?;
        let database_bytes = self.services.store.bytes().await;
        let looked = Looked {
            tabs,
            database_bytes,
        };
        // With every label in use it takes a millisecond, and the system is asked for memory.
        let text = tokio::task::spawn_blocking(move || metrics.text(&looked));
        text.await.ok()
    }

    /// Asks mailboxes for as long as this is polled.
    pub(super) async fn probe_mailboxes(self) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for turn in 0.. {
            ticks.tick().await;
            let probe = Probe::new(turn);
            // A mailbox that is full or gone has nothing to tell.
            let _ = self.root.try_send(probe);
            let _ = self.services.journal.addr().try_send(probe);
            for guard in self.services.models.guards() {
                let _ = guard.try_send(probe);
            }
        }
    }
}

/// Whose turn it is of so many: where to begin, and how many from there on, round about.
fn in_turn(turn: usize, all: usize) -> (usize, usize) {
    let begin = turn.wrapping_mul(SESSIONS).checked_rem(all).unwrap_or(0);
    (begin, all.min(SESSIONS))
}

impl Handler<Probe> for SystemRoot {
    type Result = ();

    fn handle(&mut self, probe: Probe, _: &mut Context<Self>) {
        probe.came("root");
        let sessions = self.live().addresses();
        let (begin, number) = in_turn(probe.turn, sessions.len());
        let probe = Probe::new(probe.turn);
        for session in sessions.iter().cycle().skip(begin).take(number) {
            // As above.
            let _ = session.try_send(probe);
        }
    }
}

impl Handler<Probe> for JournalActor {
    type Result = ();

    fn handle(&mut self, probe: Probe, _: &mut Context<Self>) {
        probe.came("journal");
    }
}

impl Handler<Probe> for LlmActor {
    type Result = ();

    fn handle(&mut self, probe: Probe, _: &mut Context<Self>) {
        probe.came("llm");
    }
}

impl Handler<Probe> for SessionActor {
    type Result = ();

    fn handle(&mut self, probe: Probe, _: &mut Context<Self>) {
        probe.came("session");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_session_has_its_turn_and_few_at_a_time() {
        assert_eq!(in_turn(3, 0), (0, 0));
        assert_eq!(in_turn(3, 5), (3, 5));
        let mut asked = HashSet::new();
        for turn in 0..4 {
            let (begin, number) = in_turn(turn, 50);
            assert_eq!(number, SESSIONS);
            asked.extend((begin..begin + number).map(|at| at % 50));
        }
        assert_eq!(asked.len(), 50);
    }
}
