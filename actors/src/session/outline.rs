//! A session as it stands, and its messages read in: all of them, or a page.

use std::collections::HashSet;

use crate::domain::history::{self, Branch, Segment};
use crate::protocol::command::CallDecision;
use crate::protocol::ids::{MessageId, RunId, SessionId};
use crate::protocol::message::Message;
use crate::protocol::session::{Compression, MessagePage, SessionSnapshot};
use crate::store::{Store, StoreError};

/// A snapshot whose messages are still in the store: those of the branch that is shown with
/// an ordinal below `message_count`.
#[derive(Debug)]
pub struct Outline {
    pub session: SessionSnapshot,
    pub message_count: u64,
    pub branches: Vec<Branch>,
    /// The branch that is shown.
    pub branch_id: u32,
    /// The newest foreground run, where that branch has it.
    pub last_run: Option<RunId>,
}

impl Outline {
    /// Reads the newest messages in (all of them where it is not said how many), and tells what
    /// only they can tell: where the conversation forks, and where the part begins that the
    /// model sees word for word.
    ///
    /// # Errors
    /// As [`Store::conversation`].
    pub async fn fill(
        mut self,
        store: &Store,
        newest: Option<u32>,
    ) -> Result<SessionSnapshot, StoreError> {
        // What was committed since and not told yet is for the events to tell.
        let page = self.page(store, self.message_count, newest).await?;
        self.session.compression = self.compression(store).await?;
        self.session.messages = page.messages;
        self.session.earlier = page.earlier;
        self.session.forks = page.forks;
        self.session.notices = page.notices;
        Ok(self.session)
    }

    /// The messages below an ordinal: the newest `most`, or all of them.
    ///
    /// # Errors
    /// As [`Store::conversation`].
    pub async fn page(
        &self,
        store: &Store,
        below: u64,
        most: Option<u32>,
    ) -> Result<MessagePage, StoreError> {
        let id = self.session.summary.id;
        let below = below.min(self.message_count);
        let read = store.conversation(id, &self.path(), below, most).await?;
        let first_from = |from: u64| {
            let index = read.messages.partition_point(|(at, _)| *at < from);
            let first = read.messages.get(index).filter(|_| from >= read.from);
            first.map(|(_, message)| message.id)
        };
        let forks = history::forks(&self.branches, self.branch_id, first_from);
        let mut messages: Vec<Message> = read.messages.into_iter().map(|(_, it)| it).collect();
        for message in &mut messages {
            message.decision = self.decision(message);
            if most.is_some() {
                message.image_urls = image_urls(id, message);
                message.images.clear();
            }
        }
        let shown: HashSet<RunId> = messages.iter().map(|message| message.run_id).collect();
        let told = store.notices(id, self.session.last_seq).await?.into_iter();
        let of_shown =
            told.filter(|(run_id, _)| shown.contains(run_id) || self.last_run == Some(*run_id));
        Ok(MessagePage {
            messages,
            earlier: read.earlier,
            forks,
            notices: of_shown.map(|(_, notice)| notice).collect(),
        })
    }

    fn path(&self) -> Vec<Segment> {
        history::path(&self.branches, self.branch_id)
    }

    fn shown(&self) -> Option<&Branch> {
        self.branches.iter().find(|it| it.id == self.branch_id)
    }

    async fn compression(&self, store: &Store) -> Result<Option<Compression>, StoreError> {
        let Some((branch, summary)) = self
            .shown()
            .and_then(|branch| Some((branch, branch.context.summary.as_ref()?)))
        else {
            return Ok(None);
        };
        let (id, path) = (self.session.summary.id, self.path());
        let kept = branch.context.start..self.message_count;
        let first = store.first_message(id, &path, kept);
        Ok(Some(Compression {
            summary: summary.content.clone().unwrap_or_default(),
            first_kept: first.await?,
        }))
    }

    /// What the user said of the call that this is the result of.
    fn decision(&self, message: &Message) -> Option<CallDecision> {
        let call = message.tool_call_id.as_ref()?;
        self.shown()?.context.decisions.get(call).copied()
    }
}

fn image_urls(session: SessionId, message: &Message) -> Vec<String> {
    let MessageId(id) = message.id;
    (0..message.images.len())
        .map(|at| format!("sessions/{session}/messages/{id}/images/{at}"))
        .collect()
}
