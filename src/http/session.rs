//! `/sessions/{session_id}`: one session.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::command::SessionChange;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::body::{JsonBody, OptionalJsonBody};
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::messages::page_size;
use super::openapi::Failures;
use super::path::SessionPath;
use crate::access::Principal;

/// How much of a session to read.
#[derive(Debug, Deserialize)]
pub(crate) struct NewestQuery {
    messages: Option<u32>,
}

/// Whether to pin.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PinRequest {
    /// Pins or unpins; the other of what it is now where absent.
    #[serde(default)]
    pinned: Option<bool>,
}

/// What a stop found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Stopped {
    /// Whether there was a run to stop.
    stopped: bool,
}

pub(crate) fn routes() -> [Endpoint; 6] {
    [
        endpoint("/sessions/{session_id}")
            .on(Method::GET, Action::ReadConversations, read)
            .on(Method::PATCH, Action::Converse, change)
            .on(Method::DELETE, Action::Converse, delete),
        endpoint("/sessions/{session_id}/context").on(
            Method::GET,
            Action::ReadConversations,
            context,
        ),
        endpoint("/sessions/{session_id}/context/parts").on(
            Method::GET,
            Action::ReadConversations,
            parts,
        ),
        endpoint("/sessions/{session_id}/pin").on(Method::PATCH, Action::Converse, pin),
        endpoint("/sessions/{session_id}/restore").on(Method::POST, Action::Converse, restore),
        endpoint("/sessions/{session_id}/stop").on(Method::POST, Action::Converse, stop),
    ]
}

#[utoipa::path(get, path = "/sessions/{session_id}", operation_id = "read_session", tag = "sessions",
    params(("session_id" = Uuid, Path,), ("messages" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "How many of the newest messages to give, a few more where a turn begins there; their images by address. All of them, whole, where it is left out.")),
    responses((status = 200, description = "The session with its conversation.", body = ref("#/components/schemas/SessionSnapshot")), Failures))]
pub(crate) async fn read(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    query: web::Query<NewestQuery>,
) -> Result<HttpResponse, ApiError> {
    let newest = query
        .messages
        .map(|n| page_size("messages", n))
        .transpose()?;
    Ok(HttpResponse::Ok().json(app.engine.with_newest(who.user, session, newest).await?))
}

#[utoipa::path(get, path = "/sessions/{session_id}/context", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    responses((status = 200, description = "What the model would be sent; without what is remembered, for a token without the scope `memory`.", body = ref("#/components/schemas/ChatRequest")), Failures))]
pub(crate) async fn context(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
) -> Result<HttpResponse, ApiError> {
    let context = app.engine.context(who.user, session, who.grant.memory());
    Ok(HttpResponse::Ok().json(context.await?))
}

#[utoipa::path(get, path = "/sessions/{session_id}/context/parts", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    responses((status = 200, description = "What fills that request, part by part.", body = ref("#/components/schemas/ContextParts")), Failures))]
pub(crate) async fn parts(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
) -> Result<HttpResponse, ApiError> {
    let parts = app
        .engine
        .context_parts(who.user, session, who.grant.memory());
    Ok(HttpResponse::Ok().json(parts.await?))
}

#[utoipa::path(patch, path = "/sessions/{session_id}", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/SessionChange"),
    responses((status = 200, description = "The session's row of the list.", body = ref("#/components/schemas/SessionSummary")), Failures))]
pub(crate) async fn change(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    JsonBody(change): JsonBody<SessionChange>,
) -> Result<HttpResponse, ApiError> {
    let changed = app.engine.change(who.user, session, change).await?;
    Ok(HttpResponse::Ok().json(changed))
}

#[utoipa::path(patch, path = "/sessions/{session_id}/pin", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    request_body(content = ref("#/components/schemas/PinRequest"), description = "May be left out: pins what is not pinned, and the other way round."),
    responses((status = 200, description = "The session's row of the list.", body = ref("#/components/schemas/SessionSummary")), Failures))]
pub(crate) async fn pin(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    OptionalJsonBody(body): OptionalJsonBody<PinRequest>,
) -> Result<HttpResponse, ApiError> {
    let pinned = body.unwrap_or_default().pinned;
    Ok(HttpResponse::Ok().json(app.engine.pin(who.user, session, pinned).await?))
}

#[utoipa::path(delete, path = "/sessions/{session_id}", operation_id = "delete_session", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    responses((status = 204, description = "Deleted, with its files. `restore` takes it back for a while."), Failures))]
pub(crate) async fn delete(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
) -> Result<HttpResponse, ApiError> {
    app.engine.delete(who.user, session).await?;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(post, path = "/sessions/{session_id}/restore", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    responses((status = 200, description = "The session's row of the list.", body = ref("#/components/schemas/SessionSummary")), Failures))]
pub(crate) async fn restore(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
) -> Result<HttpResponse, ApiError> {
    let restored = app.engine.restore(who.user, session).await?;
    // It may have a name that a program knows.
    app.requests.forget_names(who.user);
    Ok(HttpResponse::Ok().json(restored))
}

#[utoipa::path(post, path = "/sessions/{session_id}/stop", operation_id = "stop_session", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    responses((status = 200, description = "Whether there was a run to stop.", body = ref("#/components/schemas/Stopped")), Failures))]
pub(crate) async fn stop(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
) -> Result<HttpResponse, ApiError> {
    let stopped = app.engine.stop(who.user, session).await?;
    Ok(HttpResponse::Ok().json(Stopped { stopped }))
}
