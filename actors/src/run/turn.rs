//! A run's turn among those of its person: of their runs so many work at once. One that waits for
//! a person, or for a program that may want a turn for what it was asked, has none meanwhile.

use actix::Addr;
use tokio::time::Instant;

use super::{Ends, RunSetup, Work};
use crate::domain::run_loop::Record;
use crate::domain::session::command::Command;
use crate::people::{People, Turn};
use crate::protocol::event::{Event, WaitReason};
use crate::protocol::ids::{RunId, UserId};
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::session::SessionActor;
use crate::session::messages::Ask;

/// See the module.
#[derive(Debug)]
pub(super) struct RunTurn {
    people: People,
    user: UserId,
    session: Addr<SessionActor>,
    run_id: RunId,
    ends: Ends,
    /// A child's does not: it is its parent's.
    counts: bool,
    taken: Option<Turn>,
}

impl RunTurn {
    pub(super) fn of(setup: &RunSetup) -> Self {
        Self {
            people: setup.services.people.clone(),
            user: setup.user_id,
            session: setup.session.clone(),
            run_id: setup.origin.run_id,
            ends: setup.ends.clone(),
            counts: matches!(setup.work, Work::Turn(_)),
            taken: None,
        }
    }

    /// Whether the run may work. Where it may not it is to end, or to be left.
    pub(super) fn is_taken(&self) -> bool {
        !self.counts || self.taken.is_some()
    }

    /// Takes it, unless the run is not to wait any longer, and moves the run's deadline on by the
    /// wait: what its person's other runs take is not its time.
    pub(super) async fn take(&mut self, deadline: &mut Instant) {
        if self.is_taken() {
            return;
        }
        self.taken = self.people.try_run(self.user);
        if self.taken.is_none() {
            let began = Instant::now();
            self.taken = self.wait().await;
            *deadline += began.elapsed();
        }
    }

    /// Lets others of its person's runs work until it is taken again.
    pub(super) fn give_back(&mut self) {
        self.taken = None;
    }

    async fn wait(&self) -> Option<Turn> {
        let ends = &self.ends;
        if ends.stop.is_cancelled() || ends.interrupt.is_cancelled() || ends.is_to_leave() {
            return None;
        }
        let runs = self
            .people
            .limits(self.user)
            .map_or(0, |limits| limits.runs);
        let runs_go = Phrase::new(PhraseCode::RunsGo, [("n", runs.to_string())]);
        let waits = Event::waiting(WaitReason::Lane, runs_go, false);
        let told = Command::Record {
            run_id: self.run_id,
            records: vec![Record::Event(waits)],
        };
        // A session that is gone ends this run.
        let _ = self.session.send(Ask::<u64>::new(told)).await;
        tokio::select! {
            biased;
            () = ends.stop.cancelled() => None,
            () = ends.interrupt.cancelled() => None,
            () = ends.leaves() => None,
            turn = self.people.run(self.user) => Some(turn),
        }
    }
}
