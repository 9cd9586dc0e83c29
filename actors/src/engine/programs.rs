//! What a door asks for programs that bring their conversation along.

use super::Engine;
use crate::completion::{self, Completion, Question};
use crate::domain::demands::{Demands, Missed};
use crate::domain::{context, model_choice};
use crate::llm_actor::Priority;
use crate::protocol::chat::{ChatMessage, ReplyForm, Usage};
use crate::protocol::command::NewSessionRequest;
use crate::protocol::error::NaviError;
use crate::protocol::ids::{CallId, RunId, SessionId, UserId};
use crate::protocol::import::{ImportedMessage, ImportedSession};
use crate::root::OpenSession;
use crate::services::now;
use crate::store::{NewSession, Store};
use crate::tools::lent::{LentByProgram, LentCall, Offer, Returned};
use crate::tools::schema;
use tokio_util::sync::CancellationToken;

/// What a title, a list of tags and their like may come to, in tokens.
const TASK_TOKENS: u32 = 2_048;

/// A session as a program wants it.
#[derive(Clone, Debug, Default)]
pub struct ProgramSession {
    pub wish: NewSessionRequest,
    /// It is there for one answer alone.
    pub ephemeral: bool,
    /// What was said before, as the program says.
    pub history: Vec<ImportedMessage>,
}

impl Engine {
    /// Makes the session of this id, unless there is one. Whether it was made now.
    ///
    /// # Errors
    /// As [`Engine::create_session`], whose limit does not hold for what is there for one answer;
    /// what is wrong with the history.
    pub async fn session_of_program(
        &self,
        user: UserId,
        id: SessionId,
        wanted: ProgramSession,
    ) -> Result<bool, NaviError> {
        if self.standing(user, id).await.is_ok() {
            return Ok(false);
        }
        let ProgramSession {
            wish,
            ephemeral,
            history,
        } = wanted;
        if !ephemeral && self.find(OpenSession::as_owner(user, id)).await.is_err() {
            self.check_sessions(user).await?;
        }
        let new = NewSession {
            id,
            ephemeral,
            ..self.new_session(user, wish)?
        };
        let owner = self.services.owner.clone();
        let made = if history.is_empty() {
            let made = async move |store: Store| {
                store.create_session(new, &owner).await.map(|it| it.summary)
            };
            self.stored(made).await
        } else {
            let at = now();
            let file = ImportedSession {
                messages: history,
                ..ImportedSession::default()
            };
            let talk = self.read_conversation(file, at).await?;
            let new = NewSession {
                title: talk.title.clone(),
                ..new
            };
            self.stored(async move |store| store.import_session(new, talk, &owner, at).await)
                .await
        };
        match made {
            Ok(summary) => {
                self.services.hub.session_changed(summary);
                Ok(true)
            }
            // Another request was quicker.
            Err(_) if self.find(OpenSession::as_owner(user, id)).await.is_ok() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Offers this to the run that the message with this `client_id` will begin. Taken back where
    /// what this gives back is dropped before.
    #[must_use]
    pub fn lend(&self, session: SessionId, client_id: &str, lent: LentByProgram) -> Offer {
        self.services.lending.offer(session, client_id, lent)
    }

    /// Whether the run, which goes, was lent a tool of this name.
    #[must_use]
    pub fn lends(&self, run_id: RunId, name: &str) -> bool {
        self.services.lending.lends(run_id, name)
    }

    /// Demands this of the answer of a run that goes on with what came of a program's calls.
    pub fn demand(&self, run_id: RunId, demands: Demands) {
        self.services.lending.demand(run_id, demands);
    }

    /// The calls of lent tools that wait for the program, in order.
    #[must_use]
    pub fn lent_calls(&self, run_id: RunId) -> Vec<LentCall> {
        self.services.lending.calls.waiting(run_id)
    }

    /// Notes that the program was told of these calls.
    pub fn tell_lent_calls(&self, calls: &[LentCall]) {
        self.services.lending.calls.tell(calls);
    }

    /// Whether a call of this run waits of which the program was told.
    #[must_use]
    pub fn waits_for_program(&self, run_id: RunId) -> bool {
        self.services.lending.calls.is_told(run_id)
    }

    /// Whether the call waits for its result.
    #[must_use]
    pub fn lent_call_waits(&self, call: &CallId) -> bool {
        self.services.lending.calls.waits(call)
    }

    /// The user's session and run in which a call of a lent tool waits for its result, or had it.
    pub async fn run_of_lent_call(
        &self,
        user: UserId,
        call: &CallId,
    ) -> Option<(SessionId, RunId)> {
        let (session, run_id) = self.services.lending.calls.run_of(user, call)?;
        self.find(OpenSession::as_owner(user, session)).await.ok()?;
        Some((session, run_id))
    }

    /// Says what came of a call of a lent tool, if it waits for that.
    pub fn answer_lent_call(&self, call: &CallId, result: Returned) {
        self.services.lending.calls.answer(call, result);
    }

    /// Asks a profile's model something that is no conversation: no tools, no run, nothing kept. Its
    /// user has as many at once as runs, and the tokens count as those of a run.
    ///
    /// # Errors
    /// `unknown_profile`; `rate_limited` where no tokens are left; what the backend says; `run_failed`
    /// where the answer does not have the `form` that is demanded.
    pub async fn complete(
        &self,
        user: UserId,
        profile_id: Option<&str>,
        mut messages: Vec<ChatMessage>,
        form: Option<ReplyForm>,
    ) -> Result<String, NaviError> {
        self.refuse_when_closed()?;
        let demands = Demands {
            form: form.clone(),
            ..Demands::default()
        };
        if let Some(content) = demands.prompt() {
            messages.insert(0, ChatMessage::System { content });
        }
        let services = &self.services;
        let profiles = &services.profiles;
        let profile = profiles.find(profile_id.unwrap_or(profiles.default_id()))?;
        let _turn = services.people.task(user).await;
        let people = services.people.clone();
        self.here(async move { people.check_tokens(user).await })
            .await?;
        let choice = services.models.choose(model_choice::wanted(&profile, None));
        let question = Question {
            choice: choice.await?,
            messages,
            temperature: profile.temperature,
            context_window: services.context_window,
            max_output_tokens: TASK_TOKENS,
            form,
            priority: Priority::Compression,
            person: Some(user),
            run: None,
        };
        let stop = CancellationToken::new();
        let _stop = stop.clone().drop_guard();
        // Before, since whoever asks may not wait for the end.
        let asked = context::request_tokens(&question.request());
        self.count_tokens(user, asked.into()).await?;
        let answer = completion::ask(&services.models, services.limits, question, stop);
        let Completion { text, usage, .. } = answer.await?;
        let usage = usage.unwrap_or_else(|| Usage {
            prompt_tokens: asked,
            completion_tokens: context::text_tokens(&text),
            cached_tokens: None,
        });
        let tokens = u64::from(usage.prompt_tokens) + u64::from(usage.completion_tokens);
        let rest = tokens.saturating_sub(asked.into());
        if let Err(error) = self.count_tokens(user, rest).await {
            tracing::warn!(%error, "the tokens of a small task could not be counted");
        }
        if let Some(form) = &demands.form {
            let misses = |why| demands.failure(Missed::Form(why));
            schema::fits(form, &text).map_err(misses)?;
        }
        Ok(text)
    }

    async fn count_tokens(&self, user: UserId, tokens: u64) -> Result<(), NaviError> {
        let people = self.services.people.clone();
        self.here(async move { people.count_tokens(user, tokens).await })
            .await
    }
}
