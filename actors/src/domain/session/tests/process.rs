//! What goes on beside a session's people: its run, summaries, time-outs, and the process, which may
//! end at any moment.

use super::runs::{Does, compressed, profile};
use super::world::{NOW, Waits, World, policy};
use crate::domain::history::ContextState;
use crate::domain::session::Session;
use crate::domain::session::command::{Command, Leaving, LeftRuns};
use crate::domain::session::transition::Compacted;
use crate::domain::todo::TodoCommand;

impl World {
    pub(super) fn run(&mut self) {
        let Some(mut driver) = self.driver.take() else {
            return;
        };
        let stopped = self.cancelled.contains(&driver.run_id);
        let does = driver.step(&mut self.random, stopped);
        let gone = driver.gone;
        if !gone {
            self.driver = Some(driver);
        }
        self.drive(does);
    }

    pub(super) fn drive(&mut self, does: Does) {
        match does {
            Does::Nothing => {}
            Does::Ask(command) => {
                if let Some(driver) = &mut self.driver {
                    driver.waits += 1;
                }
                let foreground = self.driver.as_ref().map(|driver| driver.run_id);
                let waits = match &command {
                    Command::Park(_) => Waits::Other,
                    Command::Record { run_id, .. } if Some(*run_id) != foreground => Waits::Child,
                    Command::StartChild(_) => Waits::Child,
                    _ => Waits::Run,
                };
                self.ask(command, waits);
            }
            Does::Await(call_id, command) => self.ask(command, Waits::Answer(call_id)),
        }
    }

    /// What goes on beside the run: its tools' list, summaries, time-outs.
    pub(super) fn beside(&mut self) {
        match self.random.below(3) {
            0 => {
                if let Some(run_id) = self.driver.as_ref().map(|driver| driver.run_id) {
                    let command = Command::ChangeTodo {
                        run_id,
                        profile: profile(),
                        command: TodoCommand::Add {
                            texts: vec!["step".to_owned()],
                        },
                    };
                    self.ask(command, Waits::Other);
                }
            }
            1 if !self.timers.is_empty() => {
                let at = self.random.below(self.timers.len());
                let id = self.timers.swap_remove(at);
                self.ask(Command::Expire(id), Waits::Other);
            }
            // Somebody looks at another branch while one is being made.
            2 if !self.summaries.is_empty() && self.random.below(2) == 0 => self.branch(),
            _ => {
                if let Some((summary, run_id, branch_id, context)) = self.summaries.pop() {
                    let context = ContextState {
                        start: context.start + 1,
                        ..context
                    };
                    let compacted = Compacted {
                        run_id,
                        branch_id,
                        context,
                        event: compressed(),
                        call: None,
                    };
                    let command = Command::Summarised {
                        summary,
                        compacted: Some(Box::new(compacted)),
                    };
                    self.ask(command, Waits::Other);
                }
            }
        }
    }

    pub(super) fn run_dies(&mut self) {
        if let Some(driver) = self.driver.take() {
            let under_way = self.session.calls_under_way().into_iter();
            let reads = under_way
                .filter(|call| call.name == "read")
                .map(|call| call.id.clone())
                .collect();
            let command = Command::RunDied {
                run_id: driver.run_id,
                unfinished: Vec::new(),
                reads,
            };
            self.waits
                .retain(|_, waits| !matches!(waits, Waits::Run | Waits::Child | Waits::Answer(_)));
            self.ask(command, Waits::Other);
        }
    }

    pub(super) fn close(&mut self) {
        let runs = if self.random.below(2) == 0 {
            LeftRuns::Parked
        } else {
            LeftRuns::Interrupted
        };
        let leaving = Leaving {
            grace: std::time::Duration::ZERO,
            runs,
        };
        self.ask(Command::Close(leaving), Waits::Other);
    }

    pub(super) fn die(&mut self) {
        self.pending.clear();
        self.reload();
    }

    /// The session is read again: whoever waited has heard nothing.
    pub(super) fn reload(&mut self) {
        self.pending.clear();
        self.waits.clear();
        self.driver = None;
        self.cancelled.clear();
        self.launched.clear();
        self.timers.clear();
        self.summaries.clear();
        self.left = false;
        self.check_promises();
        self.mode = self.stored.state.mode;
        self.pinned = self.stored.state.summary.pinned;
        self.held = self.stored.state.held;
        let (session, told, found) = Session::load(self.stored.load(), policy());
        self.session = session;
        self.told = told;
        let under_way = self.session.calls_under_way().into_iter();
        let reads = under_way
            .filter(|call| call.name == "read")
            .map(|call| call.id.clone())
            .collect();
        let transition = self.session.recover(found, &reads, NOW);
        self.carry_out(transition);
    }
}
