//! Calls of lent tools that wait until a program says what came of them.

use std::collections::HashMap;
use std::sync::Arc;

use hashlink::LruCache;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::protocol::ids::{CallId, RunId, SessionId, UserId};
use crate::tools::ToolContext;

/// How many calls of one person that were answered are known to belong to their run, for a program
/// that says twice what came of one.
const ANSWERED: usize = 4_096;

/// See the module. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
// Held for a moment at a time, never across an await.
pub struct LentCalls(Arc<Mutex<Calls>>);

#[derive(Debug, Default)]
struct Calls {
    waiting: HashMap<CallId, Waiting>,
    /// Of each person.
    answered: HashMap<UserId, LruCache<CallId, (SessionId, RunId)>>,
}

#[derive(Debug)]
struct Waiting {
    user: UserId,
    session: SessionId,
    run_id: RunId,
    name: String,
    args: Value,
    /// A program was told of it.
    is_told: bool,
    tell: oneshot::Sender<Returned>,
}

/// What came of a call, or why nothing did.
pub type Returned = Result<String, String>;

/// A call that waits to be told what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LentCall {
    pub id: CallId,
    pub name: String,
    /// As the tool's schema wants them.
    pub args: Value,
}

impl LentCalls {
    /// A call of this tool begins: what came of it is told here, as long as this is kept.
    pub(super) fn begin(&self, name: &str, args: Value, context: &ToolContext) -> Begun {
        let (tell, told) = oneshot::channel();
        let waits = Waiting {
            user: context.user_id,
            session: context.session_id,
            run_id: context.run_id,
            name: name.to_owned(),
            args,
            is_told: false,
            tell,
        };
        let call = context.call_id.clone();
        self.0.lock().waiting.insert(call.clone(), waits);
        Begun {
            calls: self.clone(),
            call,
            told,
        }
    }

    /// The calls of a run that wait, in the order in which they were made.
    pub fn waiting(&self, run_id: RunId) -> Vec<LentCall> {
        let calls = self.0.lock();
        let waiting = calls.waiting.iter();
        let of_run = waiting.filter(|(_, waits)| waits.run_id == run_id);
        let mut found: Vec<LentCall> = of_run
            .map(|(id, waits)| LentCall {
                id: id.clone(),
                name: waits.name.clone(),
                args: waits.args.clone(),
            })
            .collect();
        // Ids made later sort later.
        found.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        found
    }

    /// Whether the call waits for its result.
    pub fn waits(&self, call: &CallId) -> bool {
        self.0.lock().waiting.contains_key(call)
    }

    /// Notes that a program was told of these calls.
    pub fn tell(&self, told: &[LentCall]) {
        let mut calls = self.0.lock();
        for call in told {
            if let Some(waits) = calls.waiting.get_mut(&call.id) {
                waits.is_told = true;
            }
        }
    }

    /// Whether a call of this run waits of which a program was told.
    pub fn is_told(&self, run_id: RunId) -> bool {
        let calls = self.0.lock();
        let mut waiting = calls.waiting.values();
        waiting.any(|waits| waits.run_id == run_id && waits.is_told)
    }

    /// The person's run whose call this is, one that was answered too.
    pub fn run_of(&self, user: UserId, call: &CallId) -> Option<(SessionId, RunId)> {
        let calls = self.0.lock();
        if let Some(waits) = calls.waiting.get(call) {
            return Some((waits.session, waits.run_id));
        }
        calls.answered.get(&user)?.peek(call).copied()
    }

    /// Tells a call what came of it, if it waits.
    pub fn answer(&self, call: &CallId, result: Returned) {
        let mut calls = self.0.lock();
        let Some(waits) = calls.waiting.remove(call) else {
            return;
        };
        let answered = calls.answered.entry(waits.user);
        let answered = answered.or_insert_with(|| LruCache::new(ANSWERED));
        answered.insert(call.clone(), (waits.session, waits.run_id));
        // It may have been stopped just now.
        let _ = waits.tell.send(result);
    }
}

/// A call that has begun. Where it is dropped, nobody waits any more.
#[derive(Debug)]
pub(super) struct Begun {
    calls: LentCalls,
    call: CallId,
    pub(super) told: oneshot::Receiver<Returned>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.calls.0.lock().waiting.remove(&self.call);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_one_person_answers_pushes_out_nothing_of_another() {
        let calls = LentCalls::default();
        let (anna, borys) = (UserId::new(), UserId::new());
        let answer = |user: UserId| {
            let (tell, _told) = oneshot::channel();
            let (call, run_id) = (CallId::new(), RunId::new());
            let waits = Waiting {
                user,
                session: SessionId::new(),
                run_id,
                name: "weather".to_owned(),
                args: json!({}),
                is_told: true,
                tell,
            };
            calls.0.lock().waiting.insert(call.clone(), waits);
            calls.answer(&call, Ok(String::new()));
            call
        };
        let (hers, his) = (answer(anna), answer(borys));
        for _ in 0..ANSWERED {
            answer(borys);
        }
        assert!(calls.run_of(anna, &hers).is_some());
        assert!(calls.run_of(borys, &his).is_none());
    }
}
