//! What this door calls things: by the run that they are of, so that each can be found again.

use navi_actors::protocol::ids::{ApprovalId, RunId, SessionId};
use uuid::Uuid;

/// One of a run's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ResponseId {
    pub(super) session: SessionId,
    pub(super) run: RunId,
    /// Counted from none: one more with each turn of the program's.
    pub(super) number: u32,
}

/// A request for approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AskId {
    pub(super) session: SessionId,
    pub(super) run: RunId,
    pub(super) approval: ApprovalId,
}

impl ResponseId {
    pub(super) fn text(self) -> String {
        format!("resp_{}", self.stem())
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        Self::of_stem(text.strip_prefix("resp_")?)
    }

    /// The id of the item of this number in its output.
    pub(super) fn item(self, prefix: &str, at: usize) -> String {
        format!("{prefix}_{}_{at}", self.stem())
    }

    /// Of an item's id: the answer, and where in its output it stands.
    pub(super) fn of_item(text: &str) -> Option<(Self, usize)> {
        let (_, rest) = text.split_once('_')?;
        let (stem, at) = rest.rsplit_once('_')?;
        Some((Self::of_stem(stem)?, at.parse().ok()?))
    }

    pub(super) fn ask(self, approval: ApprovalId) -> AskId {
        AskId {
            session: self.session,
            run: self.run,
            approval,
        }
    }

    fn stem(self) -> String {
        format!("{}_{}", pair(self.session, self.run), self.number)
    }

    fn of_stem(text: &str) -> Option<Self> {
        let (ids, number) = text.split_once('_')?;
        let (session, run) = of_pair(ids)?;
        Some(Self {
            session,
            run,
            number: number.parse().ok()?,
        })
    }
}

impl AskId {
    pub(super) fn text(self) -> String {
        let pair = pair(self.session, self.run);
        format!("mcpr_{pair}_{}", self.approval.0.simple())
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let (ids, approval) = text.strip_prefix("mcpr_")?.split_once('_')?;
        let (session, run) = of_pair(ids)?;
        Some(Self {
            session,
            run,
            approval: ApprovalId(Uuid::try_parse(approval).ok()?),
        })
    }
}

fn pair(session: SessionId, run: RunId) -> String {
    format!("{}{}", session.0.simple(), run.0.simple())
}

fn of_pair(text: &str) -> Option<(SessionId, RunId)> {
    let (session, run) = text.split_at_checked(text.len() / 2)?;
    let id = |text| Uuid::try_parse(text).ok();
    Some((SessionId(id(session)?), RunId(id(run)?)))
}

/// What stands before a session's id.
const CONVERSATION: &str = "conv_";

pub(super) fn conversation(session: SessionId) -> String {
    format!("{CONVERSATION}{}", session.0.simple())
}

/// The name of a session that a program gives: one of ours, or a word of its own.
pub(super) fn session_name(conversation: &str) -> &str {
    let ours = conversation.strip_prefix(CONVERSATION);
    let ours = ours.filter(|id| Uuid::try_parse(id).is_ok());
    ours.unwrap_or(conversation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_found_again() {
        let id = ResponseId {
            session: SessionId::new(),
            run: RunId::new(),
            number: 3,
        };
        assert_eq!(ResponseId::read(&id.text()), Some(id));
        assert_eq!(ResponseId::of_item(&id.item("msg", 12)), Some((id, 12)));
        let ask = id.ask(ApprovalId::new());
        assert_eq!(AskId::read(&ask.text()), Some(ask));
        for wrong in ["", "resp_", "resp_1_2", "msg_x_0_0", "mcpr_1_2"] {
            assert_eq!(ResponseId::read(wrong), None);
            assert_eq!(ResponseId::of_item(wrong), None);
            assert_eq!(AskId::read(wrong), None);
        }
        let session = SessionId::new();
        assert_eq!(
            session_name(&conversation(session))
                .parse::<SessionId>()
                .unwrap(),
            session
        );
        assert_eq!(session_name("conv_of mine"), "conv_of mine");
    }
}
