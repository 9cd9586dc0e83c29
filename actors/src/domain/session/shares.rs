//! A session is shared with other people, and is not any more.

use chrono::{DateTime, Utc};

use super::Session;
use super::transition::{Refused, ReplyTo};
use super::write::Write;
use crate::protocol::error::ErrorCode;
use crate::protocol::session::Shared;

impl Session {
    /// These are in it from here on. What is remembered of its owner is for nobody else: with the
    /// first of them the memory leaves its contexts, of runs that go too, and never comes back. So
    /// no run may go then.
    pub(super) fn share(
        &mut self,
        shared: Shared,
        to: ReplyTo,
        now: DateTime<Utc>,
    ) -> Result<(), Refused> {
        if self.closing.is_some() {
            return Err(Refused::shutting_down());
        }
        if self.ahead.summary.ephemeral {
            let message =
                "this conversation is there for one answer alone, and is shared with nobody";
            return Err(Refused::error(ErrorCode::InvalidField, message));
        }
        let is_first = self.ahead.summary.shared.is_none();
        if is_first {
            if !self.is_idle() {
                return Err(Self::busy("then share it"));
            }
            self.drop_summary();
            self.drop_memory();
        }
        let since = is_first.then_some(now);
        self.write(Write::Shared { since, shared });
        self.reply_row(to);
        Ok(())
    }
}
