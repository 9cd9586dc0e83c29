//! What the program that asks lends to a session's runs: what it wants heeded, and tools that it
//! calls by itself. A run calls such a tool as any other, and waits until the program says what
//! came of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use super::registry::Registry;
use super::{Provenance, Tool, ToolContext, ToolResult};
use crate::protocol::ids::{CallId, SessionId};
use crate::protocol::tool::{Effect, ToolSource, ToolSpec};

/// How long a program may take to say what came of a call.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// What was lent so long ago serves no run any more.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// What sessions were lent. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
// Held for a moment at a time, never across an await.
pub struct Lending(Arc<Mutex<HashMap<SessionId, Lent>>>);

#[derive(Debug)]
struct Lent {
    at: Instant,
    /// No run has begun with it yet. The first one does; another one is for nobody who could
    /// make its calls.
    is_new: bool,
    instructions: Arc<str>,
    tools: Vec<Arc<dyn Tool>>,
    waiting: HashMap<CallId, oneshot::Sender<String>>,
}

impl Lending {
    /// Lends a session this, in the place of what it was lent before.
    pub fn lend(&self, session: SessionId, instructions: &str, tools: Vec<OfferedByProgram>) {
        let tools = tools.into_iter().map(|offered| -> Arc<dyn Tool> {
            Arc::new(LentTool {
                spec: offered.spec(),
                lending: self.clone(),
            })
        });
        let (tools, at) = (tools.collect(), Instant::now());
        let mut all = self.0.lock();
        all.retain(|_, lent| !lent.waiting.is_empty() || lent.at.elapsed() < KEPT);
        let lent = all.entry(session).or_insert_with(|| Lent {
            at,
            is_new: true,
            instructions: Arc::default(),
            tools: Vec::new(),
            waiting: HashMap::new(),
        });
        (lent.at, lent.is_new) = (at, true);
        (lent.instructions, lent.tools) = (instructions.into(), tools);
    }

    /// The session has no more runs that are lent anything.
    pub fn take_back(&self, session: SessionId) {
        self.0.lock().remove(&session);
    }

    /// These tools, with what the session was lent for the run that begins.
    pub fn with_lent(&self, session: SessionId, registry: Registry) -> Registry {
        let mut all = self.0.lock();
        let Some(lent) = all.get_mut(&session).filter(|lent| lent.is_new) else {
            return registry;
        };
        lent.is_new = false;
        registry.with_lent(&lent.tools, Arc::clone(&lent.instructions))
    }

    /// The session in which a call waits to be told what came of it.
    pub fn waiting(&self, call: &CallId) -> Option<SessionId> {
        let all = self.0.lock();
        let mut sessions = all.iter();
        let found = sessions.find(|(_, lent)| lent.waiting.contains_key(call));
        found.map(|(session, _)| *session)
    }

    /// Tells a call what came of it. False where it does not wait (any more).
    pub fn answer(&self, session: SessionId, call: &CallId, result: String) -> bool {
        let mut all = self.0.lock();
        let waits = all.get_mut(&session).and_then(|it| it.waiting.remove(call));
        waits.is_some_and(|waits| waits.send(result).is_ok())
    }
}

/// A tool as a program offers it. Its name and description are the program's words.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedByProgram {
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub parameters: Value,
}

impl OfferedByProgram {
    fn spec(self) -> ToolSpec {
        ToolSpec {
            name: self.name,
            description: self.description,
            parameters: self.parameters,
            // What it does, the program does, which asks its user by itself.
            effect: Effect::Read,
            time_limit_ms: u64::try_from(TIME_LIMIT.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[derive(Debug)]
struct LentTool {
    spec: ToolSpec,
    lending: Lending,
}

#[async_trait]
impl Tool for LentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn source(&self) -> ToolSource {
        ToolSource::User
    }

    fn provenance(&self, _args: &Value) -> Provenance {
        Provenance::Outside
    }

    async fn call(&self, _args: Value, context: ToolContext) -> ToolResult {
        let (tell, told) = oneshot::channel();
        let call = Waits {
            lending: &self.lending,
            session: context.session_id,
            call: context.call_id,
        };
        let waits = call.begin(tell);
        refuse_if!(!waits, "the program that lent this tool is gone");
        let result = told.await;
        let result = result.map_err(|_| refusal!("the program that lent this tool is gone"))?;
        Ok(result.into())
    }
}

/// A call on its way to the program; where it is dropped, nobody waits any more.
struct Waits<'a> {
    lending: &'a Lending,
    session: SessionId,
    call: CallId,
}

impl Waits<'_> {
    fn begin(&self, tell: oneshot::Sender<String>) -> bool {
        let mut all = self.lending.0.lock();
        let lent = all.get_mut(&self.session);
        lent.map(|lent| lent.waiting.insert(self.call.clone(), tell))
            .is_some()
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut all = self.lending.0.lock();
        if let Some(lent) = all.get_mut(&self.session) {
            lent.waiting.remove(&self.call);
        }
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
        }
    }

    #[test]
    fn what_is_lent_is_for_one_run_and_goes_before_ours() {
        let lending = Lending::default();
        let session = SessionId::new();
        let todo = OfferedByProgram {
            name: "todo".to_owned(),
            ..weather()
        };
        lending.lend(session, "Be brief.", vec![weather(), todo]);
        let ours = Registry::builtin(&ToolConfig::default());
        let with = lending.with_lent(session, ours.clone());
        let names = with.names(&["filesystem".to_owned()]);
        assert_eq!(names, ["filesystem", "weather", "todo"]);
        assert!(with.prompts(&names).ends_with("Be brief."));
        let call = with.prepare("todo", &json!({"city": "Kyiv"}), &names);
        assert_eq!(call.unwrap().provenance, Provenance::Outside);
        assert!(with.prepare("weather", &json!({}), &names).is_err());
        let next = lending.with_lent(session, ours.clone());
        assert!(next.is(&ours) && !next.has("weather"));
        let another = lending.with_lent(SessionId::new(), ours.clone());
        assert!(another.is(&ours));
    }

    #[tokio::test]
    async fn a_call_waits_for_what_the_program_says_came_of_it() {
        let lending = Lending::default();
        let state = Arc::new(FakeSession::default());
        let context = context(&state, Path::new(""));
        let (session, call) = (context.session_id, context.call_id.clone());
        lending.lend(session, "", vec![weather()]);
        let registry = lending.with_lent(session, Registry::new([]));
        let names = registry.names(&[]);
        let args = json!({"city": "Kyiv"});
        let prepared = registry.prepare("weather", &args, &names).unwrap();
        let called = prepared.tool.call(args.clone(), context);
        let answered = async {
            while lending.waiting(&call) != Some(session) {
                tokio::task::yield_now().await;
            }
            assert!(lending.answer(session, &call, "snow".to_owned()));
            assert!(!lending.answer(session, &call, "rain".to_owned()));
        };
        let (result, ()) = tokio::join!(called, answered);
        assert_eq!(result.unwrap().text, "snow");
        assert_eq!(lending.waiting(&call), None);
    }
}
