//! What a door asks for programs that bring their conversation along.

use super::Engine;
use crate::completion::{self, Question};
use crate::domain::model_choice;
use crate::engine::NewSessionWish;
use crate::llm_actor::Priority;
use crate::protocol::chat::ChatMessage;
use crate::protocol::error::NaviError;
use crate::protocol::ids::{CallId, SessionId, UserId};
use crate::protocol::import::{ImportedMessage, ImportedSession};
use crate::services::now;
use crate::store::{NewSession, Store};
use crate::tools::lent::OfferedByProgram;
use tokio_util::sync::CancellationToken;

/// What a title, a list of tags and their like may come to, in tokens.
const TASK_TOKENS: u32 = 2_048;

/// A session as a program wants it.
#[derive(Clone, Debug, Default)]
pub struct ProgramSession {
    pub wish: NewSessionWish,
    /// It is there for one answer alone.
    pub ephemeral: bool,
    /// What was said before, as the program says.
    pub history: Vec<ImportedMessage>,
}

/// What a program lends the runs of a session.
#[derive(Clone, Debug, Default)]
pub struct LentByProgram {
    /// What it wants heeded, beside the profile's prompt.
    pub instructions: String,
    /// Tools that it calls by itself.
    pub tools: Vec<OfferedByProgram>,
}

impl Engine {
    /// Makes the session of this id, unless there is one. Whether it was made now.
    ///
    /// # Errors
    /// As [`Engine::create_session`]; what is wrong with the history.
    pub async fn session_of_program(
        &self,
        user: UserId,
        id: SessionId,
        wanted: ProgramSession,
    ) -> Result<bool, NaviError> {
        if self.find(user, id).await.is_ok() {
            return Ok(false);
        }
        let ProgramSession {
            wish,
            ephemeral,
            history,
        } = wanted;
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
            Err(_) if self.find(user, id).await.is_ok() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Lends the session's runs this, in the place of what they were lent before.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn lend(
        &self,
        user: UserId,
        session: SessionId,
        lent: LentByProgram,
    ) -> Result<(), NaviError> {
        self.find(user, session).await?;
        let LentByProgram {
            instructions,
            tools,
        } = lent;
        let lending = &self.services.lending;
        if instructions.is_empty() && tools.is_empty() {
            lending.take_back(session);
        } else {
            lending.lend(session, &instructions, tools);
        }
        Ok(())
    }

    /// The user's session in which a call of a lent tool waits for its result.
    pub async fn lent_call(&self, user: UserId, call: &CallId) -> Option<SessionId> {
        let session = self.services.lending.waiting(call)?;
        self.find(user, session).await.ok().map(|_| session)
    }

    /// Says what came of a call of a lent tool. False where it does not wait (any more).
    pub fn answer_lent(&self, session: SessionId, call: &CallId, result: String) -> bool {
        self.services.lending.answer(session, call, result)
    }

    /// Asks a profile's model something that is no conversation: no tools, no run, nothing kept.
    ///
    /// # Errors
    /// `unknown_profile`; what the backend says.
    pub async fn complete(
        &self,
        profile_id: Option<&str>,
        messages: Vec<ChatMessage>,
    ) -> Result<String, NaviError> {
        self.refuse_when_closed()?;
        let services = &self.services;
        let profiles = &services.profiles;
        let profile = profiles.find(profile_id.unwrap_or(profiles.default_id()))?;
        let choice = services.models.choose(model_choice::wanted(&profile, None));
        let question = Question {
            choice: choice.await?,
            messages,
            temperature: profile.temperature,
            context_window: services.context_window,
            max_output_tokens: TASK_TOKENS,
            priority: Priority::Compression,
            run: None,
        };
        let stop = CancellationToken::new();
        let _stop = stop.clone().drop_guard();
        let asked = completion::ask(&services.models, services.limits, question, stop);
        Ok(asked.await?.text)
    }
}
