//! A tab's feed: what it missed, then what comes, with no gap and no repeat.
//!
//! A feed belongs to one tab and is only as far as that tab has read: nothing is kept for
//! it but its place. One that falls behind the live broadcast reads the log from its place
//! on; one whose session started over joins the new one.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures_util::Stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::engine::Engine;
use crate::hub::{Change, HubFrame};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::{Envelope, Event};
use crate::protocol::ids::{Origin, PartId, SessionId, UserId};
use crate::services::now;
use crate::session::messages::{Attach, Attached, Start};
use crate::session::sequencer::{At, Frame, Piece, encode};
use crate::store::{ChunkRow, LogCursor, LogItem, LogRange, PageLimits};

/// Whole frames as a tab is sent them. Ends when the session is gone or the service closes.
pub type Feed = Pin<Box<dyn Stream<Item = ByteString> + Send>>;

/// How much of the log is read at a time.
const PAGE: PageLimits = PageLimits {
    items: 200,
    bytes: 512 * 1024,
};

/// How many parts a feed remembers its place in. Few are ever open at once.
const PARTS: usize = 16;

/// How often a session that went away is asked for again, and the first pause.
const REJOINS: u32 = 6;
const REJOIN_PAUSE: Duration = Duration::from_millis(100);

struct Tab {
    engine: Engine,
    user: UserId,
    session: SessionId,
    /// The last event that the tab has.
    seq: u64,
    epoch: i64,
    /// How far the tab is in parts that it was sent text of.
    parts: VecDeque<(PartId, u64)>,
    out: VecDeque<ByteString>,
    source: Source,
    /// Reads of the log that failed, one after the other.
    failed_reads: u32,
}

enum Source {
    /// Reading the log up to `upto`; then the open parts; then what comes.
    Log {
        from: LogCursor,
        upto: u64,
        open: Vec<Piece>,
        live: Receiver<Frame>,
    },
    Live(Receiver<Frame>),
    Over,
}

/// The feed of a tab that was just attached. `after` is the cursor that it came with.
pub(crate) async fn feed(
    engine: Engine,
    user: UserId,
    session: SessionId,
    attached: Attached,
) -> Result<Feed, NaviError> {
    let mut tab = Tab {
        engine,
        user,
        session,
        seq: 0,
        epoch: attached.epoch,
        parts: VecDeque::new(),
        out: VecDeque::new(),
        source: Source::Over,
        failed_reads: 0,
    };
    tab.join(attached).await?;
    Ok(Box::pin(futures_util::stream::unfold(
        tab,
        |mut tab| async move { tab.next().await.map(|frame| (frame, tab)) },
    )))
}

impl Tab {
    async fn next(&mut self) -> Option<ByteString> {
        loop {
            if let Some(frame) = self.out.pop_front() {
                return Some(frame);
            }
            match std::mem::replace(&mut self.source, Source::Over) {
                Source::Over => return None,
                Source::Log {
                    from,
                    upto,
                    open,
                    live,
                } => self.read_log(from, upto, open, live).await,
                Source::Live(mut live) => match live.recv().await {
                    Ok(frame) if self.take(&frame) => self.source = Source::Live(live),
                    Ok(_) | Err(RecvError::Lagged(_) | RecvError::Closed) => {
                        // The receiver goes first: what it held is not needed any more.
                        drop(live);
                        self.rejoin().await;
                    }
                },
            }
        }
    }

    async fn join(&mut self, attached: Attached) -> Result<(), NaviError> {
        self.epoch = attached.epoch;
        let (after, upto) = match attached.start {
            Start::Log { after, upto } => (after, upto),
            Start::Resync { reason, outline } => {
                let session = self
                    .engine
                    .stored(async move |store| outline.fill(&store).await);
                let session = Box::new(session.await?);
                let seq = session.last_seq;
                self.out.push_back(encode(&Envelope {
                    seq: Some(seq),
                    run_id: session.run.as_ref().map(|run| run.run_id),
                    parent_run_id: None,
                    at: now(),
                    event: Event::Resync { reason, session },
                }));
                self.parts.clear();
                (seq, seq)
            }
        };
        self.seq = after;
        self.source = Source::Log {
            from: LogCursor {
                seq: after,
                chunk: 0,
            },
            upto,
            open: attached.open,
            live: attached.live,
        };
        Ok(())
    }

    async fn read_log(
        &mut self,
        from: LogCursor,
        upto: u64,
        open: Vec<Piece>,
        live: Receiver<Frame>,
    ) {
        let range = LogRange { from, to_seq: upto };
        let session = self.session;
        let page = self
            .engine
            .stored(async move |store| store.log_page(session, range, PAGE).await);
        let page = match page.await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(session = %self.session, %error, "log cannot be read, trying again");
                drop(live);
                self.failed_reads += 1;
                if self.failed_reads <= REJOINS {
                    self.rejoin().await;
                }
                return;
            }
        };
        self.failed_reads = 0;
        for item in page.items {
            match item {
                LogItem::Event(event) => {
                    self.seq = event.seq;
                    self.out.push_back(event.json.into());
                }
                LogItem::Chunk(chunk) => {
                    // Open parts come whole, from memory, after the log.
                    if open.iter().any(|part| part.part_id == chunk.part_id) {
                        continue;
                    }
                    self.take_piece(piece_of(chunk));
                }
            }
        }
        self.source = match page.next {
            Some(from) => Source::Log {
                from,
                upto,
                open,
                live,
            },
            None => {
                for piece in open {
                    self.take_piece(piece);
                }
                Source::Live(live)
            }
        };
    }

    /// Takes a live frame. False where it does not follow on what the tab has.
    fn take(&mut self, frame: &Frame) -> bool {
        let Some(json) = &frame.json else {
            return false;
        };
        match &frame.place {
            At::Event(seq) if *seq <= self.seq => return true,
            At::Event(seq) => self.seq = *seq,
            At::Part {
                part_id,
                start,
                end,
            } => {
                let have = self.place_in(part_id).unwrap_or(0);
                if *end <= have {
                    return true;
                }
                if *start != have {
                    return false;
                }
                self.set_place(part_id.clone(), *end);
            }
        }
        self.out.push_back(json.clone());
        true
    }

    /// Sends what of a piece the tab does not have.
    fn take_piece(&mut self, piece: Piece) {
        let have = self.place_in(&piece.part_id).unwrap_or(0);
        if let Some(rest) = piece.after(have) {
            self.set_place(rest.part_id.clone(), rest.end());
            self.out.extend(rest.frame(now()).json);
        }
    }

    fn place_in(&self, part: &PartId) -> Option<u64> {
        self.parts
            .iter()
            .find(|(known, _)| known == part)
            .map(|(_, place)| *place)
    }

    fn set_place(&mut self, part: PartId, end: u64) {
        match self.parts.iter_mut().find(|(known, _)| *known == part) {
            Some((_, place)) => *place = end,
            None => {
                if self.parts.len() == PARTS {
                    self.parts.pop_front();
                }
                self.parts.push_back((part, end));
            }
        }
    }

    async fn rejoin(&mut self) {
        for tried in 0..REJOINS {
            let attach = Attach {
                after: Some(self.seq),
                epoch: Some(self.epoch),
            };
            match self.engine.join(self.user, self.session, attach).await {
                Ok(attached) => match self.join(attached).await {
                    Ok(()) => return,
                    Err(error) => tracing::warn!(%error, "session cannot be read"),
                },
                Err(NaviError {
                    code: ErrorCode::SessionNotFound | ErrorCode::ShuttingDown,
                    ..
                }) => return,
                Err(error) => {
                    tracing::debug!(session = %self.session, %error, "session is not back yet");
                }
            }
            tokio::time::sleep(REJOIN_PAUSE * 2_u32.pow(tried)).await;
        }
    }
}

fn piece_of(chunk: ChunkRow) -> Piece {
    Piece {
        origin: Origin {
            run_id: chunk.run_id,
            parent_run_id: chunk.parent_run_id,
        },
        part_id: chunk.part_id,
        kind: chunk.kind,
        message_id: chunk.message_id,
        offset: chunk.offset,
        text: chunk.text,
    }
}

/// An item of the log as a tab gets it.
pub(crate) fn json_of(item: LogItem) -> Option<ByteString> {
    match item {
        LogItem::Event(event) => Some(event.json.into()),
        LogItem::Chunk(chunk) => piece_of(chunk).frame(now()).json,
    }
}

/// The feed of a page that watches the session list: everything first, then each change.
pub(crate) fn watch_feed(engine: Engine, user: UserId) -> Feed {
    let changes = engine.hub().listen();
    let page = Page {
        engine,
        user,
        changes,
        starts: true,
    };
    Box::pin(futures_util::stream::unfold(page, |mut page| async move {
        page.next().await.map(|frame| (frame, page))
    }))
}

struct Page {
    engine: Engine,
    user: UserId,
    changes: Receiver<Arc<Change>>,
    /// The whole list is to be sent next.
    starts: bool,
}

impl Page {
    async fn next(&mut self) -> Option<ByteString> {
        loop {
            if std::mem::take(&mut self.starts) {
                let sessions = self.engine.sessions(self.user).await.ok()?;
                let status = Box::new(self.engine.status());
                return Some(hub_frame(&HubFrame::Sessions { sessions, status }));
            }
            tokio::select! {
                () = self.engine.closed() => return None,
                change = self.changes.recv() => match change {
                    Ok(change) if change.user.is_none_or(|user| user == self.user) => {
                        return Some(hub_frame(&change.frame));
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => self.starts = true,
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }
}

fn hub_frame(frame: &HubFrame) -> ByteString {
    serde_json::to_string(frame).unwrap_or_default().into()
}
