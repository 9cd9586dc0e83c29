//! A run that its process leaves as it stands, for the next one to go on with.

use super::Work;
use super::driver::Driver;
use crate::domain::run_loop::{ModelReply, Record, RunLoop};
use crate::domain::session::command::Command;
use crate::services::now;
use crate::session::messages::{RunGone, Tell};

impl Driver {
    /// The loop as it stands, for a restart. A child's is not kept: its conversation isn't.
    pub(super) fn waits(&self) -> Option<Record> {
        if self.origin.is_subagent() {
            return None;
        }
        as_it_stands(&self.run_loop)
    }

    /// Whether a shutdown may leave this run as it waits. A child goes with its process: its
    /// conversation is in no store.
    pub(super) fn may_park(&self) -> bool {
        matches!(self.work, Work::Turn(_)) && !self.run_loop.is_over()
    }

    /// Whether it is left at the next moment at which nothing works.
    pub(super) fn is_leaving(&self) -> bool {
        self.may_park() && self.ends.is_to_leave()
    }

    /// The service shuts down and this run goes on in the next one: it is left in the store as
    /// it stands, with what the model had said of a reply that was cut off.
    pub(super) async fn park(&mut self, partial: Option<ModelReply>) -> Result<(), RunGone> {
        if self.ends.park.is_cancelled() {
            let mut records = self.run_loop.park(partial, now());
            records.extend(self.waits());
            self.commit(records).await?;
        }
        // A session that is gone has nothing to leave.
        let park = Tell(Command::Park(self.origin.run_id), None);
        let _ = self.session.send(park).await;
        Err(RunGone)
    }
}

/// A loop as it stands, for a restart.
pub(super) fn as_it_stands(run_loop: &RunLoop) -> Option<Record> {
    match serde_json::to_string(run_loop) {
        Ok(json) => Some(Record::Waits(json)),
        Err(error) => {
            tracing::error!(%error, "the loop could not be stored, a restart will end it");
            None
        }
    }
}
