//! The output of a running tool on its way to those who watch (`tool_output`).
//!
//! A tool pushes and never waits; the session takes pieces at the pace of a person's eye and of
//! its log. What does not fit between the two is left out with a note, and stands in the result.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::protocol::event::{PartKind, utf16_len};
use crate::protocol::ids::{CallId, MessageId, Origin, PartId};
use crate::session::SessionActor;
use crate::session::messages::Stream;
use crate::session::sequencer::Piece;
use crate::tools::{LiveOutput, OutputSink};

/// The time between two pieces.
const TICK: Duration = Duration::from_millis(33);

/// The most text of one piece, so that what is kept for slow tabs is bounded in bytes too.
const PIECE_BYTES: usize = 4096;

/// As much as waits for the next piece, and as much as one call shows in all: a tab that comes
/// later gets all of that, from memory.
const HELD_BYTES: usize = 64 * 1024;
const SHOWN_BYTES: usize = 256 * 1024;

/// How long the end of a call waits for its last pieces.
const FINISH: Duration = Duration::from_secs(2);

const MORE: &str = "\n[… there is more, which is not shown while it runs …]\n";

/// Whose output it is.
#[derive(Clone, Debug)]
pub(super) struct OutputOf {
    pub(super) origin: Origin,
    pub(super) call_id: CallId,
    /// The message whose call it is.
    pub(super) message_id: MessageId,
}

/// See the module. Most calls say nothing while they run: what would tell it is no task of its own.
pub(super) struct Live {
    shared: Arc<Shared>,
    /// None where the session takes no more.
    pump: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

#[derive(Debug, Default)]
struct Shared {
    held: Mutex<Held>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Held {
    text: String,
    /// Bytes that were left out before `text`.
    left_out: usize,
    finished: bool,
}

impl OutputSink for Shared {
    fn push(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        {
            let mut held = self.held.lock();
            held.text.push_str(text);
            if held.text.len() > HELD_BYTES {
                // The newest matters most to who watches.
                let cut = held.text.len() - HELD_BYTES / 2;
                let cut = held.text.ceil_char_boundary(cut);
                held.text.drain(..cut);
                held.left_out += cut;
            }
        }
        self.more.notify_one();
    }
}

/// For a call that nobody can watch.
pub(super) fn unseen() -> LiveOutput {
    #[derive(Debug)]
    struct Unseen;
    impl OutputSink for Unseen {
        fn push(&self, _: &str) {}
    }
    Arc::new(Unseen)
}

impl Live {
    pub(super) fn new(session: Addr<SessionActor>, of: OutputOf) -> Self {
        let shared = Arc::new(Shared::default());
        Self {
            pump: Some(Box::pin(pump(Arc::clone(&shared), session, of))),
            shared,
        }
    }

    /// For the tool.
    pub(super) fn output(&self) -> LiveOutput {
        Arc::clone(&self.shared) as LiveOutput
    }

    /// Does this work, and tells meanwhile what it says.
    pub(super) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        if let Some(pump) = &mut self.pump {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = pump => {}
            }
        }
        self.pump = None;
        work.await
    }

    /// Sends what is left, before the result is told.
    pub(super) async fn finish(self) {
        self.shared.held.lock().finished = true;
        self.shared.more.notify_one();
        if let Some(pump) = self.pump {
            // A session that takes longer has the result to tell.
            let _ = tokio::time::timeout(FINISH, pump).await;
        }
    }
}

async fn pump(shared: Arc<Shared>, session: Addr<SessionActor>, of: OutputOf) {
    let mut units = 0;
    let mut shown = 0;
    loop {
        shared.more.notified().await;
        let (mut text, left_out, finished) = {
            let mut held = shared.held.lock();
            let text = std::mem::take(&mut held.text);
            (text, std::mem::take(&mut held.left_out), held.finished)
        };
        if left_out > 0 {
            text.insert_str(0, &format!("\n[… {left_out} bytes are not shown here …]\n"));
        }
        if shown < SHOWN_BYTES {
            if shown + text.len() > SHOWN_BYTES {
                text.truncate(text.floor_char_boundary(SHOWN_BYTES - shown));
                text.push_str(MORE);
            }
            shown += text.len();
            let pieces = pieces(&of, &mut units, &text);
            if !pieces.is_empty() {
                let (tx, told) = oneshot::channel();
                // One at a time: it is waited for.
                session.do_send(Stream(pieces, tx));
                if !matches!(told.await, Ok(Ok(_))) {
                    return;
                }
            }
        }
        if finished {
            return;
        }
        tokio::time::sleep(TICK).await;
    }
}

fn pieces(of: &OutputOf, units: &mut u64, text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        pieces.push(Piece {
            origin: of.origin,
            part_id: PartId::output(&of.call_id),
            kind: PartKind::ToolOutput,
            message_id: of.message_id,
            offset: *units,
            text: head.to_owned(),
        });
        *units += utf16_len(head);
        rest = tail;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use crate::protocol::ids::RunId;

    use super::*;

    #[test]
    fn what_waits_is_bounded_and_says_so() {
        let shared = Shared::default();
        for _ in 0..100 {
            shared.push(&"ї".repeat(1000));
        }
        let held = shared.held.lock();
        assert!(held.text.len() <= HELD_BYTES);
        assert_eq!(held.left_out + held.text.len(), 200_000);
    }

    #[test]
    fn pieces_follow_on_each_other() {
        let of = OutputOf {
            origin: Origin::foreground(RunId::new()),
            call_id: CallId::new(),
            message_id: MessageId::new(),
        };
        let mut units = 0;
        let text = "😀x".repeat(2000);
        let mut all = pieces(&of, &mut units, &text);
        all.extend(pieces(&of, &mut units, "end"));
        let mut at = 0;
        let mut joined = String::new();
        for piece in &all {
            assert_eq!(piece.offset, at);
            assert!(piece.text.len() <= PIECE_BYTES);
            at = piece.end();
            joined.push_str(&piece.text);
        }
        assert_eq!(joined, text + "end");
        assert_eq!(units, at);
    }
}
