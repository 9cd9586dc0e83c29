//! How a session's events reach its tabs: numbered, committed, told, and joined.
//!
//! This is all of the session's actor that a tab can race with, and it knows no actor: the
//! actor drives it, and so does the model checker (`tests/races`). Each of its functions is
//! one turn of the actor; whatever they are called in between, no tab sees a gap, a repeat,
//! or an event that is not committed.

use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::messages::{Attach, Attached, Start};
use super::outline::Outline;
use super::sequencer::{Delivery, Frame, Piece, Sequencer};
use crate::domain::session::change::Change;
use crate::domain::session::stored::Span;
use crate::domain::session::write::Write;
use crate::protocol::event::ResyncReason;

/// What was committed and is to be told: the one who tells applies the change, then has the
/// frames sent ([`Telling::send`]), then does what the submitter wanted.
#[derive(Debug)]
pub struct Committed<T> {
    pub frames: Vec<Frame>,
    pub change: Change,
    pub then: T,
}

/// Where a session stands that was read from the store.
#[derive(Clone, Debug)]
pub struct StoredPosition {
    /// Its last committed event.
    pub last_seq: u64,
    pub epoch: i64,
    /// The last parts that were streamed across events, oldest first.
    pub spans: Vec<Span>,
}

/// See the module. `T` is what a submitter wants done once its submission was told.
#[derive(Debug)]
pub struct Telling<T> {
    sequencer: Sequencer<T>,
    /// The last event that was told before this session was read.
    begins_after: u64,
    is_telling: bool,
    /// There from the first tab on: most sessions that live have none, and room for the frames is
    /// made at once.
    live: OnceLock<broadcast::Sender<Arc<Frame>>>,
    capacity: usize,
    epoch: i64,
    given_up: CancellationToken,
}

impl<T> Telling<T> {
    /// For a session that continues as `stored`. A tab that is more than `capacity` frames behind
    /// is caught up from the log. `given_up` is told to tabs with which nothing more is shared.
    #[must_use]
    pub fn new(stored: StoredPosition, capacity: usize, given_up: CancellationToken) -> Self {
        let StoredPosition {
            last_seq,
            epoch,
            spans,
        } = stored;
        Self {
            sequencer: Sequencer::new(last_seq, spans),
            begins_after: last_seq,
            is_telling: false,
            live: OnceLock::new(),
            capacity,
            epoch,
            given_up,
        }
    }

    /// The numbers and the open parts, to look at.
    #[must_use]
    pub fn sequencer(&self) -> &Sequencer<T> {
        &self.sequencer
    }

    /// As [`Sequencer::submit`].
    pub fn submit(&mut self, change: Change, at: DateTime<Utc>, then: T) {
        self.sequencer.submit(change, at, then);
    }

    /// As [`Sequencer::delta`].
    pub fn delta(&mut self, piece: Piece, at: DateTime<Utc>) {
        self.sequencer.delta(piece, at);
    }

    /// As [`Sequencer::log_chunks`].
    pub fn log_chunks(&mut self) {
        self.sequencer.log_chunks();
    }

    /// As [`Sequencer::next_commit`].
    pub fn next_commit(&mut self) -> Option<Vec<Write>> {
        self.sequencer.next_commit()
    }

    /// The commit that was on its way is durable.
    pub fn committed(&mut self) {
        self.sequencer.committed();
    }

    /// Begins to tell what may be told. False where that is under way already, further up the
    /// stack: what may be told now is told there, after all that could be before.
    pub fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.is_telling, true)
    }

    /// Sends streamed text up to the next submission, and gives that back to be told. None
    /// where nothing is left, which ends what [`Telling::begin`] began.
    pub fn next_committed(&mut self) -> Option<Committed<T>> {
        loop {
            match self.sequencer.next_told() {
                Some(Delivery::Delta(frame)) => self.send(frame),
                Some(Delivery::Change {
                    frames,
                    change,
                    then,
                }) => {
                    return Some(Committed {
                        frames,
                        change,
                        then,
                    });
                }
                None => {
                    self.is_telling = false;
                    return None;
                }
            }
        }
    }

    /// Sends a frame to every tab.
    pub fn send(&self, frame: Frame) {
        if let Some(live) = self.live.get() {
            // An error means that no tab watches: the log has it.
            let _ = live.send(Arc::new(frame));
        }
    }

    /// Whether any tab watches.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        let live = self.live.get();
        live.is_some_and(|live| live.receiver_count() > 0)
    }

    /// What was told until now, and the receiver of what comes. A tab without a cursor gets
    /// what came after `run_from`, the last event before the run that goes, where one goes.
    pub fn attach(
        &self,
        attach: &Attach,
        run_from: Option<u64>,
        outline: impl FnOnce() -> Outline,
    ) -> Attached {
        let live = self
            .live
            .get_or_init(|| broadcast::channel(self.capacity).0);
        Attached {
            start: self.start_of(attach, run_from, outline),
            epoch: self.epoch,
            open: self.sequencer.beyond_log().cloned().collect(),
            live: live.subscribe(),
            given_up: self.given_up.clone(),
        }
    }

    /// Whether an event was committed and told since the session was read.
    #[must_use]
    pub fn has_told(&self) -> bool {
        self.sequencer.told_seq() > self.begins_after
    }

    /// Whether text was told that may be in no commit. Where one fails, whoever was told it is to
    /// begin anew: what the log lacks is never taken back otherwise.
    #[must_use]
    pub fn has_told_beyond_log(&self) -> bool {
        self.sequencer.beyond_log().next().is_some()
    }

    /// Whether the tab may begin with that: it is simply what came after its cursor. Any other
    /// waits for what was submitted before. A session that was just read closes the run that it
    /// found open, whose end does not tell what it had said, or lets it go on: until it has told
    /// that, the log alone has what was streamed after its last event. And a tab without a cursor
    /// begins with the run that goes.
    #[must_use]
    pub fn may_begin(&self, attach: &Attach, with: &Attached) -> bool {
        let tells_nothing = self.sequencer.is_settled();
        (self.has_told() || tells_nothing)
            && attach.after.is_some()
            && matches!(with.start, Start::Log { .. })
    }

    fn start_of(
        &self,
        attach: &Attach,
        run_from: Option<u64>,
        outline: impl FnOnce() -> Outline,
    ) -> Start {
        let upto = self.sequencer.told_seq();
        let resync = |reason| Start::Resync {
            reason,
            outline: Box::new(outline()),
        };
        if attach.epoch.is_some_and(|epoch| epoch != self.epoch) {
            return resync(ResyncReason::EpochChanged);
        }
        if attach.is_expired {
            return resync(ResyncReason::LogExpired);
        }
        match attach.after {
            Some(after) if after > upto => resync(ResyncReason::CursorAhead),
            after => {
                let begin = run_from.map_or(upto, |before| before.min(upto));
                let after = after.unwrap_or(begin);
                if attach.without_past && after < begin {
                    return resync(ResyncReason::LogExpired);
                }
                let across = self.sequencer.across(after).cloned().collect();
                Start::Log {
                    after,
                    upto,
                    across,
                }
            }
        }
    }
}
