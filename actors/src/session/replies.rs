//! Who waits for a session's answers.

use std::collections::HashMap;

use tokio::sync::oneshot;

use super::messages::{Attach, Attached, RunGone};
use super::outline::Outline;
use crate::domain::session::transition::{Refused, Reply, ReplyTo};
use crate::protocol::error::{ErrorCode, NaviError, invalid};
use crate::protocol::phrase::PhraseCode;
use crate::tools::ToolError;

/// One who waits.
#[derive(Debug)]
pub(super) enum Waiting {
    Reply(oneshot::Sender<Result<Reply, Refused>>),
    /// For the session as it stands once all before it is told.
    Outline(oneshot::Sender<Outline>),
    Attached(Attach, oneshot::Sender<Attached>),
}

/// Those who wait. They go with the actor, and are told so by that.
#[derive(Debug, Default)]
pub(super) struct Replies {
    waiting: HashMap<ReplyTo, Waiting>,
    last: u64,
}

impl Replies {
    /// An address at which nobody waits.
    pub(super) fn nobody(&mut self) -> ReplyTo {
        self.last += 1;
        ReplyTo(self.last)
    }

    pub(super) fn open(&mut self, waiting: Waiting) -> ReplyTo {
        let to = self.nobody();
        self.waiting.insert(to, waiting);
        to
    }

    pub(super) fn take(&mut self, to: ReplyTo) -> Option<Waiting> {
        self.waiting.remove(&to)
    }
}

/// Why there is no reply of the kind that was asked for.
#[derive(Debug)]
pub enum NoReply {
    Refused(Refused),
    /// The session went over a failed commit, or was given up.
    Lost,
}

/// Waits for a reply of this kind.
pub(crate) async fn reply<T: TryFrom<Reply>>(
    rx: oneshot::Receiver<Result<Reply, Refused>>,
) -> Result<T, NoReply> {
    match rx.await {
        Ok(Ok(reply)) => T::try_from(reply).map_err(|_| NoReply::Lost),
        Ok(Err(refused)) => Err(NoReply::Refused(refused)),
        Err(_) => Err(NoReply::Lost),
    }
}

impl NoReply {
    /// What a person is told.
    #[must_use]
    pub fn into_error(self) -> NaviError {
        match self {
            Self::Refused(Refused::Error(error)) => error,
            Self::Refused(Refused::Problem(problem)) => invalid(problem),
            Self::Refused(Refused::RunGone) | Self::Lost => {
                NaviError::said(ErrorCode::StoreUnavailable, PhraseCode::NotStored)
            }
        }
    }
}

impl From<NoReply> for RunGone {
    fn from(_: NoReply) -> Self {
        Self
    }
}

impl From<NoReply> for ToolError {
    fn from(no_reply: NoReply) -> Self {
        match no_reply {
            NoReply::Refused(Refused::Problem(problem)) => Self(problem),
            NoReply::Refused(Refused::Error(error)) => Self(error.message),
            NoReply::Refused(Refused::RunGone) | NoReply::Lost => {
                Self("this could not be stored; nothing was changed".to_owned())
            }
        }
    }
}
