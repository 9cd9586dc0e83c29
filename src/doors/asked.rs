//! What a program asks, in no protocol's terms: read whole before anything begins.

mod checks;
mod conversation;
mod demanded;

use std::time::Duration;

use actix_web::http::header::{HeaderMap, HeaderName, USER_AGENT};
use navi_actors::domain::demands::Demands;
use navi_actors::protocol::chat::{ChatMessage, ReplyForm};
pub(super) use navi_actors::protocol::error::invalid;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::CallId;
use navi_actors::protocol::import::ImportedMessage;
use navi_actors::protocol::message::{Role, ToolCall};
use navi_actors::protocol::tool::Effect;
use navi_actors::tools::lent::{LentByProgram, OfferedByProgram};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use self::checks::is_tool_name;
pub(crate) use self::checks::{MAX_NAME_BYTES, MAX_TOOLS, checked};
pub(super) use self::checks::{
    check_names, checked_name, heard, image_data, lacking, sent_file, untaken,
};
use self::conversation::{Message, Next, conversation};
pub(crate) use self::demanded::{MAX_OLLAMA_STOPS, MAX_STOP_CHARS, MAX_STOPS};
pub(super) use self::demanded::{Written, chosen, form, ollama_form, stops};
use super::answer::{Answer, Approvals, GoOn, Place, Question, Repeat, SentFile, StopWords};
use crate::access::Principal;
use crate::http::App;

/// The session that the conversation is in, by its id or by a word of the program's own.
pub(super) const SESSION: HeaderName = HeaderName::from_static("x-navi-session");
/// Says that this is no conversation but a small task beside one: a title, tags.
const TASK: HeaderName = HeaderName::from_static("x-navi-task");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How often OpenAI's clients have tried before.
const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");
/// A person who stops an answer that streams closes the connection, and no client asks for that
/// again by itself.
const STREAM_PATIENCE: Duration = Duration::from_secs(1);
/// OpenAI's clients wait up to 8 s before they try again.
const RETRY_PATIENCE: Duration = Duration::from_secs(10);
/// What Open WebUI's requests for titles, tags and their like begin with.
const TASK_WORDS: &str = "### Task:";
/// What it puts before a person's question where it adds what it found in documents.
const QUESTION_WORDS: &str = "### Task:\nRespond to the user query";

/// A request, read.
#[derive(Debug)]
pub(super) struct Asked {
    /// As the client named it.
    pub(super) model: String,
    pub(super) profile_id: Option<String>,
    history: Vec<ImportedMessage>,
    next: Next,
    lent: LentByProgram,
    stops: StopWords,
    pub(super) streamed: bool,
}

/// What a program lends and demands.
#[derive(Debug)]
pub(super) struct Terms {
    /// Checked ([`checked`]).
    pub(super) tools: Vec<OfferedByProgram>,
    pub(super) demands: Demands,
}

/// How a request is to be answered.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) place: Place,
    pub(super) approvals: Approvals,
    pub(super) repeat: Repeat,
}

/// A message as a program has it.
#[derive(Debug)]
pub(super) struct Said {
    /// `system` for what the program itself wants heeded.
    pub(super) role: Role,
    pub(super) text: String,
    /// Base64, with or without a `data:` prefix.
    pub(super) images: Vec<String>,
    pub(super) files: Vec<SentFile>,
    pub(super) calls: Vec<ToolCall>,
    /// The call whose result this is.
    pub(super) answers: Option<CallId>,
}

impl Said {
    /// A text and nothing else.
    pub(super) fn text(role: Role, text: String) -> Self {
        Self {
            role,
            text,
            images: Vec::new(),
            files: Vec::new(),
            calls: Vec::new(),
            answers: None,
        }
    }
}

/// The profile that a model's name stands for; none where that is the default.
///
/// # Errors
/// `model_unknown`.
pub(super) fn profile(app: &App, model: &str) -> Result<Option<String>, NaviError> {
    let wanted = model.strip_suffix(":latest").unwrap_or(model);
    if wanted == "navi" {
        return Ok(None);
    }
    let profiles = app.engine.profiles();
    let named = wanted.strip_prefix("navi/");
    let found = named.and_then(|id| profiles.into_iter().find(|profile| profile.id == id));
    found.map(|profile| Some(profile.id)).ok_or_else(|| {
        let shown: String = model.chars().take(100).collect();
        NaviError::new(
            ErrorCode::ModelUnknown,
            format!("there is no model {shown:?} here; there are navi, and navi/PROFILE for each profile"),
        )
    })
}

impl Asked {
    /// # Errors
    /// The first thing that is wrong.
    pub(super) fn of(
        app: &App,
        model: String,
        said: Vec<Said>,
        Terms { tools, demands }: Terms,
        streamed: bool,
    ) -> Result<Self, NaviError> {
        let profile_id = profile(app, &model)?;
        let (instructions, history, next) = conversation(said)?;
        Ok(Self {
            model,
            profile_id,
            history,
            next,
            lent: LentByProgram {
                instructions,
                tools,
                demands,
                ..LentByProgram::default()
            },
            stops: StopWords::default(),
            streamed,
        })
    }

    /// The same, with this said before all of it.
    pub(super) fn behind(mut self, mut before: Vec<ImportedMessage>) -> Self {
        before.append(&mut self.history);
        Self {
            history: before,
            ..self
        }
    }

    /// The same, whose answer ends before the first of these words.
    pub(super) fn until(self, stops: StopWords) -> Self {
        Self { stops, ..self }
    }

    /// Refuses what Navi asks herself, whose model server was set to her own address.
    ///
    /// # Errors
    /// `invalid_field`.
    pub(super) fn refuse_own(headers: &HeaderMap) -> Result<(), NaviError> {
        let agent = headers.get(USER_AGENT).and_then(|it| it.to_str().ok());
        if agent.is_some_and(|agent| agent.starts_with("navi/")) {
            return Err(invalid(
                "this comes from Navi herself: OLLAMA_HOST and OPENAI_BASE_URL must name a model server, not Navi",
            ));
        }
        Ok(())
    }

    /// Whether it is a small task beside a conversation, by its headers or its words.
    ///
    /// # Errors
    /// A header that names nothing.
    pub(super) fn is_task_by(&self, headers: &HeaderMap) -> Result<bool, NaviError> {
        let is_task = named(headers, &TASK)?.is_some() || self.is_task();
        // A task has no tools, and this one demands a call.
        Ok(is_task && self.lent.demands.calls.is_empty())
    }

    /// What the answer has to be where it is text.
    pub(super) fn form(&self) -> Option<ReplyForm> {
        self.lent.demands.form.clone()
    }

    /// The run that answers, begun or joined. `hash` is the request's SHA-256.
    ///
    /// # Errors
    /// What is wrong with it; nothing was begun then.
    pub(super) async fn answer(
        self,
        app: &App,
        who: Principal,
        headers: &HeaderMap,
        hash: [u8; 32],
    ) -> Result<Box<Answer>, NaviError> {
        let place = session_of(headers)?.map_or(Place::Request, Place::Session);
        let asked = Way {
            place,
            approvals: Approvals::OnThePage,
            repeat: repeat_of(headers, hash)?,
        };
        self.answer_by(app, who, asked).await
    }

    /// The same, where the program says more of how it wants to be answered.
    ///
    /// # Errors
    /// What is wrong with it; nothing was begun then.
    pub(super) async fn answer_by(
        self,
        app: &App,
        who: Principal,
        Way {
            place,
            approvals,
            repeat,
        }: Way,
    ) -> Result<Box<Answer>, NaviError> {
        let patience = if self.streamed {
            STREAM_PATIENCE
        } else {
            RETRY_PATIENCE
        };
        if let Next::Results(results) = &self.next {
            let go_on = GoOn {
                results,
                demands: &self.lent.demands,
                approvals,
                patience,
                stops: &self.stops,
            };
            if let Some(answer) = Answer::going_on(app, who, go_on).await? {
                return Ok(answer.until(self.stops));
            }
        }
        self.end_open_calls(app, who, &place).await;
        let (history, message) = self.next.into_message(self.history, &place);
        let question = Question {
            profile_id: self.profile_id,
            place,
            history,
            text: message.text,
            images: message.images,
            files: message.files,
            lent: self.lent,
            approvals,
            repeat,
            patience,
        };
        let answer = Answer::of(app, who, question).await?;
        Ok(answer.until(self.stops))
    }

    /// Whether it is a small task beside a conversation, by its words.
    fn is_task(&self) -> bool {
        let Next::Message(Message { text, .. }) = &self.next else {
            return false;
        };
        let is_task = text.starts_with(TASK_WORDS) && !text.starts_with(QUESTION_WORDS);
        is_task && self.history.is_empty() && self.lent.tools.is_empty()
    }

    /// A person went on, in place of the run whose calls these results, right before the message,
    /// are of: they are told to it, and one that nobody sees is stopped.
    async fn end_open_calls(&self, app: &App, who: Principal, place: &Place) {
        let Next::Message(_) = &self.next else {
            return;
        };
        let newest = self.history.iter().rev();
        for said in newest.take_while(|said| said.role == Role::Tool) {
            let Some(call) = &said.tool_call_id else {
                continue;
            };
            let Some((session, run_id)) = app.engine.run_of_lent_call(who.user, call).await else {
                continue;
            };
            if !app.engine.lent_call_waits(call) {
                continue;
            }
            if matches!(place, Place::Request | Place::New) {
                // It may have ended by itself.
                let _ = app.engine.stop_only(who.user, session, run_id).await;
            } else {
                let result = said.content.clone().unwrap_or_default();
                app.engine.answer_lent_call(call, Ok(result));
            }
        }
    }

    /// All of it as a model is sent it.
    pub(super) fn into_chat(self) -> Vec<ChatMessage> {
        let (history, message) = self.next.into_message(self.history, &Place::Request);
        let (content, images) = (message.text, message.images);
        let system = Some(self.lent.instructions).filter(|text| !text.is_empty());
        let system = system.map(|content| ChatMessage::System { content });
        let before = history.into_iter().filter_map(|message| {
            let content = message.content.unwrap_or_default();
            match message.role {
                Role::User => Some(ChatMessage::User {
                    content,
                    images: message.images,
                }),
                // Model servers refuse one that says nothing, as one that only called.
                Role::Assistant => (!content.is_empty()).then_some(ChatMessage::Assistant {
                    content,
                    tool_calls: Vec::new(),
                }),
                Role::System | Role::Tool => None,
            }
        });
        let last = ChatMessage::User { content, images };
        system.into_iter().chain(before).chain([last]).collect()
    }
}

/// A tool as a program offers it: one without parameters takes none.
pub(super) fn offered(
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
) -> OfferedByProgram {
    let parameters = parameters.filter(|it| !it.is_null());
    OfferedByProgram {
        name,
        description: description.unwrap_or_default(),
        parameters: parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
        effect: Effect::Read,
    }
}

/// By what a request is known where it comes again. `hash` is its SHA-256.
///
/// # Errors
/// A header that names nothing.
pub(super) fn repeat_of(headers: &HeaderMap, hash: [u8; 32]) -> Result<Repeat, NaviError> {
    let key = named(headers, &IDEMPOTENCY_KEY)?;
    let tries = headers.get(&RETRY_COUNT).and_then(|it| it.to_str().ok());
    Ok(Repeat {
        again: key.is_some() || tries.is_some_and(|tries| tries != "0"),
        is_of_key: key.is_some(),
        hash: key.map_or(hash, |key| Sha256::digest(key).into()),
    })
}

/// The session that the header names.
///
/// # Errors
/// It names nothing.
pub(super) fn session_of(headers: &HeaderMap) -> Result<Option<String>, NaviError> {
    named(headers, &SESSION)
}

/// Refuses headers that are to name something and do not, whatever comes of the request.
///
/// # Errors
/// `invalid_field`.
pub(super) fn check_headers(headers: &HeaderMap) -> Result<(), NaviError> {
    for name in [&SESSION, &TASK, &IDEMPOTENCY_KEY] {
        named(headers, name)?;
    }
    Ok(())
}

/// A header that names something.
fn named(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, NaviError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or("\0").trim();
    if text.is_empty() {
        return Ok(None);
    }
    checked_name(name.as_str(), text).map(Some)
}
