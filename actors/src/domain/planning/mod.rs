//! Planning before the tool loop (SPEC section 4), as data that can be stepped and stored.
//!
//! A driver sends [`Planner::messages`] to the model (thinking off, temperature
//! [`TEMPERATURE`], no tools, not streamed), and tells the reply to [`Planner::on_reply`],
//! until that gives no further question. What goes wrong costs the plan, never the run: a
//! driver whose call failed goes on as after [`Planned::NoPlan`].

mod direct;
mod executor;
mod parse;
mod prompts;
mod steps;

use serde::{Deserialize, Serialize};

pub use self::steps::ToolSteps;
use crate::domain::shorten;
use crate::protocol::chat::{ChatMessage, FinishReason};
use crate::protocol::message::Role;
use crate::protocol::plan::PlanStep;
use crate::protocol::profile::ProfileFlags;
use crate::protocol::tool::ToolSpec;

/// As many steps as a plan has; what the model wrote beyond is left out.
pub const MAX_STEPS: usize = 30;

/// The temperature of all planning calls.
pub const TEMPERATURE: f32 = 0.3;

/// As few as it has: what takes one step needs no plan.
const MIN_STEPS: usize = 2;

/// As much of an analysis, or of a review, as later phases are given.
const MAX_CARRIED_CHARS: usize = 4_000;

/// What planning knows of the task.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    pub request: &'a str,
    /// The last few messages before it, oldest first; may be empty.
    pub recent: &'a [(Role, String)],
    /// Those that the run may call.
    pub tools: &'a [ToolSpec],
    /// Those that may be given a subtask; empty where the run cannot spawn any.
    pub agents: &'a [AgentInfo<'a>],
}

/// A profile that can carry out a step.
#[derive(Clone, Copy, Debug)]
pub struct AgentInfo<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub description: &'a str,
}

/// The phase that planning is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Planner {
    Analyse,
    Review {
        analysis: String,
    },
    Write {
        analysis: String,
        review: Option<String>,
    },
}

/// What the model answered to a question of planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanningReply<'a> {
    pub text: &'a str,
    pub finish: FinishReason,
}

/// What a reply leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planned {
    /// Another question.
    Ask(Planner),
    /// The request is simple: no plan is needed.
    Direct,
    /// There should have been a plan, and there is none.
    NoPlan,
    Plan(PlannedSteps),
}

/// A plan. What the text says of steps agrees with `steps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedSteps {
    /// As the model wrote it, but for what is ours: the numbers of the steps, executors that do
    /// not exist (`SELF` instead), and no step beyond [`MAX_STEPS`].
    pub text: String,
    /// At least two; numbered from 1.
    pub steps: Vec<PlanStep>,
}

/// Whether a request is so simple that no model needs to be asked about a plan: a sum, a greeting,
/// thanks, a yes or a no.
#[must_use]
pub fn is_direct(request: &str) -> bool {
    direct::is_trivial(request)
}

impl Default for Planner {
    fn default() -> Self {
        Self::new()
    }
}

impl Planner {
    #[must_use]
    pub fn new() -> Self {
        Self::Analyse
    }

    /// What the model is sent: instructions, examples, then the task.
    #[must_use]
    pub fn messages(&self, task: &Task<'_>) -> Vec<ChatMessage> {
        let (instructions, content) = match self {
            Self::Analyse => (prompts::analyse(task), prompts::task(task, None, None)),
            Self::Review { analysis } => (
                prompts::review(),
                prompts::task(task, Some(analysis.as_str()), None),
            ),
            Self::Write { analysis, review } => (
                prompts::write(task),
                prompts::task(task, Some(analysis.as_str()), review.as_deref()),
            ),
        };
        let user = |content| ChatMessage::User {
            content,
            images: Vec::new(),
        };
        let mut messages = vec![ChatMessage::System {
            content: instructions.system,
        }];
        for (request, reply) in instructions.examples {
            messages.push(user(request));
            messages.push(ChatMessage::Assistant {
                content: reply,
                tool_calls: Vec::new(),
            });
        }
        messages.push(user(content));
        messages
    }

    /// A limit on the answer, in tokens, where a plan may have `plan_tokens`. What is asked for
    /// before it is a few lines.
    #[must_use]
    pub fn max_output_tokens(&self, plan_tokens: u32) -> u32 {
        match self {
            Self::Analyse => plan_tokens / 4,
            Self::Review { .. } => plan_tokens / 3,
            Self::Write { .. } => plan_tokens,
        }
    }

    /// Reads the model's reply. `task` is the one that [`Self::messages`] was given.
    #[must_use]
    pub fn on_reply(
        self,
        reply: PlanningReply<'_>,
        flags: &ProfileFlags,
        task: &Task<'_>,
    ) -> Planned {
        // A model that ran into its limit did the task instead of sorting or planning it. What
        // comes of asking it on is as long again, and no better.
        if reply.finish == FinishReason::Length {
            return Planned::NoPlan;
        }
        let reply = parse::cleaned(reply.text);
        match self {
            Self::Analyse if reply.is_empty() => Planned::NoPlan,
            Self::Analyse if parse::is_direct(&reply) => Planned::Direct,
            Self::Analyse => {
                let (analysis, reflect) = parse::analysis(&reply);
                let analysis = shorten::cut(&analysis, MAX_CARRIED_CHARS);
                Planned::Ask(if reflect && flags.planning_phase2_enabled {
                    Self::Review { analysis }
                } else {
                    Self::Write {
                        analysis,
                        review: None,
                    }
                })
            }
            // A review that says nothing is no reason to go without a plan.
            Self::Review { analysis } => Planned::Ask(Self::Write {
                analysis,
                review: (!reply.is_empty()).then(|| shorten::cut(&reply, MAX_CARRIED_CHARS)),
            }),
            Self::Write { .. } => parse::plan(&reply, task).map_or(Planned::NoPlan, Planned::Plan),
        }
    }
}

#[cfg(test)]
mod tests;
