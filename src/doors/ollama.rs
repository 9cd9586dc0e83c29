//! Ollama's API, for Home Assistant, editors and Ollama's own clients: the models (`/api/tags`,
//! `/api/show`, `/api/ps`, `/api/version`), `/api/chat` and `/api/generate`, as ollama has them.
//!
//! A model is a profile: `navi:latest` the default one, `navi/PROFILE:latest` another.

mod lines;
mod request;

use actix_web::http::header::HeaderMap;
use actix_web::http::{Method, StatusCode};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::stream;
use navi_actors::domain::input::MAX_MESSAGE_JSON_BYTES;
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::CallId;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use self::lines::{Lines, Shape};
pub(crate) use self::request::{ChatRequest, GenerateRequest, ShowRequest};
use self::request::{Request, Wanted};
use super::answer::{Answer, Ending, StopWords, Told, Whole};
use super::asked::{self, Asked};
use super::{places, streaming};
use crate::access::Principal;
use crate::http::App;
use crate::http::body::unreadable;
use crate::http::endpoint::{Endpoint, endpoint};
use crate::http::error::ApiError;
use crate::http::openapi::OllamaFailures;

/// The type of what streams.
const STREAM: &str = "application/x-ndjson";
const VERSION: &str = "/api/version";
const TAGS: &str = "/api/tags";
const SHOW: &str = "/api/show";
const PS: &str = "/api/ps";
const CHAT: &str = "/api/chat";
const GENERATE: &str = "/api/generate";
pub(super) const PATHS: [&str; 6] = [VERSION, TAGS, SHOW, PS, CHAT, GENERATE];
/// Where messages go.
pub(super) const TAKE: [&str; 2] = [CHAT, GENERATE];

/// Whose API this is like: editors ask for 0.6.4 at the least.
const LIKE: &str = "0.12.0";
/// What a client that sizes its history by it may count on.
const CONTEXT: u32 = 65_536;

pub(super) fn routes() -> [Endpoint; 6] {
    [
        endpoint(VERSION)
            .on(Method::GET, Action::ReadService, version)
            .on(Method::HEAD, Action::ReadService, version),
        endpoint(TAGS)
            .on(Method::GET, Action::ReadService, tags)
            .on(Method::HEAD, Action::ReadService, tags),
        endpoint(PS).on(Method::GET, Action::ReadService, ps),
        endpoint(SHOW).on(Method::POST, Action::ReadService, show),
        endpoint(CHAT)
            .body_limit(MAX_MESSAGE_JSON_BYTES)
            .on(Method::POST, Action::Converse, chat),
        endpoint(GENERATE).body_limit(MAX_MESSAGE_JSON_BYTES).on(
            Method::POST,
            Action::Converse,
            generate,
        ),
    ]
}

/// An error as Ollama's clients read it: a text, and nothing else.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OllamaError {
    error: String,
}

pub(crate) fn refusal(error: &ApiError) -> HttpResponse {
    error.response_of(&OllamaError {
        error: error.0.message.clone(),
    })
}

fn refused(error: NaviError) -> HttpResponse {
    let begun = error.code == ErrorCode::RunFailed;
    let mut response = refusal(&ApiError(error));
    if begun {
        // Nothing failed here, and to ask again is to begin again.
        *response.status_mut() = StatusCode::FAILED_DEPENDENCY;
    }
    response
}

#[utoipa::path(get, path = "/api/version", tag = "ollama",
    responses((status = 200, description = "The version of Ollama's API that this is like.", body = Object), OllamaFailures))]
pub(crate) async fn version(_: Principal) -> HttpResponse {
    HttpResponse::Ok().json(json!({"version": LIKE}))
}

#[utoipa::path(get, path = "/api/tags", tag = "ollama",
    responses((status = 200, description = "`navi:latest`, and `navi/PROFILE:latest` for each profile.", body = Object), OllamaFailures))]
pub(crate) async fn tags(app: web::Data<App>, _: Principal) -> HttpResponse {
    let profiles = app.engine.profiles();
    let named = profiles
        .iter()
        .map(|profile| format!("navi/{}:latest", profile.id));
    let models: Vec<Value> = std::iter::once("navi:latest".to_owned())
        .chain(named)
        .map(|name| listed(&name))
        .collect();
    HttpResponse::Ok().json(json!({"models": models}))
}

#[utoipa::path(get, path = "/api/ps", tag = "ollama",
    responses((status = 200, description = "Nothing: Navi loads no model for a client.", body = Object), OllamaFailures))]
pub(crate) async fn ps(_: Principal) -> HttpResponse {
    HttpResponse::Ok().json(json!({"models": []}))
}

#[utoipa::path(post, path = "/api/show", operation_id = "show_model", tag = "ollama",
    request_body(content = ref("#/components/schemas/OllamaShowRequest"), description = "`model`, or `name`."),
    responses((status = 200, description = "What a model can do.", body = Object), OllamaFailures))]
pub(crate) async fn show(
    app: web::Data<App>,
    _: Principal,
    body: Result<Bytes, actix_web::Error>,
) -> HttpResponse {
    let named = body
        .map_err(|error| unreadable(&error).0)
        .and_then(|body| request::shown(&body))
        .and_then(|name| asked::profile(&app, &name));
    if let Err(error) = named {
        return refused(error);
    }
    HttpResponse::Ok().json(json!({
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": details(),
        "model_info": {
            "general.architecture": "navi",
            "general.basename": "navi",
            "navi.context_length": CONTEXT,
        },
        "capabilities": CAPABILITIES,
        "modified_at": MODIFIED,
    }))
}

const CAPABILITIES: [&str; 4] = ["completion", "tools", "thinking", "vision"];
/// Profiles are files; when one was made tells nobody anything.
const MODIFIED: &str = "2026-01-01T00:00:00Z";

fn details() -> Value {
    json!({
        "parent_model": "",
        "format": "",
        "family": "navi",
        "families": ["navi"],
        "parameter_size": "",
        "quantization_level": "",
        "context_length": CONTEXT,
    })
}

fn listed(name: &str) -> Value {
    json!({
        "name": name,
        "model": name,
        "modified_at": MODIFIED,
        "size": 0,
        "digest": "",
        "details": details(),
        "capabilities": CAPABILITIES,
    })
}

#[utoipa::path(post, path = "/api/chat", tag = "ollama",
    params(("X-Navi-Session" = Option<String>, Header, max_length = 256, description = "As for `/v1/chat/completions`."),
        ("X-Navi-Task" = Option<String>, Header, max_length = 256, description = "As for `/v1/chat/completions`."),
        ("Idempotency-Key" = Option<String>, Header, max_length = 256, description = "As for `/v1/chat/completions`.")),
    request_body(content = ref("#/components/schemas/OllamaChatRequest"), description = "As Ollama has it: `model`, `messages`, `tools`, `format`, `options.stop`, `stream`; the rest is the profile's matter."),
    responses((status = 200, description = "The answer, as lines of JSON unless `stream` is false.", content((Object = "application/json"), ("application/x-ndjson"))), OllamaFailures))]
pub(crate) async fn chat(
    app: web::Data<App>,
    who: Principal,
    request: HttpRequest,
    body: Result<Bytes, actix_web::Error>,
) -> HttpResponse {
    answer(&app, who, request.headers(), body, Shape::Chat)
        .await
        .unwrap_or_else(refused)
}

#[utoipa::path(post, path = "/api/generate", tag = "ollama",
    params(("X-Navi-Session" = Option<String>, Header, max_length = 256, description = "As for `/v1/chat/completions`."),
        ("X-Navi-Task" = Option<String>, Header, max_length = 256, description = "As for `/v1/chat/completions`."),
        ("Idempotency-Key" = Option<String>, Header, max_length = 256, description = "As for `/v1/chat/completions`.")),
    request_body(content = ref("#/components/schemas/OllamaGenerateRequest"), description = "As Ollama has it: `model`, `prompt`, `system`, `images`, `format`, `options.stop`, `stream`."),
    responses((status = 200, description = "The answer, as lines of JSON unless `stream` is false.", content((Object = "application/json"), ("application/x-ndjson"))), OllamaFailures))]
pub(crate) async fn generate(
    app: web::Data<App>,
    who: Principal,
    request: HttpRequest,
    body: Result<Bytes, actix_web::Error>,
) -> HttpResponse {
    answer(&app, who, request.headers(), body, Shape::Generate)
        .await
        .unwrap_or_else(refused)
}

async fn answer(
    app: &App,
    who: Principal,
    headers: &HeaderMap,
    body: Result<Bytes, actix_web::Error>,
    shape: Shape,
) -> Result<HttpResponse, NaviError> {
    let body = body.map_err(|error| unreadable(&error).0)?;
    Asked::refuse_own(headers)?;
    asked::check_headers(headers)?;
    let Request {
        wanted,
        stops,
        model,
        hash,
        conversation,
    } = Request::read(app, who, headers, body, shape).await?;
    let lines = Lines::new(model, shape);
    let asked = match wanted {
        // There is nothing to do.
        Wanted::Load => return Ok(HttpResponse::Ok().json(lines.done("load"))),
        Wanted::Unload => return Ok(HttpResponse::Ok().json(lines.done("unload"))),
        Wanted::Answer(asked) => *asked,
    };
    if asked.is_task_by(headers)? {
        return task(app, who, asked, stops, lines).await;
    }
    let streamed = asked.streamed;
    let answer = asked.until(stops).answer(app, who, headers, hash).await?;
    let open = Open {
        app: app.clone(),
        answer,
        lines,
        conversation,
    };
    Ok(if streamed {
        stream_of(open)
    } else {
        whole(open).await
    })
}

/// A title, tags and their like: asked of the model alone, without tools and without a session.
async fn task(
    app: &App,
    who: Principal,
    asked: Asked,
    stops: StopWords,
    lines: Lines,
) -> Result<HttpResponse, NaviError> {
    let (streamed, profile_id) = (asked.streamed, asked.profile_id.clone());
    let (form, asked) = (asked.form(), asked.into_chat());
    let text = app
        .engine
        .complete(who.user, profile_id.as_deref(), asked, form)
        .await?;
    let text = stops.cut(&text);
    if !streamed {
        return Ok(HttpResponse::Ok().json(lines.whole(&text, "", &[], "stop", (0, 0))));
    }
    let all = [lines.text(&text), lines.end("stop", (0, 0))];
    let all = all.map(|line| Ok::<_, NaviError>(Bytes::from(line)));
    Ok(streaming(STREAM).streaming(stream::iter(all)))
}

/// An answer on its way.
struct Open {
    app: App,
    answer: Box<Answer>,
    lines: Lines,
    /// What the next request of the same conversation begins with.
    conversation: [u8; 32],
}

impl Open {
    /// The last line.
    async fn end(&self, ending: Ending, calls: Vec<CallId>) -> String {
        if !calls.is_empty() {
            let by = self.answer.by();
            self.app.requests.keep_calls(by, self.conversation, calls);
        }
        match reason(ending) {
            Ok(reason) => self.lines.end(reason, self.answer.usage().await),
            Err(error) => lines::line(&OllamaError {
                error: error.message,
            }),
        }
    }
}

/// Ollama's word for how an answer ended. It has none for calls: they stand in the message.
fn reason(ending: Ending) -> Result<&'static str, NaviError> {
    match ending {
        Ending::Whole | Ending::Stopped | Ending::Turn => Ok("stop"),
        Ending::Limited => Ok("length"),
        Ending::Failed(error) => Err(error),
    }
}

/// The answer as it comes.
fn stream_of(open: Open) -> HttpResponse {
    let mut response = streaming(STREAM);
    for (name, value) in places(&open.answer) {
        response.insert_header((name, value));
    }
    let state = Some((open, Vec::new()));
    response.streaming(stream::unfold(state, |open| async move {
        let (mut it, mut calls) = open?;
        let line = match it.answer.next().await {
            Told::Thinking(text) => it.lines.thinking(&text),
            Told::Text(text) => it.lines.text(&text),
            // A blank line is no JSON, and these clients read each.
            Told::Step(_) | Told::Silence => it.lines.text(""),
            Told::Call(call) => {
                let line = it.lines.call(&call, calls.len());
                calls.push(call.id);
                line
            }
            Told::Over(ending) => {
                let last = it.end(ending, calls).await;
                return Some((Ok(Bytes::from(last)), None));
            }
        };
        Some((Ok::<_, NaviError>(Bytes::from(line)), Some((it, calls))))
    }))
}

/// The answer in one piece.
async fn whole(mut open: Open) -> HttpResponse {
    let Whole {
        text,
        thinking,
        calls,
        ending,
    } = open.answer.whole().await;
    if !calls.is_empty() {
        let ids = calls.iter().map(|call| call.id.clone()).collect();
        let by = open.answer.by();
        open.app.requests.keep_calls(by, open.conversation, ids);
    }
    let mut response = match reason(ending) {
        Ok(reason) => {
            let used = open.answer.usage().await;
            HttpResponse::Ok().json(open.lines.whole(&text, &thinking, &calls, reason, used))
        }
        Err(error) => refused(error),
    };
    for (name, value) in places(&open.answer) {
        response.headers_mut().insert(name, value);
    }
    response
}
