//! OpenAI's Responses: `/v1/responses` and its stored forms, as openai-openapi has them.
//!
//! A response is one of a run's answers: one that ends where it is the program's turn, with calls
//! of its own tools or with requests for approval, is followed by another one of the same run. It
//! is kept in a session, which the page shows; `store: false` leaves none. Nothing is stored of
//! it beside the run: what is asked for later is told anew from the session's log.

mod begin;
mod events;
mod ids;
mod items;
mod request;
mod stored;

use std::collections::VecDeque;

use actix_web::http::Method;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use chrono::Utc;
use futures_util::stream;
use navi_actors::domain::input::MAX_MESSAGE_JSON_BYTES;
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::{RunId, SessionId};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::begin::Begun;
use self::ids::ResponseId;
use self::items::{Items, Status};
use self::request::Request;
pub(crate) use self::request::ResponseRequest;
use super::answer::{Answer, Ending, Told};
use super::asked::{self, Asked};
use super::openai::refused;
use super::{places, streaming};
use crate::access::Principal;
use crate::http::App;
use crate::http::body::unreadable;
use crate::http::endpoint::{Endpoint, endpoint};
use crate::http::openapi::OpenaiFailures;

const ALL: &str = "/v1/responses";
const ONE: &str = "/v1/responses/{response_id}";
const CANCEL: &str = "/v1/responses/{response_id}/cancel";
const INPUT: &str = "/v1/responses/{response_id}/input_items";
pub(super) const PATHS: [&str; 4] = [ALL, ONE, CANCEL, INPUT];
/// Where messages go.
pub(super) const TAKES: &str = ALL;

const STREAM: &str = "text/event-stream";

pub(super) fn routes() -> [Endpoint; 4] {
    [
        endpoint(ALL)
            .body_limit(MAX_MESSAGE_JSON_BYTES)
            .on(Method::POST, Action::Converse, create),
        endpoint(ONE)
            .on(Method::GET, Action::ReadConversations, read)
            .on(Method::DELETE, Action::Converse, delete),
        endpoint(CANCEL).on(Method::POST, Action::Converse, cancel),
        endpoint(INPUT).on(Method::GET, Action::ReadConversations, input_items),
    ]
}

fn unknown(id: &str) -> NaviError {
    let shown: String = id.chars().take(100).collect();
    NaviError::new(
        ErrorCode::NotFound,
        format!("there is no response {shown:?} here, or not any more"),
    )
}

#[utoipa::path(post, path = "/v1/responses", operation_id = "create_response", tag = "openai",
    params(("X-Navi-Session" = Option<String>, Header, max_length = 256, description = "As `conversation`, which goes before it."),
        ("X-Navi-Task" = Option<String>, Header, max_length = 256, description = "As for `/v1/chat/completions`."),
        ("Idempotency-Key" = Option<String>, Header, max_length = 256, description = "The same request again with the same key joins its run; another question with it is refused.")),
    request_body(content = ref("#/components/schemas/ResponseRequest"), description = "As OpenAI's Responses have it; docs/doors.md says what is passed over."),
    responses((status = 200, description = "The response in OpenAI's form, in one piece or, with `stream`, as server-sent events.", content((Object = "application/json"), ("text/event-stream"))), OpenaiFailures))]
pub(crate) async fn create(
    app: web::Data<App>,
    who: Principal,
    request: HttpRequest,
    body: Result<Bytes, actix_web::Error>,
) -> HttpResponse {
    answer(&app, who, &request, body)
        .await
        .unwrap_or_else(refused)
}

async fn answer(
    app: &App,
    who: Principal,
    request: &HttpRequest,
    body: Result<Bytes, actix_web::Error>,
) -> Result<HttpResponse, NaviError> {
    let body = body.map_err(|error| unreadable(&error).0)?;
    Asked::refuse_own(request.headers())?;
    asked::check_headers(request.headers())?;
    let asked = Request::read(body).await?;
    let mut head = head(&asked.model, Utc::now().timestamp());
    head.extend([
        ("instructions".to_owned(), json!(asked.instructions)),
        ("metadata".to_owned(), json!(asked.metadata)),
        ("tools".to_owned(), json!(asked.tools)),
        ("tool_choice".to_owned(), asked.tool_choice.clone()),
        (
            "parallel_tool_calls".to_owned(),
            json!(!asked.terms.demands.one_by_one),
        ),
        ("text".to_owned(), json!({"format": asked.format})),
        ("store".to_owned(), json!(asked.stores)),
        ("background".to_owned(), json!(asked.background)),
        (
            "previous_response_id".to_owned(),
            json!(asked.previous.map(ResponseId::text)),
        ),
    ]);
    let (streamed, background) = (asked.streamed, asked.background);
    let mut answer = match begin::begin(app, who, request.headers(), asked).await? {
        Begun::Run(answer) => answer,
        Begun::Text(text) => return Ok(task(text, head, streamed)),
    };
    answer.begin().await;
    if !answer.ephemeral {
        let conversation = ids::conversation(answer.session);
        head.insert("conversation".to_owned(), json!({"id": conversation}));
    }
    let id = ResponseId {
        session: answer.session,
        run: answer.run_id,
        number: answer.number(),
    };
    let items = Items::new(id, head, None);
    if streamed {
        return Ok(stream_of(Source::Live(answer), items));
    }
    let mut response = if background {
        // What becomes of it is asked by its id.
        answer.deliver();
        HttpResponse::Ok().json(items.response(&Status::InProgress, None))
    } else {
        whole(&mut answer, items).await
    };
    for (name, value) in places(&answer) {
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// What was asked of the model alone. It has an id as any response has, and is not found by it.
fn task(text: String, head: Map<String, Value>, streamed: bool) -> HttpResponse {
    let id = ResponseId {
        session: SessionId::new(),
        run: RunId::new(),
        number: 0,
    };
    let mut items = Items::new(id, head, None);
    let told = [Told::Text(text), Told::Over(Ending::Whole)];
    if streamed {
        return stream_of(Source::Past(told.into(), (0, 0)), items);
    }
    let status = stored::take_all(&mut items, told.into());
    HttpResponse::Ok().json(items.response(&status, Some((0, 0))))
}

/// What of a response does not change, as it is where nothing was said of it.
fn head(model: &str, created_at: i64) -> Map<String, Value> {
    let head = json!({
        "object": "response",
        "created_at": created_at,
        "model": model,
        "background": false,
        "conversation": null,
        "instructions": null,
        "max_output_tokens": null,
        "metadata": {},
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null},
        "service_tier": null,
        "store": true,
        "temperature": null,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": null,
        "truncation": "disabled",
        "user": null,
    });
    match head {
        Value::Object(head) => head,
        _ => Map::new(),
    }
}

/// Where a response comes from.
enum Source {
    Live(Box<Answer>),
    /// It is known to its end, with the tokens that its run used.
    Past(VecDeque<Told>, (u64, u64)),
}

impl Source {
    async fn next(&mut self) -> Told {
        match self {
            Self::Live(answer) => answer.next().await,
            Self::Past(told, _) => told.pop_front().unwrap_or(Told::Over(Ending::Whole)),
        }
    }

    async fn used(&self) -> (u64, u64) {
        match self {
            Self::Live(answer) => answer.usage().await,
            Self::Past(_, used) => *used,
        }
    }
}

/// The response as it comes.
fn stream_of(source: Source, mut items: Items) -> HttpResponse {
    let mut response = streaming(STREAM);
    if let Source::Live(answer) = &source {
        for (name, value) in places(answer) {
            response.insert_header((name, value));
        }
    }
    items.begin();
    let state = (items, Some(source));
    response.streaming(stream::unfold(state, |(mut items, mut open)| async move {
        loop {
            let ready = items.ready();
            if !ready.is_empty() {
                return Some((Ok::<_, NaviError>(Bytes::from(ready)), (items, open)));
            }
            let mut source = open.take()?;
            match source.next().await {
                Told::Over(ending) => {
                    let used = source.used().await;
                    items.end(&ending.into(), used);
                }
                told => {
                    items.take(told);
                    open = Some(source);
                }
            }
        }
    }))
}

/// The response in one piece.
async fn whole(answer: &mut Answer, mut items: Items) -> HttpResponse {
    let status = loop {
        match answer.next().await {
            Told::Over(ending) => break Status::from(ending),
            told => items.take(told),
        }
        drop(items.ready());
    };
    let used = answer.usage().await;
    items.end(&status, used);
    HttpResponse::Ok().json(items.response(&status, Some(used)))
}

/// How a response is read.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ReadQuery {
    #[serde(default)]
    stream: bool,
    starting_after: Option<u64>,
}

#[utoipa::path(get, path = "/v1/responses/{response_id}", operation_id = "read_response", tag = "openai",
    params(("response_id" = String, Path,),
        ("stream" = Option<bool>, Query, description = "As server-sent events."),
        ("starting_after" = Option<u64>, Query, description = "With `stream`: those after the event of this `sequence_number`.")),
    responses((status = 200, description = "The response as it stands; with `stream`, its events.", content((Object = "application/json"), ("text/event-stream"))), OpenaiFailures))]
pub(crate) async fn read(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<String>,
    query: web::Query<ReadQuery>,
) -> HttpResponse {
    stored::read(&app, who, &path, &query)
        .await
        .unwrap_or_else(refused)
}

#[utoipa::path(delete, path = "/v1/responses/{response_id}", operation_id = "delete_response", tag = "openai",
    params(("response_id" = String, Path,)),
    responses((status = 200, description = "Deleted, with its session, which has no other.", body = Object), OpenaiFailures))]
pub(crate) async fn delete(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<String>,
) -> HttpResponse {
    stored::delete(&app, who, &path)
        .await
        .map_or_else(refused, |deleted| HttpResponse::Ok().json(deleted))
}

#[utoipa::path(post, path = "/v1/responses/{response_id}/cancel", operation_id = "cancel_response", tag = "openai",
    params(("response_id" = String, Path,)),
    responses((status = 200, description = "The response as it stands; cancelled, where it went.", body = Object), OpenaiFailures))]
pub(crate) async fn cancel(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<String>,
) -> HttpResponse {
    stored::cancel(&app, who, &path)
        .await
        .unwrap_or_else(refused)
}

#[utoipa::path(get, path = "/v1/responses/{response_id}/input_items", operation_id = "list_input_items", tag = "openai",
    params(("response_id" = String, Path,)),
    responses((status = 200, description = "What the response answers.", body = Object), OpenaiFailures))]
pub(crate) async fn input_items(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<String>,
) -> HttpResponse {
    stored::input_items(&app, who, &path)
        .await
        .map_or_else(refused, |items| HttpResponse::Ok().json(items))
}
