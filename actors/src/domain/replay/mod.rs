//! A run gone through again by another model, with what its tools gave then: no tool runs.
//!
//! As long as the other model makes the calls that were made then, it is sent what was sent
//! then, with its own words in place of the first model's. Where it makes others, it goes on
//! with a conversation of its own for as long as each of its calls was made at some point of the
//! run, with the same arguments, and so has a result. Its first call without one ends the replay.

#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::Value;

use crate::domain::context::{Notes, hide_images, window};
use crate::domain::leaked_calls;
use crate::protocol::chat::{ChatMessage, ChatRequest, RequestedCall, Usage};
use crate::protocol::ids::CallId;
use crate::protocol::inspect::CallReply;
use crate::protocol::message::ToolCall;
use crate::protocol::offered::OfferedTools;
use crate::protocol::status::ModelInfo;

/// How many calls a replay makes after it left the way of the run.
const MAX_OWN_CALLS: u32 = 30;

/// A call of the run's loop, as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    pub n: u32,
    pub request: ChatRequest,
    /// Whether the request is what was sent, to the byte.
    pub exact: bool,
    pub reply: CallReply,
}

/// What the other model said.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Said {
    pub content: String,
    pub thinking: String,
    pub tool_calls: Vec<RequestedCall>,
    pub usage: Option<Usage>,
}

/// One call of a replay, beside the one that was made then.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayStep {
    /// The run's call; none where the replay goes its own way.
    pub n: Option<u32>,
    /// Whether the run's request is known to the byte.
    pub exact: Option<bool>,
    pub recorded: Option<CallReply>,
    pub said: Said,
    /// Whether it makes the same calls with the same arguments, in the same order.
    pub same_calls: Option<bool>,
    /// Whether it says the same, space around it aside.
    pub same_text: Option<bool>,
}

/// Why a replay is over.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum ReplayEnd {
    /// The other model answered.
    Answered,
    /// It called what was not called then: nobody knows what would have come of it.
    Parted {
        tool: String,
        arguments: Value,
    },
    /// It goes on and on in its own way.
    Limit,
    Failed {
        message: String,
    },
    /// A person ended it.
    Interrupted,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Each with its request's notes, which are no part of the conversation, taken out of it.
    recorded: Vec<(RecordedCall, Option<Notes>)>,
    /// The recorded call that is asked for now, as long as `own` is none.
    at: usize,
    results: Vec<RecordedResult>,
    /// What this model said with calls that were made then too, by the first call's id.
    words: Vec<(CallId, String)>,
    /// The conversation that no recorded call has.
    own: Option<OwnWay>,
    model: ModelInfo,
}

#[derive(Clone, Debug)]
struct OwnWay {
    request: ChatRequest,
    notes: Option<Notes>,
    calls: u32,
}

/// What came of a call then, as the model was sent it.
#[derive(Clone, Debug)]
struct RecordedResult {
    call: ToolCall,
    content: String,
    used: u32,
}

impl Replay {
    /// A replay of a run's calls from `from` on, by this model. None where there is no such call.
    #[must_use]
    pub fn new(recorded: Vec<RecordedCall>, from: usize, model: ModelInfo) -> Option<Self> {
        recorded.get(from)?;
        let recorded = recorded.into_iter().map(|mut then| {
            let notes = Notes::take(&mut then.request.messages);
            (then, notes)
        });
        let recorded: Vec<_> = recorded.collect();
        Some(Self {
            results: results_of(&recorded),
            recorded,
            at: from,
            words: Vec::new(),
            own: None,
            model,
        })
    }

    /// What the model is asked next.
    #[must_use]
    pub fn request(&self) -> ChatRequest {
        let (mut request, notes) = match &self.own {
            Some(own) => (own.request.clone(), &own.notes),
            None => {
                // It never goes beyond the last.
                let (then, notes) = &self.recorded[self.at];
                (self.in_own_words(&then.request), notes)
            }
        };
        let model = &self.model;
        request.model.clone_from(&model.name);
        request.context_window = window(model, request.context_window);
        request.think = request.think && model.thinking != Some(false);
        if model.tools == Some(false) {
            request.tools = OfferedTools::default();
        }
        if model.vision == Some(false) {
            hide_images(&mut request.messages);
        }
        if let Some(notes) = notes {
            notes.put(&mut request.messages);
        }
        request
    }

    /// A request of the run with what this model said instead of the first.
    fn in_own_words(&self, request: &ChatRequest) -> ChatRequest {
        let mut request = request.clone();
        for message in &mut request.messages {
            let ChatMessage::Assistant { tool_calls, .. } = &**message else {
                continue;
            };
            let first = tool_calls.first();
            let own = first.and_then(|first| self.words.iter().find(|(id, _)| *id == first.id));
            if let Some((_, words)) = own
                && let ChatMessage::Assistant { content, .. } = message.to_mut()
            {
                content.clone_from(words);
            }
        }
        request
    }

    /// The model answered: how that compares, and whether the replay is over with it.
    pub fn on_reply(&mut self, mut said: Said) -> (ReplayStep, Option<ReplayEnd>) {
        let asked = self.request();
        if asked.tools.is_empty() {
            // It was not to call any; a run would not run them either.
            said.tool_calls.clear();
        } else if said.tool_calls.is_empty() {
            let is_known = |name: &str| asked.tools.iter().any(|tool| tool.name == name);
            if let Some(calls) = leaked_calls::parse(&said.content, is_known) {
                said.tool_calls = calls;
                said.content.clear();
            }
        }
        let recorded = match self.own {
            Some(_) => None,
            None => self.recorded.get(self.at).map(|(then, _)| then),
        };
        let same_calls = recorded.map(|then| is_same(&said.tool_calls, &then.reply.tool_calls));
        let step = ReplayStep {
            n: recorded.map(|then| then.n),
            exact: recorded.map(|then| then.exact),
            same_calls,
            same_text: recorded.map(|then| {
                then.reply.content.as_deref().unwrap_or_default().trim() == said.content.trim()
            }),
            recorded: recorded.map(|then| then.reply.clone()),
            said: said.clone(),
        };
        let end = if said.tool_calls.is_empty() {
            Some(ReplayEnd::Answered)
        } else {
            self.go_on(said, same_calls == Some(true))
        };
        (step, end)
    }

    fn go_on(&mut self, said: Said, as_then: bool) -> Option<ReplayEnd> {
        let mut calls = Vec::with_capacity(said.tool_calls.len());
        let mut results = Vec::with_capacity(said.tool_calls.len());
        for call in &said.tool_calls {
            let Some((id, content)) = self.result(call) else {
                return Some(ReplayEnd::Parted {
                    tool: call.name.clone(),
                    arguments: call.arguments.clone(),
                });
            };
            let told = ChatMessage::Tool {
                call_id: id.clone(),
                name: call.name.clone(),
                content,
            };
            results.push(told.into());
            calls.push(ToolCall {
                id,
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            });
        }
        if as_then && self.at + 1 < self.recorded.len() {
            let then = self.recorded.get(self.at);
            let first = then.and_then(|(then, _)| then.reply.tool_calls.first());
            let first = first.map(|call| call.id.clone());
            self.words.extend(first.map(|id| (id, said.content)));
            self.at += 1;
            return None;
        }
        let (mut request, notes, made) = match self.own.take() {
            Some(own) => (own.request, own.notes, own.calls),
            None => {
                let (then, notes) = self.recorded.get(self.at)?;
                (self.in_own_words(&then.request), notes.clone(), 0)
            }
        };
        if made >= MAX_OWN_CALLS {
            return Some(ReplayEnd::Limit);
        }
        let said = ChatMessage::Assistant {
            content: said.content,
            tool_calls: calls,
        };
        request.messages.push(said.into());
        request.messages.extend(results);
        self.own = Some(OwnWay {
            request,
            notes,
            calls: made + 1,
        });
        None
    }

    /// What came of such a call then, under an id that the conversation has once. One that was
    /// made several times gives its results in turn, and its last one from then on.
    fn result(&mut self, call: &RequestedCall) -> Option<(CallId, String)> {
        let same =
            |it: &RecordedResult| it.call.name == call.name && it.call.arguments == call.arguments;
        let unused = self.results.iter().position(|it| same(it) && it.used == 0);
        let at = unused.or_else(|| self.results.iter().rposition(same))?;
        let found = self.results.get_mut(at)?;
        found.used += 1;
        let id = match found.used {
            1 => found.call.id.clone(),
            again => CallId(format!("{}_{again}", found.call.id)),
        };
        Some((id, found.content.clone()))
    }
}

/// The results of the run's calls, from the first request after each.
fn results_of(recorded: &[(RecordedCall, Option<Notes>)]) -> Vec<RecordedResult> {
    let mut results = Vec::new();
    for (index, (then, _)) in recorded.iter().enumerate() {
        for call in &then.reply.tool_calls {
            let later = recorded[index + 1..].iter();
            let content = later
                .flat_map(|(next, _)| &next.request.messages)
                .find_map(|message| match &**message {
                    ChatMessage::Tool {
                        call_id, content, ..
                    } if *call_id == call.id => Some(content.clone()),
                    _ => None,
                });
            results.extend(content.map(|content| RecordedResult {
                call: call.clone(),
                content,
                used: 0,
            }));
        }
    }
    results
}

fn is_same(said: &[RequestedCall], then: &[ToolCall]) -> bool {
    said.len() == then.len()
        && said
            .iter()
            .zip(then)
            .all(|(now, then)| now.name == then.name && now.arguments == then.arguments)
}
