//! What a run knows of its conversation, and the requests that are made of it.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::asking::Wait;
use super::driver::Driver;
use super::{RunSetup, Work};
use crate::compression::{Compress, CompressionJob, Summarised, event};
use crate::domain::compression;
use crate::domain::context::{self, CallSetup, ContextMessage, Conversation, RunKind};
use crate::domain::demands::Demands;
use crate::domain::files::{FileViews, in_passing};
use crate::domain::history::ContextState;
use crate::domain::model_choice;
use crate::domain::model_choice::RunConfig;
use crate::domain::planning::AgentInfo;
use crate::domain::run_loop::{Record, ToolUse};
use crate::files::SessionFiles;
use crate::llm_actor::{Priority, Ticket};
use crate::memory::Remembers;
use crate::protocol::error::NaviError;
use crate::protocol::ids::{MessageId, RunId, SessionId};
use crate::protocol::message::{Message, Role};
use crate::protocol::offered::OfferedTools;
use crate::protocol::phrase::PhraseCode;
use crate::protocol::profile::Profile;
use crate::protocol::session::SessionSummary;
use crate::root::store_error;
use crate::services::{Services, now};
use crate::session::messages::{GetNotes, NextCall, RunGone};
use crate::tools::registry::Registry;

/// How many of the last messages planning is shown, and how much of each.
const RECENT: usize = 6;
const RECENT_CHARS: usize = 600;

/// See the module.
#[derive(Debug)]
pub(super) struct RunContext {
    pub(super) state: ContextState,
    /// In order; grows only at its end.
    pub(super) messages: Vec<ContextMessage>,
    /// Of those that were there when the run began.
    ordinals: Vec<u64>,
    /// What the model reads of the messages' files.
    pub(super) views: FileViews,
}

impl RunContext {
    /// The conversation as the run finds it.
    pub(super) async fn read(setup: &RunSetup) -> Result<Self, NaviError> {
        match &setup.work {
            Work::Turn(turn) => {
                let store = &setup.services.store;
                let written = turn.message_count - turn.unwritten.len() as u64;
                let ordinals = turn.context.start..written;
                let read = store.context_messages(setup.session_id, &turn.path, ordinals);
                let read = read.await.map_err(|error| store_error(&error))?;
                let (ordinals, messages): (Vec<_>, Vec<ContextMessage>) = read
                    .into_iter()
                    .chain((written..).zip(turn.unwritten.iter().cloned()))
                    .map(|(ordinal, message)| (ordinal, turn.context.as_decided(message)))
                    .unzip();
                let seen = messages.iter().map(|message| &**message);
                Ok(Self {
                    views: setup.services.files.views(setup.session_id, seen).await,
                    state: turn.context.clone(),
                    messages,
                    ordinals,
                })
            }
            Work::Child(child) => {
                let text = if child.context.trim().is_empty() {
                    child.task.clone()
                } else {
                    format!("{}\n\nWhat you should know:\n{}", child.task, child.context)
                };
                let asked = Message::user(MessageId::new(), setup.origin.run_id, text, now());
                Ok(Self {
                    state: ContextState::default(),
                    messages: vec![asked.into()],
                    ordinals: Vec::new(),
                    views: FileViews::new(),
                })
            }
        }
    }

    pub(super) fn push(&mut self, message: Message) {
        self.messages.push(message.into());
    }

    /// Takes the summary of what is remembered of the user into the prefix: when the context
    /// is first built, and again after a switch of profile. It stands as it is otherwise, so
    /// that the prefix does.
    pub(super) async fn take_memory(
        &mut self,
        services: &Services,
        remembers: Remembers,
    ) -> Option<Record> {
        let Remembers::Owner(user) = remembers else {
            return None;
        };
        let memory = match services.store.memory_summary(user).await {
            Ok(memory) => memory.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "memory cannot be read, going on without");
                return None;
            }
        };
        if self.state.memory.as_ref() == Some(&memory) {
            return None;
        }
        self.state.memory = Some(memory);
        Some(Record::Context(self.state.clone()))
    }

    /// Whether the memory's summary was never taken in.
    pub(super) fn lacks_memory(&self) -> bool {
        self.state.memory.is_none()
    }

    /// Takes in a message that came while the run goes, with its files.
    pub(super) async fn hear(&mut self, files: &SessionFiles, session: SessionId, said: Message) {
        self.views.extend(files.views(session, [&said]).await);
        self.push(said);
    }

    /// The last text of the user's, as planning reads it.
    pub(super) fn request_text(&self) -> String {
        let Some(at) = self.last_user() else {
            return String::new();
        };
        let asked = &self.messages[at];
        let text = asked.content.as_deref().unwrap_or_default();
        format!("{text}{}", in_passing(asked))
    }

    /// When the last reply but one was given before this run: what came later, no model was sure to
    /// be told, since the call of the last one may have been under way.
    pub(super) fn last_told(&self, run_id: RunId) -> Option<DateTime<Utc>> {
        let before = self.messages.iter().rev().filter(|it| it.run_id != run_id);
        let mut replies = before.filter(|it| it.role == Role::Assistant && !it.is_plan);
        replies.nth(1).map(|it| it.created_at)
    }

    /// The exchange before it, shortened.
    pub(super) fn recent(&self) -> Vec<(Role, String)> {
        let end = self.last_user().unwrap_or(0);
        let mut recent: Vec<_> = self.messages[..end]
            .iter()
            .rev()
            .filter(|message| matches!(message.role, Role::User | Role::Assistant))
            .filter_map(|message| Some((message.role, message.content.as_deref()?)))
            .map(|(role, text)| (role, text.chars().take(RECENT_CHARS).collect()))
            .take(RECENT)
            .collect();
        recent.reverse();
        recent
    }

    fn last_user(&self) -> Option<usize> {
        self.messages
            .iter()
            .rposition(|message| message.role == Role::User)
    }

    pub(super) fn conversation(&self) -> Conversation<'_> {
        Conversation::of(&self.state, &self.messages).with_files(&self.views)
    }
}

impl Driver {
    /// The tools as the model is told of them.
    pub(super) fn offered(&self, config: &RunConfig) -> OfferedTools {
        let (services, allowed) = (&self.services, self.allowed(&config.profile));
        let profiles = services.profiles.all();
        let offers = &services.offers;
        offers.of(&self.registry, &config.profile, profiles, &allowed)
    }

    /// What the next model call stands in.
    pub(super) fn call_setup(&self, config: &RunConfig, tool_use: ToolUse) -> CallSetup {
        let mut notes = context::notes(&self.context.messages);
        notes.extend(self.run_loop.notes());
        let allowed = self.allowed(&config.profile);
        context::call_setup(
            &config.profile,
            &self.services.persona(),
            &config.choice.model,
            context::Offer {
                tools: self.offered(config),
                tool_use,
                prompts: self.registry.prompts(&allowed),
                notes,
                context_window: self.services.context_window,
                room: self.room,
                think: self.services.think,
                kind: if self.origin.is_subagent() {
                    RunKind::Subagent
                } else {
                    RunKind::Session
                },
                demands: self.run_loop.demands().clone(),
            },
        )
    }

    /// What is remembered, where the context was never told.
    pub(super) async fn take_in_memory(&mut self) -> Result<(), RunGone> {
        if self.origin.is_subagent() || !self.context.lacks_memory() {
            return Ok(());
        }
        let memory = self.context.take_memory(&self.services, self.remembers);
        let record = memory.await;
        self.tell(record.into_iter().collect()).await
    }

    /// Summarises the old part of the context, where the last run left it too full.
    pub(super) async fn compress_if_due(&mut self, config: &RunConfig) -> Result<(), RunGone> {
        let Work::Turn(turn) = &self.work else {
            return Ok(());
        };
        let policy = self.services.compression;
        let threshold = f64::from(policy.threshold);
        if compression::is_due(
            turn.context_tokens,
            config.window,
            threshold,
            policy.enabled,
        ) {
            self.compress(config).await?;
        }
        Ok(())
    }

    /// Summarises what of the context is old enough. Where nothing is, or that fails, the
    /// context is as it was.
    pub(super) async fn compress(&mut self, config: &RunConfig) -> Result<(), RunGone> {
        if self.origin.is_subagent() || !self.services.compression.enabled {
            return Ok(());
        }
        let notes = self.session.send(GetNotes).await.map_err(|_| RunGone)?;
        let (ticket, stop) = (Ticket::new(), self.ends.stop.child_token());
        let ordinals = self.context.ordinals.iter().copied();
        let job = CompressionJob {
            priority: Priority::Compression,
            session_id: self.session_id,
            user_id: self.user_id,
            remembers: self.remembers,
            run_id: self.origin.run_id,
            choice: config.choice.clone(),
            state: self.context.state.clone(),
            notes,
            messages: ordinals
                .zip(self.context.messages.iter().cloned())
                .collect(),
            ticket,
            stop: stop.clone(),
        };
        // Dropped with this run: nobody waits for the summary then.
        let _stop = stop.drop_guard();
        let compressor = self.services.compressor.addr();
        let asked = compressor.send(Compress(job));
        let wait = Wait {
            kind: config.choice.kind,
            ticket,
            doing: PhraseCode::Summarises,
        };
        let Some(compressed) = self.wait_for(asked, wait).await? else {
            return Ok(());
        };
        let Summarised { compressed, call } = match compressed {
            Ok(Ok(Some(summarised))) => summarised,
            Ok(Ok(None)) | Err(_) => return Ok(()),
            Ok(Err(error)) => {
                tracing::warn!(%error, "context could not be compressed, left as it was");
                return Ok(());
            }
        };
        let gone = self
            .context
            .ordinals
            .iter()
            .filter(|at| **at < compressed.state.start);
        let gone = gone.count();
        self.context.messages.drain(..gone);
        self.context.ordinals.drain(..gone);
        self.context.state = compressed.state.clone();
        self.called.extend(call);
        self.commit(vec![
            Record::Event(event(&compressed)),
            Record::Context(compressed.state),
            Record::ContextTokens(0),
        ])
        .await
    }
}

/// The profiles as those who can be spawned or switched to.
pub(super) fn agents(profiles: &[Arc<Profile>]) -> Vec<AgentInfo<'_>> {
    profiles
        .iter()
        .map(|profile| AgentInfo {
            id: &profile.id,
            name: &profile.name,
            description: &profile.description,
        })
        .collect()
}

/// What the model would be sent now: of the session's own runs, before any note of a run.
///
/// # Errors
/// Where the profile is gone.
pub(crate) fn would_send(
    services: &Services,
    session: &SessionSummary,
    conversation: &Conversation<'_>,
    registry: &Registry,
) -> Result<NextCall, NaviError> {
    let profile = services.profiles.of_session(&session.profile_id).profile;
    let wanted = model_choice::wanted(&profile, session.model.as_deref());
    let choice = model_choice::choose(&services.models.statuses(), wanted);
    let model = choice.map(|choice| choice.model).unwrap_or_default();
    let allowed = registry.names(&profile.enabled_tools);
    let offer = context::Offer {
        tools: services
            .offers
            .of(registry, &profile, services.profiles.all(), &allowed),
        tool_use: ToolUse::Offered,
        prompts: registry.prompts(&allowed),
        notes: context::notes(conversation.messages),
        context_window: services.context_window,
        room: None,
        think: services.think,
        kind: RunKind::Session,
        demands: Demands::default(),
    };
    let persona = services.persona();
    let setup = context::call_setup(&profile, &persona, &model, offer);
    Ok(NextCall {
        request: setup.request(conversation).request,
        parts: setup.parts(conversation),
    })
}
