//! A tab's feed: what it missed, then what comes, with no gap and no repeat.
//!
//! A feed belongs to one tab and is only as far as that tab has read: nothing is kept for
//! it but its place. One that falls behind the live broadcast reads the log from its place
//! on; one whose session started over joins the new one.

mod link;
mod list;
mod tab;

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures_util::{Stream, StreamExt as _};

pub(crate) use self::list::watch_feed;
use self::tab::told_of;
use crate::domain::session::write::ChunkRow;
use crate::domain::sharing::By;
use crate::engine::Engine;
use crate::onlookers::Onlooker;
use crate::protocol::error::NaviError;
use crate::protocol::event::Envelope;
use crate::protocol::ids::{Origin, SessionId};
use crate::protocol::session::SessionSnapshot;
use crate::root::OpenSession;
use crate::services::now;
use crate::session::messages::{Attach, Attached};
use crate::session::outline::Outline;
use crate::session::sequencer::{Frame, Piece};
use crate::store::{LogItem, LogPage, LogRange, PageLimits};

/// Whole frames as a tab is sent them. Ends when the session is gone or the service closes.
pub type Feed = Pin<Box<dyn Stream<Item = ByteString> + Send>>;

/// The same, for whoever reads the events in this process.
pub type Events = Pin<Box<dyn Stream<Item = Told> + Send>>;

/// A frame, and the event in it where that needs not be read.
#[derive(Debug)]
pub struct Told {
    json: ByteString,
    /// As all are told it that watch now.
    live: Option<Arc<Frame>>,
}

impl Told {
    /// What the frame says.
    ///
    /// # Errors
    /// It is none of ours.
    pub fn envelope(&self) -> Result<Cow<'_, Envelope>, serde_json::Error> {
        match self.live.as_ref().and_then(|it| it.envelope.as_deref()) {
            Some(envelope) => Ok(Cow::Borrowed(envelope)),
            None => serde_json::from_str(&self.json).map(Cow::Owned),
        }
    }
}

/// Of the log, or made for this one.
impl From<ByteString> for Told {
    fn from(json: ByteString) -> Self {
        Self { json, live: None }
    }
}

/// Where a tab's feed comes from: the session that it watches, and what is stored of it.
pub trait Upstream: Send + Sync + 'static {
    /// Joins the session's events.
    fn join(&self, attach: Attach) -> impl Future<Output = Result<Attached, NaviError>> + Send;

    /// Reads into a snapshot what is stored of it.
    fn fill(
        &self,
        outline: Box<Outline>,
    ) -> impl Future<Output = Result<SessionSnapshot, NaviError>> + Send;

    /// Reads a page of the log. None where it does not go back that far any more.
    fn page(
        &self,
        range: LogRange,
        limits: PageLimits,
    ) -> impl Future<Output = Result<Option<LogPage>, NaviError>> + Send;

    /// An event with its number, as far as it is for whoever watches.
    fn shown(&self, seq: Option<u64>, json: ByteString) -> ByteString;

    /// Lets time pass.
    fn pause(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// A session of this process, as somebody may watch it.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) engine: Engine,
    pub(crate) by: By,
    pub(crate) session: SessionId,
    /// How many messages a snapshot has at the most; all where it is not said.
    pub(crate) newest: Option<u32>,
}

impl Upstream for Watched {
    async fn join(&self, attach: Attach) -> Result<Attached, NaviError> {
        let open = OpenSession::as_onlooker(self.by, self.session);
        self.engine.join(open, attach).await
    }

    async fn fill(&self, outline: Box<Outline>) -> Result<SessionSnapshot, NaviError> {
        let newest = self.newest;
        let filled = self
            .engine
            .stored(async move |store| outline.fill(&store, newest).await);
        Ok(filled.await?.seen_by(self.by.person()))
    }

    async fn page(
        &self,
        range: LogRange,
        limits: PageLimits,
    ) -> Result<Option<LogPage>, NaviError> {
        let session = self.session;
        self.engine
            .stored(async move |store| store.log_page(session, range, limits).await)
            .await
    }

    fn shown(&self, seq: Option<u64>, json: ByteString) -> ByteString {
        match self.by {
            By::Person(_) => json,
            By::Link(_) => link::shown(seq, json),
        }
    }

    async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

impl Watched {
    fn onlooker(&self) -> Onlooker {
        self.engine.onlookers().watch(self.by, self.session)
    }
}

/// The feed of whoever watches a session, for as long as they reach it.
///
/// # Errors
/// As [`feed`].
pub(crate) async fn watched(watched: Watched, attach: Attach) -> Result<Feed, NaviError> {
    let events = followed(watched, attach).await?;
    Ok(Box::pin(events.map(|told| told.json)))
}

/// The same as events.
///
/// # Errors
/// As [`feed`].
pub(crate) async fn followed(watched: Watched, attach: Attach) -> Result<Events, NaviError> {
    let onlooker = watched.onlooker();
    let attached = watched.join(attach).await?;
    let told = told_of(watched, attached).await?;
    Ok(Box::pin(told.take_until(Box::pin(onlooker.ended()))))
}

/// The same of one who has joined.
///
/// # Errors
/// As [`told_of`].
pub(crate) async fn followed_from(
    watched: Watched,
    attached: Attached,
) -> Result<Events, NaviError> {
    let onlooker = watched.onlooker();
    let told = told_of(watched, attached).await?;
    Ok(Box::pin(told.take_until(Box::pin(onlooker.ended()))))
}

/// The feed of a tab that joins with the cursor in `attach`.
///
/// # Errors
/// Where the session cannot be joined or read.
pub async fn feed(upstream: impl Upstream, attach: Attach) -> Result<Feed, NaviError> {
    let attached = upstream.join(attach).await?;
    let told = told_of(upstream, attached).await?;
    Ok(Box::pin(told.map(|told| told.json)))
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
