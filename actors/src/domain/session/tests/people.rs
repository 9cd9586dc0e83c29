//! What people do in a session, and what they were promised.

use super::world::{Waits, World};
use crate::domain::history::MessagePosition;
use crate::domain::session::command::{ApprovalAnswer, BranchStart, Command, Incoming};
use crate::protocol::approval::ConsentMode;
use crate::protocol::command::{
    CallDecision, Decision, PlainConsent, PlanEdit, SendMode, UserInput,
};
use crate::protocol::ids::{ApprovalId, MessageId};

/// What was said to a person of a message of theirs.
#[derive(Debug)]
pub(super) struct Promise {
    pub(super) client_id: String,
    /// The text that was acknowledged, and those that may have come to be since.
    pub(super) content: String,
    pub(super) maybe: Vec<String>,
    pub(super) withdrawn: bool,
}

impl Promise {
    pub(super) fn new(client_id: &str, content: String) -> Self {
        Self {
            client_id: client_id.to_owned(),
            content,
            maybe: Vec::new(),
            withdrawn: false,
        }
    }
}

impl World {
    pub(super) fn person(&mut self) {
        let queued: Vec<MessageId> = {
            // As a tab sees it.
            let queue = self.told.queue.iter();
            queue.map(|queued| queued.message_id).collect()
        };
        match self.random.below(18) {
            0..5 => self.send(),
            5 | 6 => {
                if let Some(id) = self.random.pick(&queued).copied() {
                    self.maybe_withdrawn.insert(id);
                    self.ask(Command::Withdraw(id), Waits::Withdrawn(id));
                }
            }
            7 | 8 => {
                if let Some(id) = self.random.pick(&queued).copied() {
                    self.sent += 1;
                    let content = format!("edited {}", self.sent);
                    if let Some(promise) = self.promises.get_mut(&id) {
                        promise.maybe.push(content.clone());
                    }
                    let command = Command::EditQueued {
                        message_id: id,
                        content: content.clone(),
                        author: None,
                    };
                    self.ask(command, Waits::Edited(id, content));
                }
            }
            9 if self.random.below(3) == 0 => {
                let hold = self.random.below(2) == 0;
                self.ask(Command::Stop { hold }, Waits::Stopped);
            }
            9 | 10 => {
                let modes = [ConsentMode::Ask, ConsentMode::Edits, ConsentMode::Auto];
                let mode = modes[self.random.below(3)];
                if !self.session.is_closing() {
                    self.mode = mode;
                }
                self.ask(Command::SetMode(mode), Waits::Mode);
            }
            11 => {
                self.pinned = !self.pinned;
                self.ask(Command::TogglePin, Waits::Pinned(self.pinned));
            }
            12 => self.answer_approval(),
            13 => {
                let queue = self.random.below(2) == 0;
                self.ask(Command::Continue { queue }, Waits::Other);
            }
            14 => self.branch(),
            15 | 16 => self.edit_plan(),
            _ => self.resolve(),
        }
    }

    fn send(&mut self) {
        self.sent += 1;
        // Sometimes the same once more.
        let repeats = self.random.below(5) == 0;
        let number = if repeats { self.sent - 1 } else { self.sent };
        let client_id = format!("c{number}");
        let content = format!("message {number}");
        let ask_store = self.session.ahead().may_be_accepted(&client_id);
        let stored = self
            .stored
            .sent()
            .filter(|_| ask_store)
            .find(|message| message.client_id.as_ref() == Some(&client_id))
            .map(|message| (message.id, message.run_id));
        let steers = self.random.below(3) == 0;
        let plain = (self.random.below(6) == 0).then_some(PlainConsent::Deny);
        let input = UserInput {
            content: content.clone(),
            images: Vec::new(),
            files: Vec::new(),
            attached: Vec::new(),
            author: None,
            client_id: Some(client_id.clone()),
            mode: if steers {
                SendMode::Steer
            } else {
                SendMode::Queue
            },
        };
        let waits = match plain {
            None => Waits::Sent { client_id, content },
            Some(_) => Waits::Plain,
        };
        let incoming = Incoming {
            input,
            plain,
            config: None,
            stored,
        };
        self.ask(Command::Send(Box::new(incoming)), waits);
    }

    fn answer_approval(&mut self) {
        let open = self.told.approvals.iter();
        let open: Vec<ApprovalId> = open.map(|asking| asking.pending.approval_id).collect();
        if let Some(id) = self.random.pick(&open).copied() {
            let decisions = [
                Decision::Once,
                Decision::Always,
                Decision::Deny,
                Decision::Never,
            ];
            let decision = decisions[self.random.below(decisions.len())];
            let command = Command::Answer {
                approval_id: id,
                answer: ApprovalAnswer::from(decision),
                author: None,
            };
            self.ask(command, Waits::Other);
        }
    }

    pub(super) fn branch(&mut self) {
        if self.random.below(2) == 0 {
            let branch_id = self.told.branches[self.random.below(self.told.branches.len())].id;
            self.ask(Command::ShowBranch(branch_id), Waits::Other);
            return;
        }
        let path = self.session.ahead().path();
        let shown: Vec<(u64, &_, u32)> = (0..)
            .zip(&self.stored.messages)
            .filter(|(ordinal, (_, branch))| {
                path.iter().any(|segment| {
                    segment.branch == *branch && segment.below.is_none_or(|below| *ordinal < below)
                })
            })
            .map(|(ordinal, (message, branch))| (ordinal, message, *branch))
            .collect();
        let Some((ordinal, message, branch_id)) = self.random.pick(&shown).copied() else {
            return;
        };
        let edits = self.random.below(2) == 0;
        let at = BranchStart::forks_at(ordinal, edits);
        let before = shown.iter().rev().find(|(ordinal, ..)| *ordinal < at);
        let start = BranchStart {
            ordinal,
            branch_id,
            message: (**message).clone(),
            path,
            before: before.map(|(ordinal, _, branch)| MessagePosition {
                branch: *branch,
                ordinal: *ordinal,
            }),
            content: edits.then(|| "another".to_owned()),
            author: None,
        };
        self.ask(Command::StartBranch(Box::new(start)), Waits::Other);
    }

    fn edit_plan(&mut self) {
        self.sent += 1;
        let text = format!("step {}", self.sent);
        // Sometimes one that there is not.
        let steps = self.told.todo.len() + 1;
        let mut id = || u32::try_from(self.random.below(steps) + 1).unwrap();
        let (id, before) = (id(), Some(id()).filter(|id| id % 2 == 0));
        let edit = match self.random.below(9) {
            0..3 => PlanEdit::Add { text, before },
            3 => PlanEdit::Skip { id },
            4 => PlanEdit::Restore { id },
            5 => PlanEdit::Move { id, before },
            6 => PlanEdit::Rewrite { id, text },
            7 => PlanEdit::Hold { id },
            _ => PlanEdit::Release { id },
        };
        self.ask(Command::EditPlan(edit), Waits::Other);
    }

    fn resolve(&mut self) {
        let unknown = self.told.unknown_calls();
        if let Some(call) = self.random.pick(&unknown) {
            let call_id = call.call_id.clone();
            let decisions = [CallDecision::Done, CallDecision::Retry, CallDecision::Skip];
            let decision = decisions[self.random.below(3)];
            self.ask(Command::ResolveCall { call_id, decision }, Waits::Other);
        }
    }

    /// What was acknowledged is there, with the last text that was acknowledged, or withdrawn.
    pub(super) fn check_promises(&self) {
        for (id, promise) in &self.promises {
            let sent = self.stored.sent().find(|message| message.id == *id);
            let queued = self.stored.state.queue.iter();
            let queued = queued.into_iter().find(|queued| queued.message_id == *id);
            let text = sent
                .and_then(|message| message.content.as_ref())
                .or(queued.map(|queued| &queued.content));
            let Some(text) = text else {
                assert!(self.maybe_withdrawn.contains(id), "message {id} is lost");
                continue;
            };
            assert!(
                !promise.withdrawn,
                "message {id} was withdrawn, and is there"
            );
            assert!(
                *text == promise.content || promise.maybe.contains(text),
                "message {id} says {text:?}, acknowledged was {promise:?}"
            );
            let last_edit = promise.maybe.last().unwrap_or(&promise.content);
            if *text != promise.content {
                // Only one that came later may stand there instead.
                assert!(
                    promise.maybe.iter().position(|it| it == text)
                        > promise.maybe.iter().position(|it| *it == promise.content),
                    "message {id} says {text:?}, later was {last_edit:?}"
                );
            }
        }
    }
}
