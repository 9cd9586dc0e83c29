//! Where one tab is, and what it is told next: of the log, of what is open, of what comes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::{Told, Upstream, piece_of};
use crate::metrics;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::{Envelope, Event};
use crate::protocol::ids::PartId;
use crate::services::now;
use crate::session::messages::{Attach, Attached, Start};
use crate::session::sequencer::{At, Frame, Piece, encode};
use crate::store::{LogCursor, LogItem, LogRange, PageLimits};

/// How much of the log is read at a time.
const PAGE: PageLimits = PageLimits {
    items: 200,
    bytes: 256 * 1024,
};

/// Text of the log is joined up to about this much.
const JOINED_BYTES: usize = 32 * 1024;

/// How many parts a feed remembers its place in. Few are ever open at once.
const PARTS: usize = 16;

/// How often a session that went away is asked for again, and the first pause.
const REJOINS: u32 = 6;
const REJOIN_PAUSE: Duration = Duration::from_millis(100);

/// A session that goes again sooner than this was not back: a full disk lets it be read and
/// not go on.
const BACK_FOR: Duration = Duration::from_secs(1);

struct Tab<U> {
    upstream: U,
    /// The last event that the tab has.
    seq: u64,
    epoch: i64,
    /// The log does not go back to `seq` any more.
    is_expired: bool,
    /// How far the tab is in parts that it was sent text of.
    parts: VecDeque<(PartId, u64)>,
    out: VecDeque<Told>,
    source: Source,
    /// Reads of the log that failed, one after the other.
    failed_reads: u32,
    joined_at: Instant,
    /// How often the session was asked for since it was last there for a while.
    rejoins: u32,
}

enum Source {
    Log(Missed, Live),
    Open(VecDeque<Arc<Piece>>, Live),
    Live(Live),
    Over,
}

/// What a tab missed: the log from `from` up to `upto`, then the open parts, block by block.
struct Missed {
    from: LogCursor,
    upto: u64,
    /// Parts whose text is wanted from before the tab's cursor, too.
    across: Vec<PartId>,
    open: VecDeque<Arc<Piece>>,
}

/// What comes, for as long as its session lives.
struct Live {
    frames: Receiver<Arc<Frame>>,
    /// Kept from one frame to the next.
    given_up: Pin<Box<WaitForCancellationFutureOwned>>,
}

enum Next {
    Frame(Arc<Frame>),
    /// The tab is too far behind for what is live.
    Behind,
    /// The session is.
    Gone,
}

impl Live {
    async fn next(&mut self) -> Next {
        tokio::select! {
            biased;
            // It hangs: it sends no more, and does not go either.
            () = &mut self.given_up => Next::Gone,
            frame = self.frames.recv() => match frame {
                Ok(frame) => Next::Frame(frame),
                Err(RecvError::Lagged(_)) => {
                    metrics::record(|on| on.service.tab_behind());
                    Next::Behind
                }
                Err(RecvError::Closed) => Next::Gone,
            },
        }
    }
}

/// What a tab is told that has joined.
///
/// # Errors
/// Where the session cannot be read.
pub(super) async fn told_of<U: Upstream>(
    upstream: U,
    attached: Attached,
) -> Result<impl Stream<Item = Told> + Send + use<U>, NaviError> {
    let mut tab = Tab {
        upstream,
        seq: 0,
        epoch: attached.epoch,
        is_expired: false,
        parts: VecDeque::new(),
        out: VecDeque::new(),
        source: Source::Over,
        failed_reads: 0,
        joined_at: Instant::now(),
        rejoins: 0,
    };
    tab.join(attached).await?;
    let told = futures_util::stream::unfold(tab, |mut tab| async move {
        tab.next().await.map(|told| (told, tab))
    });
    Ok(Box::pin(told))
}

impl<U: Upstream> Tab<U> {
    async fn next(&mut self) -> Option<Told> {
        loop {
            fail::fail_point!("tab::feed");
            if let Some(frame) = self.out.pop_front() {
                return Some(frame);
            }
            match std::mem::replace(&mut self.source, Source::Over) {
                Source::Over => return None,
                // Apart, as the other way to the store below: a tab that waits has no room for it.
                Source::Log(missed, live) => Box::pin(self.read_log(missed, live)).await,
                Source::Open(mut blocks, live) => {
                    self.source = match blocks.pop_front() {
                        Some(block) => {
                            self.take_piece(&block);
                            Source::Open(blocks, live)
                        }
                        None => Source::Live(live),
                    };
                }
                Source::Live(mut live) => {
                    let next = live.next().await;
                    match next {
                        Next::Frame(frame) if self.take(&frame) => {
                            self.source = Source::Live(live);
                        }
                        // What does not follow on what it has, it finds in the log.
                        Next::Frame(_) | Next::Behind | Next::Gone => {
                            if !matches!(next, Next::Gone) || self.joined_at.elapsed() >= BACK_FOR {
                                self.rejoins = 0;
                            }
                            // The receiver goes first: what it held is not needed any more.
                            drop(live);
                            Box::pin(self.rejoin()).await;
                        }
                    }
                }
            }
        }
    }

    async fn join(&mut self, attached: Attached) -> Result<(), NaviError> {
        self.epoch = attached.epoch;
        let (after, upto, across) = match attached.start {
            Start::Log {
                after,
                upto,
                across,
            } => (after, upto, across),
            Start::Resync { reason, outline } => {
                let session = Box::new(self.upstream.fill(outline).await?);
                let seq = session.last_seq;
                let resync = encode(&Envelope {
                    seq: Some(seq),
                    run_id: session.run.as_ref().map(|run| run.run_id),
                    parent_run_id: None,
                    at: now(),
                    event: Event::Resync { reason, session },
                });
                self.out.push_back(resync.into());
                self.parts.clear();
                (seq, seq, Vec::new())
            }
        };
        self.seq = after;
        self.is_expired = false;
        let open: VecDeque<_> = attached.open.into();
        let live = Live {
            frames: attached.live,
            given_up: Box::pin(attached.given_up.cancelled_owned()),
        };
        if after == upto && across.is_empty() {
            // What came after the last event is in memory, whole.
            self.source = Source::Open(open, live);
            return Ok(());
        }
        let earliest = across.iter().map(|span| span.after).min();
        let missed = Missed {
            from: LogCursor {
                seq: earliest.unwrap_or(after),
                chunk: 0,
            },
            upto,
            across: across.into_iter().map(|span| span.part_id).collect(),
            open,
        };
        self.source = Source::Log(missed, live);
        Ok(())
    }

    async fn read_log(&mut self, missed: Missed, live: Live) {
        let range = LogRange {
            from: missed.from,
            to_seq: missed.upto,
        };
        let page = match self.upstream.page(range, PAGE).await {
            Ok(Some(page)) => page,
            Ok(None) => {
                drop(live);
                self.is_expired = true;
                self.rejoin().await;
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "log cannot be read, trying again");
                drop(live);
                self.failed_reads += 1;
                if self.failed_reads <= REJOINS {
                    self.rejoin().await;
                }
                return;
            }
        };
        self.failed_reads = 0;
        // Text is told before the event that it was told before: a tab that leaves once it has
        // the event comes back with that as its cursor.
        let mut text: Vec<Piece> = Vec::new();
        for item in page.items {
            match item {
                LogItem::Event(event) if event.seq <= self.seq => {}
                LogItem::Event(event) => {
                    self.take_text(&mut text, &missed.open);
                    self.seq = event.seq;
                    let json = self.upstream.shown(Some(event.seq), event.json.into());
                    self.out.push_back(json.into());
                }
                LogItem::Chunk(chunk)
                    if chunk.after_seq < self.seq && !missed.across.contains(&chunk.part_id) => {}
                LogItem::Chunk(chunk) => match text.last_mut() {
                    Some(last)
                        if last.part_id == chunk.part_id
                            && last.end() == chunk.offset
                            && last.text.len() < JOINED_BYTES =>
                    {
                        last.text.push_str(&chunk.text);
                    }
                    _ => text.push(piece_of(chunk)),
                },
            }
        }
        if page.next.is_none() {
            // The rest of an open part follows from memory, as one piece with this.
            text.retain(|piece| missed.open.iter().all(|it| it.part_id != piece.part_id));
        }
        self.take_text(&mut text, &missed.open);
        self.source = match page.next {
            Some(from) => Source::Log(Missed { from, ..missed }, live),
            None => Source::Open(missed.open, live),
        };
    }

    /// Takes a live frame. False where it does not follow on what the tab has.
    fn take(&mut self, frame: &Arc<Frame>) -> bool {
        let Some(json) = &frame.json else {
            return false;
        };
        let shown = match &frame.place {
            At::Nowhere => self.upstream.shown(None, json.clone()),
            At::Event(seq) if *seq <= self.seq => return true,
            At::Event(seq) => {
                self.seq = *seq;
                self.upstream.shown(Some(*seq), json.clone())
            }
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
                self.set_place(part_id, *end);
                json.clone()
            }
        };
        // What was made for this one is not what the others read.
        let is_same = shown.as_ptr() == json.as_ptr();
        let live = is_same.then(|| Arc::clone(frame));
        self.out.push_back(Told { json: shown, live });
        true
    }

    /// Sends text of the log. Of an open part that began before the tab's cursor it has perhaps
    /// nothing, as one does that began with a snapshot: that part follows, from its beginning.
    fn take_text(&mut self, text: &mut Vec<Piece>, open: &VecDeque<Arc<Piece>>) {
        for piece in text.drain(..) {
            let have = self.place_in(&piece.part_id).unwrap_or(0);
            let mut blocks = open.iter();
            if piece.offset <= have || blocks.all(|it| it.part_id != piece.part_id) {
                self.take_piece(&piece);
            }
        }
    }

    /// Sends what of a piece the tab does not have.
    fn take_piece(&mut self, piece: &Piece) {
        let have = self.place_in(&piece.part_id).unwrap_or(0);
        if let Some(rest) = piece.after(have) {
            self.set_place(&rest.part_id, rest.end());
            self.out.extend(rest.frame(now()).json.map(Told::from));
        }
    }

    fn place_in(&self, part: &PartId) -> Option<u64> {
        self.parts
            .iter()
            .find(|(known, _)| known == part)
            .map(|(_, place)| *place)
    }

    fn set_place(&mut self, part: &PartId, end: u64) {
        match self.parts.iter_mut().find(|(known, _)| known == part) {
            Some((_, place)) => *place = end,
            None => {
                if self.parts.len() == PARTS {
                    self.parts.pop_front();
                }
                self.parts.push_back((part.clone(), end));
            }
        }
    }

    async fn rejoin(&mut self) {
        while self.rejoins < REJOINS {
            if self.rejoins > 0 {
                let pause = REJOIN_PAUSE * 2_u32.pow(self.rejoins - 1);
                self.upstream.pause(pause).await;
            }
            self.rejoins += 1;
            let attach = Attach {
                after: Some(self.seq),
                epoch: Some(self.epoch),
                is_expired: self.is_expired,
                without_past: false,
            };
            match self.upstream.join(attach).await {
                Ok(attached) => match self.join(attached).await {
                    Ok(()) => {
                        self.joined_at = Instant::now();
                        return;
                    }
                    Err(error) => tracing::warn!(%error, "session cannot be read"),
                },
                Err(NaviError {
                    code: ErrorCode::SessionNotFound | ErrorCode::ShuttingDown,
                    ..
                }) => return,
                Err(error) => {
                    tracing::debug!(%error, "session is not back yet");
                }
            }
        }
    }
}
