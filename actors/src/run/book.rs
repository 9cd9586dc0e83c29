//! What a run's calls are looked up in.

use std::collections::HashMap;

use crate::domain::consent;
use crate::domain::run_loop::{CallBook, CallPlan};
use crate::protocol::chat::ReplyForm;
use crate::protocol::ids::CallId;
use crate::protocol::message::ToolCall;
use crate::protocol::tool::Effect;
use crate::tools::registry::{PreparedCall, Registry};
use crate::tools::schema::fits;

/// Looks calls up in the registry and keeps those that may be run.
pub(super) struct Book<'a> {
    registry: &'a Registry,
    allowed: Vec<String>,
    /// See [`RunSetup::ceiling`].
    ceiling: Effect,
    pub(super) prepared: HashMap<CallId, PreparedCall>,
}

impl<'a> Book<'a> {
    pub(super) fn new(registry: &'a Registry, allowed: Vec<String>, ceiling: Effect) -> Self {
        Self {
            registry,
            allowed,
            ceiling,
            prepared: HashMap::new(),
        }
    }
}

impl CallBook for Book<'_> {
    fn is_known(&self, tool: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == tool)
    }

    fn fits(&self, form: &ReplyForm, text: &str) -> Result<(), String> {
        fits(form, text)
    }

    fn is_lent(&self, tool: &str) -> bool {
        self.registry.is_lent(tool)
    }

    fn plan(&mut self, call: &ToolCall) -> CallPlan {
        match self
            .registry
            .prepare(&call.name, &call.arguments, &self.allowed)
        {
            Ok(ready) => {
                let beyond = consent::beyond_parent(&call.name, ready.effect, self.ceiling);
                if let Some(reason) = beyond {
                    return CallPlan::Refuse(reason);
                }
                let plan = CallPlan::Run {
                    effect: ready.effect,
                    side_by_side: ready.side_by_side,
                };
                self.prepared.insert(call.id.clone(), ready);
                plan
            }
            Err(refusal) => CallPlan::Refuse(refusal.0),
        }
    }
}
