//! `POST /sessions/import`: a conversation from a file.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::ErrorCode;
use navi_actors::protocol::import::ImportedSession;

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use crate::access::Principal;

/// The largest file.
const MAX_FILE_MIB: usize = 48;

pub(crate) fn routes() -> Endpoint {
    endpoint("/sessions/import")
        .body_limit(MAX_FILE_MIB * 1024 * 1024)
        .on(Method::POST, Action::Converse, import)
}

#[utoipa::path(post, path = "/sessions/import", tag = "sessions",
    request_body(content = ref("#/components/schemas/ImportedSession"), description = "A conversation as `GET /sessions/{session_id}` gives it, 48 MiB at the most; fields that are not named here are passed over."),
    responses((status = 201, description = "A new session with that conversation; the same file again makes another one. All ids are new, times stay. Its text counts as text from outside.", body = ref("#/components/schemas/Imported")), Failures))]
pub(crate) async fn import(
    app: web::Data<App>,
    who: Principal,
    body: Result<JsonBody<ImportedSession>, ApiError>,
) -> Result<HttpResponse, ApiError> {
    let JsonBody(file) = body.map_err(|error| match error.0.code {
        ErrorCode::BodyTooLarge => ApiError::new(
            ErrorCode::BodyTooLarge,
            format!(
                "{}; a conversation has {MAX_FILE_MIB} MiB at the most: take images out of it, or old messages",
                error.0.message
            ),
        ),
        _ => error,
    })?;
    let imported = app.engine.import_session(who.user, file).await?;
    Ok(HttpResponse::Created().json(imported))
}
