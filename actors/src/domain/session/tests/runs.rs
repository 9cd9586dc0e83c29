//! A run as the session meets it: the real loop, driven by chance.

use std::sync::{Arc, LazyLock};

use serde_json::json;

use super::random::Random;
use super::world::NOW;
use crate::domain::consent::{Answer, Asking};
use crate::domain::run_loop::{
    CallBook, CallPlan, CallResult, Cut, ModelReply, PlannedCall, Record, RunEnd, RunLoop,
    RunStart, RunSummary, Step, call_ended, call_started,
};
use crate::domain::session::command::{ChildStart, Command, LeftRuns};
use crate::domain::session::transition::{self, CheckpointState, Launch, StartPoint};
use crate::protocol::approval::{ApprovalRequest, PendingApproval, Permission};
use crate::protocol::chat::{ReplyForm, RequestedCall, Usage};
use crate::protocol::event::Event;
use crate::protocol::ids::{ApprovalId, CallId, MessageId, Origin, RunId};
use crate::protocol::message::{ToolCall, ToolOutcome};
use crate::protocol::profile::Profile;
use crate::protocol::tool::Effect;

/// The window of the model, in tokens.
pub(super) const WINDOW: u32 = 100;

pub(super) fn profile() -> Arc<Profile> {
    static PROFILE: LazyLock<Arc<Profile>> = LazyLock::new(|| {
        let profile = serde_json::from_value(json!({
            "id": "test", "name": "Test", "description": "", "system_prompt": "",
            "enabled_tools": [], "temperature": 0.5, "max_iterations": 6,
        }));
        Arc::new(profile.expect("a profile"))
    });
    Arc::clone(&PROFILE)
}

/// `read…` reads, anything else changes things.
struct Tools;

impl CallBook for Tools {
    fn is_known(&self, _: &str) -> bool {
        true
    }

    fn fits(&self, _: &ReplyForm, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn is_lent(&self, _: &str) -> bool {
        false
    }

    fn plan(&mut self, call: &ToolCall) -> CallPlan {
        let reads = call.name.starts_with("read") || call.name == "spawn";
        CallPlan::Run {
            effect: if reads { Effect::Read } else { Effect::Write },
            side_by_side: reads,
        }
    }
}

/// A child that goes.
#[derive(Debug)]
struct Child {
    origin: Origin,
    open: Option<CallId>,
}

/// A foreground run's driver: waits for the answer to what it asked last, as the real one does.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) run_id: RunId,
    run_loop: RunLoop,
    /// What it records as it begins.
    first: Vec<Record>,
    looked: bool,
    /// Calls that run.
    working: Vec<CallId>,
    /// Those that a person is asked about, and whether their answer is waited for.
    asked: Vec<(CallId, ApprovalId, bool)>,
    child: Option<Child>,
    /// How many answers it waits for before it goes on.
    pub(super) waits: usize,
    pub(super) left: Option<LeftRuns>,
    pub(super) gone: bool,
}

/// What it does next.
pub(super) enum Does {
    /// Goes on once this is answered.
    Ask(Command),
    /// Is told meanwhile.
    Await(CallId, Command),
    Nothing,
}

impl Driver {
    pub(super) fn new(launch: Launch) -> Self {
        let run_id = launch.run_id;
        let (run_loop, first) = match launch.from {
            StartPoint::Stored(run_loop) => (*run_loop, Vec::new()),
            StartPoint::Start { again, steps } => {
                let mut run_loop = RunLoop::new(RunStart {
                    origin: Origin::foreground(run_id),
                    profile: &profile(),
                    goal: "do it".to_owned(),
                    plans: false,
                    steps,
                    edits_since: None,
                    max_tokens: u64::MAX,
                    context_tokens: 0,
                    window: WINDOW,
                });
                let mut first = vec![Record::Began {
                    backend: "fake".to_owned(),
                    model: "m".to_owned(),
                    window: WINDOW,
                }];
                first.extend(run_loop.repeat(&again, &mut Tools, NOW));
                (run_loop, first)
            }
        };
        Self {
            run_id,
            run_loop,
            first,
            looked: false,
            working: Vec::new(),
            asked: Vec::new(),
            child: None,
            waits: 0,
            left: None,
            gone: false,
        }
    }

    fn records(&self, records: Vec<Record>) -> Does {
        if records.is_empty() {
            return Does::Nothing;
        }
        Does::Ask(Command::Record {
            run_id: self.run_id,
            records,
        })
    }

    /// The next thing that it does. `stopped`: its stop token is cancelled.
    pub(super) fn step(&mut self, random: &mut Random, stopped: bool) -> Does {
        if self.gone || self.waits > 0 {
            return Does::Nothing;
        }
        if self.run_loop.is_over() {
            self.gone = true;
            return Does::Nothing;
        }
        if stopped {
            let records = self.run_loop.cut(&Cut::Stopped, None, NOW);
            return self.records(records);
        }
        match self.left {
            Some(LeftRuns::Parked) if self.working.is_empty() => return self.park(),
            Some(LeftRuns::Interrupted) => {
                let cut = Cut::Interrupted {
                    reason: "down".to_owned(),
                };
                let records = self.run_loop.cut(&cut, None, NOW);
                return self.records(records);
            }
            Some(LeftRuns::Parked) | None => {}
        }
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first);
            return self.records(first);
        }
        match self.run_loop.next_step() {
            Step::CallModel { .. } if !self.looked => {
                self.looked = true;
                Does::Ask(Command::Checkpoint(self.run_id))
            }
            Step::CallModel { .. } => {
                self.looked = false;
                let reply = reply(random);
                let records = self.run_loop.on_reply(reply, &mut Tools, NOW);
                self.records(records)
            }
            Step::RunTools(group) => self.tools(random, &group),
            Step::Plan(_) | Step::Finish(_) => Does::Nothing,
        }
    }

    /// First its loop is stored as it stands, then the session lets it go.
    fn park(&mut self) -> Does {
        if self.run_loop.is_parked() {
            self.gone = true;
            return Does::Ask(Command::Park(self.run_id));
        }
        let mut records = self.run_loop.park(None, NOW);
        records.push(self.stored());
        self.records(records)
    }

    fn stored(&self) -> Record {
        Record::Waits(serde_json::to_string(&self.run_loop).expect("a loop"))
    }

    fn tools(&mut self, random: &mut Random, group: &[PlannedCall]) -> Does {
        let fresh: Vec<&PlannedCall> = group
            .iter()
            .filter(|planned| self.run_loop.asked(&planned.call.id).is_none())
            .collect();
        if self.working.is_empty() && self.asked.is_empty() {
            for planned in group {
                if let Some(asked) = self.run_loop.asked(&planned.call.id) {
                    // It waited over a restart.
                    let id = asked.approval_id;
                    self.asked.push((planned.call.id.clone(), id, false));
                }
            }
            let mut records = Vec::new();
            for planned in fresh {
                let one = std::slice::from_ref(planned);
                if random.below(4) == 0 && planned.call.name != "spawn" {
                    let asking = asking(self.run_id, &planned.call.id);
                    let id = asking.pending.approval_id;
                    self.asked.push((planned.call.id.clone(), id, false));
                    records.extend(self.run_loop.on_asked(asking));
                } else {
                    self.working.push(planned.call.id.clone());
                    records.extend(self.run_loop.on_tools_started(one));
                }
            }
            if !self.asked.is_empty() {
                records.push(self.stored());
            }
            return self.records(records);
        }
        let unheard = self.asked.iter_mut().find(|(_, _, awaited)| !awaited);
        if let Some((call_id, approval_id, awaited)) = unheard {
            *awaited = true;
            let (call_id, approval_id) = (call_id.clone(), *approval_id);
            return Does::Await(
                call_id,
                Command::AwaitAnswer {
                    run_id: self.run_id,
                    approval_id,
                },
            );
        }
        if random.below(2) == 0
            && let Some(does) = self.child_step(random)
        {
            return does;
        }
        if self.working.is_empty() {
            return Does::Nothing;
        }
        let call_id = self.working.remove(random.below(self.working.len()));
        if self.child.is_some() && self.working.is_empty() {
            self.child = None;
        }
        let outcome = ToolOutcome::Success;
        let records = self.run_loop.on_tool_result(&call_id, result(outcome), NOW);
        self.records(records)
    }

    /// A subagent begins, calls a tool, ends.
    fn child_step(&mut self, random: &mut Random) -> Option<Does> {
        let Some(child) = &mut self.child else {
            let call_id = self.working.first()?.clone();
            let origin = Origin {
                run_id: RunId::new(),
                parent_run_id: Some(self.run_id),
            };
            self.child = Some(Child { origin, open: None });
            return Some(Does::Ask(Command::StartChild(Box::new(ChildStart {
                origin,
                call_id,
                profile_id: "test".to_owned(),
                task: "help".to_owned(),
            }))));
        };
        let run_id = child.origin.run_id;
        let call = |id: &CallId| ToolCall {
            id: id.clone(),
            name: "read".to_owned(),
            arguments: json!({}),
        };
        let record = match (&child.open, random.below(3)) {
            (None, 0) => {
                self.child = None;
                Record::Ended(RunSummary {
                    end: RunEnd::Answered,
                    text: "done".to_owned(),
                    iterations: 1,
                    prompt_tokens: 0,
                    completion_tokens: 0,
                    cached_tokens: 0,
                    leaked_calls: 0,
                })
            }
            (None, _) => {
                let id = CallId::new();
                let event = call_started(&call(&id), MessageId::new(), child.origin, false);
                child.open = Some(id);
                Record::Event(event)
            }
            (Some(_), 0) => return None,
            (Some(id), _) => {
                let success = result(ToolOutcome::Success);
                let ended = call_ended(call(id), success, child.origin, false);
                child.open = None;
                Record::Event(ended)
            }
        };
        Some(Does::Ask(Command::Record {
            run_id,
            records: vec![record],
        }))
    }

    /// What it asked is answered.
    pub(super) fn heard(&mut self, reply: Option<transition::Reply>) {
        self.waits = self.waits.saturating_sub(1);
        match reply {
            None => self.gone = true,
            Some(transition::Reply::Checkpoint(CheckpointState { steered, todo, .. })) => {
                for message in steered {
                    self.run_loop
                        .on_steered(message.content.as_deref().unwrap_or_default());
                }
                self.run_loop.on_todo(&todo);
            }
            Some(_) => {}
        }
    }

    /// A person's answer is there: what the loop records of it.
    pub(super) fn answered(&mut self, call_id: &CallId, answer: &Answer) -> Does {
        let at = self.asked.iter().position(|(id, ..)| id == call_id);
        if self.gone || self.run_loop.is_over() || at.is_none() {
            return Does::Nothing;
        }
        self.asked.retain(|(id, ..)| id != call_id);
        let not_begun = self.run_loop.not_begun();
        let Some(planned) = not_begun.iter().find(|it| it.call.id == *call_id) else {
            return Does::Nothing;
        };
        let records = if answer.resolution.decision.permission() == Permission::Allow {
            self.working.push(call_id.clone());
            let one = std::slice::from_ref(planned);
            self.run_loop.on_tools_started(one)
        } else {
            let refused = result(ToolOutcome::Failed);
            let mut records = self.run_loop.on_refused(planned, refused, NOW);
            records.push(self.stored());
            records
        };
        self.records(records)
    }
}

fn reply(random: &mut Random) -> ModelReply {
    let calls = match random.below(5) {
        0 | 1 => Vec::new(),
        n => (0..n - 1)
            .map(|_| RequestedCall {
                name: ["read", "write", "spawn"][random.below(3)].to_owned(),
                arguments: json!({ "n": random.below(1_000_000) }),
            })
            .collect(),
    };
    ModelReply {
        text: "said".to_owned(),
        calls,
        usage: Some(Usage {
            prompt_tokens: [7, WINDOW][random.below(2)],
            completion_tokens: 3,
            cached_tokens: None,
        }),
        ..ModelReply::empty(MessageId::new())
    }
}

fn result(outcome: ToolOutcome) -> CallResult {
    CallResult {
        outcome,
        text: "result".to_owned(),
        outside: false,
        files: Vec::new(),
        duration_ms: 1,
    }
}

fn asking(run_id: RunId, call_id: &CallId) -> Asking {
    Asking {
        pending: PendingApproval {
            approval_id: ApprovalId::new(),
            run_id,
            call_id: call_id.clone(),
            tool: "write".to_owned(),
            request: ApprovalRequest {
                summary: "write".to_owned(),
                effect: Effect::Write,
                reason: String::new(),
                details: Vec::new(),
                always: Some("always".to_owned()),
                phrases: None,
            },
            requested_at: NOW,
            expires_at: NOW,
            is_subagent: false,
        },
        digest: "d".to_owned(),
        rule_key: Some("k".to_owned()),
    }
}

/// The event of a summary.
pub(super) fn compressed() -> Event {
    Event::ContextCompressed {
        messages_before: 2,
        messages_after: 1,
        first_kept: None,
    }
}
