//! Those who wait for a backend's slots, and what is remembered of who asks.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lease::Lease;
use super::messages::Ticket;
use crate::domain::lanes::{Priority, Share, Waiting};
use crate::protocol::error::NaviError;
use crate::protocol::ids::UserId;

/// The most calls that may wait for one backend, and of one person.
const WAITING: usize = 1_024;
const WAITING_OF_ONE: usize = 256;

/// How long somebody counts as one who asks beside others.
const ASKS: Duration = Duration::from_secs(60 * 60);

/// The most people who are remembered.
const PEOPLE: usize = 1_024;

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) ticket: Ticket,
    pub(super) priority: Priority,
    pub(super) person: Option<UserId>,
    pub(super) since: Instant,
    /// It sees how the backend is after it failed in a row.
    pub(super) trial: bool,
    /// See [`Acquire::stop`](super::Acquire::stop).
    pub(super) stop: CancellationToken,
    pub(super) granted: oneshot::Sender<Result<Lease, NaviError>>,
}

/// What is remembered of somebody who asks.
#[derive(Debug)]
struct Known {
    asked: Instant,
    /// See [`Share::served`].
    served: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// In the order of arrival.
    waiting: VecDeque<Waiter>,
    people: HashMap<Option<UserId>, Known>,
    /// How many were let in.
    served: u64,
}

impl Line {
    /// In the order of arrival.
    pub(super) fn waiting(&self) -> impl ExactSizeIterator<Item = &Waiter> {
        self.waiting.iter()
    }

    /// Whether one more may wait, of this person.
    pub(super) fn has_room(&self, person: Option<UserId>) -> bool {
        let theirs = self.waiting.iter().filter(|it| it.person == person);
        self.waiting.len() < WAITING && theirs.count() < WAITING_OF_ONE
    }

    pub(super) fn join(&mut self, waiter: Waiter) {
        self.asks(waiter.person);
        self.waiting.push_back(waiter);
    }

    /// Remembers that somebody asks.
    fn asks(&mut self, person: Option<UserId>) {
        if self.people.len() >= PEOPLE {
            self.people.retain(|_, known| known.asked.elapsed() < ASKS);
        }
        if self.people.len() < PEOPLE || self.people.contains_key(&person) {
            let asked = Instant::now();
            let known = self.people.entry(person);
            known.or_insert(Known { asked, served: 0 }).asked = asked;
        }
    }

    /// Who is stopped has left, though their thread may hang. Whether one of them was to see how
    /// the backend is.
    pub(super) fn forget_those_who_left(&mut self) -> bool {
        let mut trial = false;
        self.waiting.retain(|waiter| {
            let left = waiter.granted.is_closed() || waiter.stop.is_cancelled();
            trial |= left && waiter.trial;
            !left
        });
        trial
    }

    /// As those see it who decide who is next. `held` names for each slot that is taken who has
    /// it, `most` is how many there are.
    pub(super) fn queue(
        &self,
        held: impl Iterator<Item = Option<UserId>>,
        most: usize,
    ) -> Vec<Waiting> {
        let asking = self.people.values().filter(|it| it.asked.elapsed() < ASKS);
        let others_ask = asking.count() > 1;
        let mut held_by: HashMap<Option<UserId>, usize> = HashMap::new();
        for person in held {
            *held_by.entry(person).or_default() += 1;
        }
        let waiting = self.waiting.iter().map(|waiter| {
            let share = Share {
                held: held_by.get(&waiter.person).copied().unwrap_or_default(),
                served: self.people.get(&waiter.person).map_or(0, |it| it.served),
            };
            Waiting {
                priority: waiter.priority,
                waited: waiter.since.elapsed(),
                share,
                held_back: others_ask && share.is_used_up(most),
            }
        });
        waiting.collect()
    }

    /// Lets the one at this place in.
    pub(super) fn serve(&mut self, at: usize) -> Option<Waiter> {
        let next = self.waiting.remove(at)?;
        self.served += 1;
        if let Some(person) = self.people.get_mut(&next.person) {
            person.served = self.served;
        }
        Some(next)
    }

    pub(super) fn refuse_all(&mut self, refusal: &NaviError) {
        for waiter in self.waiting.drain(..) {
            // Whoever asked may have gone.
            let _ = waiter.granted.send(Err(refusal.clone()));
        }
    }
}
