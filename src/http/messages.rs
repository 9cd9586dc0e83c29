//! `/sessions/{session_id}/messages`: a plain run, earlier messages, and their images.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::input::MAX_MESSAGE_JSON_BYTES;
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::command::{PlainConsent, PlainInput};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::MessageId;
use serde::Deserialize;

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::files::shown;
use super::openapi::Failures;
use super::path::{SessionPath, id_of, session_id};
use crate::access::Principal;

pub(crate) const IMAGE: &str = "/sessions/{session_id}/messages/{message_id}/images/{n}";

/// How many messages a page has where that is not said, and at the most.
const USUAL_PAGE: u32 = 100;
const MAX_PAGE: u32 = 1_000;

/// Which messages to read.
#[derive(Debug, Deserialize)]
pub(crate) struct BeforeQuery {
    before: MessageId,
    limit: Option<u32>,
}

pub(crate) fn routes() -> [Endpoint; 2] {
    [
        endpoint("/sessions/{session_id}/messages")
            .body_limit(MAX_MESSAGE_JSON_BYTES)
            .on(Method::GET, Action::ReadConversations, before)
            .on(Method::POST, Action::Converse, send),
        endpoint(IMAGE).on(Method::GET, Action::ReadConversations, image),
    ]
}

/// How many messages a page has.
///
/// # Errors
/// `invalid_field` where it is none, or too many.
pub(crate) fn page_size(field: &str, asked: u32) -> Result<u32, NaviError> {
    if (1..=MAX_PAGE).contains(&asked) {
        return Ok(asked);
    }
    let message = format!("{field} must be 1 to {MAX_PAGE}; this is {asked}");
    Err(NaviError::new(ErrorCode::InvalidField, message))
}

#[utoipa::path(get, path = "/sessions/{session_id}/messages", tag = "sessions",
    params(("session_id" = Uuid, Path,), ("before" = Uuid, Query, description = "A message of the session."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "100 where it is left out. A few more are given where a turn begins there.")),
    responses((status = 200, description = "The newest of the messages before that one, as they are shown now, their images by address.", body = ref("#/components/schemas/MessagePage")), Failures))]
pub(crate) async fn before(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    query: web::Query<BeforeQuery>,
) -> Result<HttpResponse, ApiError> {
    let most = page_size("limit", query.limit.unwrap_or(USUAL_PAGE))?;
    let page = app
        .engine
        .messages_before(who.user, session, query.before, most);
    Ok(HttpResponse::Ok().json(page.await?))
}

#[utoipa::path(get, path = "/sessions/{session_id}/messages/{message_id}/images/{n}", operation_id = "message_image", tag = "sessions",
    params(("session_id" = Uuid, Path,), ("message_id" = Uuid, Path,), ("n" = u32, Path, description = "From 0.")),
    responses((status = 200, description = "An image of a message, as it was sent.", content(("image/png"), ("image/jpeg"), ("image/gif"), ("image/webp"))), Failures))]
pub(crate) async fn image(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<(String, String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (session, message, at) = path.as_ref();
    let session = session_id(session)?;
    let message = id_of("a message's", message)?;
    let at = at
        .parse()
        .map_err(|_| ApiError::new(ErrorCode::InvalidId, "an image's number is 0 or more"))?;
    let image = app
        .engine
        .message_image(who.user, session, message, at)
        .await?;
    Ok(shown(image, "private, max-age=31536000, immutable"))
}

#[utoipa::path(post, path = "/sessions/{session_id}/messages", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/PlainInput"),
    responses((status = 200, description = "The answer, when it is done.", body = ref("#/components/schemas/PlainAnswer")), Failures))]
pub(crate) async fn send(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    JsonBody(input): JsonBody<PlainInput>,
) -> Result<HttpResponse, ApiError> {
    if input.consent == PlainConsent::Allow {
        who.grant.check(Action::GiveConsent)?;
    }
    Ok(HttpResponse::Ok().json(app.engine.run_plain(who.user, session, input).await?))
}
