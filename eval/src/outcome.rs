//! What a task left behind: everything that the checks look at.

use std::path::PathBuf;

use navi_actors::protocol::error::ErrorCode;
use navi_actors::protocol::event::{Envelope, Event};
use navi_actors::protocol::ids::CallId;
use navi_actors::protocol::session::SessionSnapshot;
use serde_json::Value;

use crate::meter::Reading;

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// `completed` is false where the iteration limit or a time limit of Navi's own ended it.
    Answered {
        completed: bool,
    },
    Failed {
        code: ErrorCode,
        message: String,
    },
    /// Stopped or interrupted by nobody's wish here.
    CutOff,
    /// The task's own limits ended it.
    OutOfTime {
        seconds: u64,
    },
    OutOfCalls {
        limit: u64,
    },
    /// The person at the terminal did.
    Cancelled,
}

impl End {
    /// Why the turn is not one that was answered.
    pub(crate) fn trouble(&self) -> Option<String> {
        match self {
            Self::Answered { .. } => None,
            Self::Failed { message, .. } => Some(format!("the run failed: {message}")),
            Self::CutOff => Some("the run was cut off".to_owned()),
            Self::OutOfTime { seconds } => {
                Some(format!("it took longer than its limit of {seconds} s"))
            }
            Self::OutOfCalls { limit } => {
                Some(format!("it went over its limit of {limit} model calls"))
            }
            Self::Cancelled => Some("it was ended by hand".to_owned()),
        }
    }
}

/// A turn: what was answered, and how it ended.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) answer: Option<String>,
    pub(crate) end: End,
}

/// A tool call as the watchers of a session see it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) tool: String,
    pub(crate) args: Value,
    pub(crate) is_subagent: bool,
    /// None where it has not ended.
    pub(crate) success: Option<bool>,
}

/// A fact about the user that Navi keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownFact {
    pub(crate) category: String,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// The numbered events of all its sessions, in order. Streamed text is not among them.
    pub(crate) events: Vec<Envelope>,
    pub(crate) turns: Vec<Turn>,
    /// The last session as it stood at the end.
    pub(crate) session: SessionSnapshot,
    /// The last session's files.
    pub(crate) workspace: PathBuf,
    /// What a new session of the user would be told of them; asked for by some checks only.
    pub(crate) remembered: Option<String>,
    pub(crate) spent: Reading,
    /// What there is to call, and to be.
    pub(crate) tools: Vec<String>,
    pub(crate) profiles: Vec<String>,
}

impl Outcome {
    /// The last turn's answer.
    pub(crate) fn answer(&self) -> &str {
        let last = self.turns.last();
        last.and_then(|turn| turn.answer.as_deref())
            .unwrap_or_default()
    }

    /// Why it did not come to its end, where it did not.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.turns.iter().find_map(|turn| turn.end.trouble())
    }

    /// The tool calls in the order of their starts.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let mut calls: Vec<Call> = Vec::new();
        for envelope in &self.events {
            match &envelope.event {
                Event::ToolStarted {
                    tool,
                    args,
                    is_subagent,
                    call_id,
                    ..
                } => calls.push(Call {
                    id: call_id.clone(),
                    tool: tool.clone(),
                    args: args.clone(),
                    is_subagent: *is_subagent,
                    success: None,
                }),
                Event::ToolCall {
                    call_id, success, ..
                } => {
                    if let Some(call) = calls.iter_mut().find(|call| call.id == *call_id) {
                        call.success = Some(*success);
                    }
                }
                _ => {}
            }
        }
        calls
    }

    /// The facts that tools saved and did not forget again, by what the calls said.
    pub(crate) fn facts(&self) -> Vec<KnownFact> {
        let mut facts: Vec<KnownFact> = Vec::new();
        for call in self.calls() {
            let text = |field: &str| call.args[field].as_str().unwrap_or_default().to_owned();
            let fact = KnownFact {
                category: text("category"),
                key: text("key"),
                value: text("value"),
            };
            let is_same =
                |known: &KnownFact| (&known.category, &known.key) == (&fact.category, &fact.key);
            match (call.tool.as_str(), call.success) {
                ("memory_save", Some(true)) => {
                    facts.retain(|known| !is_same(known));
                    facts.push(fact);
                }
                ("memory_forget", Some(true)) => facts.retain(|known| !is_same(known)),
                _ => {}
            }
        }
        facts
    }

    /// The most subagents that were at work at the same time.
    pub(crate) fn subagents_at_once(&self) -> usize {
        let (mut now, mut most) = (0_usize, 0);
        for envelope in &self.events {
            match &envelope.event {
                Event::SubagentStarted { .. } => now += 1,
                Event::SubagentFinished { .. } => now = now.saturating_sub(1),
                _ => {}
            }
            most = most.max(now);
        }
        most
    }
}
