//! `POST /sessions/{session_id}/messages`: a plain run.

use actix_web::web::PayloadConfig;
use actix_web::{HttpResponse, Resource, web};
use navi_actors::domain::input::MAX_MESSAGE_JSON_BYTES;
use navi_actors::protocol::command::PlainInput;

use super::body::JsonBody;
use super::error::ApiError;
use super::openapi::Failures;
use super::path::SessionPath;
use super::{App, resource};
use crate::access::Principal;

pub(crate) fn routes() -> Resource {
    resource("/sessions/{session_id}/messages", "POST")
        .app_data(PayloadConfig::new(MAX_MESSAGE_JSON_BYTES))
        .route(web::post().to(send))
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
    Ok(HttpResponse::Ok().json(app.engine.run_plain(who.user, session, input).await?))
}
