//! Whose turn it is. A program that lent tools, or that answers approvals, is handed what waits
//! for it, and its answer ends there; what it says begins the next one. So a run is told in one
//! answer after the other, and by the run's events alone it is plain where each of them ends.

use std::collections::HashSet;
use std::mem;

use navi_actors::protocol::approval::ApprovalRequest;
use navi_actors::protocol::ids::{ApprovalId, CallId};
use navi_actors::tools::lent::LentCall;

/// What a person is asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ask {
    pub(crate) approval_id: ApprovalId,
    pub(crate) tool: String,
    pub(crate) request: ApprovalRequest,
}

/// What waits for a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Waits {
    Call(CallId),
    Approval(ApprovalId),
}

/// Which of a run's answers is told: what belongs to those before it is passed over.
#[derive(Debug, Default)]
pub(crate) enum Begin {
    #[default]
    AtOnce,
    /// Where all of these are answered.
    Behind(HashSet<Waits>),
    /// The answer of this number, counted from none.
    AtAnswer(u32),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Turns {
    begin: Begin,
    calls: Vec<LentCall>,
    asks: Vec<Ask>,
    /// The first of what was handed over was answered: the others are waited for.
    settles: bool,
    /// How many answers came before the one that is told.
    answers: u32,
}

/// What a step of the run means to the turns.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HandedOver {
    pub(super) asks: Vec<Ask>,
    pub(super) calls: Vec<LentCall>,
}

impl Turns {
    pub(super) fn new(begin: Begin) -> Self {
        let begin = match begin {
            Begin::Behind(waits) if waits.is_empty() => Begin::AtOnce,
            Begin::AtAnswer(0) => Begin::AtOnce,
            begin => begin,
        };
        Self {
            begin,
            calls: Vec::new(),
            asks: Vec::new(),
            settles: false,
            answers: 0,
        }
    }

    /// Whether what comes belongs to an answer before the one that is told.
    pub(super) fn passes_over(&self) -> bool {
        !matches!(self.begin, Begin::AtOnce)
    }

    /// Tells whatever comes from here on.
    pub(super) fn begin_now(&mut self) {
        self.begin = Begin::AtOnce;
    }

    pub(super) fn answers(&self) -> u32 {
        self.answers
    }

    pub(super) fn asks(&self) -> &[Ask] {
        &self.asks
    }

    /// Whether something was told to wait, and not to be answered.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.calls.is_empty() || !self.asks.is_empty()
    }

    pub(super) fn call(&mut self, call: LentCall) {
        self.calls.push(call);
    }

    pub(super) fn ask(&mut self, ask: Ask) {
        self.asks.push(ask);
    }

    /// A call of a lent tool ended. One that failed was never handed over. None where it is no
    /// such call; what ends an answer where the events alone tell that it had been handed over.
    pub(super) fn call_ended(&mut self, id: &CallId, succeeded: bool) -> Option<HandedOver> {
        let waits = Waits::Call(id.clone());
        let Some(at) = self.calls.iter().position(|call| call.id == *id) else {
            // It may have begun before what is told.
            let is_known = matches!(&self.begin, Begin::Behind(all) if all.contains(&waits));
            return is_known.then(|| {
                self.settle(&waits);
                HandedOver::default()
            });
        };
        let handed = if succeeded {
            self.answered()
        } else {
            HandedOver::default()
        };
        self.calls.remove(at);
        self.settle(&waits);
        Some(handed)
    }

    /// The same of a request for approval.
    pub(super) fn ask_resolved(&mut self, id: ApprovalId) -> Option<HandedOver> {
        let at = self.asks.iter().position(|ask| ask.approval_id == id)?;
        let handed = self.answered();
        self.asks.remove(at);
        self.settle(&Waits::Approval(id));
        Some(handed)
    }

    /// The first answer to what was handed over: that all of it was.
    fn answered(&mut self) -> HandedOver {
        if mem::replace(&mut self.settles, true) || self.passes_over() {
            return HandedOver::default();
        }
        HandedOver {
            asks: self.asks.clone(),
            calls: self.calls.clone(),
        }
    }

    fn settle(&mut self, answered: &Waits) {
        let is_settled = self.settles && !self.is_waited_for();
        if is_settled {
            self.settles = false;
            self.answers += 1;
        }
        let begins = match &mut self.begin {
            Begin::AtOnce => return,
            Begin::Behind(waits) => {
                waits.remove(answered);
                waits.is_empty()
            }
            Begin::AtAnswer(number) => is_settled && *number == self.answers,
        };
        if begins {
            // It may be told of more than it has answered: that is handed over again.
            if mem::take(&mut self.settles) {
                self.answers += 1;
            }
            self.begin_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str) -> LentCall {
        LentCall {
            id: CallId(id.to_owned()),
            name: "weather".to_owned(),
            args: json!({}),
        }
    }

    #[test]
    fn by_the_events_alone_an_answer_ends_with_what_was_handed_over() {
        let mut turns = Turns::new(Begin::AtOnce);
        turns.call(call("refused"));
        turns.call(call("a"));
        turns.call(call("b"));
        // What the schema forbids is nobody's to answer.
        let refused = turns.call_ended(&CallId("refused".to_owned()), false);
        assert_eq!(refused, Some(HandedOver::default()));
        let first = turns.call_ended(&CallId("b".to_owned()), true);
        assert_eq!(first.map(|it| it.calls), Some(vec![call("a"), call("b")]));
        assert_eq!(turns.answers(), 0);
        let second = turns.call_ended(&CallId("a".to_owned()), true);
        assert_eq!(second, Some(HandedOver::default()));
        assert_eq!(turns.answers(), 1);
        assert_eq!(turns.call_ended(&CallId("ours".to_owned()), true), None);
    }

    #[test]
    fn an_answer_begins_behind_what_its_request_says() {
        let waits = ["a", "b"].map(|id| Waits::Call(CallId(id.to_owned())));
        let mut turns = Turns::new(Begin::Behind(waits.into()));
        for id in ["a", "b", "c"] {
            turns.call(call(id));
        }
        turns.call_ended(&CallId("b".to_owned()), true);
        assert!(turns.passes_over());
        turns.call_ended(&CallId("a".to_owned()), true);
        assert!(!turns.passes_over() && turns.is_waited_for());
        assert_eq!(turns.answers(), 1);

        let mut turns = Turns::new(Begin::AtAnswer(2));
        for id in ["a", "b"] {
            turns.call(call(id));
            assert!(turns.passes_over());
            turns.call_ended(&CallId(id.to_owned()), true);
        }
        assert!(!turns.passes_over());
    }
}
