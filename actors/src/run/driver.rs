//! The driver: does what the loop says and tells it what came of it. No decision lives here.

use std::collections::HashMap;
use std::sync::Arc;

use actix::Addr;
use tokio_util::sync::CancellationToken;

use super::RunSetup;
use crate::domain::context;
use crate::domain::model_choice::{self, Choice};
use crate::domain::run_loop::{CallPlan, Cut, Record, Reply, RunLoop, Step};
use crate::protocol::chat::ChatRequest;
use crate::protocol::error::NaviError;
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, MessageId, RunId, SessionId};
use crate::protocol::message::Message;
use crate::protocol::profile::Profile;
use crate::root::store_error;
use crate::services::Services;
use crate::services::now;
use crate::session::SessionActor;
use crate::session::messages::{Commit, RunGone};
use crate::tools::registry::PreparedCall;

/// One run on its way.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) services: Arc<Services>,
    pub(super) session: Addr<SessionActor>,
    pub(super) session_id: SessionId,
    pub(super) run_id: RunId,
    pub(super) stop: CancellationToken,
    /// The run is to end at its next safe point.
    wind_down: CancellationToken,
    /// The run is to end now.
    pub(super) interrupt: CancellationToken,
    pub(super) run_loop: RunLoop,
    /// What the model sees of the conversation; grows only at its end.
    conversation: Vec<Arc<Message>>,
    profile_id: String,
    message_id: MessageId,
    context_tokens: u32,
    /// Calls of the last reply that may be run.
    pub(super) prepared: HashMap<CallId, PreparedCall>,
}

/// What one model call needs that stays the same for the whole run.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) profile: Arc<Profile>,
    pub(super) choice: Choice,
    /// The model's window, in tokens.
    pub(super) window: u32,
}

impl Driver {
    pub(super) fn new(
        setup: RunSetup,
        wind_down: CancellationToken,
        interrupt: CancellationToken,
    ) -> Self {
        Self {
            // Its limits are set once the profile and the model are known.
            run_loop: RunLoop::new(setup.run_id, 1, setup.context_tokens, 0),
            services: setup.services,
            session: setup.session,
            session_id: setup.session_id,
            run_id: setup.run_id,
            stop: setup.stop,
            wind_down,
            interrupt,
            conversation: Vec::new(),
            profile_id: setup.profile_id,
            message_id: setup.message_id,
            context_tokens: setup.context_tokens,
            prepared: HashMap::new(),
        }
    }

    pub(super) fn span(&self) -> tracing::Span {
        tracing::info_span!("run", session = %self.session_id, run = %self.run_id)
    }

    /// Drives the run to its end.
    pub(super) async fn drive(mut self) {
        match self.run().await {
            Ok(()) => {}
            // The session has taken the run's end into its own hands.
            Err(RunGone) => tracing::info!("run left to its session"),
        }
    }

    async fn run(&mut self) -> Result<(), RunGone> {
        let way = match self.begin().await {
            Ok(way) => way,
            Err(error) => {
                let nothing = Reply::empty(MessageId::new());
                let records = self.run_loop.on_model_failed(nothing, error, now());
                return self.commit(records).await;
            }
        };
        self.run_loop = RunLoop::new(
            self.run_id,
            way.profile.max_iterations,
            self.context_tokens,
            way.window,
        );
        let mut records = vec![Record::Began {
            backend: way.choice.kind.as_str().to_owned(),
            model: way.choice.model.name.clone(),
        }];
        if let Some(missing) = &way.choice.instead_of
            && self.services.tells_missing(missing)
        {
            records.push(Record::Event(Event::Notice {
                code: "model_missing".to_owned(),
                message: format!(
                    "the profile's model {missing} is not there; {} answers instead",
                    way.choice.model.name
                ),
            }));
        }
        self.commit(records).await?;
        loop {
            fail::fail_point!("run::step");
            if let Some(cut) = self.cut_now(true) {
                self.end_cut(&cut, None).await?;
            }
            match self.run_loop.next_step() {
                Step::CallModel { tools } => self.call_model(&way, tools).await?,
                Step::RunTools(group) => self.run_tools(&group).await?,
                Step::Finish(_) => return Ok(()),
            }
        }
    }

    /// Reads the conversation and finds the run's profile and model.
    async fn begin(&mut self) -> Result<Way, NaviError> {
        let messages = self.services.store.messages(self.session_id).await;
        let messages = messages.map_err(|error| store_error(&error))?;
        self.conversation = messages.into_iter().map(Arc::new).collect();
        let profile = self.services.profiles.find(&self.profile_id)?;
        let wanted = model_choice::wanted(&profile);
        let choice = self.services.models.choose(wanted).await?;
        let window = context::window(&choice.model, self.services.context_window);
        tracing::info!(
            backend = choice.kind.as_str(),
            model = choice.model.name,
            message = %self.message_id,
            "run begins"
        );
        Ok(Way {
            profile,
            choice,
            window,
        })
    }

    /// Whether the run is to be cut off here. A safe point also heeds a shutdown's first word.
    pub(super) fn cut_now(&self, safe_point: bool) -> Option<Cut> {
        if self.stop.is_cancelled() {
            return Some(Cut::Stopped);
        }
        let down = self.interrupt.is_cancelled() || (safe_point && self.wind_down.is_cancelled());
        down.then(|| Cut::Interrupted {
            reason: "Navi was shut down while this ran".to_owned(),
        })
    }

    /// Ends the run where it is.
    pub(super) async fn end_cut(
        &mut self,
        cut: &Cut,
        partial: Option<Reply>,
    ) -> Result<(), RunGone> {
        let records = self.run_loop.cut(cut, partial, now());
        self.commit(records).await
    }

    /// Has records committed, and takes their messages into the context.
    pub(super) async fn commit(&mut self, records: Vec<Record>) -> Result<(), RunGone> {
        if records.is_empty() {
            return Ok(());
        }
        for record in &records {
            if let Record::Message(message) = record {
                self.conversation.push(Arc::new(message.clone()));
            }
        }
        self.session
            .send(Commit {
                run_id: self.run_id,
                records,
            })
            .await
            .unwrap_or(Err(RunGone))
    }

    /// The request of the next model call.
    pub(super) fn request(&self, way: &Way, offer_tools: bool) -> ChatRequest {
        let tools = if offer_tools {
            self.services
                .registry
                .enabled(&way.profile.enabled_tools, &way.profile)
                .specs
        } else {
            Vec::new()
        };
        context::request(
            &way.profile,
            &self.services.persona,
            &self.conversation,
            &way.choice.model,
            &context::Offer {
                tools,
                notes: self.notes(offer_tools),
                context_window: way.window,
                think: self.services.think,
            },
        )
    }

    fn notes(&self, offer_tools: bool) -> Vec<String> {
        context::notes(&self.conversation, offer_tools)
    }

    /// The model's whole reply is here: has it recorded, with its calls looked up.
    pub(super) async fn take_reply(&mut self, way: &Way, reply: Reply) -> Result<(), RunGone> {
        let registry = &self.services.registry;
        let prepared = std::cell::RefCell::new(HashMap::new());
        let records = self.run_loop.on_reply(
            reply,
            |call| match registry.prepare(&call.name, &call.arguments, &way.profile.enabled_tools) {
                Ok(ready) => {
                    let effect = ready.effect;
                    prepared.borrow_mut().insert(call.id.clone(), ready);
                    CallPlan::Run(effect)
                }
                Err(refusal) => CallPlan::Refuse(refusal.0),
            },
            now(),
        );
        self.prepared = prepared.into_inner();
        self.commit(records).await
    }
}
