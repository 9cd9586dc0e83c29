//! What a program is told of a run, in no protocol's terms.

use navi_actors::protocol::error::NaviError;
use navi_actors::protocol::ids::CallId;
use navi_actors::tools::lent::LentCall;
use serde_json::Value;

use super::turns::Ask;

/// What a program is told, in order.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Thinking(String),
    Text(String),
    /// A step of Navi's own work.
    Step(Step),
    /// A call of a tool that the program lent: its to make.
    Call(LentCall),
    /// Nothing was told for a while.
    Silence,
    Over(Ending),
}

/// A step of Navi's own work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// A call of one of her tools.
    Began {
        call: CallId,
        tool: String,
        args: Value,
    },
    Ended {
        call: CallId,
        tool: String,
        args: Value,
        result: String,
        succeeded: bool,
    },
    /// A person is asked.
    Asks(Ask),
    /// Something else, which is done; in words.
    Other(String),
}

impl Step {
    /// It in a few words, and whether it is done.
    pub(crate) fn line(self) -> (String, bool) {
        match self {
            Self::Began { tool, .. } => (tool, false),
            Self::Ended { tool, .. } => (tool, true),
            Self::Asks(Ask { request, .. }) => {
                let what = request.summary;
                (
                    format!("waits for you to allow on Navi's page: {what}"),
                    false,
                )
            }
            Self::Other(what) => (what, true),
        }
    }
}

/// Where approvals are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approvals {
    OnThePage,
    /// By the program's next request.
    ByProgram,
}

/// An answer in one piece.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) text: String,
    pub(crate) thinking: String,
    pub(crate) calls: Vec<LentCall>,
    pub(crate) ending: Ending,
}

/// How an answer ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    /// A limit of the run ended it.
    Limited,
    /// It is the program's turn: the run goes on with what it says to what it was handed.
    Turn,
    /// By a person, in a session; what was said stands.
    Stopped,
    Failed(NaviError),
}
