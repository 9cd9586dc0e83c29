//! A session with everything around it: people in several tabs, a run, a store that may fail, a
//! process that may be killed at any moment.

use std::collections::{HashMap, HashSet, VecDeque};

use chrono::{DateTime, Utc};

use super::runs::{Does, Driver, WINDOW, compressed, profile};
use super::store::Stored;
use crate::domain::history::ContextState;
use crate::domain::session::change::Change;
use crate::domain::session::command::{
    ApprovalAnswer, BranchStart, Command, Incoming, Leaving, LeftRuns,
};
use crate::domain::session::state::State;
use crate::domain::session::transition::{Compacted, Effect, Reply, ReplyTo, Transition};
use crate::domain::session::{Policy, Session};
use crate::domain::todo::TodoCommand;
use crate::protocol::approval::ConsentMode;
use crate::protocol::command::{CallDecision, Decision, PlainConsent, SendMode, UserInput};
use crate::protocol::ids::{ApprovalId, CallId, MessageId, RunId};

pub(super) const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// A small generator: the same seed is the same history.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// A number below `n` (SplitMix64).
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n.max(1) as u64).unwrap_or_default()
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

/// Who waits for a reply, and what it is to be.
#[derive(Debug)]
enum Waits {
    /// The run's driver.
    Run,
    /// A child of its: that it is gone does not end the run.
    Child,
    Answer(CallId),
    Sent {
        client_id: String,
        content: String,
    },
    Edited(MessageId, String),
    Withdrawn(MessageId),
    Mode,
    Pinned(bool),
    Plain,
    Stopped,
    Other,
}

/// What was said to a person of a message of theirs.
#[derive(Debug)]
struct Promise {
    client_id: String,
    /// The text that was acknowledged, and those that may have come to be since.
    content: String,
    maybe: Vec<String>,
    withdrawn: bool,
}

pub(super) struct World {
    random: Random,
    session: Session,
    told: State,
    stored: Stored,
    /// Submitted and not told.
    pending: VecDeque<(Change, Vec<Effect>)>,
    waits: HashMap<ReplyTo, Waits>,
    last_reply: u64,
    sent: u32,
    promises: HashMap<MessageId, Promise>,
    /// Those that someone asked to withdraw.
    maybe_withdrawn: HashSet<MessageId>,
    driver: Option<Driver>,
    cancelled: HashSet<RunId>,
    launched: HashSet<RunId>,
    timers: Vec<ApprovalId>,
    /// Summaries under way: what each is made of.
    summaries: Vec<(u64, RunId, u32, ContextState)>,
    /// What the session is to be, by what it was asked.
    mode: ConsentMode,
    pinned: bool,
    left: bool,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let stored = Stored::new();
        let (session, told, _) = Session::load(stored.load(), policy());
        Self {
            random: Random(seed),
            session,
            told,
            mode: stored.state.mode,
            stored,
            pending: VecDeque::new(),
            waits: HashMap::new(),
            last_reply: 0,
            sent: 0,
            promises: HashMap::new(),
            maybe_withdrawn: HashSet::new(),
            driver: None,
            cancelled: HashSet::new(),
            launched: HashSet::new(),
            timers: Vec::new(),
            summaries: Vec::new(),
            pinned: false,
            left: false,
        }
    }

    pub(super) fn step(&mut self) {
        match self.random.below(20) {
            0..5 => self.person(),
            5..11 => self.run(),
            11..17 => self.commit(),
            17 => self.beside(),
            18 if self.random.below(8) == 0 => self.die(),
            18 if self.random.below(8) == 0 => self.run_dies(),
            18 if self.random.below(8) == 0 => self.close(),
            _ => self.commit(),
        }
    }

    /// Everything that is under way comes to its end: then nothing is owed to anyone.
    pub(super) fn settle(&mut self) {
        for _ in 0..2_000 {
            while !self.pending.is_empty() {
                self.commit();
            }
            if let Some(id) = self.timers.pop() {
                self.ask(Command::Expire(id), Waits::Other);
            } else if self.driver.is_some() {
                self.run();
            } else {
                break;
            }
        }
        while !self.pending.is_empty() {
            self.commit();
        }
        assert!(self.driver.is_none(), "the run does not end");
        self.waits.retain(|_, waits| !matches!(waits, Waits::Other));
        assert!(self.waits.is_empty(), "nobody answered: {:?}", self.waits);
        assert_eq!(self.told, *self.session.ahead(), "told follows ahead");
        assert_eq!(self.told.mode, self.mode);
        assert_eq!(self.told.summary.pinned, self.pinned);
        assert!(
            self.told.queue.is_empty() && self.told.running().is_none(),
            "messages wait for no run: {:?}",
            self.told.queue
        );
        self.check_promises();
    }

    fn ask(&mut self, command: Command, waits: Waits) {
        if std::env::var_os("NAVI_HISTORY").is_some() {
            println!("{command:?}");
        }
        self.last_reply += 1;
        let to = ReplyTo(self.last_reply);
        self.waits.insert(to, waits);
        let summarised = match &command {
            Command::Summarised { compacted, .. } => compacted.clone(),
            _ => None,
        };
        let base = summarised.as_ref().map(|compacted| {
            let mut branches = self.session.ahead().branches.iter();
            let branch = branches.find(|branch| branch.id == compacted.branch_id);
            branch.expect("a branch").context.clone()
        });
        let transition = self.session.handle(command, to, NOW);
        if let Some((compacted, base)) = summarised.zip(base)
            && !transition.change.writes.is_empty()
        {
            // A summary takes the place of what it was made of, and of nothing else.
            assert_eq!(compacted.context.decisions, base.decisions);
            assert_eq!(compacted.context.start, base.start + 1);
            assert_eq!(compacted.branch_id, self.session.ahead().branch_id);
        }
        self.carry_out(transition);
    }

    fn carry_out(&mut self, transition: Transition) {
        let Transition { now, change, then } = transition;
        for effect in now {
            self.perform(effect);
        }
        if !change.is_empty() || !then.is_empty() {
            self.pending.push_back((change, then));
        }
    }

    /// The next change is durable, and told; or the session dies of it.
    fn commit(&mut self) {
        let Some((change, then)) = self.pending.pop_front() else {
            return;
        };
        match self.random.below(200) {
            // It is not written.
            0 => return self.reload(),
            // It is, and nobody hears of it.
            1 => {
                self.stored.commit(&change);
                return self.reload();
            }
            _ => self.stored.commit(&change),
        }
        self.told.apply(&change);
        for effect in then {
            self.perform(effect);
        }
        if std::mem::take(&mut self.left) {
            self.reload();
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Reply(to, reply) => self.replied(to, reply.ok()),
            Effect::ReplyFromStore(to, _) => self.replied(to, None),
            Effect::Launch(launch) => {
                assert!(
                    self.driver.as_ref().is_none_or(|driver| driver.gone),
                    "two runs go"
                );
                assert!(self.launched.insert(launch.run_id), "a run starts twice");
                let running = self.told.running().map(|run| run.run_id);
                assert_eq!(running, Some(launch.run_id));
                let mut driver = Driver::new(*launch);
                driver.left = self.session.leaving().map(|leaving| leaving.runs);
                self.driver = Some(driver);
            }
            Effect::Cancel(run_id) => {
                self.cancelled.insert(run_id);
            }
            Effect::Release(run_id) => {
                self.driver.take_if(|driver| driver.run_id == run_id);
            }
            Effect::Interrupt(leaving) => {
                if let Some(driver) = &mut self.driver {
                    driver.left = Some(leaving.runs);
                }
            }
            Effect::ExpireLater(id, _) => self.timers.push(id),
            Effect::Summarise { summary, run_id } => {
                if self.session.wants_summary(summary) {
                    let context = self.told.context().clone();
                    let made_of = (summary, run_id, self.told.branch_id, context);
                    self.summaries.push(made_of);
                }
            }
            Effect::DropSummary | Effect::FindTitle(_) | Effect::TellRemoved => {}
            Effect::Leave => self.left = true,
        }
    }

    fn replied(&mut self, to: ReplyTo, reply: Option<Reply>) {
        let Some(waits) = self.waits.remove(&to) else {
            return;
        };
        match (waits, reply) {
            (Waits::Child, _) => {
                if let Some(driver) = &mut self.driver {
                    driver.heard(Some(Reply::Done(())));
                }
            }
            (Waits::Run, reply) => {
                if let Some(driver) = &mut self.driver {
                    driver.heard(reply);
                }
            }
            (Waits::Answer(call_id), Some(Reply::Answer(answer))) => {
                if let Some(mut driver) = self.driver.take() {
                    let does = driver.answered(&call_id, &answer);
                    self.driver = Some(driver);
                    self.drive(does);
                }
            }
            (Waits::Sent { client_id, content }, Some(Reply::Accepted(accepted))) => {
                let promise = self.promises.entry(accepted.message_id);
                let promise = promise.or_insert_with(|| Promise {
                    client_id: client_id.clone(),
                    content,
                    maybe: Vec::new(),
                    withdrawn: false,
                });
                assert_eq!(
                    promise.client_id, client_id,
                    "another message is acknowledged"
                );
            }
            (Waits::Edited(id, content), Some(Reply::Done(()))) => {
                if let Some(promise) = self.promises.get_mut(&id) {
                    promise.content = content;
                }
            }
            (Waits::Withdrawn(id), Some(Reply::Done(()))) => {
                if let Some(promise) = self.promises.get_mut(&id) {
                    promise.withdrawn = true;
                }
            }
            (Waits::Pinned(pinned), Some(Reply::Summary(summary))) => {
                assert_eq!(summary.pinned, pinned, "the answer to a pin is another's");
            }
            (Waits::Mode, Some(reply)) => assert_eq!(reply, Reply::Done(())),
            (Waits::Plain, Some(Reply::Plain(answer))) => {
                assert!(self.stored.state.last_run.is_some(), "{answer:?}");
            }
            (Waits::Stopped, Some(reply)) => assert!(matches!(reply, Reply::Found(_))),
            (Waits::Other, _) | (_, None) => {}
            (waits, Some(reply)) => panic!("{waits:?} is answered {reply:?}"),
        }
    }

    fn person(&mut self) {
        let queued: Vec<MessageId> = {
            // As a tab sees it.
            let queue = self.told.queue.iter();
            queue.map(|queued| queued.message_id).collect()
        };
        match self.random.below(16) {
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
                    };
                    self.ask(command, Waits::Edited(id, content));
                }
            }
            9 if self.random.below(3) == 0 => self.ask(Command::Stop, Waits::Stopped),
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
            13 => self.ask(Command::Continue, Waits::Other),
            14 => self.branch(),
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
        let stored = self
            .stored
            .sent()
            .find(|message| message.client_id.as_ref() == Some(&client_id))
            .map(|message| (message.id, message.run_id));
        let steers = self.random.below(3) == 0;
        let plain = (self.random.below(6) == 0).then_some(PlainConsent::Deny);
        let input = UserInput {
            content: content.clone(),
            images: Vec::new(),
            files: Vec::new(),
            attached: Vec::new(),
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
            stored,
        };
        self.ask(Command::Send(Box::new(incoming)), waits);
    }

    fn answer_approval(&mut self) {
        let open = self.told.approvals.iter();
        let open: Vec<ApprovalId> = open.map(|asking| asking.pending.approval_id).collect();
        if let Some(id) = self.random.pick(&open).copied() {
            let decisions = [Decision::Once, Decision::Always, Decision::Deny];
            let decision = decisions[self.random.below(3)];
            let command = Command::Answer {
                approval_id: id,
                answer: ApprovalAnswer::from(decision),
            };
            self.ask(command, Waits::Other);
        }
    }

    fn branch(&mut self) {
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
            before: before.map(|(ordinal, _, branch)| crate::domain::history::Place {
                branch: *branch,
                ordinal: *ordinal,
            }),
            content: edits.then(|| "another".to_owned()),
        };
        self.ask(Command::StartBranch(Box::new(start)), Waits::Other);
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

    fn run(&mut self) {
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

    fn drive(&mut self, does: Does) {
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
    fn beside(&mut self) {
        match self.random.below(3) {
            0 => {
                if let Some(run_id) = self.driver.as_ref().map(|driver| driver.run_id) {
                    let command = Command::ChangeTodo {
                        run_id,
                        profile: std::sync::Arc::new(profile()),
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

    fn run_dies(&mut self) {
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

    fn close(&mut self) {
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

    fn die(&mut self) {
        self.pending.clear();
        self.reload();
    }

    /// The session is read again: whoever waited has heard nothing.
    fn reload(&mut self) {
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

    /// What was acknowledged is there, with the last text that was acknowledged, or withdrawn.
    fn check_promises(&self) {
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

pub(super) fn policy() -> Policy {
    Policy {
        mode: ConsentMode::Edits,
        consent_timeout: std::time::Duration::from_secs(60),
        resumes: true,
        compresses: true,
        compression_threshold: 0.8,
        window: WINDOW,
    }
}
