//! One step of a session's history.

use super::write::Write;
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, MessageId, Origin, RunId};

/// Committed and told whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Each with the run that tells it, where one is meant.
    pub events: Vec<(Option<Origin>, Event)>,
    pub writes: Vec<Write>,
    /// What is over with it, of the text that was streamed.
    pub closed: Vec<Closed>,
}

impl Change {
    /// Whether it changes nothing: what hangs on it is told after all that came before.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.writes.is_empty() && self.closed.is_empty()
    }
}

/// Streamed text of a run that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The message that holds it is there.
    Message(RunId, MessageId),
    /// The result of the call is there.
    Output(RunId, CallId),
    /// Everything that the run had still open.
    Run(RunId),
}
