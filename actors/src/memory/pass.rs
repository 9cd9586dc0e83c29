//! One pass: idle sessions read one after the other, then the summary.

use std::time::Duration;

use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;

use crate::completion::{Question, ask};
use crate::domain::context;
use crate::domain::memory::{extraction, summary};
use crate::domain::model_choice::{Choice, Wanted};
use crate::llm::guard::StreamLimits;
use crate::llm_actor::Priority;
use crate::models::Models;
use crate::protocol::chat::ChatMessage;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::UserId;
use crate::services::now;
use crate::store::{Finished, Reading, Store, StoreError, UnreadSession};

/// The most model calls of a pass that read sessions; a message that takes several is read to its
/// end all the same.
const READINGS: usize = 10;

/// No call takes longer, the wait for a slot included.
const CALL_LIMIT: Duration = Duration::from_secs(15 * 60);

/// A list of thirty short facts.
const FACTS_TOKENS: u32 = 1_200;

/// A note of 150 words, in languages that need more tokens a word too.
const SUMMARY_TOKENS: u32 = 600;

/// How often a summary is tried again because a fact changed while the model wrote it.
const SUMMARY_TRIES: usize = 3;

/// Reads sessions and writes summaries. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reader {
    pub store: Store,
    pub models: Models,
    pub limits: StreamLimits,
    /// The window that backends are asked for, in tokens.
    pub context_window: u32,
    /// How long a session must have been idle.
    pub idle_after: Duration,
    /// Cancelled when the service closes.
    pub stop: CancellationToken,
}

/// Why a pass ends before its time.
#[derive(Debug)]
enum Trouble {
    Store(StoreError),
    Model(NaviError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<NaviError> for Trouble {
    fn from(error: NaviError) -> Self {
        Self::Model(error)
    }
}

impl Reader {
    /// Reads what is unread, and writes the summary where it is still a draft.
    pub(super) async fn read_idle(&self, user: UserId) {
        match self.read_sessions(user).await {
            Ok(()) => self.write_summary(user).await,
            Err(trouble) => self.tell(&trouble),
        }
    }

    /// Has a model write the summary, where that has not been done since the last change.
    pub(super) async fn write_summary(&self, user: UserId) {
        if let Err(trouble) = self.try_summary(user).await {
            self.tell(&trouble);
        }
    }

    fn tell(&self, trouble: &Trouble) {
        if self.stop.is_cancelled() {
            return;
        }
        match trouble {
            Trouble::Store(error) => tracing::error!(%error, "memory could not be read or written"),
            Trouble::Model(error) => {
                tracing::info!(code = ?error.code, %error, "memory waits for a model");
            }
        }
    }

    async fn read_sessions(&self, user: UserId) -> Result<(), Trouble> {
        let idle = TimeDelta::from_std(self.idle_after).unwrap_or(TimeDelta::MAX);
        let idle_before = now().checked_sub_signed(idle).unwrap_or_default();
        let unread = self
            .store
            .unread_sessions(user, idle_before, READINGS as u64)
            .await?;
        if unread.is_empty() {
            return Ok(());
        }
        let Some(choice) = self.model().await? else {
            return Ok(());
        };
        let mut left = READINGS;
        for session in unread {
            let mut rest = Some(session);
            while let Some(session) = rest {
                if left == 0 {
                    return Ok(());
                }
                left -= 1;
                rest = self.read_one(user, session, &choice, &mut left).await?;
            }
        }
        Ok(())
    }

    /// Reads a session, or its next piece; gives back what is left of it. Calls of the model beyond
    /// the first come out of those that are `left`. An error ends the pass: it is the store's or
    /// the model's, not this session's.
    async fn read_one(
        &self,
        user: UserId,
        session: UnreadSession,
        choice: &Choice,
        left: &mut usize,
    ) -> Result<Option<UnreadSession>, Trouble> {
        match self.read(user, session, choice, left).await {
            Ok(rest) => Ok(rest),
            // It was deleted while it was read.
            Err(Trouble::Store(StoreError::SessionNotFound)) => Ok(None),
            Err(Trouble::Model(error)) if extraction::is_the_sessions_fault(error.code) => {
                tracing::warn!(session = %session.session_id, code = ?error.code, %error,
                    "a session could not be read for facts");
                self.store.note_unreadable(session.session_id).await?;
                Ok(None)
            }
            Err(trouble) => Err(trouble),
        }
    }

    async fn read(
        &self,
        user: UserId,
        session: UnreadSession,
        choice: &Choice,
        left: &mut usize,
    ) -> Result<Option<UnreadSession>, Trouble> {
        fail::fail_point!("memory::read");
        let window = context::window(&choice.model, self.context_window);
        let most_bytes = extraction::reading_bytes(window);
        let UnreadSession { session_id, from } = session;
        let unread = self
            .store
            .unread_messages(session_id, from, most_bytes)
            .await?;
        let facts = if extraction::is_worth_reading(&unread.said) {
            let known = self.store.memory(user).await?.facts;
            let parts = extraction::parts(&unread.said, most_bytes);
            *left = left.saturating_sub(parts.len().saturating_sub(1));
            // What one part brings stays, though the model has nothing to say to another.
            let mut found: Option<Vec<_>> = None;
            for part in parts {
                let messages = extraction::prompt(&part, &known, most_bytes);
                let answer = self
                    .ask(user, choice, messages, (0.0, FACTS_TOKENS))
                    .await?;
                if let Some(facts) = extraction::parse(&answer) {
                    found.get_or_insert_default().extend(facts);
                }
            }
            let found = found.ok_or_else(|| {
                NaviError::new(
                    ErrorCode::EmptyReply,
                    "the model's answer held no list of facts",
                )
            })?;
            extraction::believed(found, &unread.said, session_id)
        } else {
            Vec::new()
        };
        let reading = Reading {
            session_id,
            from,
            up_to: unread.up_to,
            until: unread.until,
        };
        let finished = self
            .store
            .finish_reading(user, reading, facts, now())
            .await?;
        match finished {
            Finished::Stored { changed } => {
                tracing::debug!(session = %session_id, changed, "session read for facts");
                Ok(unread.has_more.then_some(UnreadSession {
                    session_id,
                    from: unread.up_to,
                }))
            }
            Finished::Stale => Ok(None),
        }
    }

    async fn try_summary(&self, user: UserId) -> Result<(), Trouble> {
        for _ in 0..SUMMARY_TRIES {
            let memory = self.store.memory(user).await?;
            if !memory.summary.is_some_and(|summary| summary.is_draft) {
                return Ok(());
            }
            let Some(messages) = summary::prompt(&memory.facts) else {
                return Ok(());
            };
            let Some(choice) = self.model().await? else {
                return Ok(());
            };
            let answer = self
                .ask(user, &choice, messages, (0.3, SUMMARY_TOKENS))
                .await?;
            let Some(text) = summary::from_answer(&answer) else {
                return Ok(());
            };
            if self
                .store
                .write_summary(user, memory.revision, &text, now())
                .await?
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The default model. None where only a toy is there, which can't do this.
    async fn model(&self) -> Result<Option<Choice>, NaviError> {
        let choice = self.models.choose(Wanted::default()).await?;
        Ok((!choice.model.demo).then_some(choice))
    }

    async fn ask(
        &self,
        user: UserId,
        choice: &Choice,
        messages: Vec<ChatMessage>,
        (temperature, max_output_tokens): (f32, u32),
    ) -> Result<String, NaviError> {
        let question = Question {
            choice: choice.clone(),
            messages,
            temperature,
            context_window: self.context_window,
            max_output_tokens,
            form: None,
            priority: Priority::Background,
            person: Some(user),
            run: None,
        };
        let asked = ask(&self.models, self.limits, question, self.stop.child_token());
        let answer = tokio::time::timeout(CALL_LIMIT, asked)
            .await
            .map_err(|_| {
                NaviError::new(
                    ErrorCode::BackendBusy,
                    format!("no answer within {} s", CALL_LIMIT.as_secs()),
                )
            })??;
        Ok(answer.text)
    }
}
