//! What became of a request's beginning, for each call of a run, and what that cost.

use super::Inspector;
use crate::domain::context::{ContextMessage, messages_tokens};
use crate::domain::history::shared_below;
use crate::domain::model_calls::prefix::{Came, Found, Sent, compare};
use crate::domain::prices::{PriceTable, Used};
use crate::protocol::ids::{MessageId, SessionId};
use crate::protocol::inspect::{CallInfo, CallPrefix, RunDetails, RunInfo};
use crate::protocol::message::Message;
use crate::store::{Places, ReadCall, StoreError};

impl Inspector {
    /// Adds to each call of a run's loop what it kept of the call before it.
    pub(super) async fn add_prefixes(
        &self,
        details: &mut RunDetails,
        prices: &PriceTable,
    ) -> Result<(), StoreError> {
        let RunDetails { run, calls, .. } = details;
        let read = self.store.read_calls(run).await?;
        if read.len() < 2 {
            return Ok(());
        }
        let ids = self.store.call_ids(run.run_id).await?;
        let last: Vec<MessageId> = read.iter().filter_map(|call| call.recipe.last()).collect();
        let places = self.store.places(run.session_id, &last).await?;
        let sent = self.sent(run.session_id, &read).await?;
        for (pair, call) in sent.windows(2).zip(read.windows(2)) {
            let [Some(before), Some(now)] = pair else {
                continue;
            };
            let came = self.came(run, &places, call, (before, now)).await?;
            let at = ids.iter().position(|id| *id == call[1].id);
            if let Some(info) = at.and_then(|at| calls.get_mut(at)) {
                let found = compare(before, now, came);
                info.prefix = Some(told(found, info, now, prices));
            }
        }
        Ok(())
    }

    /// The calls with what stood before their conversation; none where that is not kept any more.
    async fn sent(
        &self,
        session: SessionId,
        calls: &[ReadCall],
    ) -> Result<Vec<Option<Sent>>, StoreError> {
        let mut names: Vec<&str> = calls.iter().flat_map(|call| call.recipe.names()).collect();
        names.sort_unstable();
        names.dedup();
        let parts = self.store.prompt_parts(session, &names).await?;
        let calls = calls.to_vec();
        let sent = tokio::task::spawn_blocking(move || {
            let sent = calls.into_iter().map(|call| {
                Some(Sent {
                    head: call.recipe.head(&parts)?,
                    backend: call.backend,
                    model: call.model,
                    usage: call.usage,
                })
            });
            sent.collect::<Vec<_>>()
        });
        // It fails where the service goes down: then nobody needs the answer.
        Ok(sent.await.unwrap_or_default())
    }

    /// What the conversation gained between two calls, where that is of any account.
    async fn came(
        &self,
        run: &RunInfo,
        places: &Places,
        calls: &[ReadCall],
        (before, now): (&Sent, &Sent),
    ) -> Result<Came, StoreError> {
        let way = |call: &ReadCall| places.way_to(call.recipe.last()?);
        let [Some(old), Some(new)] = [way(&calls[0]), way(&calls[1])] else {
            return Ok(Came::default());
        };
        let shared = shared_below(&old, &new);
        let end = old.last().and_then(|last| last.below);
        let elsewhere = end.is_some_and(|end| shared < end);
        if !elsewhere && !before.head.asks_what_came(&now.head) {
            return Ok(Came::default());
        }
        let came = self.store.messages_of_way(run.session_id, &new, shared);
        let came: Vec<ContextMessage> = came.await?.into_iter().map(Into::into).collect();
        let window = now.head.window();
        let of = |wanted: &dyn Fn(&Message) -> bool| {
            let some = came.iter().filter(|message| wanted(message)).cloned();
            messages_tokens(&some.collect::<Vec<_>>(), window)
        };
        Ok(Came {
            elsewhere,
            new: of(&|_| true),
            older: of(&|message| message.run_id != run.run_id),
            reply: of(&|message| Some(message.id) == calls[0].message_id),
        })
    }
}

fn told(found: Found, info: &CallInfo, now: &Sent, prices: &PriceTable) -> CallPrefix {
    let Found { kept, again, .. } = found;
    let read = now.usage.prompt_tokens.saturating_sub(kept);
    let share = |ms: u64| (ms * u64::from(again)).checked_div(u64::from(read));
    let cost = prices.cost(&[Used {
        backend: now.backend.clone(),
        model: now.model.clone(),
        prompt_tokens: again.into(),
        completion_tokens: 0,
        cached_tokens: 0,
    }]);
    CallPrefix {
        broken_by: found.broken_by,
        kept_tokens: kept,
        read_again_tokens: again,
        counted: found.counted,
        read_again_ms: info.first_chunk_ms.and_then(share).filter(|_| again > 0),
        cost: cost.filter(|_| again > 0),
    }
}
