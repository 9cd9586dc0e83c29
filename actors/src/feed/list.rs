//! The feed of a page that watches the session list.

use std::sync::Arc;

use bytestring::ByteString;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Feed;
use crate::engine::Engine;
use crate::hub::{Change, HubFrame};
use crate::protocol::ids::UserId;
use crate::protocol::people::UserRole;
use crate::protocol::status::SystemStatus;
use crate::store::Listed;

/// The feed of a page that watches the session list: everything first, then each change.
pub(crate) fn watch_feed(engine: Engine, user: UserId, role: UserRole) -> Feed {
    let changes = engine.hub().listen();
    let page = Page {
        engine,
        user,
        role,
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
    role: UserRole,
    changes: Receiver<Arc<Change>>,
    /// The whole list is to be sent next.
    starts: bool,
}

impl Page {
    async fn next(&mut self) -> Option<ByteString> {
        loop {
            if std::mem::take(&mut self.starts) {
                let sessions = self
                    .engine
                    .sessions(self.user, Listed::Current)
                    .await
                    .ok()?;
                let status = Box::new(self.engine.status().seen_by(self.role));
                return Some(hub_frame(&HubFrame::Sessions { sessions, status }));
            }
            tokio::select! {
                () = self.engine.closed() => return None,
                change = self.changes.recv() => match change {
                    Ok(change) if change.user.is_none_or(|user| user == self.user) => {
                        return Some(self.shown(&change.frame));
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => self.starts = true,
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }

    /// A change, as far as it is for who watches.
    fn shown(&self, frame: &HubFrame) -> ByteString {
        match frame {
            HubFrame::Status { status } => {
                let status = Box::new(SystemStatus::clone(status).seen_by(self.role));
                hub_frame(&HubFrame::Status { status })
            }
            HubFrame::Sessions { .. }
            | HubFrame::SessionChanged { .. }
            | HubFrame::SessionRemoved { .. }
            | HubFrame::Pong {} => hub_frame(frame),
        }
    }
}

fn hub_frame(frame: &HubFrame) -> ByteString {
    serde_json::to_string(frame).unwrap_or_default().into()
}
