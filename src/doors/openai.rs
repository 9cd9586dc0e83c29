//! OpenAI's Chat Completions, for the many programs that speak them: `/v1/models` and
//! `/v1/chat/completions`, as openai-openapi has them.
//!
//! A model is a profile: `navi` the default one, `navi/PROFILE` another. The conversation is what
//! the request holds, in a session that nobody sees and that goes by itself; with the header
//! `X-Navi-Session` it is a session that the page shows, too.

mod chunks;
mod request;

use std::collections::VecDeque;

use actix_web::http::Method;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::stream;
use navi_actors::domain::input::MAX_MESSAGE_JSON_BYTES;
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use self::chunks::{Chunks, framed};
pub(crate) use self::request::ChatCompletionRequest;
use self::request::Request;
use super::answer::{Answer, Ending, StopWords, Told, Whole};
use super::asked::{self, Asked};
use super::{places, streaming};
use crate::access::Principal;
use crate::http::App;
use crate::http::body::unreadable;
use crate::http::endpoint::{Endpoint, endpoint};
use crate::http::error::{ApiError, status};
use crate::http::openapi::OpenaiFailures;

/// What stands before every path of this door.
pub(crate) const PREFIX: &str = "/v1/";
const MODELS: &str = "/v1/models";
const MODEL: &str = "/v1/models/{model:.+}";
const COMPLETIONS: &str = "/v1/chat/completions";
pub(super) const PATHS: [&str; 3] = [MODELS, MODEL, COMPLETIONS];
/// Where messages go.
pub(super) const TAKES: &str = COMPLETIONS;

/// The type of what streams.
const STREAM: &str = "text/event-stream";
/// Whether OpenAI's clients are to try again.
const SHOULD_RETRY: &str = "x-should-retry";

pub(super) fn models_routes() -> Endpoint {
    endpoint(MODELS).on(Method::GET, Action::ReadService, models)
}

pub(super) fn model_routes() -> Endpoint {
    endpoint(MODEL).on(Method::GET, Action::ReadService, model)
}

pub(super) fn completions_routes() -> Endpoint {
    endpoint(COMPLETIONS).body_limit(MAX_MESSAGE_JSON_BYTES).on(
        Method::POST,
        Action::Converse,
        completions,
    )
}

/// An error as clients of this door read it.
pub(crate) fn refusal(error: &ApiError) -> HttpResponse {
    let body = OpenaiError::from(&error.0);
    error.response_of(&body)
}

/// The envelope that OpenAI's clients expect, whole.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OpenaiError {
    error: ErrorDetails,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ErrorDetails {
    message: String,
    r#type: &'static str,
    /// Always null: the message says what was wrong.
    param: Option<String>,
    code: ErrorCode,
}

impl From<&NaviError> for OpenaiError {
    fn from(NaviError { code, message, .. }: &NaviError) -> Self {
        let kind = match status(*code).as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        };
        Self {
            error: ErrorDetails {
                message: message.clone(),
                r#type: kind,
                param: None,
                code: *code,
            },
        }
    }
}

/// Nothing was begun yet: a client may try again where that can help.
pub(super) fn refused(error: NaviError) -> HttpResponse {
    if error.code == ErrorCode::RunFailed {
        // The model was asked, and what it said will not do.
        return failed(&ApiError(error));
    }
    refusal(&ApiError(error))
}

#[utoipa::path(get, path = "/v1/models", tag = "openai",
    responses((status = 200, description = "`navi`, and `navi/PROFILE` for each profile, in OpenAI's form.", body = Object), OpenaiFailures))]
pub(crate) async fn models(app: web::Data<App>, _: Principal) -> HttpResponse {
    let profiles = app.engine.profiles();
    let named = profiles
        .iter()
        .map(|profile| format!("navi/{}", profile.id));
    let all: Vec<Value> = std::iter::once("navi".to_owned())
        .chain(named)
        .map(|id| described(&id))
        .collect();
    HttpResponse::Ok().json(json!({"object": "list", "data": all}))
}

#[utoipa::path(get, path = "/v1/models/{model}", tag = "openai",
    params(("model" = String, Path, description = "`navi` or `navi/PROFILE`; its slash may stand as it is.")),
    responses((status = 200, description = "One of them.", body = Object), OpenaiFailures))]
pub(crate) async fn model(
    app: web::Data<App>,
    _: Principal,
    path: web::Path<String>,
) -> HttpResponse {
    match asked::profile(&app, &path) {
        Ok(_) => HttpResponse::Ok().json(described(&path)),
        Err(error) => refused(error),
    }
}

fn described(id: &str) -> Value {
    // Profiles are files; when one was made tells nobody anything.
    json!({"id": id, "object": "model", "created": 1_700_000_000, "owned_by": "navi"})
}

#[utoipa::path(post, path = "/v1/chat/completions", tag = "openai",
    params(("X-Navi-Session" = Option<String>, Header, max_length = 256, description = "The session that the conversation is in: its id, or a word of the program's own. Without it the request holds the conversation, and no session is left."),
        ("X-Navi-Task" = Option<String>, Header, max_length = 256, description = "A small task beside a conversation, as a title: asked without tools and without a session."),
        ("Idempotency-Key" = Option<String>, Header, max_length = 256, description = "The same request again with the same key joins its run; another question with it is refused.")),
    request_body(content = ref("#/components/schemas/ChatCompletionRequest"), description = "As OpenAI's Chat Completions have it: `model`, `messages`, `stream`, `stream_options`, `tools`, `tool_choice`, `parallel_tool_calls`, `response_format`, `stop`; docs/doors.md says what is passed over."),
    responses((status = 200, description = "The answer in OpenAI's form, in one piece or, with `stream`, as server-sent events.", content((Object = "application/json"), ("text/event-stream"))), OpenaiFailures))]
pub(crate) async fn completions(
    app: web::Data<App>,
    who: Principal,
    request: HttpRequest,
    body: Result<Bytes, actix_web::Error>,
) -> HttpResponse {
    answer(&app, who, request.headers(), body)
        .await
        .unwrap_or_else(refused)
}

async fn answer(
    app: &App,
    who: Principal,
    headers: &HeaderMap,
    body: Result<Bytes, actix_web::Error>,
) -> Result<HttpResponse, NaviError> {
    let body = body.map_err(|error| unreadable(&error).0)?;
    Asked::refuse_own(headers)?;
    asked::check_headers(headers)?;
    let Request {
        asked,
        stops,
        counts,
        hash,
    } = Request::read(app, body).await?;
    if asked.is_task_by(headers)? {
        return task(app, who, asked, stops).await;
    }
    let (model, streamed) = (asked.model.clone(), asked.streamed);
    let answer = asked.until(stops).answer(app, who, headers, hash).await?;
    let chunks = Chunks::new(answer.run_id, model);
    Ok(if streamed {
        stream_of(answer, chunks, counts)
    } else {
        whole(answer, chunks).await
    })
}

/// A title, tags and their like: asked of the model alone, without tools and without a session.
async fn task(
    app: &App,
    who: Principal,
    asked: Asked,
    stops: StopWords,
) -> Result<HttpResponse, NaviError> {
    let chunks = Chunks::new(
        navi_actors::protocol::ids::RunId::new(),
        asked.model.clone(),
    );
    let (streamed, profile_id) = (asked.streamed, asked.profile_id.clone());
    let form = asked.form();
    let engine = &app.engine;
    let text = engine.complete(who.user, profile_id.as_deref(), asked.into_chat(), form);
    let text = stops.cut(&text.await?);
    if !streamed {
        return Ok(HttpResponse::Ok().json(chunks.whole(&text, "", Vec::new(), "stop", (0, 0))));
    }
    let frames = [
        chunks.begin(),
        chunks.text(&text),
        chunks.end("stop"),
        Chunks::done(),
    ];
    let frames = frames.map(Ok::<_, NaviError>);
    Ok(streaming(STREAM).streaming(stream::iter(frames)))
}

/// The answer as it comes.
fn stream_of(answer: Box<Answer>, chunks: Chunks, counts: bool) -> HttpResponse {
    let mut response = streaming(STREAM);
    for (name, value) in places(&answer) {
        response.insert_header((name, value));
    }
    let begin = VecDeque::from([chunks.begin()]);
    let state = (begin, Some((answer, chunks, 0_usize)));
    response.streaming(stream::unfold(state, move |(mut ready, open)| async move {
        if let Some(frame) = ready.pop_front() {
            return Some((Ok::<_, NaviError>(frame), (ready, open)));
        }
        let (mut answer, chunks, mut calls) = open?;
        let told = answer.next().await;
        let goes_on = match told {
            Told::Thinking(text) => {
                ready.push_back(chunks.thinking(&text));
                true
            }
            Told::Text(text) => {
                ready.push_back(chunks.text(&text));
                true
            }
            Told::Step(step) => {
                let (what, done) = step.line();
                ready.push_back(chunks.doing(&what, done));
                true
            }
            Told::Call(call) => {
                ready.push_back(chunks.call(calls, &call));
                calls += 1;
                true
            }
            Told::Silence => {
                ready.push_back(Bytes::from_static(b": still here\n\n"));
                true
            }
            Told::Over(ending) => {
                let used = match counts {
                    true => Some(answer.usage().await),
                    false => None,
                };
                end(&chunks, ending, used, &mut ready);
                false
            }
        };
        let frame = ready.pop_front()?;
        let open = goes_on.then_some((answer, chunks, calls));
        Some((Ok(frame), (ready, open)))
    }))
}

fn end(chunks: &Chunks, ending: Ending, used: Option<(u64, u64)>, ready: &mut VecDeque<Bytes>) {
    match finish(ending) {
        Ok(reason) => {
            ready.push_back(chunks.end(reason));
            ready.extend(used.map(|used| chunks.usage(used)));
        }
        Err(error) => ready.push_back(framed(&OpenaiError::from(&error))),
    }
    ready.push_back(Chunks::done());
}

/// OpenAI's word for how an answer ended.
fn finish(ending: Ending) -> Result<&'static str, NaviError> {
    match ending {
        Ending::Whole | Ending::Stopped => Ok("stop"),
        Ending::Limited => Ok("length"),
        Ending::Turn => Ok("tool_calls"),
        Ending::Failed(error) => Err(error),
    }
}

/// The answer in one piece.
async fn whole(mut answer: Box<Answer>, chunks: Chunks) -> HttpResponse {
    let Whole {
        text,
        thinking,
        calls,
        ending,
    } = answer.whole().await;
    let calls = calls.iter().map(Chunks::call_of).collect();
    let used = answer.usage().await;
    let mut response = match finish(ending) {
        Ok(reason) => HttpResponse::Ok().json(chunks.whole(&text, &thinking, calls, reason, used)),
        Err(error) => failed(&ApiError(error)),
    };
    for (name, value) in places(&answer) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// A run that failed. What it did stays done: clients that try again where a server failed, or was
/// busy, are not to.
fn failed(error: &ApiError) -> HttpResponse {
    let mut response = refusal(error);
    let invites = matches!(response.status().as_u16(), 408 | 409 | 429 | 500..);
    if invites {
        *response.status_mut() = StatusCode::FAILED_DEPENDENCY;
    }
    response.headers_mut().remove(header::RETRY_AFTER);
    let (name, never) = (
        HeaderName::from_static(SHOULD_RETRY),
        HeaderValue::from_static("false"),
    );
    response.headers_mut().insert(name, never);
    response
}
