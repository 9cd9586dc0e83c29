//! How a session ends: the service shuts down, or it is deleted.

use chrono::{DateTime, Utc};

use super::Session;
use super::command::Leaving;
use super::transition::{Effect, Refused, Reply, ReplyTo};
use super::write::Write;
use crate::protocol::ids::RunId;

/// No new run starts; it ends with the one that goes.
#[derive(Debug, Default)]
pub(super) struct Closing {
    /// How the service shuts down, where it does.
    pub(super) leaving: Option<Leaving>,
    /// Its run was left in the store as it stands.
    parked: bool,
    /// Who waits for its end.
    waiting: Vec<ReplyTo>,
    /// Who waits for its deletion.
    deleting: Vec<ReplyTo>,
    deleted: bool,
}

impl Session {
    /// The service shuts down.
    pub(super) fn close(&mut self, leaving: Leaving, to: ReplyTo, now: DateTime<Utc>) {
        let closing = self.closing.get_or_insert_default();
        closing.leaving = Some(leaving);
        closing.waiting.push(to);
        if self.ahead.running().is_some() {
            self.out.now.push(Effect::Interrupt(leaving));
        }
        self.leave_when_done(now);
    }

    /// Ends the session's run first: what it has still to write belongs to the session.
    pub(super) fn delete(&mut self, to: ReplyTo, now: DateTime<Utc>) {
        let running = self.running_id();
        self.out.now.extend(running.map(Effect::Cancel));
        self.closing.get_or_insert_default().deleting.push(to);
        self.leave_when_done(now);
    }

    /// Only a session that closes lets its run go: the store has it as running, with what it
    /// waits for, and the next start goes on from there.
    pub(super) fn park(&mut self, run_id: RunId, now: DateTime<Utc>) {
        let is_ours = self.running_id() == Some(run_id);
        let Some(closing) = self.closing.as_mut().filter(|_| is_ours) else {
            return;
        };
        closing.parked = true;
        for to in std::mem::take(&mut self.plain) {
            let down = Err(Refused::shutting_down());
            self.out.then.push(Effect::Reply(to, down));
        }
        self.out.then.push(Effect::Release(run_id));
        self.leave_when_done(now);
    }

    /// Ends a closing session once its run is over.
    pub(super) fn leave_when_done(&mut self, now: DateTime<Utc>) {
        let runs = self.ahead.running().is_some();
        let Some(closing) = self.closing.as_mut().filter(|it| it.parked || !runs) else {
            return;
        };
        let deleting = std::mem::take(&mut closing.deleting);
        let waiting = std::mem::take(&mut closing.waiting);
        if !deleting.is_empty() && !std::mem::replace(&mut closing.deleted, true) {
            self.drop_summary();
            self.write(Write::Deleted(Some(now)));
            self.out.then.push(Effect::TellRemoved);
        }
        for to in deleting {
            let summary = self.ahead.summary.clone();
            self.reply(to, Reply::Summary(summary));
        }
        for to in waiting {
            self.reply(to, Reply::Done(()));
        }
        self.out.then.push(Effect::Leave);
    }
}
