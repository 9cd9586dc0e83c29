//! Navi as a server of the Model Context Protocol, at one address: for the revision 2026-07-28,
//! in which each request stands by itself, and for those before it, which begin with `initialize`
//! and have a session from there on. What is spoken is rmcp's; who may come in, from where, and
//! with how much, is decided before it, as for every door.

mod approvals;
mod legacy;
mod memory;
mod runs;
mod server;
mod sessions;
pub(crate) mod stdio;
mod tools;
mod watch;

use std::convert::Infallible;
use std::sync::Arc;

use actix_web::http::Method;
use actix_web::http::StatusCode;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::StreamExt as _;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Collected, Full};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use self::legacy::{LegacySessions, asked_by};
use self::server::NaviServer;
use crate::access::Principal;
use crate::http::App;
use crate::http::body::unreadable;
use crate::http::endpoint::{Endpoint, endpoint};
use crate::http::error::ApiError;
use crate::http::openapi::McpFailures;
use crate::http::origin::{Trust, check_origin};
use crate::http::turns;
use crate::http::ws::Admission;

/// `GET /mcp` is the list of the servers that Navi herself uses.
pub(crate) const PATH: &str = "/api/mcp";
/// The longest message has 256 KB, and six times as much where each character is an escape.
const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;
/// Which session of an older revision a request belongs to.
const SESSION_ID: &str = "mcp-session-id";
/// What `navi mcp` says of itself where its program may not pass on answers to requests for
/// consent, though its login might.
const CONSENT: &str = "x-navi-consent";
const NO_CONSENT: &str = "none";
/// What JSON-RPC leaves to servers.
const SERVER_ERROR: i64 = -32_000;

/// An error of JSON-RPC, as clients read it whatever kept their request from an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct McpError {
    jsonrpc: &'static str,
    /// That of the request, where it was read.
    id: Option<Value>,
    error: McpErrorDetails,
}

#[derive(Debug, Serialize, JsonSchema)]
struct McpErrorDetails {
    code: i64,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl McpError {
    fn of(message: String, data: Option<Value>) -> Self {
        Self {
            jsonrpc: "2.0",
            id: None,
            error: McpErrorDetails {
                code: SERVER_ERROR,
                message,
                data,
            },
        }
    }
}

/// An error as clients of this door read it.
pub(crate) fn refusal(error: &ApiError) -> HttpResponse {
    let data = json!({"code": error.0.code});
    error.response_of(&McpError::of(error.0.message.clone(), Some(data)))
}

/// What rmcp answers with.
type Answered = BoxBody<Bytes, Infallible>;

/// What serves this door: one for the process.
pub(crate) struct McpDoor {
    service: StreamableHttpService<NaviServer, LegacySessions>,
    sessions: Arc<LegacySessions>,
    /// Of the whole service: a session outlives the worker that it came in by, and what is large
    /// is parsed beside the workers.
    runtime: Handle,
}

impl McpDoor {
    pub(crate) fn new(app: &App, runtime: Handle) -> Self {
        let mut config = StreamableHttpServerConfig::default()
            // The gate before every door looks at the host; `serve` looks at the origin.
            .disable_allowed_hosts();
        config.max_request_body_bytes = MAX_BODY_BYTES;
        config.cancellation_token = app.closing.child_token();
        let sessions = Arc::new(LegacySessions::new());
        let server = NaviServer::new(app.clone());
        let service =
            StreamableHttpService::new(move || Ok(server.clone()), Arc::clone(&sessions), config);
        Self {
            service,
            sessions,
            runtime,
        }
    }
}

/// Each tool, and which row of the table of who may what it needs.
#[cfg(test)]
pub(crate) fn tool_actions() -> impl Iterator<Item = (&'static str, Action)> {
    let all = tools::all().iter();
    all.map(|offered| (offered.tool.name.as_ref(), offered.action))
}

pub(crate) fn routes() -> Endpoint {
    endpoint(PATH)
        .body_limit(MAX_BODY_BYTES)
        .on(Method::POST, Action::ReadConversations, ask)
        .on(Method::GET, Action::ReadConversations, listen)
        .on(Method::DELETE, Action::ReadConversations, leave)
}

#[utoipa::path(post, path = "/api/mcp", operation_id = "ask_mcp", tag = "mcp",
    params(("MCP-Protocol-Version" = Option<String>, Header, description = "As the revision demands it, with `Mcp-Method` and `Mcp-Name`."),
        ("Mcp-Session-Id" = Option<String>, Header, description = "As `initialize` gave it, up to the revision 2025-11-25.")),
    request_body(content = Object, description = "A JSON-RPC message of the Model Context Protocol: a request, a notification or an answer."),
    responses((status = 200, description = "The answer; where it is a stream of events, with what is told before it, as progress.", content((Object = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "Taken, and not answered."),
        McpFailures))]
pub(crate) async fn ask(
    app: web::Data<App>,
    door: web::Data<McpDoor>,
    who: Principal,
    request: HttpRequest,
    body: Result<Bytes, actix_web::Error>,
) -> HttpResponse {
    let served = match body {
        Ok(body) => {
            // Its answer may take long.
            turns::end();
            serve(&app, &door, who, &request, body).await
        }
        Err(error) => Err(unreadable(&error)),
    };
    served.unwrap_or_else(|error| refusal(&error))
}

#[utoipa::path(get, path = "/api/mcp", operation_id = "listen_mcp", tag = "mcp",
    params(("MCP-Protocol-Version" = Option<String>, Header, description = "As the revision demands it."),
        ("Mcp-Session-Id" = Option<String>, Header, description = "As `initialize` gave it."),
        ("Last-Event-ID" = Option<String>, Header, description = "Goes on behind it.")),
    responses((status = 200, description = "What the server tells a session up to the revision 2025-11-25, as server-sent events.", body = String, content_type = "text/event-stream"),
        McpFailures))]
pub(crate) async fn listen(
    app: web::Data<App>,
    door: web::Data<McpDoor>,
    who: Principal,
    request: HttpRequest,
) -> HttpResponse {
    let served = serve(&app, &door, who, &request, Bytes::new()).await;
    served.unwrap_or_else(|error| refusal(&error))
}

#[utoipa::path(delete, path = "/api/mcp", operation_id = "leave_mcp", tag = "mcp",
    params(("MCP-Protocol-Version" = Option<String>, Header, description = "As the revision demands it."),
        ("Mcp-Session-Id" = Option<String>, Header, description = "As `initialize` gave it.")),
    responses((status = 202, description = "The session is over."),
        McpFailures))]
pub(crate) async fn leave(
    app: web::Data<App>,
    door: web::Data<McpDoor>,
    who: Principal,
    request: HttpRequest,
) -> HttpResponse {
    let served = serve(&app, &door, who, &request, Bytes::new()).await;
    served.unwrap_or_else(|error| refusal(&error))
}

async fn serve(
    app: &App,
    door: &McpDoor,
    who: Principal,
    request: &HttpRequest,
    body: Bytes,
) -> Result<HttpResponse, ApiError> {
    // The gate lets requests with a token read from any page; a stream here is no reading.
    check_origin(request.headers(), &app.places, Trust::Token)?;
    if let Some(session) = request.headers().get(SESSION_ID)
        && !door.sessions.is_of(session.as_bytes(), who.key)
    {
        let message = "this session has ended, or is another login's; begin with initialize";
        return Err(ApiError::new(ErrorCode::NotFound, message));
    }
    let admission = Admission::new(app, None, &who)?;
    let (service, request) = (door.service.clone(), taken(request, who, body)?);
    let answering = async move { service.handle(request).await };
    let answering = door.runtime.spawn(asked_by(who.user, answering));
    // Whoever asked may have gone: then nobody needs the answer.
    let answer = AbortOnDropHandle::new(answering).await.map_err(|error| {
        tracing::error!(%error, "a request over MCP went down");
        NaviError::new(
            ErrorCode::Internal,
            "something failed here; Navi's log says what",
        )
    })?;
    if let Some(session) = answer.headers().get(SESSION_ID) {
        door.sessions.give(session.as_bytes(), who.key);
    }
    Ok(given(answer, admission).await)
}

/// A request as rmcp takes it, with who asks.
fn taken(
    request: &HttpRequest,
    who: Principal,
    body: Bytes,
) -> Result<http::Request<Full<Bytes>>, NaviError> {
    let unreadable = |_| NaviError::new(ErrorCode::InvalidField, "the request cannot be read");
    let mut taken = http::Request::builder()
        .method(request.method().as_str())
        .uri(PATH)
        .body(Full::new(body))
        .map_err(unreadable)?;
    for (name, value) in request.headers() {
        let name = http::HeaderName::from_bytes(name.as_str().as_bytes());
        let value = http::HeaderValue::from_bytes(value.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value) {
            taken.headers_mut().append(name, value);
        }
    }
    taken.extensions_mut().insert(who);
    Ok(taken)
}

/// An answer as actix gives it: a stream for as long as what opened the door does.
async fn given(answer: http::Response<Answered>, admission: Admission) -> HttpResponse {
    let (head, body) = answer.into_parts();
    let status = StatusCode::from_u16(head.status.as_u16());
    let mut response = HttpResponse::build(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
    let is = |kind: &str| {
        let named = head.headers.get(http::header::CONTENT_TYPE);
        named.is_some_and(|named| named.as_bytes().starts_with(kind.as_bytes()))
    };
    let (streams, is_json) = (is("text/event-stream"), is("application/json"));
    for (name, value) in &head.headers {
        response.append_header((name.as_str(), value.as_bytes()));
    }
    if streams {
        let ended = async move {
            // Both parts of it: its seat is held as long as this.
            let admission = admission;
            admission.hold.ended().await;
        };
        return response.streaming(body.into_data_stream().take_until(Box::pin(ended)));
    }
    let body = body.collect().await.map(Collected::to_bytes);
    let body = body.unwrap_or_else(|never| match never {});
    if head.status.is_success() || is_json {
        return response.body(body);
    }
    // What it says in plain words, in the form of the other errors.
    let text = String::from_utf8_lossy(&body).into_owned();
    response.json(McpError::of(text, None))
}
