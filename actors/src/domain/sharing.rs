//! How somebody reaches a conversation, and what that is good for. Whoever does not reach it finds
//! that there is none.

use crate::protocol::approval::leave_out_answer;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::{Event, WaitReason};
use crate::protocol::ids::{LinkId, UserId};

/// The most who take part in a conversation beside its owner.
pub const MAX_PEOPLE: u64 = 50;
/// The most links to one that are good at once.
pub const MAX_LINKS: u64 = 20;
/// The longest a link may be good for.
pub const MAX_LINK_DAYS: u32 = 90;

/// Who it is that reaches for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    Person(UserId),
    /// Whoever has this link.
    Link(LinkId),
}

impl By {
    /// Who it is, where that is known.
    #[must_use]
    pub const fn person(self) -> Option<UserId> {
        match self {
            Self::Person(user) => Some(user),
            Self::Link(_) => None,
        }
    }
}

impl From<UserId> for By {
    fn from(user: UserId) -> Self {
        Self::Person(user)
    }
}

/// How much of an event whoever came by a link is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByLink {
    Whole,
    /// The rest is taken out of it.
    Partly,
    /// That there was one: a log without gaps is known by its numbers.
    Number,
}

/// Takes out of an event what is not for whoever came by a link: pictures, what a person is asked,
/// and what they answer. Says what is left.
pub fn for_link(event: &mut Event) -> ByLink {
    match event {
        Event::ApprovalRequested { .. } | Event::ApprovalResolved { .. } => ByLink::Number,
        Event::MessageAccepted { images, .. } if !images.is_empty() => {
            images.clear();
            ByLink::Partly
        }
        Event::RunWaiting {
            reason: WaitReason::Approval,
            detail,
            phrase,
            ..
        } if !detail.is_empty() || phrase.is_some() => {
            detail.clear();
            *phrase = None;
            ByLink::Partly
        }
        Event::ToolCall { result, .. } => without_answers([result]),
        Event::TodoUpdated { items, .. } => {
            without_answers(items.iter_mut().filter_map(|item| item.note.as_mut()))
        }
        Event::MessageAccepted { .. }
        | Event::RunWaiting { .. }
        | Event::QueueChanged { .. }
        | Event::MessageSteered { .. }
        | Event::BranchChanged { .. }
        | Event::StreamStart { .. }
        | Event::ThinkingDelta(_)
        | Event::ThinkingEnd { .. }
        | Event::PlanReady { .. }
        | Event::SubagentStarted { .. }
        | Event::SubagentFinished { .. }
        | Event::ProfileSwitched { .. }
        | Event::ContextCompressed { .. }
        | Event::TurnThinking { .. }
        | Event::StreamDelta(_)
        | Event::ToolStarted { .. }
        | Event::ToolOutput { .. }
        | Event::CallResolved { .. }
        | Event::ModeChanged { .. }
        | Event::ModelChanged { .. }
        | Event::StreamEnd { .. }
        | Event::StreamStopped {}
        | Event::RunInterrupted { .. }
        | Event::Notice { .. }
        | Event::Error { .. }
        // Its snapshot was made for whom it is sent to.
        | Event::Resync { .. }
        | Event::Pong {} => ByLink::Whole,
    }
}

/// Leaves out what a person answered, where one of these results says it.
fn without_answers<'a>(results: impl IntoIterator<Item = &'a mut String>) -> ByLink {
    let mut left = ByLink::Whole;
    for result in results {
        if leave_out_answer(result) {
            left = ByLink::Partly;
        }
    }
    left
}

/// How far somebody reaches. The later has all that the earlier has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Sees what is said, and what the runs do.
    Looks,
    /// Speaks, steers what goes, answers requests for consent one by one, and has its files.
    TakesPart,
    /// Shares and deletes it, and says what Navi may do in it.
    Owns,
}

impl Reach {
    /// # Errors
    /// `forbidden`, where something needs more.
    pub fn check(self, needed: Self) -> Result<(), NaviError> {
        if self >= needed {
            return Ok(());
        }
        let lacking = match needed {
            Self::Owns => {
                "this conversation is somebody else's: only its owner shares, renames and deletes it, and changes what Navi may do in it"
            }
            Self::TakesPart | Self::Looks => "who came by a link looks, and changes nothing",
        };
        Err(NaviError::new(ErrorCode::Forbidden, lacking))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::consent::{Answer, denied};
    use crate::protocol::approval::{DecidedBy, NOT_ALLOWED, Resolution};
    use crate::protocol::command::Decision;
    use crate::protocol::ids::CallId;
    use crate::protocol::message::ToolOutcome;
    use crate::protocol::phrase::{Phrase, PhraseCode};
    use crate::protocol::todo::{TodoItem, TodoStatus};

    #[test]
    fn who_came_by_a_link_is_not_told_in_codes_what_a_person_is_asked() {
        let asks = |reason| {
            let summary = Phrase::plain("run `make`");
            let asks = Phrase::from(PhraseCode::AsksWhether).with("summary", summary);
            Event::waiting(reason, asks, false)
        };
        let mut asked = asks(WaitReason::Approval);
        assert_eq!(for_link(&mut asked), ByLink::Partly);
        assert!(!format!("{asked:?}").contains("make"), "{asked:?}");
        assert_eq!(for_link(&mut asked), ByLink::Whole);
        assert_eq!(for_link(&mut asks(WaitReason::Lane)), ByLink::Whole);
    }

    #[test]
    fn who_came_by_a_link_is_not_told_why_a_person_said_no() {
        let answer = Answer {
            resolution: Resolution {
                decision: Decision::Deny,
                by: DecidedBy::User,
            },
            note: Some("not before the plum cake".to_owned()),
        };
        let told = denied("run `make`", &answer);
        let call = |result: &str| Event::ToolCall {
            tool: "terminal".to_owned(),
            args: serde_json::Value::Null,
            result: result.to_owned(),
            success: false,
            outcome: ToolOutcome::Failed,
            is_subagent: false,
            call_id: CallId("call".to_owned()),
            duration_ms: 0,
            outside: false,
            files: Vec::new(),
            lent: false,
        };
        let list = |note: &str| Event::TodoUpdated {
            items: vec![TodoItem {
                id: 1,
                text: "make it".to_owned(),
                status: TodoStatus::Failed,
                note: Some(note.to_owned()),
                held: false,
                edited: None,
            }],
            is_subagent: false,
        };
        for mut event in [call(&told), list(&told)] {
            assert!(format!("{event:?}").contains("plum"));
            assert_eq!(for_link(&mut event), ByLink::Partly);
            let left = format!("{event:?}");
            assert!(
                left.contains(NOT_ALLOWED) && !left.contains("plum"),
                "{left}"
            );
        }
        for mut event in [call("no plums"), list("no plums")] {
            assert_eq!(for_link(&mut event), ByLink::Whole);
            assert!(format!("{event:?}").contains("no plums"));
        }
    }

    #[test]
    fn who_reaches_further_may_all_that_others_may() {
        let all = [Reach::Looks, Reach::TakesPart, Reach::Owns];
        for (at, reach) in all.into_iter().enumerate() {
            for (needed_at, needed) in all.into_iter().enumerate() {
                assert_eq!(reach.check(needed).is_ok(), at >= needed_at);
            }
        }
    }
}
