//! What the program that asks lends to a run: what it wants heeded, and tools that it calls by
//! itself. The run calls such a tool as any other, and waits until the program says what came of
//! it.

mod calls;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::calls::{LentCall, LentCalls, Returned};
use super::registry::Registry;
use super::{Proposal, Provenance, Tool, ToolContext, ToolError, ToolResult};
use crate::domain::demands::Demands;
use crate::protocol::ids::{RunId, SessionId};
use crate::protocol::powers::Powers;
use crate::protocol::tool::{Effect, ToolSource, ToolSpec};

/// How long a program may take to say what came of a call.
pub const TIME_LIMIT: Duration = Duration::from_secs(600);
/// What a call comes to whose program has gone.
const GONE: &str =
    "the program that lent this tool has ended; whether it began with this call is not known";

/// What a program lends the run that its message begins.
#[derive(Clone, Debug, Default)]
pub struct LentByProgram {
    /// What it wants heeded, beside the profile's prompt.
    pub instructions: String,
    /// Tools that it calls by itself.
    pub tools: Vec<OfferedByProgram>,
    /// What it demands of the answer.
    pub demands: Demands,
    /// Cancelled when it has gone and calls nothing any more.
    pub gone: CancellationToken,
}

/// What is lent. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Lending {
    // Held for a moment at a time, never across an await.
    loans: Arc<Mutex<Loans>>,
    /// The calls that wait for what came of them.
    pub calls: LentCalls,
}

#[derive(Debug, Default)]
struct Loans {
    /// For the run that a message will begin, by its `client_id`.
    offered: HashMap<(SessionId, String), Arc<Loan>>,
    /// Of runs that go.
    taken: HashMap<RunId, Arc<Loan>>,
    /// What is demanded of runs that go, and that they do not heed yet.
    demanded: HashMap<RunId, Demands>,
}

#[derive(Debug)]
struct Loan {
    instructions: Arc<str>,
    tools: Vec<Arc<dyn Tool>>,
    demands: Demands,
    gone: CancellationToken,
}

/// What was offered; taken back where this is dropped before a run took it.
#[derive(Debug)]
pub struct Offer {
    lending: Lending,
    place: (SessionId, String),
    loan: Weak<Loan>,
}

impl Offer {
    /// Whether a run may still take it: none did, and nothing was offered in its place.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.stands_in(&self.lending.loans.lock())
    }

    fn stands_in(&self, loans: &Loans) -> bool {
        let stands = loans.offered.get(&self.place);
        stands.is_some_and(|loan| self.loan.ptr_eq(&Arc::downgrade(loan)))
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        let mut loans = self.lending.loans.lock();
        if self.stands_in(&loans) {
            loans.offered.remove(&self.place);
        }
    }
}

/// A run's loan, until it is dropped.
#[derive(Debug)]
pub struct Borrowed {
    lending: Lending,
    run_id: RunId,
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let mut loans = self.lending.loans.lock();
        loans.taken.remove(&self.run_id);
        loans.demanded.remove(&self.run_id);
    }
}

impl Lending {
    /// Offers this to the run that the message with this `client_id` will begin.
    pub fn offer(&self, session: SessionId, client_id: &str, lent: LentByProgram) -> Offer {
        let tools = lent.tools.into_iter().map(|offered| -> Arc<dyn Tool> {
            Arc::new(LentTool {
                spec: offered.spec(),
                calls: self.calls.clone(),
                gone: lent.gone.clone(),
            })
        });
        let loan = Arc::new(Loan {
            instructions: lent.instructions.into(),
            tools: tools.collect(),
            demands: lent.demands,
            gone: lent.gone.clone(),
        });
        let offer = Offer {
            lending: self.clone(),
            place: (session, client_id.to_owned()),
            loan: Arc::downgrade(&loan),
        };
        let place = offer.place.clone();
        self.loans.lock().offered.insert(place, loan);
        offer
    }

    /// The tools of a run that begins, with what is offered for its message.
    pub fn take(
        &self,
        session: SessionId,
        run_id: RunId,
        client_id: Option<&str>,
        registry: Registry,
    ) -> (Registry, Option<Borrowed>) {
        let mut loans = self.loans.lock();
        let offered =
            client_id.and_then(|client_id| loans.offered.remove(&(session, client_id.to_owned())));
        let Some(loan) = offered.filter(|loan| !loan.gone.is_cancelled()) else {
            return (registry, None);
        };
        loans.demanded.insert(run_id, loan.demands.clone());
        let registry = registry.with_lent(&loan.tools, Arc::clone(&loan.instructions));
        loans.taken.insert(run_id, loan);
        let borrowed = Borrowed {
            lending: self.clone(),
            run_id,
        };
        (registry, Some(borrowed))
    }

    /// Whether the run, which goes, was lent a tool of this name.
    pub fn lends(&self, run_id: RunId, name: &str) -> bool {
        let loans = self.loans.lock();
        let loan = loans.taken.get(&run_id);
        loan.is_some_and(|loan| loan.tools.iter().any(|tool| tool.spec().name == name))
    }

    /// Demands this of the answer of a run that goes, in place of what was demanded before.
    pub fn demand(&self, run_id: RunId, demands: Demands) {
        let mut loans = self.loans.lock();
        if loans.taken.contains_key(&run_id) {
            loans.demanded.insert(run_id, demands);
        }
    }

    /// What is demanded of the run's answer, where that is new.
    pub fn demanded(&self, run_id: RunId) -> Option<Demands> {
        self.loans.lock().demanded.remove(&run_id)
    }
}

/// A tool as a program offers it. Its name and description are the program's words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedByProgram {
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub parameters: Value,
    /// What a call does, for whoever is asked about it. `read` where the program asks its user by
    /// itself.
    pub effect: Effect,
}

impl OfferedByProgram {
    fn spec(self) -> ToolSpec {
        ToolSpec {
            name: self.name,
            description: self.description,
            parameters: self.parameters,
            effect: self.effect,
            time_limit_ms: u64::try_from(TIME_LIMIT.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[derive(Debug)]
struct LentTool {
    spec: ToolSpec,
    calls: LentCalls,
    gone: CancellationToken,
}

#[async_trait]
impl Tool for LentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs_workspace(&self) -> bool {
        false
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
    }

    fn source(&self) -> ToolSource {
        ToolSource::User
    }

    fn provenance(&self, _args: &Value) -> Provenance {
        Provenance::Outside
    }

    async fn proposal(&self, args: &Value, _context: &ToolContext) -> ToolResult<Proposal> {
        Ok(Proposal {
            // What has this name the next time may be another program's.
            rule: None,
            ..Proposal::of_arguments(&self.spec.name, args)
        })
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let mut begun = self.calls.begin(&self.spec.name, args, &context);
        // What it said in its last instant counts.
        let result = tokio::select! {
            biased;
            result = &mut begun.told => result,
            () = self.gone.cancelled() => return Err(refusal!("{GONE}")),
        };
        let result = result.map_err(|_| refusal!("{GONE}"))?;
        result.map(Into::into).map_err(ToolError)
    }
}

#[cfg(test)]
mod tests;
