//! The driver: does what the loop says and tells it what came of it. No decision lives here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use actix::Addr;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use super::begin::{find_config, notices};
use super::book::Book;
use super::context::RunContext;
use super::turn::RunTurn;
use super::{ChildReport, Ends, FileChanges, Resting, RunActor, RunSetup, Work};
use crate::domain::demands::Demands;
use crate::domain::model_calls::ModelCall;
use crate::domain::model_choice::RunConfig;
use crate::domain::run_loop::{
    CallBook as _, Cut, ModelReply, Record, RunEnd, RunLoop, RunSummary, Step,
};
use crate::domain::session::command::Command;
use crate::domain::session::transition::{CheckpointState, Refused, Reply};
use crate::memory::Remembers;
use crate::protocol::command::PlainConsent;
use crate::protocol::ids::{CallId, MessageId, Origin, SessionId, UserId};
use crate::protocol::message::ToolCall;
use crate::protocol::phrase::PhraseCode;
use crate::protocol::powers::Powers;
use crate::protocol::profile::Profile;
use crate::protocol::tool::Effect;
use crate::services::{Services, now};
use crate::session::SessionActor;
use crate::session::messages::RunGone;
use crate::tools::lent::Borrowed;
use crate::tools::registry::{PreparedCall, Registry};
use crate::traces::InRun;

/// How long a run whose time is up may take to say how things stand.
const CLOSING_TIME: Duration = Duration::from_secs(60);

/// One run on its way.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) services: Arc<Services>,
    /// The tools as they were when this run began.
    pub(super) registry: Registry,
    /// What its user may use, as far as this run knows.
    powers: Powers,
    pub(super) session: Addr<SessionActor>,
    pub(super) session_id: SessionId,
    pub(super) user_id: UserId,
    pub(super) remembers: Remembers,
    pub(super) origin: Origin,
    pub(super) ends: Ends,
    pub(super) deadline: Instant,
    pub(super) turn: RunTurn,
    pub(super) run_loop: RunLoop,
    pub(super) context: RunContext,
    pub(super) work: Work,
    /// The session's, as this run knows it.
    profile_id: String,
    /// See [`RunSetup::model`].
    pub(super) model: Option<String>,
    /// The actor that drives this: it starts child runs.
    pub(super) own: Addr<RunActor>,
    /// Calls of the last reply that may be run.
    pub(super) prepared: HashMap<CallId, PreparedCall>,
    /// How many child runs may go at once, and how many more there may be at all.
    pub(super) child_slots: Arc<Semaphore>,
    pub(super) children_left: Arc<AtomicU64>,
    /// Tokens that children used and that the loop was not told of yet.
    pub(super) children_tokens: Arc<AtomicU64>,
    /// Of the calls that go.
    pub(super) resting: Resting,
    /// How many turns the last call had to do without.
    pub(super) told_left_out: usize,
    pub(super) told_cut_prompt: bool,
    /// Where a server found our guesses low: what a prompt may come to by them.
    pub(super) room: Option<u32>,
    pub(super) consent: PlainConsent,
    /// The most that its calls may do.
    pub(super) ceiling: Effect,
    pub(super) changes: FileChanges,
    /// How many there had been when a call was asked about; not known of one from before a
    /// restart, which no child outlives.
    pub(super) changes_when_asked: HashMap<CallId, u64>,
    /// It read text from outside.
    pub(super) outside: bool,
    /// It goes on after a restart.
    resumed: bool,
    /// How the run ended.
    pub(super) over: Option<RunSummary>,
    /// The session's last event, as far as this run was told.
    pub(super) last_seq: u64,
    /// Records that go with the next commit.
    pub(super) held: Vec<Record>,
    /// What was told and is on its way to the store, oldest first.
    pub(super) told: VecDeque<oneshot::Receiver<Result<Reply, Refused>>>,
    /// Model calls that came to their end and go with the next commit.
    pub(super) called: Vec<ModelCall>,
    /// How much of a subagent's conversation was kept with its calls.
    pub(super) kept_messages: usize,
    /// What the program that asks lent it.
    _loan: Option<Borrowed>,
}

/// What a run works on, as it found it when it began.
pub(super) struct Basis {
    pub(super) context: RunContext,
    /// Its user's.
    pub(super) powers: Powers,
    pub(super) turn: RunTurn,
}

/// That of the message which a turn answers.
fn client_id<'a>(work: &Work, context: &'a RunContext) -> Option<&'a str> {
    let Work::Turn(turn) = work else {
        return None;
    };
    let mut newest = context.messages.iter().rev();
    let asked = newest.find(|message| message.id == turn.message_id)?;
    asked.client_id.as_deref()
}

impl Driver {
    /// Where it stays: what drives a run would hold it several times over.
    pub(super) fn new(
        setup: RunSetup,
        own: Addr<RunActor>,
        run_loop: RunLoop,
        basis: Basis,
    ) -> Box<Self> {
        let Basis {
            context,
            powers,
            turn,
        } = basis;
        let limits = setup.services.runs;
        let last_seq = match &setup.work {
            Work::Turn(turn) => turn.last_seq,
            Work::Child(_) => 0,
        };
        let (registry, loan) = setup.services.lending.take(
            setup.session_id,
            setup.origin.run_id,
            client_id(&setup.work, &context),
            setup.services.toolbox.of(&powers),
        );
        Box::new(Self {
            registry,
            powers,
            services: setup.services,
            session: setup.session,
            session_id: setup.session_id,
            user_id: setup.user_id,
            remembers: setup.remembers,
            origin: setup.origin,
            ends: setup.ends,
            deadline: setup.deadline,
            turn,
            run_loop,
            context,
            work: setup.work,
            profile_id: setup.profile_id,
            model: setup.model,
            own,
            prepared: HashMap::new(),
            child_slots: Arc::new(Semaphore::new(limits.parallel_children)),
            children_left: Arc::new(AtomicU64::new(limits.children)),
            children_tokens: Arc::default(),
            resting: Resting::default(),
            told_left_out: 0,
            told_cut_prompt: false,
            room: None,
            consent: setup.consent,
            ceiling: setup.ceiling,
            changes: setup.changes,
            changes_when_asked: HashMap::new(),
            outside: false,
            resumed: false,
            over: None,
            last_seq,
            held: Vec::new(),
            told: VecDeque::new(),
            called: Vec::new(),
            kept_messages: 0,
            _loan: loan,
        })
    }

    /// Drives the run to its end.
    pub(super) async fn drive(mut self: Box<Self>, config: RunConfig, first: Vec<Record>) {
        match self.run(config, first).await {
            Ok(()) => {}
            // The session has taken the run's end into its own hands.
            Err(RunGone) => tracing::info!("run left to its session"),
        }
        let tokens = self.run_loop.tokens_used();
        if let (Work::Child(task), Some(over)) = (self.work, self.over) {
            // The parent may be gone too.
            let _ = task.finished.send(ChildReport {
                problem: problem(&over.end),
                text: over.text,
                outside: self.outside,
                tokens,
            });
        }
    }

    async fn run(&mut self, mut config: RunConfig, first: Vec<Record>) -> Result<(), RunGone> {
        self.tell(first).await?;
        if !self.resumed {
            self.take_in_memory().await?;
            if self.turn.is_taken() {
                self.compress_if_due(&config).await?;
            }
        }
        while !self.run_loop.is_over() {
            fail::fail_point!("run::step");
            if !self.turn.is_taken() && self.works() {
                self.turn.take(&mut self.deadline).await;
            }
            if self.is_to_be_left() {
                return self.park(None).await;
            }
            if let Some(cut) = self.cut_now(true) {
                self.end_cut(&cut, None).await?;
            }
            if self.is_time_up() {
                self.time_up(None).await?;
            }
            match self.run_loop.next_step() {
                Step::Plan(planner) => self.plan(&config, &planner).await?,
                Step::CallModel { .. } => {
                    config = self.look_around(config).await?;
                    // What was seen may have changed which tools it is offered.
                    if let Step::CallModel { tools } = self.run_loop.next_step() {
                        self.call_model(&mut config, tools).await?;
                    }
                }
                Step::RunTools(group) => self.run_tools(&config, &group).await?,
                Step::Finish(_) => {}
            }
        }
        Ok(())
    }

    /// Takes in what happened beside the run: steered messages, the todo list, another profile.
    async fn look_around(&mut self, config: RunConfig) -> Result<RunConfig, RunGone> {
        let checkpoint = Command::Checkpoint(self.origin.run_id);
        let around: CheckpointState = self.ask(checkpoint).await?;
        self.last_seq = around.last_seq;
        for message in around.steered {
            self.run_loop
                .on_steered(message.content.as_deref().unwrap_or_default());
            self.context
                .hear(&self.services.files, self.session_id, message)
                .await;
        }
        self.run_loop.on_todo(&around.todo);
        self.heed_powers().await;
        self.heed_demands();
        if self.origin.is_subagent() || around.profile_id == self.profile_id {
            // The same profile may have been edited: that holds at once too.
            let found = self.services.profiles.find(&config.profile.id);
            let profile = found.unwrap_or_else(|_| Arc::clone(&config.profile));
            if !Arc::ptr_eq(&profile, &config.profile) {
                let records = self.run_loop.on_switch(&profile, config.window);
                self.commit(records).await?;
            }
            return Ok(RunConfig { profile, ..config });
        }
        let model = self.model.as_deref();
        match find_config(&self.services, &around.profile_id, model).await {
            Ok(other) => {
                self.profile_id = around.profile_id;
                self.room = None;
                let mut records = self.run_loop.on_switch(&other.profile, other.window);
                records.extend(notices(&self.services, &other));
                records.extend(
                    self.context
                        .take_memory(&self.services, self.remembers)
                        .await,
                );
                self.commit(records).await?;
                Ok(other)
            }
            Err(error) => {
                tracing::warn!(%error, "the profile that was switched to cannot be used");
                Ok(config)
            }
        }
    }

    /// What the program that asks demands of the answer, as its last request has it.
    fn heed_demands(&mut self) {
        let (lending, run_id) = (&self.services.lending, self.origin.run_id);
        let Some(demands) = lending.demanded(run_id) else {
            // The loan of a run that was read from the store is gone, and so is what to call.
            let calls = &self.run_loop.demands().calls;
            if calls.iter().any(|name| !lending.lends(run_id, name)) {
                let calls = Vec::new();
                let rest = self.run_loop.demands().clone();
                self.run_loop.demand(Demands { calls, ..rest });
            }
            return;
        };
        if demands.without_tools {
            let own = self.services.toolbox.of(&self.powers);
            self.registry = self.registry.with_own(own);
        }
        self.run_loop.demand(demands);
    }

    /// Whether what was held of a reply is told, now that it is whole.
    pub(super) fn tells_text(&self, config: &RunConfig, reply: &ModelReply) -> bool {
        let allowed = self.allowed(&config.profile);
        let book = Book::new(&self.registry, allowed, self.ceiling);
        self.run_loop.tells_text(reply, &book)
    }

    /// What its user was granted since, the next run has; what was taken back, nobody offers again.
    async fn heed_powers(&mut self) {
        match self.services.people.powers(self.user_id).await {
            Ok(powers) if powers != self.powers => {
                self.registry = self.registry.for_powers(&powers);
                self.powers = powers;
            }
            Ok(_) => {}
            // Each call asks again.
            Err(error) => tracing::error!(%error, "what a user may use is not known"),
        }
    }

    /// Whether what comes next is more than to wait for a person's answers.
    fn works(&self) -> bool {
        let asked = |call: &CallId| self.run_loop.asked(call).is_some();
        match self.run_loop.next_step() {
            Step::RunTools(group) => !group.iter().all(|planned| asked(&planned.call.id)),
            Step::Plan(_) | Step::CallModel { .. } => true,
            Step::Finish(_) => false,
        }
    }

    /// Whether the run is to be cut off here. A safe point also heeds a shutdown's first word.
    pub(super) fn cut_now(&self, safe_point: bool) -> Option<Cut> {
        if self.ends.stop.is_cancelled() {
            return Some(Cut::Stopped);
        }
        let down = self.ends.interrupt.is_cancelled()
            || (safe_point && self.ends.wind_down.is_cancelled());
        down.then(|| Cut::Interrupted {
            reason: PhraseCode::RunShutDown.english().to_owned(),
        })
    }

    /// Whether the service goes down and the run goes on in the next one.
    pub(super) fn is_to_be_left(&self) -> bool {
        self.ends.park.is_cancelled() && !self.ends.stop.is_cancelled()
    }

    /// Ends the run where it is.
    pub(super) async fn end_cut(
        &mut self,
        cut: &Cut,
        partial: Option<ModelReply>,
    ) -> Result<(), RunGone> {
        let records = self.run_loop.cut(cut, partial, now());
        self.commit(records).await
    }

    pub(super) fn is_time_up(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// The run's time is up: it may say how things stand, within a limit of its own.
    pub(super) async fn time_up(&mut self, partial: Option<ModelReply>) -> Result<(), RunGone> {
        self.deadline = Instant::now() + CLOSING_TIME;
        let records = self.run_loop.on_time_up(partial, now());
        self.commit(records).await
    }

    /// This run, for those who do something for it.
    pub(super) fn in_run(&self) -> InRun {
        InRun {
            session_id: self.session_id,
            run_id: self.origin.run_id,
        }
    }

    /// The message that it works for; a child's is its parent's.
    pub(super) fn asked_in(&self) -> Option<MessageId> {
        match &self.work {
            Work::Turn(turn) => Some(turn.message_id),
            Work::Child(child) => child.asked_in,
        }
    }

    /// The tools that this run's model may call with this profile.
    pub(super) fn allowed(&self, profile: &Profile) -> Vec<String> {
        let Work::Child(child) = &self.work else {
            return self.registry.names(&profile.enabled_tools);
        };
        let named = if profile.subagent_tools.is_empty() {
            &profile.enabled_tools
        } else {
            &profile.subagent_tools
        };
        self.registry
            .names(named)
            .into_iter()
            // A child changes nothing of what its parent is, and depth has its limit.
            .filter(|tool| tool != crate::tools::switch_profile::NAME)
            .filter(|tool| {
                tool != crate::tools::spawn_agent::NAME
                    || child.depth < self.services.runs.child_depth
            })
            .collect()
    }

    /// Looks up again the calls that a restart left to be made.
    pub(super) fn prepare_again(&mut self, config: &RunConfig) {
        self.resumed = true;
        let allowed = self.allowed(&config.profile);
        let mut book = Book::new(&self.registry, allowed, self.ceiling);
        for planned in self.run_loop.not_begun() {
            // What a program lent is gone: a tool of ours with its name is not what was called.
            if planned.lent == book.is_lent(&planned.call.name) {
                book.plan(&planned.call);
            }
        }
        self.prepared = book.prepared;
    }

    /// Makes these calls before the model is asked: gives back what is to be recorded.
    pub(super) fn repeat(&mut self, config: &RunConfig, calls: &[ToolCall]) -> Vec<Record> {
        let allowed = self.allowed(&config.profile);
        let mut book = Book::new(&self.registry, allowed, self.ceiling);
        let records = self.run_loop.repeat(calls, &mut book, now());
        self.prepared = book.prepared;
        records
    }

    /// The model's whole reply is here: has it recorded, with its calls looked up. Their start
    /// goes into the same commit.
    pub(super) async fn take_reply(
        &mut self,
        config: &RunConfig,
        reply: ModelReply,
    ) -> Result<(), RunGone> {
        let allowed = self.allowed(&config.profile);
        let mut book = Book::new(&self.registry, allowed, self.ceiling);
        let records = self.run_loop.on_reply(reply, &mut book, now());
        self.prepared = book.prepared;
        if let Step::RunTools(_) = self.run_loop.next_step() {
            self.hold(records);
            return Ok(());
        }
        self.commit(records).await
    }
}

/// What kept a child from its answer.
fn problem(end: &RunEnd) -> Option<String> {
    match end {
        RunEnd::Answered => None,
        RunEnd::Limited => Some("a limit of iterations, time or tokens ended it".to_owned()),
        RunEnd::Stopped => Some("it was stopped".to_owned()),
        RunEnd::Failed(error) => Some(error.message.clone()),
        RunEnd::Interrupted { reason } => Some(reason.clone()),
    }
}
