//! A session with everything around it: people in several tabs, a run, a store that may fail, a
//! process that may be killed at any moment. What they do is in `people` and `process`.

use std::collections::{HashMap, HashSet, VecDeque};

use chrono::{DateTime, Utc};

use super::people::Promise;
use super::random::Random;
use super::runs::{Driver, WINDOW};
use super::store::Stored;
use crate::domain::history::ContextState;
use crate::domain::session::change::Change;
use crate::domain::session::command::Command;
use crate::domain::session::state::State;
use crate::domain::session::transition::{Effect, Reply, ReplyTo, Transition};
use crate::domain::session::write::Write;
use crate::domain::session::{Policy, Session};
use crate::protocol::approval::ConsentMode;
use crate::protocol::ids::{ApprovalId, CallId, MessageId, RunId};

pub(super) const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// Within so many steps everything that is under way is over.
const SETTLING: usize = 10_000;

/// Who waits for a reply, and what it is to be.
#[derive(Debug)]
pub(super) enum Waits {
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

pub(super) struct World {
    /// Whether each command is printed.
    is_shown: bool,
    pub(super) random: Random,
    /// People mostly let a turn come to its end before they do the next thing.
    pub(super) calm: bool,
    pub(super) session: Session,
    pub(super) told: State,
    pub(super) stored: Stored,
    /// Submitted and not told.
    pub(super) pending: VecDeque<(Change, Vec<Effect>)>,
    pub(super) waits: HashMap<ReplyTo, Waits>,
    pub(super) last_reply: u64,
    pub(super) sent: u32,
    pub(super) promises: HashMap<MessageId, Promise>,
    /// Those that someone asked to withdraw.
    pub(super) maybe_withdrawn: HashSet<MessageId>,
    pub(super) driver: Option<Driver>,
    pub(super) cancelled: HashSet<RunId>,
    pub(super) launched: HashSet<RunId>,
    pub(super) timers: Vec<ApprovalId>,
    /// Summaries under way: what each is made of.
    pub(super) summaries: Vec<(u64, RunId, u32, ContextState)>,
    /// What the session is to be, by what it was asked.
    pub(super) mode: ConsentMode,
    pub(super) pinned: bool,
    /// A person stopped a run, and nothing is to begin by itself.
    pub(super) held: bool,
    pub(super) left: bool,
}

impl World {
    pub(super) fn new(seed: u64, is_shown: bool) -> Self {
        let stored = Stored::new();
        let (session, told, _) = Session::load(stored.load(), policy());
        Self {
            is_shown,
            random: Random::new(seed),
            calm: seed % 2 == 1,
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
            held: false,
            left: false,
        }
    }

    pub(super) fn step(&mut self) {
        match self.random.below(20) {
            0..5 if self.calm && self.driver.is_some() && self.random.below(8) > 0 => self.run(),
            0..5 => self.person(),
            5..11 => self.run(),
            11..16 => self.commit(),
            16 | 17 => self.beside(),
            18 if self.random.below(8) == 0 => self.die(),
            18 if self.random.below(8) == 0 => self.run_dies(),
            18 if self.random.below(8) == 0 => self.close(),
            _ => self.commit(),
        }
    }

    /// Everything that is under way comes to its end: then nothing is owed to anyone.
    pub(super) fn settle(&mut self) {
        for _ in 0..SETTLING {
            if !self.pending.is_empty() {
                self.commit();
            } else if let Some(id) = self.timers.pop() {
                self.ask(Command::Expire(id), Waits::Other);
            } else if self.driver.is_some() {
                self.run();
            } else if self.session.is_idle() && self.session.ahead().is_held() {
                self.ask(Command::Continue { queue: true }, Waits::Other);
            } else {
                break;
            }
        }
        assert!(self.pending.is_empty(), "it comes to no end");
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

    pub(super) fn ask(&mut self, command: Command, waits: Waits) {
        if self.is_shown {
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
        let begins = matches!(
            command,
            Command::Send(_) | Command::Continue { .. } | Command::StartBranch(_)
        );
        if matches!(command, Command::Stop { hold: true }) {
            self.held |= self.session.ahead().running().is_some();
        }
        let transition = self.session.handle(command, to, NOW);
        self.held &= !(begins && (begins_a_run(&transition) || waits_for_one(&transition)));
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

    pub(super) fn carry_out(&mut self, transition: Transition) {
        assert!(
            !self.held || !begins_a_run(&transition),
            "a run begins by itself after a stop"
        );
        let Transition { now, change, then } = transition;
        for effect in now {
            self.perform(effect);
        }
        if !change.is_empty() || !then.is_empty() {
            self.pending.push_back((change, then));
        }
    }

    /// The next change is durable, and told; or the session dies of it.
    pub(super) fn commit(&mut self) {
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
                let known = self.promises.contains_key(&accepted.message_id);
                if accepted.duplicate && !known {
                    // The first acknowledgement was lost, and its words may be edited by now.
                    return;
                }
                let promise = self.promises.entry(accepted.message_id);
                let promise = promise.or_insert_with(|| Promise::new(&client_id, content));
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
}

fn begins_a_run(transition: &Transition) -> bool {
    let mut writes = transition.change.writes.iter();
    writes.any(|write| matches!(write, Write::RunStarted(row) if row.parent_run_id.is_none()))
}

fn waits_for_one(transition: &Transition) -> bool {
    let mut writes = transition.change.writes.iter();
    writes.any(|write| matches!(write, Write::Enqueue(_)))
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
