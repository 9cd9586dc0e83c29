//! What the program that asks lends to a run: what it wants heeded, and tools that it calls by
//! itself. The run calls such a tool as any other, and waits until the program says what came of
//! it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::registry::Registry;
use super::{Proposal, Provenance, Tool, ToolContext, ToolError, ToolResult};
use crate::domain::demands::Demands;
use crate::protocol::ids::{CallId, RunId, SessionId, UserId};
use crate::protocol::powers::Powers;
use crate::protocol::tool::{Effect, ToolSource, ToolSpec};

/// How long a program may take to say what came of a call.
pub const TIME_LIMIT: Duration = Duration::from_secs(600);
/// How many calls of one person that were answered are known to belong to their run, for a program
/// that says twice what came of one.
const ANSWERED: usize = 4_096;
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
// Held for a moment at a time, never across an await.
pub struct Lending(Arc<Mutex<Loans>>);

#[derive(Debug, Default)]
struct Loans {
    /// For the run that a message will begin, by its `client_id`.
    offered: HashMap<(SessionId, String), Arc<Loan>>,
    /// Of runs that go.
    taken: HashMap<RunId, Arc<Loan>>,
    /// What is demanded of runs that go, and that they do not heed yet.
    demanded: HashMap<RunId, Demands>,
    waiting: HashMap<CallId, Waiting>,
    /// Of each person; the newest last.
    answered: HashMap<UserId, VecDeque<(CallId, SessionId, RunId)>>,
}

#[derive(Debug)]
struct Loan {
    instructions: Arc<str>,
    tools: Vec<Arc<dyn Tool>>,
    demands: Demands,
    gone: CancellationToken,
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

/// What was offered; taken back where this is dropped before a run took it.
#[derive(Debug)]
pub struct Offer {
    lending: Lending,
    place: (SessionId, String),
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.lending.0.lock().offered.remove(&self.place);
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
        let mut loans = self.lending.0.lock();
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
                lending: self.clone(),
                gone: lent.gone.clone(),
            })
        });
        let loan = Loan {
            instructions: lent.instructions.into(),
            tools: tools.collect(),
            demands: lent.demands,
            gone: lent.gone.clone(),
        };
        let place = (session, client_id.to_owned());
        let mut loans = self.0.lock();
        loans.offered.insert(place.clone(), Arc::new(loan));
        Offer {
            lending: self.clone(),
            place,
        }
    }

    /// The tools of a run that begins, with what is offered for its message.
    pub fn take(
        &self,
        session: SessionId,
        run_id: RunId,
        client_id: Option<&str>,
        registry: Registry,
    ) -> (Registry, Option<Borrowed>) {
        let mut loans = self.0.lock();
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
        let loans = self.0.lock();
        let loan = loans.taken.get(&run_id);
        loan.is_some_and(|loan| loan.tools.iter().any(|tool| tool.spec().name == name))
    }

    /// Demands this of the answer of a run that goes, in place of what was demanded before.
    pub fn demand(&self, run_id: RunId, demands: Demands) {
        let mut loans = self.0.lock();
        if loans.taken.contains_key(&run_id) {
            loans.demanded.insert(run_id, demands);
        }
    }

    /// What is demanded of the run's answer, where that is new.
    pub fn demanded(&self, run_id: RunId) -> Option<Demands> {
        self.0.lock().demanded.remove(&run_id)
    }

    /// The calls of a run that wait, in the order in which they were made.
    pub fn waiting(&self, run_id: RunId) -> Vec<LentCall> {
        let loans = self.0.lock();
        let waiting = loans.waiting.iter();
        let of_run = waiting.filter(|(_, waits)| waits.run_id == run_id);
        let mut calls: Vec<LentCall> = of_run
            .map(|(id, waits)| LentCall {
                id: id.clone(),
                name: waits.name.clone(),
                args: waits.args.clone(),
            })
            .collect();
        // Ids made later sort later.
        calls.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        calls
    }

    /// Whether the call waits for its result.
    pub fn waits(&self, call: &CallId) -> bool {
        self.0.lock().waiting.contains_key(call)
    }

    /// Notes that a program was told of these calls.
    pub fn tell(&self, calls: &[LentCall]) {
        let mut loans = self.0.lock();
        for call in calls {
            if let Some(waits) = loans.waiting.get_mut(&call.id) {
                waits.is_told = true;
            }
        }
    }

    /// Whether a call of this run waits of which a program was told.
    pub fn is_told(&self, run_id: RunId) -> bool {
        let loans = self.0.lock();
        let mut waiting = loans.waiting.values();
        waiting.any(|waits| waits.run_id == run_id && waits.is_told)
    }

    /// The person's run whose call this is, one that was answered too.
    pub fn run_of(&self, user: UserId, call: &CallId) -> Option<(SessionId, RunId)> {
        let loans = self.0.lock();
        if let Some(waits) = loans.waiting.get(call) {
            return Some((waits.session, waits.run_id));
        }
        let mut answered = loans.answered.get(&user)?.iter().rev();
        let found = answered.find(|(known, ..)| known == call);
        found.map(|(_, session, run_id)| (*session, *run_id))
    }

    /// Tells a call what came of it, if it waits.
    pub fn answer(&self, call: &CallId, result: Returned) {
        let mut loans = self.0.lock();
        let Some(waits) = loans.waiting.remove(call) else {
            return;
        };
        let answered = loans.answered.entry(waits.user).or_default();
        if answered.len() == ANSWERED {
            answered.pop_front();
        }
        answered.push_back((call.clone(), waits.session, waits.run_id));
        // It may have been stopped just now.
        let _ = waits.tell.send(result);
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
    lending: Lending,
    gone: CancellationToken,
}

#[async_trait]
impl Tool for LentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
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
        let (tell, told) = oneshot::channel();
        let waits = Waiting {
            user: context.user_id,
            session: context.session_id,
            run_id: context.run_id,
            name: self.spec.name.clone(),
            args,
            is_told: false,
            tell,
        };
        let _ends = EndsWaiting(&self.lending, &context.call_id);
        let call = context.call_id.clone();
        self.lending.0.lock().waiting.insert(call, waits);
        // What it said in its last instant counts.
        let result = tokio::select! {
            biased;
            result = told => result,
            () = self.gone.cancelled() => return Err(refusal!("{GONE}")),
        };
        let result = result.map_err(|_| refusal!("{GONE}"))?;
        result.map(Into::into).map_err(ToolError)
    }
}

/// Where a call is dropped, nobody waits any more.
struct EndsWaiting<'a>(&'a Lending, &'a CallId);

impl Drop for EndsWaiting<'_> {
    fn drop(&mut self) {
        self.0.0.lock().waiting.remove(self.1);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::tools::fake_session::{FakeSession, context};
    use crate::tools::registry::ToolConfig;

    fn weather() -> OfferedByProgram {
        OfferedByProgram {
            name: "weather".to_owned(),
            description: "The weather.".to_owned(),
            parameters: json!({"type": "object", "required": ["city"]}),
            effect: Effect::Read,
        }
    }

    fn of_weather() -> LentByProgram {
        LentByProgram {
            tools: vec![weather()],
            ..LentByProgram::default()
        }
    }

    #[test]
    fn what_is_lent_is_for_one_run_and_goes_before_ours() {
        let lending = Lending::default();
        let (session, run_id) = (SessionId::new(), RunId::new());
        let todo = OfferedByProgram {
            name: "todo".to_owned(),
            ..weather()
        };
        let ours = Registry::builtin(&ToolConfig::default());
        let lent = LentByProgram {
            instructions: "Be brief.".to_owned(),
            tools: vec![weather(), todo],
            ..LentByProgram::default()
        };
        let offer = lending.offer(session, "a", lent);
        let (other, none) = lending.take(session, RunId::new(), Some("b"), ours.clone());
        assert!(other.is(&ours) && none.is_none());
        let (with, borrowed) = lending.take(session, run_id, Some("a"), ours.clone());
        let names = with.names(&["filesystem".to_owned()]);
        assert_eq!(names, ["filesystem", "weather", "todo"]);
        assert!(with.prompts(&names).ends_with("Be brief."));
        let call = with.prepare("todo", &json!({"city": "Kyiv"}), &names);
        assert_eq!(call.unwrap().provenance, Provenance::Outside);
        assert!(with.prepare("weather", &json!({}), &names).is_err());
        assert!(lending.lends(run_id, "weather") && !lending.lends(run_id, "terminal"));
        let (next, _) = lending.take(session, RunId::new(), Some("a"), ours.clone());
        assert!(next.is(&ours));
        drop((offer, borrowed));
        assert!(!lending.lends(run_id, "weather"));
        drop(lending.offer(session, "c", LentByProgram::default()));
        assert!(lending.0.lock().offered.is_empty());
    }

    #[tokio::test]
    async fn a_call_waits_for_what_the_program_says_came_of_it() {
        let lending = Lending::default();
        let state = Arc::new(FakeSession::default());
        let context = context(&state, Path::new(""));
        let (session, run_id) = (context.session_id, context.run_id);
        let user = context.user_id;
        let call = context.call_id.clone();
        let _offer = lending.offer(session, "a", of_weather());
        let (registry, _borrowed) = lending.take(session, run_id, Some("a"), Registry::new([]));
        let args = json!({"city": "Kyiv"});
        let prepared = registry.prepare("weather", &args, &registry.names(&[]));
        let tool = prepared.unwrap().tool;
        let called = tool.call(args.clone(), context);
        let answered = async {
            while lending.waiting(run_id).is_empty() {
                tokio::task::yield_now().await;
            }
            assert_eq!(lending.waiting(run_id)[0].args, args);
            assert_eq!(lending.run_of(user, &call), Some((session, run_id)));
            lending.answer(&call, Ok("snow".to_owned()));
            lending.answer(&call, Ok("rain".to_owned()));
        };
        let (result, ()) = tokio::join!(called, answered);
        assert_eq!(result.unwrap().text, "snow");
        assert_eq!(lending.waiting(run_id), []);
        // Who says it again is led to the same run.
        assert_eq!(lending.run_of(user, &call), Some((session, run_id)));
        assert_eq!(lending.run_of(UserId::new(), &call), None);
    }

    #[tokio::test]
    async fn a_call_whose_program_has_gone_ends_at_once_and_later_runs_are_lent_nothing() {
        let lending = Lending::default();
        let state = Arc::new(FakeSession::default());
        let context = context(&state, Path::new(""));
        let (session, run_id) = (context.session_id, context.run_id);
        let lent = of_weather();
        let gone = lent.gone.clone();
        let _first = lending.offer(session, "a", lent.clone());
        let _second = lending.offer(session, "b", lent);
        let ours = Registry::new([]);
        let (registry, _borrowed) = lending.take(session, run_id, Some("a"), ours.clone());
        let args = json!({"city": "Kyiv"});
        let prepared = registry.prepare("weather", &args, &registry.names(&[]));
        let tool = prepared.unwrap().tool;
        let called = tool.call(args, context);
        let goes = async {
            while lending.waiting(run_id).is_empty() {
                tokio::task::yield_now().await;
            }
            gone.cancel();
        };
        let (result, ()) = tokio::join!(called, goes);
        assert_eq!(result.unwrap_err().0, GONE);
        assert_eq!(lending.waiting(run_id), []);
        let (registry, none) = lending.take(session, RunId::new(), Some("b"), ours.clone());
        assert!(registry.is(&ours) && none.is_none());
    }

    #[test]
    fn what_is_demanded_of_a_run_is_told_once_and_only_while_it_goes() {
        let lending = Lending::default();
        let (session, run_id) = (SessionId::new(), RunId::new());
        let demands = Demands {
            calls: vec!["weather".to_owned()],
            ..Demands::default()
        };
        let lent = LentByProgram {
            demands: demands.clone(),
            ..of_weather()
        };
        let _offer = lending.offer(session, "a", lent);
        let (_, borrowed) = lending.take(session, run_id, Some("a"), Registry::new([]));
        assert_eq!(lending.demanded(run_id), Some(demands.clone()));
        assert_eq!(lending.demanded(run_id), None);
        lending.demand(run_id, demands.clone());
        drop(borrowed);
        lending.demand(run_id, demands);
        assert_eq!(lending.demanded(run_id), None);
    }

    #[test]
    fn what_one_person_answers_pushes_out_nothing_of_another() {
        let lending = Lending::default();
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
            lending.0.lock().waiting.insert(call.clone(), waits);
            lending.answer(&call, Ok(String::new()));
            call
        };
        let (hers, his) = (answer(anna), answer(borys));
        for _ in 0..ANSWERED {
            answer(borys);
        }
        assert!(lending.run_of(anna, &hers).is_some());
        assert!(lending.run_of(borys, &his).is_none());
    }
}
