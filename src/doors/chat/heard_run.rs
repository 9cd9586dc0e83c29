//! What of a session's events is the answer to one message, and how it ends.

use std::collections::HashSet;

use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::event::{Envelope, Event};
use navi_actors::protocol::ids::{MessageId, PartId, RunId};
use navi_actors::protocol::message::{Message, MessageState, Role};
use navi_actors::protocol::session::SessionSnapshot;

use crate::doors::heard::Heard;

/// How much reasoning is kept.
const REASONING: usize = 1024 * 1024;

/// How the run ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    Answered { content: String, completed: bool },
    Stopped,
    Interrupted(String),
    Failed(NaviError),
}

/// What came of an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Came {
    Nothing,
    /// The message is committed: a run answers it.
    Accepted,
    /// Another run goes on from the one that was interrupted.
    GoesOn,
    /// Something that a person should know.
    Word(String),
    End(End),
}

/// See the module.
#[derive(Debug)]
pub(super) struct HeardRun {
    client_id: String,
    pub(super) message: Option<MessageId>,
    /// The run that answers, and those that it went on from.
    pub(super) own: Vec<RunId>,
    /// Those and their subagents'.
    pub(super) all: HashSet<RunId>,
    text: Heard,
    part: Option<PartId>,
    /// What was said of the reply that is being made.
    partial: String,
    /// What was said of it before it was cut off and gone on with.
    kept: String,
    thinking: Heard,
    pub(super) reasoning: String,
}

impl HeardRun {
    pub(super) fn new(client_id: &str) -> Self {
        Self {
            client_id: client_id.to_owned(),
            message: None,
            own: Vec::new(),
            all: HashSet::new(),
            text: Heard::default(),
            part: None,
            partial: String::new(),
            kept: String::new(),
            thinking: Heard::default(),
            reasoning: String::new(),
        }
    }

    /// The answer as far as it was said.
    pub(super) fn so_far(&self) -> String {
        format!("{}{}", self.kept, self.partial)
    }

    /// Whether it was cut off and gone on with.
    pub(super) fn was_cut(&self) -> bool {
        !self.kept.is_empty() || self.own.len() > 1
    }

    /// The whole of an answer that was cut off and gone on with, as it is stored: what was heard
    /// of it may be more than what was kept, and what the rest follows.
    pub(super) fn whole(&self, messages: &[Message]) -> Option<String> {
        let mut answer = String::new();
        for message in messages {
            if !self.own.contains(&message.run_id) || message.is_plan {
                continue;
            }
            match message.role {
                Role::Assistant if message.tool_calls.is_empty() => {
                    answer.push_str(message.content.as_deref().unwrap_or_default());
                }
                // What was said before a call is not the answer.
                Role::Assistant | Role::Tool => answer.clear(),
                Role::System | Role::User => {}
            }
        }
        (!answer.is_empty()).then_some(answer)
    }

    fn goes_on_as(&mut self, run_id: RunId) {
        self.own.push(run_id);
        self.all.insert(run_id);
    }

    pub(super) fn take(&mut self, envelope: Envelope) -> Came {
        let Envelope {
            run_id,
            parent_run_id,
            event,
            ..
        } = envelope;
        if let Event::MessageAccepted {
            client_id,
            message_id,
            ..
        } = &event
            && client_id.as_ref() == Some(&self.client_id)
            && let Some(run_id) = run_id
        {
            if self.message.is_some() {
                return Came::Nothing;
            }
            self.message = Some(*message_id);
            self.goes_on_as(run_id);
            return Came::Accepted;
        }
        if let Event::Resync { session, .. } = event {
            return self.take_snapshot(&session);
        }
        if let (Some(run_id), Some(parent)) = (run_id, parent_run_id)
            && self.all.contains(&parent)
        {
            self.all.insert(run_id);
        }
        let is_heard = run_id.is_some_and(|run_id| self.all.contains(&run_id));
        let is_own = parent_run_id.is_none() && run_id.as_ref() == self.own.last();
        if let (Event::StreamStart { message_id, .. }, Some(run_id)) = (&event, run_id)
            && self.message == Some(*message_id)
            && parent_run_id.is_none()
            && !is_own
        {
            self.goes_on_as(run_id);
            return Came::GoesOn;
        }
        if let Event::ApprovalRequested { request, .. } = &event
            && is_heard
        {
            let asks = format!("waits for an answer on Navi's page: {}", request.summary);
            return Came::Word(asks);
        }
        if !is_own {
            return Came::Nothing;
        }
        match event {
            Event::StreamDelta(delta) => {
                if self.part.as_ref() != Some(&delta.part_id) {
                    self.part = Some(delta.part_id.clone());
                    // No call stands between: it was cut off, and this is the rest of it.
                    self.kept.push_str(&std::mem::take(&mut self.partial));
                    self.text = Heard::default();
                }
                if let Some(piece) = self.text.take(delta) {
                    self.partial.push_str(&piece);
                }
                Came::Nothing
            }
            Event::ThinkingDelta(delta) => {
                if let Some(piece) = self.thinking.take(delta)
                    && self.reasoning.len() + piece.len() <= REASONING
                {
                    self.reasoning.push_str(&piece);
                }
                Came::Nothing
            }
            Event::ToolStarted { .. } => {
                // What a model says of the calls that it is about to make is not the answer.
                self.partial.clear();
                self.kept.clear();
                Came::Nothing
            }
            Event::StreamEnd {
                content,
                completed,
                message_id,
                ..
            } => {
                if self.part != Some(PartId::text(message_id)) {
                    self.kept.push_str(&std::mem::take(&mut self.partial));
                }
                Came::End(End::Answered {
                    content: format!("{}{content}", self.kept),
                    completed,
                })
            }
            Event::StreamStopped {} => Came::End(End::Stopped),
            Event::RunInterrupted { reason, .. } => Came::End(End::Interrupted(reason)),
            Event::Error {
                message,
                recoverable: false,
                code,
                ..
            } => Came::End(End::Failed(NaviError::new(code, message))),
            Event::Notice { message, .. }
            | Event::Error {
                message,
                recoverable: true,
                ..
            } => Came::Word(message),
            // What stands in the answer already, and what is a person's at a page alone.
            Event::MessageAccepted { .. }
            | Event::QueueChanged { .. }
            | Event::MessageSteered { .. }
            | Event::BranchChanged { .. }
            | Event::StreamStart { .. }
            | Event::RunWaiting { .. }
            | Event::ThinkingEnd { .. }
            | Event::PlanReady { .. }
            | Event::SubagentStarted { .. }
            | Event::SubagentFinished { .. }
            | Event::ProfileSwitched { .. }
            | Event::ContextCompressed { .. }
            | Event::TurnThinking { .. }
            | Event::ToolOutput { .. }
            | Event::ToolCall { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalResolved { .. }
            | Event::CallResolved { .. }
            | Event::ModeChanged { .. }
            | Event::ModelChanged { .. }
            | Event::TodoUpdated { .. }
            | Event::Resync { .. }
            | Event::Pong {} => Came::Nothing,
        }
    }

    /// The events do not go back to where this left off: what is stored says how it stands.
    fn take_snapshot(&mut self, session: &SessionSnapshot) -> Came {
        let Some(message) = self.message else {
            return Came::Nothing;
        };
        if let Some(run) = session.run.as_ref().filter(|it| it.message_id == message) {
            if self.own.last() != Some(&run.run_id) {
                self.goes_on_as(run.run_id);
            }
            return Came::GoesOn;
        }
        let mut messages = session.messages.iter().rev();
        let last = messages.find(|message| {
            message.role == Role::Assistant && self.own.last() == Some(&message.run_id)
        });
        Came::End(last.map_or_else(|| lost(session), |last| ended(last, session)))
    }
}

fn ended(last: &Message, session: &SessionSnapshot) -> End {
    match last.state {
        MessageState::Complete if last.tool_calls.is_empty() => End::Answered {
            content: last.content.clone().unwrap_or_default(),
            completed: !session.can_continue,
        },
        MessageState::Complete | MessageState::Failed => lost(session),
        MessageState::Stopped => End::Stopped,
        MessageState::Interrupted => End::Interrupted(session.reason.clone().unwrap_or_default()),
    }
}

fn lost(session: &SessionSnapshot) -> End {
    let reason = session.reason.as_deref().unwrap_or("the run has ended");
    End::Failed(NaviError::new(ErrorCode::RunFailed, reason))
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use navi_actors::protocol::event::Delta;
    use navi_actors::protocol::ids::CallId;

    use super::*;

    fn told(run_id: RunId, event: Event) -> Envelope {
        Envelope {
            seq: None,
            run_id: Some(run_id),
            parent_run_id: None,
            at: Utc::now(),
            event,
        }
    }

    fn delta(message: MessageId, offset: u64, text: &str) -> Event {
        Event::StreamDelta(Delta {
            part_id: PartId::text(message),
            offset,
            delta: text.to_owned(),
            is_subagent: false,
        })
    }

    fn end(message: MessageId, content: &str) -> Event {
        Event::StreamEnd {
            content: content.to_owned(),
            message_id: message,
            context_tokens: 1,
            max_context_tokens: 2,
            completed: true,
        }
    }

    fn begun() -> (HeardRun, RunId) {
        let mut heard = HeardRun::new("mine");
        let run_id = RunId::new();
        let accepted = |client_id: &str| Event::MessageAccepted {
            client_id: Some(client_id.to_owned()),
            message_id: MessageId::new(),
            queued: false,
            mode: navi_actors::protocol::command::SendMode::Queue,
            content: "hi".to_owned(),
            images: Vec::new(),
            files: Vec::new(),
            author: None,
        };
        assert_eq!(
            heard.take(told(RunId::new(), accepted("another"))),
            Came::Nothing
        );
        assert_eq!(heard.take(told(run_id, accepted("mine"))), Came::Accepted);
        (heard, run_id)
    }

    fn answered(content: &str) -> Came {
        Came::End(End::Answered {
            content: content.to_owned(),
            completed: true,
        })
    }

    #[test]
    fn what_is_said_before_a_call_is_not_the_answer() {
        let (mut heard, run_id) = begun();
        let (first, last) = (MessageId::new(), MessageId::new());
        heard.take(told(run_id, delta(first, 0, "I look.")));
        let call = Event::ToolStarted {
            tool: "todo".to_owned(),
            args: serde_json::json!({}),
            is_subagent: false,
            call_id: CallId::new(),
            message_id: first,
            lent: false,
        };
        heard.take(told(run_id, call));
        heard.take(told(run_id, delta(last, 0, "Found")));
        assert_eq!(heard.so_far(), "Found");
        // It is told again from its beginning to who comes back.
        heard.take(told(run_id, delta(last, 0, "Found it")));
        assert_eq!(heard.so_far(), "Found it");
        assert_eq!(
            heard.take(told(run_id, end(last, "Found it."))),
            answered("Found it.")
        );
    }

    #[test]
    fn an_answer_that_was_cut_and_gone_on_with_is_whole() {
        let (mut heard, run_id) = begun();
        let (first, last) = (MessageId::new(), MessageId::new());
        heard.take(told(run_id, delta(first, 0, "Hello ")));
        let again = RunId::new();
        let interrupted = Event::interrupted("Navi went down");
        assert!(matches!(
            heard.take(told(run_id, interrupted)),
            Came::End(End::Interrupted(_))
        ));
        let start = |message_id| Event::StreamStart {
            message_id,
            model: "small".to_owned(),
            profile_id: "secretary".to_owned(),
        };
        let another = start(MessageId::new());
        assert_eq!(heard.take(told(RunId::new(), another)), Came::Nothing);
        let ours = start(heard.message.unwrap());
        assert_eq!(heard.take(told(again, ours)), Came::GoesOn);
        assert_eq!(
            heard.take(told(run_id, end(first, "of the run before"))),
            Came::Nothing
        );
        assert!(heard.was_cut());
        heard.take(told(again, delta(last, 0, "wor")));
        assert_eq!(heard.so_far(), "Hello wor");
        // What is stored is what counts.
        let message = |run_id, content: &str| Message {
            content: Some(content.to_owned()),
            ..Message::assistant(MessageId::new(), run_id, Utc::now())
        };
        let stored = [
            message(RunId::new(), "Before."),
            message(run_id, "Hell"),
            message(again, "o world"),
        ];
        assert_eq!(heard.whole(&stored).as_deref(), Some("Hello world"));
        assert_eq!(
            heard.take(told(again, end(last, "world"))),
            answered("Hello world")
        );
    }

    #[test]
    fn subagents_are_heard_of_and_not_listened_to() {
        let (mut heard, run_id) = begun();
        let child = RunId::new();
        let mut envelope = told(child, delta(MessageId::new(), 0, "within"));
        envelope.parent_run_id = Some(run_id);
        assert_eq!(heard.take(envelope), Came::Nothing);
        assert_eq!(heard.so_far(), "");
        assert!(heard.all.contains(&child));
    }
}
