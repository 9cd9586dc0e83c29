//! A tab: the real feed over the model's session and log, and a client behind it.

use std::time::Duration;

use bytestring::ByteString;
use futures_util::StreamExt;
use navi_actors::feed::{Upstream, feed};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::session::SessionSnapshot;
use navi_actors::session::messages::{Attach, Attached};
use navi_actors::session::outline::Outline;
use navi_actors::store::{LogPage, LogRange, PageLimits};
use shuttle::future::yield_now;
use tokio::sync::oneshot;

use crate::house::House;
use crate::session::Say;
use crate::view::View;

/// So little that a log has several pages.
const PAGE: usize = 2;

impl House {
    /// Asks the session that lives, or one that is started. None where it went under it.
    pub(crate) async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<T>) -> Say,
    ) -> Option<T> {
        let session = self.open().await;
        let (tx, rx) = oneshot::channel();
        session.to.send(question(tx)).ok()?;
        session.given_up.run_until_cancelled(rx).await?.ok()
    }
}

impl Upstream for House {
    async fn join(&self, attach: Attach) -> Result<Attached, NaviError> {
        yield_now().await;
        let attached = self.ask(|reply| Say::Attach(attach, reply)).await;
        yield_now().await;
        attached.ok_or_else(|| NaviError::new(ErrorCode::Internal, "it went down"))
    }

    async fn fill(&self, outline: Box<Outline>) -> Result<SessionSnapshot, NaviError> {
        yield_now().await;
        Ok(outline.session)
    }

    async fn page(
        &self,
        range: LogRange,
        limits: PageLimits,
    ) -> Result<Option<LogPage>, NaviError> {
        yield_now().await;
        let items = limits.items.min(PAGE);
        let page = self.shelf.page(range, PageLimits { items, ..limits });
        yield_now().await;
        Ok(Some(page))
    }

    fn shown(&self, _: Option<u64>, json: ByteString) -> ByteString {
        json
    }

    async fn pause(&self, _: Duration) {
        yield_now().await;
    }
}

/// Watches until the end, and drops its connection after each of these numbers of frames.
pub(crate) async fn watch(house: House, drops: Vec<usize>) {
    let mut drops = drops.into_iter();
    let (seq, epoch) = loop {
        if let Some(standing) = house.ask(Say::Look).await {
            break standing;
        }
        yield_now().await;
    };
    let mut view = View::new(house.shelf.clone(), seq, epoch);
    while !view.has_the_end {
        let attach = Attach {
            after: Some(view.seq),
            epoch: Some(view.epoch),
            ..Attach::default()
        };
        view.connect();
        let Ok(mut feed) = feed(house.clone(), attach).await else {
            yield_now().await;
            continue;
        };
        let mut left = drops.next().unwrap_or(usize::MAX);
        while !view.has_the_end && left > 0 {
            let Some(frame) = feed.next().await else {
                break;
            };
            view.apply(&frame);
            left -= 1;
            yield_now().await;
        }
    }
}
