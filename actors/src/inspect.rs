//! Looking into runs: what was told of them, what the model was sent at each call, and what that
//! cost. It reads, and needs no service: a command can do it beside one.

mod prefixes;
mod spending;

use std::sync::Arc;

use bytestring::ByteString;

use crate::domain::model_calls::{Ingredients, Recipe, seal};
use crate::domain::permissions::Memory;
use crate::domain::replay::RecordedCall;
use crate::feed;
use crate::files::SessionFiles;
use crate::prices::Prices;
use crate::protocol::chat::ChatRequest;
use crate::protocol::ids::{RunId, SessionId, UserId};
use crate::protocol::inspect::{CallDetails, CallInfo, CallKind};
use crate::store::{LogCursor, PageLimits, Store, StoreError, StoredCall};

/// How much of a run's log one page holds.
const RUN_PAGE: PageLimits = PageLimits {
    items: 500,
    bytes: 1024 * 1024,
};

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Inspector {
    store: Store,
    files: SessionFiles,
    prices: Arc<Prices>,
}

/// A page of what was told of a run.
#[derive(Clone, Debug)]
pub struct RunEvents {
    /// Each as its JSON on the wire.
    pub events: Vec<ByteString>,
    /// Where the next page starts; none where this was the last.
    pub next: Option<LogCursor>,
}

/// A call of a run with what it was made of.
struct MadeAgain {
    stored: StoredCall,
    request: ChatRequest,
    exact: bool,
}

impl Inspector {
    /// One that reads here.
    #[must_use]
    pub fn new(store: Store, files: SessionFiles, prices: Arc<Prices>) -> Self {
        Self {
            store,
            files,
            prices,
        }
    }

    /// A page of what was told of a run and of all runs under it, in order. None where the
    /// session has no such run.
    ///
    /// # Errors
    /// As [`Store::run_events`].
    pub async fn events(
        &self,
        session: SessionId,
        run_id: RunId,
        from: LogCursor,
    ) -> Result<Option<RunEvents>, StoreError> {
        let page = self
            .store
            .run_events(session, run_id, from, RUN_PAGE)
            .await?;
        Ok(page.map(|page| RunEvents {
            events: page.items.into_iter().filter_map(feed::json_of).collect(),
            next: page.next,
        }))
    }

    /// What the model was sent at the `n`th call of a run of the user's, and what it said: with
    /// what was remembered of them, or without. None where there is no such call.
    ///
    /// # Errors
    /// What the store says.
    pub async fn call(
        &self,
        user: UserId,
        run_id: RunId,
        n: u32,
        memory: Memory,
    ) -> Result<Option<CallDetails>, StoreError> {
        let again = self.make_again(user, run_id, n, memory).await?;
        Ok(again.map(|again| CallDetails {
            request: again.request,
            exact: again.exact,
            reply: again.stored.reply,
        }))
    }

    /// The calls of a run's loop, as a replay goes through them.
    ///
    /// # Errors
    /// What the store says.
    pub async fn loop_calls(
        &self,
        user: UserId,
        run_id: RunId,
        calls: &[CallInfo],
    ) -> Result<Vec<RecordedCall>, StoreError> {
        let mut recorded = Vec::new();
        for info in calls.iter().filter(|info| info.kind == CallKind::Turn) {
            let again = self.make_again(user, run_id, info.n, Memory::Shown);
            let Some(again) = again.await? else {
                continue;
            };
            recorded.push(RecordedCall {
                n: info.n,
                request: again.request,
                exact: again.exact,
                reply: again.stored.reply,
            });
        }
        Ok(recorded)
    }

    async fn make_again(
        &self,
        user: UserId,
        run_id: RunId,
        n: u32,
        memory: Memory,
    ) -> Result<Option<MadeAgain>, StoreError> {
        let Some(details) = self.store.run_details(user, run_id).await? else {
            return Ok(None);
        };
        let Some(stored) = self.store.model_call(user, run_id, n).await? else {
            return Ok(None);
        };
        let session = details.run.session_id;
        let mut with = self.ingredients(session, run_id, &stored).await?;
        if memory == Memory::LeftOut {
            stored.recipe.leave_memory_out(&mut with.parts);
        }
        let made = tokio::task::spawn_blocking(move || {
            let request = stored.recipe.request(&with)?;
            let sealed = seal(&request).ok();
            let exact = sealed.as_ref() == Some(&stored.sha256);
            Some(MadeAgain {
                stored,
                request,
                exact,
            })
        });
        let made = made.await.unwrap_or_default();
        made.map(Some).ok_or_else(|| {
            StoreError::Corrupt(format!("call {n} of run {run_id} cannot be made again"))
        })
    }

    async fn ingredients(
        &self,
        session: SessionId,
        run_id: RunId,
        call: &StoredCall,
    ) -> Result<Ingredients, StoreError> {
        let store = &self.store;
        let parts = store.prompt_parts(session, &call.recipe.names()).await?;
        let messages = match &call.recipe {
            Recipe::Conversation { last, .. } => {
                let context = call.recipe.context(&parts);
                let start = context.map_or(0, |context| context.start);
                store.messages_up_to(session, start, *last).await?
            }
            Recipe::Own { .. } => store.own_messages(run_id, call.info.n).await?,
            Recipe::Question { .. } => Vec::new(),
        };
        Ok(Ingredients {
            files: self.files.views_again(session, &messages).await,
            parts,
            messages: messages.into_iter().map(Into::into).collect(),
        })
    }
}
