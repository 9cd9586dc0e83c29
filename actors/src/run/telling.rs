//! What a run has its session record: the next commit is waited for, or what comes goes on beside it.

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::driver::Driver;
use crate::domain::run_loop::Record;
use crate::domain::session::command::Command;
use crate::domain::session::transition::{Refused, Reply};
use crate::session::messages::{Ask, RunGone, Tell, TellSoon};

/// How much of what a run told may be on its way to the store before it waits. Where the disk is slow
/// a commit takes several at once.
const AHEAD: usize = 8;

impl Driver {
    /// Has records committed, with those that were held.
    pub(super) async fn commit(&mut self, records: Vec<Record>) -> Result<(), RunGone> {
        if let Some(record) = self.record(records) {
            self.last_seq = self.ask(record).await?;
            // Commits are made in their order.
            self.told.clear();
        }
        Ok(())
    }

    /// The same where nothing that comes next needs them to be durable: what follows goes on
    /// meanwhile, but never further ahead than [`AHEAD`].
    pub(super) async fn tell(&mut self, records: Vec<Record>) -> Result<(), RunGone> {
        if let Some(record) = self.record(records) {
            let tx = self.make_room().await?;
            // Never more than [`AHEAD`] wait there.
            self.session.do_send(Tell(record, Some(tx)));
        }
        Ok(())
    }

    /// The same of what may be written with what follows: the model is asked before the database.
    pub(super) async fn tell_soon(&mut self, records: Vec<Record>) -> Result<(), RunGone> {
        if let Some(record) = self.record(records) {
            let tx = self.make_room().await?;
            // As above. Behind the last that has room the next one waits.
            if self.told.len() == AHEAD {
                self.session.do_send(Tell(record, Some(tx)));
            } else {
                self.session.do_send(TellSoon(record, tx));
            }
        }
        Ok(())
    }

    /// Hears of what has arrived there, and waits where as much is on its way as may be. Gives back
    /// what tells of the next that does.
    async fn make_room(&mut self) -> Result<oneshot::Sender<Result<Reply, Refused>>, RunGone> {
        loop {
            let is_full = self.told.len() >= AHEAD;
            let Some(oldest) = self.told.front_mut() else {
                break;
            };
            let is_recorded = match oldest.try_recv() {
                Ok(reply) => reply.is_ok(),
                Err(TryRecvError::Empty) if !is_full => break,
                Err(TryRecvError::Empty) => matches!(oldest.await, Ok(Ok(_))),
                Err(TryRecvError::Closed) => false,
            };
            if !is_recorded {
                return Err(RunGone);
            }
            self.told.pop_front();
        }
        let (tx, rx) = oneshot::channel();
        self.told.push_back(rx);
        Ok(tx)
    }

    /// Has records go with the next commit, which is to follow at once.
    pub(super) fn hold(&mut self, mut records: Vec<Record>) {
        self.take_in(&mut records);
        self.held.extend(records);
    }

    fn record(&mut self, mut records: Vec<Record>) -> Option<Command> {
        if records.is_empty() && self.held.is_empty() {
            return None;
        }
        self.take_in(&mut records);
        let mut all = std::mem::take(&mut self.held);
        all.extend(records);
        Some(Command::Record {
            run_id: self.origin.run_id,
            records: all,
        })
    }

    /// Takes the records' messages into the context. Model calls that ended go with them, and
    /// ask for no commit of their own.
    fn take_in(&mut self, records: &mut Vec<Record>) {
        self.add_called(records);
        for record in &*records {
            match record {
                Record::Message(message) => self.context.push(message.clone()),
                Record::Ended(summary) => self.over = Some(summary.clone()),
                Record::Tainted => self.outside = true,
                Record::Event(_)
                | Record::Ask(_)
                | Record::Consented(_)
                | Record::Waits(_)
                | Record::Mark(_)
                | Record::Called(_)
                | Record::Plan(_)
                | Record::ContextTokens(_)
                | Record::Began { .. }
                | Record::Window(_)
                | Record::Context(_) => {}
            }
        }
    }

    /// Has the session do something, and waits for its reply.
    pub(super) async fn ask<T>(&self, command: Command) -> Result<T, RunGone>
    where
        T: TryFrom<Reply> + Send + 'static,
    {
        let asked = self.session.send(Ask::new(command)).await;
        Ok(asked.map_err(|_| RunGone)??)
    }
}
